// A worker: a host of the component with a clock of its own, and the work that it does while it holds the lock. Every
// decision about the lock is the component's.

import { bytes } from "./random.mjs";

const RESOURCE = "report";
const WHY_LOST = {
  expired: "its lease ran out before a renewal was confirmed",
  "taken-over": "somebody else has the record now",
  "record-gone": "the store has no record of it any more",
  released: "its record was released by somebody else",
  revoked: "somebody revoked its lease",
};

export class Worker {
  /** "idle", "asking", "waiting", "held", "releasing", "finishing", "done" or "lost". */
  phase = "idle";
  token;
  isPaused = false;
  isCut = false;
  /** What it does with the document: "claiming", "ready", "checked" (about to write), "writing" or nothing. */
  work;
  #world;
  #client;
  #random;
  #rate;
  #startNs;
  #ttlMs;
  #lock = 0n;
  /** Until when the lease is believed in, by the own clock. */
  #deadlineNs;
  #base;
  #inbox = [];
  #timer = 0;
  #errand = 0;

  /** `rate`: how many seconds its clock counts in a true one. */
  constructor(world, { index, name, rate, Client, config, ttlMs, random }) {
    this.#world = world;
    this.index = index;
    this.name = name;
    this.#rate = rate;
    this.#random = random;
    this.#ttlMs = ttlMs;
    // Clocks agree in nothing but, nearly, in their rates.
    this.#startNs = Math.floor(random() * 1e12);
    this.#client = Client.create(config, bytes(random, 32), this.#now());
  }

  get place() {
    return `worker/${this.index}`;
  }

  get isAsking() {
    return this.phase === "asking" || this.phase === "waiting";
  }

  /** In parts of one; above 0 the clock is fast. */
  get drift() {
    return this.#rate - 1;
  }

  /** Until when it believes in its lease, in true time. */
  get untilNs() {
    return this.phase === "held" ? this.#trueNs(this.#deadlineNs) : undefined;
  }

  /** Whether it would answer "I hold the lock" now. */
  believes() {
    return this.phase === "held" && this.#clockNs() < this.#deadlineNs;
  }

  ask() {
    if (this.isAsking || this.phase === "held" || this.isPaused) return;
    this.#lock += 1n;
    this.phase = "asking";
    this.#world.tell(this, this.#world.isRun ? "asks for tonight's run" : "asks for the lock");
    const options = {
      ttlMs: BigInt(this.#ttlMs),
      wait: { tag: "forever" },
      lockDelayMs: 0n,
      maxHoldMs: undefined,
      renewal: { tag: "automatic" },
      owner: this.name,
      data: undefined,
      run: this.#world.isRun ? { keepMs: undefined, trustQuorum: false, evenIfDone: false } : undefined,
    };
    this.#step({ tag: "acquire", val: { lock: this.#lock, resource: RESOURCE, options } });
  }

  /** Gives the lock back, or gives up on getting it. */
  release() {
    if (this.isPaused || !(this.isAsking || this.phase === "held")) return;
    if (this.phase === "held") {
      // At this very instant it is over, which the component will say.
      if (!this.believes()) return;
      this.#end("released");
      this.#world.tell(this, "releases the lock");
    }
    this.phase = "releasing";
    this.#step({ tag: "release", val: { lock: this.#lock } });
  }

  /** Says that the work of a run is done, which frees the lock as well. */
  finish() {
    if (this.isPaused || !this.believes()) return;
    this.#end("released");
    this.#world.tell(this, "finishes the run");
    this.phase = "finishing";
    this.#step({ tag: "finish", val: { lock: this.#lock } });
  }

  /** Stops it at the worst moment: a holder has just looked whether its lease is valid, and is about to write. */
  pause() {
    if (this.isPaused) return;
    if (this.believes() && this.work === "ready") this.#check();
    this.isPaused = true;
    this.#world.witness.paused(this.index);
    this.#world.tell(this, this.work === "checked" ? "stops, just after a check and just before its write" : "stops");
  }

  /** It goes on as if nothing had been: with the write that it was about to do, and then with what has arrived. */
  wake() {
    if (!this.isPaused) return;
    this.isPaused = false;
    this.#world.witness.woken(this.index);
    this.#world.tell(this, "wakes up");
    if (this.work === "checked") this.#write();
    this.#step(...this.#inbox.splice(0));
    // What it had meant to do meanwhile has not happened.
    if (this.phase === "held" && this.work === "ready") this.#ready();
  }

  cut() {
    if (this.isCut) return;
    this.isCut = true;
    this.#world.tell(this, "is cut off from the store", "bad");
  }

  mend() {
    if (!this.isCut) return;
    this.isCut = false;
    this.#world.tell(this, "reaches the store again");
  }

  /** What became of a request to a node. */
  hear(id, response) {
    this.#receive({ tag: "response", val: { id, response } });
  }

  /** A node will tell it when its turn has come. */
  subscribed(node) {
    this.#receive({ tag: "subscribed", val: { node, resource: RESOURCE } });
  }

  /** Its turn has come. */
  notified() {
    this.#receive({ tag: "notified", val: { resource: RESOURCE } });
  }

  #receive(input) {
    if (this.isPaused) this.#inbox.push(input);
    else this.#step(input);
  }

