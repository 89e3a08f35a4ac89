// The world of the playground: a true time, workers, a store, the network between them, and what happens in it. The same
// settings and the same deeds give the same world.

import { Queue } from "./queue.mjs";
import { Network } from "./network.mjs";
import { stream } from "./random.mjs";
import { Resource } from "./resource.mjs";
import { Node } from "./store.mjs";
import { Witness } from "./witness.mjs";
import { Worker } from "./worker.mjs";

export const NAMES = ["A", "B", "C"];
export const STORES = {
  single: { title: "one store", nodes: 1, poll: "acquire", runsOut: true },
  queue: { title: "one store with a queue", nodes: 1, poll: "acquire", runsOut: true, keepsQueue: true },
  quorum: { title: "quorum of 5", nodes: 5, poll: "acquire", runsOut: true },
  dynamodb: { title: "like DynamoDB", nodes: 1, poll: "read", runsOut: false },
};
/** Whose clock is fast, and whose is slow: as far as the bound allows. */
const SKEWS = { workers: [-1, 1, 0], nodes: [1, 0, -1, 1, 0] };
/** How far the wall clocks of workers are ahead, in seconds: nothing but the height of tokens depends on them. */
const AHEAD = [0, 1, 2];
const QUORUM = new Uint8Array(16).fill(0x70);
/** The component waits for a reply for a sixth of the ttl, or for this. */
const REQUEST_TIMEOUT_MS = 3_000n;
/** More happens at one instant only in a world that has gone round in circles. */
const MOST_AT_ONCE = 100_000;

export class World {
  nowNs = 0;
  /** What happened, for people: `{ atNs, worker, text, tone }`. */
  log = [];
  #events = [];
  #order = 0;
  #settings;
  #nextLife = [];
  #longestLeaseNs;
  /** Nodes that have ever lost their data. */
  #wiped = new Set();

  /** `protocol` makes an instance of the component. */
  constructor(protocol, settings) {
    this.#settings = settings;
    const { seed, store, ttlMs, driftPercent, latencyMs, lossPercent, isGuarded, workers, isRun = false } = settings;
    const { Client } = protocol();
    const kind = STORES[store];
    this.ttlMs = ttlMs;
    this.runsOut = kind.runsOut;
    /** Whether workers ask for a run, whose success is written down, instead of a plain lock. */
    this.isRun = isRun;
    const drift = driftPercent / 100;
    // By the slowest clock. What was granted by now is over by then.
    this.#longestLeaseNs = (ttlMs * 1e6) / (1 - drift);
    this.nodes = Array.from({ length: kind.nodes }, (_, index) => {
      const node = new Node(kind);
      if (kind.nodes > 1) node.join(QUORUM, BigInt(ttlMs));
      const queue = kind.keepsQueue ? new Queue() : undefined;
      return { index, place: `node/${index}`, node, queue, isDown: false, rate: 1 + drift * SKEWS.nodes[index] };
    });
    this.network = new Network(this, { latencyMs, lossPercent }, stream(seed, "network"));
    this.resource = new Resource(isGuarded);
    const config = {
      nodes: this.nodes.map(() => ({ poll: kind.poll, watch: kind.keepsQueue === true, durability: "declared" })),
      driftPpm: Math.max(100, Math.round(driftPercent * 10_000)),
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
      limits: {},
      quorum: kind.nodes > 1 ? { id: QUORUM, maxTtlMs: BigInt(ttlMs) } : undefined,
    };
    this.workers = NAMES.slice(0, workers).map((name, index) => {
      const [rate, random] = [1 + drift * SKEWS.workers[index], stream(seed, `worker ${name}`)];
      return new Worker(this, { index, name, rate, Client, config, ttlMs, random });
    });
    this.witness = new Witness(this);
    if (settings.isBusy) this.workers.forEach((worker) => this.#live(worker, stream(seed, `life of ${worker.name}`)));
  }

  worker(name) {
    return this.workers[NAMES.indexOf(name)];
  }

  /** Does something after so many nanoseconds. */
  after(ns, run) {
    const event = { atNs: this.nowNs + Math.max(0, Math.round(ns)), order: (this.#order += 1), run };
    let at = this.#events.length;
    // The latest first, so that the next one is at the end.
    while (at > 0 && isBefore(this.#events[at - 1], event)) at -= 1;
    this.#events.splice(at, 0, event);
  }

  get nextNs() {
    return this.#events.at(-1)?.atNs ?? Infinity;
  }

  /** Lets happen what happens until then; `isEnough` is asked after each event whether to stop there. */
  runUntil(untilNs, isEnough = () => false) {
    let atOnce = 0;
    while (this.nextNs <= untilNs) {
      const event = this.#events.pop();
      atOnce = event.atNs === this.nowNs ? atOnce + 1 : 0;
      if (atOnce > MOST_AT_ONCE) throw new Error("the time of this world stands still");
      this.nowNs = event.atNs;
      event.run();
      this.witness.look();
      if (isEnough()) return;
    }
    this.nowNs = untilNs;
  }

  /**
   * The time of wall clocks: seconds, in place of milliseconds. Tokens begin at a thousand times that, and should be
   * short enough to be read.
   */
  calendar(worker) {
    const ahead = worker === undefined ? 0 : AHEAD[worker.index];
    return BigInt(1 + ahead + Math.floor(this.nowNs / 1e9));
  }

  tell(worker, text, tone = "plain") {
    this.log.push({ atNs: this.nowNs, worker: worker?.index, text, tone });
  }

  granted(worker, isRecovered) {
    this.witness.granted(worker);
    const how = isRecovered ? "finds its own name in the store: it has the lock" : "has the lock";
    this.tell(worker, `${how}, token ${worker.token}`, "good");
    this.#nextLife[worker.index]?.granted();
  }

  ended(worker) {
    this.#nextLife[worker.index]?.ended();
  }

  /** A request of the component to a node, and what comes back. */
  transmit(worker, { id, node: index, ops }) {
    const node = this.nodes[index];
    const [{ lock, op }] = ops;
    const ask = { worker, from: worker.place, to: node.place, kind: op.tag, isReply: false, token: op.val?.token };
    this.network.send(ask, () => {
      const answer = { ...ask, from: node.place, to: worker.place, isReply: true };
      if (node.isDown) {
        // A connection that is refused carries nothing.
        const fault = { kind: "unreachable", detail: "the node is down" };
        this.network.send({ ...answer, tone: "down" }, () => worker.hear(id, { tag: "not-sent", val: fault }));
        return;
      }
      const now = this.#clocksOf(node);
      const outcomes = ops.map(({ op }) => {
        if (node.queue === undefined) return node.node.serve(op, now);
        const { outcome, turn } = node.queue.serve(node.node, ticketOf(worker, lock), op, now);
        this.#call(node, turn);
        return outcome;
      });
      this.network.send({ ...answer, ...described(outcomes[0]) }, () => {
        worker.hear(id, { tag: "outcomes", val: { outcomes } });
      });
    });
  }

  /** A worker wants to be told when its turn has come. */
  subscribe(worker, index) {
    const node = this.nodes[index];
    const ask = { worker, from: worker.place, to: node.place, kind: "listen", isReply: false };
    this.network.send(ask, () => {
      if (node.isDown) return;
      const answer = { ...ask, from: node.place, to: worker.place, isReply: true, tone: "yes" };
      this.network.send(answer, () => worker.subscribed(index));
    });
  }

  /** A worker has stopped waiting: it has the lock, or has given up. */
  unsubscribe(worker, index, lock) {
    const node = this.nodes[index];
    const isQueued = node.queue.tickets().includes(ticketOf(worker, lock));
    if (!isQueued) return;
    const leave = { worker, from: worker.place, to: node.place, kind: "leave", isReply: false };
    this.network.send(leave, () => {
      if (!node.isDown) this.#call(node, node.queue.leave(ticketOf(worker, lock), this.#clocksOf(node)));
    });
  }

  /** Tells the worker whose turn it is. */
  #call(node, turn) {
    if (turn === undefined) return;
    const worker = this.workers[Number(turn.split("/")[0])];
    this.tell(worker, "is next in the queue: the store keeps the lock for it and tells it");
    const call = { worker, from: node.place, to: worker.place, kind: "turn", isReply: true, tone: "turn" };
    this.network.send(call, () => worker.notified());
  }

  #clocksOf({ rate }) {
    return { uptimeNs: BigInt(Math.floor(this.nowNs * rate)), unixMs: this.calendar() };
  }

  /** A worker shows its token to the resource; `heard` is told what comes of it. */
  present(worker, { what, token, base }, heard) {
    const ask = { worker, from: worker.place, to: "resource", kind: what, isReply: false, token, isSafe: true };
    this.network.send(ask, () => {
      const before = this.resource.lostUpdates;
      const version = this.resource[what]({ worker: worker.index, token, base, atNs: this.nowNs });
      if (version === undefined) {
        this.tell(worker, `is refused by the resource: token ${token} is older than ${this.resource.mark}`, "bad");
      } else if (this.resource.lostUpdates > before) {
        this.tell(worker, `overwrites what it has never read, with token ${token}: an update is lost`, "bad");
      }
      const isHarm = this.resource.lostUpdates > before;
      const tone = version === undefined ? "no" : isHarm ? "harm" : "yes";
      this.network.send({ ...ask, from: "resource", to: worker.place, isReply: true, tone }, () => {
        if (version !== undefined) heard(version);
      });
    });
  }

  kill(node) {
    if (node.isDown) return;
    node.isDown = true;
    this.tell(undefined, `${this.nodeName(node)} is down`, "bad");
  }

  revive(node) {
    if (!node.isDown) return;
    node.isDown = false;
    this.tell(undefined, `${this.nodeName(node)} is back, with its data`);
  }

  wipe(node) {
    node.node.wipe();
    if (node.queue !== undefined) node.queue = new Queue();
    const fate = this.nodes.length > 1 ? ": it abstains until whatever it forgot is over" : "";
    this.tell(undefined, `${this.nodeName(node)} has lost its data${fate}`, "bad");
    this.#wiped.add(node);
    // What so few remember can be more than anybody remembers.
    const remembering = this.nodes.length - this.#wiped.size;
    const lost = this.nodes.length > 1 ? "too many nodes have lost their counters" : "the only store has lost its records";
    const { excuses } = this.witness;
    if (this.nodes.length === 1) excuses.holders = { why: lost, untilNs: this.nowNs + this.#longestLeaseNs };
    if (remembering < (this.nodes.length + 1) / 2) {
      excuses.token = { why: `${lost}, and clocks on the wall are all that is left`, untilNs: Infinity };
    }
  }

  nodeName({ index }) {
    return this.nodes.length > 1 ? `Node ${index + 1}` : "The store";
  }

  /** A worker that asks, works, and rests, again and again. */
  #live(worker, random) {
    const between = (least, most) => (least + (most - least) * random()) * this.#settings.ttlMs * 1e6;
    let life = 0;
    // What is due while the worker stands still is tried again later.
    const later = (ns, act) => {
      const mine = (life += 1);
      const tryIt = () => {
        if (mine !== life) return;
        if (worker.isPaused) this.after(between(0.05, 0.1), tryIt);
        else act();
      };
      this.after(ns, tryIt);
    };
    const rest = () => later(between(0.2, 0.8), () => worker.ask());
    this.#nextLife[worker.index] = { granted: () => later(between(0.5, 1.5), () => worker.release()), ended: rest };
    later(between(0, 0.3), () => worker.ask());
  }
}

function isBefore(one, other) {
  return one.atNs < other.atNs || (one.atNs === other.atNs && one.order < other.order);
}

/** Names one acquisition of one worker in the queue. */
const ticketOf = ({ index }, lock) => `${index}/${lock}`;

/** What a reply looks like on its way. */
function described({ tag, val }) {
  if (tag === "applied") return { tone: "yes", token: val.applied.val?.counter };
  return { tone: { abstains: "abstains", done: "done" }[val.refusal.tag] ?? "no" };
}