  /** The loop of every host: tell, perform, sleep. */
  #step(...inputs) {
    const now = this.#now();
    const { outputs, wakeAtNs } = this.#client.step(bytes(this.#random, 16), now, inputs);
    for (const { tag, val } of outputs) {
      if (tag === "transmit") this.#world.transmit(this, val);
      else if (tag === "event") this.#happened(val);
      else if (tag === "subscribe") this.#world.subscribe(this, val.node);
      else if (tag === "unsubscribe") this.#world.unsubscribe(this, val.node, this.#lock);
      else throw new Error(`the component says ${tag}, of which nobody here knows`);
    }
    const timer = (this.#timer += 1);
    if (wakeAtNs === undefined) return;
    const wakeNs = wakeAtNs > now.monotonicNs ? wakeAtNs : now.monotonicNs;
    this.#world.after(this.#trueNs(wakeNs) - this.#world.nowNs, () => {
      // A worker that stands still is due when it wakes up.
      if (timer === this.#timer && !this.isPaused) this.#step();
    });
  }

  #happened({ lock, event: { tag, val } }) {
    if (lock !== this.#lock) return;
    switch (tag) {
      case "contended":
        if (this.phase !== "asking") return;
        this.phase = "waiting";
        this.#world.tell(this, waitsFor(val.holding.owner ?? "somebody", this.#world.nodes.length > 1));
        return;
      case "acquired":
        this.phase = "held";
        this.token = val.token;
        this.#deadlineNs = val.deadlineNs;
        this.#world.granted(this, val.recovered);
        this.#claim();
        return;
      case "renewed":
      case "shortened":
        this.#deadlineNs = val.deadlineNs;
        this.#world.witness.prolonged(this);
        return;
      case "lost":
        if (this.phase !== "held" && this.phase !== "finishing") return;
        if (this.phase === "held") this.#end("lost");
        this.phase = "lost";
        this.#world.tell(this, `has lost the lock: ${WHY_LOST[val.reason.tag] ?? val.reason.tag}`, "bad");
        this.#world.ended(this);
        return;
      case "finished":
        this.phase = "done";
        this.#world.tell(this, val.confirmed ? "has it in writing: the run is done" : "does not know if that was written", "good");
        this.#world.ended(this);
        return;
      case "failed":
        if (val.failure.tag === "done") {
          this.phase = "done";
          this.#world.tell(this, `is told that ${val.failure.val.owner} has done the run, and does nothing`, "good");
          this.#world.ended(this);
          return;
        }
      // Falls through: it gave up.
      case "released":
        this.phase = "idle";
        this.#world.ended(this);
        return;
      default:
      // Warnings, which these workers do not heed.
    }
  }

  #end(how) {
    this.#world.witness.ended(this, how);
    this.work = undefined;
    this.#errand += 1;
  }

  /** Does something after a while, unless the lease that it belongs to is over. */
  #soon(ms, errand) {
    const number = this.#errand;
    this.#world.after(ms * 1e6, () => {
      if (number === this.#errand && !this.isPaused) errand();
    });
  }

  #claim() {
    this.work = "claiming";
    const number = this.#errand;
    this.#world.present(this, { what: "claim", token: this.token }, (version) => {
      if (number !== this.#errand) return;
      this.#base = version;
      this.#ready();
    });
  }

  #ready() {
    this.work = "ready";
    this.#errand += 1;
    this.#soon(this.#ttlMs / 10, () => this.#check());
  }

  #check() {
    if (this.work !== "ready" || !this.believes()) return;
    this.work = "checked";
    this.#soon(250, () => this.#write());
  }

  #write() {
    if (this.work !== "checked") return;
    this.work = "writing";
    const number = this.#errand;
    this.#world.present(this, { what: "write", token: this.token, base: this.#base }, (version) => {
      if (number !== this.#errand) return;
      this.#base = version;
      this.#ready();
    });
  }

  #now() {
    return { monotonicNs: this.#clockNs(), unixMs: this.#world.calendar(this) };
  }

  #clockNs() {
    return BigInt(this.#startNs + Math.floor(this.#world.nowNs * this.#rate));
  }

  /** The first instant of true time at which the own clock shows this. */
  #trueNs(clockNs) {
    const shown = Number(clockNs) - this.#startNs;
    let ns = Math.floor(shown / this.#rate);
    while (Math.floor(ns * this.#rate) < shown) ns += 1;
    return ns;
  }
}

function waitsFor(owner, isQuorum) {
  return isQuorum ? `has no majority: ${owner} came first at a node` : `waits: ${owner} has the lock`;
}
