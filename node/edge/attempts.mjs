// Attempts at a run, counted in the store, so that work that always fails is given up.
//
// The holder of the run writes the count before the work begins. The count has a lock of its own: what a former runner still sends
// when its lease is over does not change one that a later runner has written.

import { Run, asShown } from "./lease.mjs";
import * as messages from "./messages.mjs";
import errors from "./shared/errors.mjs";

const { LeaseLostError, LockTimeoutError } = errors;

/** How long the count is locked without renewal: it is read and written at once. */
const RECORD_TTL_MS = 10_000;
/** A former runner may have died with the lock of the count. */
const RECORD_WAIT_MS = 20_000;
/** How long a failure waits to say why, as a release does for its answer. */
const REASON_WAIT_MS = 2_000;
/** How often the nodes are asked for the count, where too few have answered as they must. */
const LOOKS = 5;
/** The lock under which a count is removed. */
const FORGET_TTL_MS = 10_000;
const FORGET_WAIT_MS = 10_000;
/** Further tries reach a node whose answer was late. */
const FORGET_TRIES = 3;
/** A node that answers and still shows the count is behind its neighbours, and each try gives it time. */
const FORGET_TRIES_OF_SLOW_NODES = 30;
/** More than fit into a millisecond. */
const FORGET_LOOKS = 100;

/**
 * Counts an attempt at the work of a run, and answers the run. Where it must not begin, it is released, and the answer or the error
 * says why.
 */
export async function begin(run, counting, limit, signal) {
  const next = await decided(run, counting, limit, signal);
  if (next.tag === "begin") {
    counting.attempts = next.val;
    return { run };
  }
  // The caller is told what the store has said, and not of this release.
  await run.release().catch(() => {});
  switch (next.tag) {
    case "later":
      return { run: null, ran: false, reason: "later", attempts: asShown(next.val) };
    case "given-up":
      throw messages.givenUp(run.resource, asShown(next.val));
    default:
      // Somebody else has begun meanwhile, or is about to.
      if (!(next.val instanceof LockTimeoutError || next.val instanceof LeaseLostError)) throw next.val;
      return { run: null, ran: false, reason: "running", holder: next.val.holder ?? null };
  }
}

/** The decision about the next attempt, or the error in its place. */
async function decided(run, counting, limit, signal) {
  try {
    return await counting.count(run, limit, signal);
  } catch (error) {
    return { tag: "error", val: error };
  }
}

/** The record that counts the attempts at a run. */
export class Counting {
  /** Those with this one, as the component has them; `undefined` before it has begun, and where they are not counted. */
  attempts;
  #machine;
  #runs;
  #take;
  #record;
  #owner;
  #keepMs;

  /**
   * `take` acquires a lock that is held for a moment. @param {any} machine @param {any} runs @param {Function} take
   * @param {{ record: string, owner: string, keepMs: bigint }} of
   */
  constructor(machine, runs, take, { record, owner, keepMs }) {
    this.#machine = machine;
    this.#runs = runs;
    this.#take = take;
    this.#record = record;
    this.#owner = owner;
    this.#keepMs = keepMs;
  }

  /** Decides about the next attempt, and writes it down if it may begin. */
  async count(run, limit, signal) {
    return this.#holding(RECORD_WAIT_MS, signal, async (taken, slot) => {
      const next = await this.#look(taken, (nodes) => {
        const next = this.#runs.countAttempt(nodes, this.#nonce(slot), limit, this.#machine.now().unixMs);
        return next.tag === "unsure" ? undefined : next;
      });
      if (next.tag === "begin") await this.#write(run, taken, next.val);
      return next;
    });
  }

  /** Writes down why the work has failed, as far as that is possible. */
  async note(run, reason) {
    if (this.attempts === undefined || run.remaining() === 0) return;
    const controller = new AbortController();
    const said = this.#say(run, reason, controller.signal).catch(() => {});
    await this.#machine.within(REASON_WAIT_MS, said, undefined);
    controller.abort();
  }

  async #say(run, reason, signal) {
    await this.#holding(REASON_WAIT_MS, signal, async (taken, slot) => {
      const found = await this.#look(taken, (nodes) => this.#runs.readAttempts(nodes, this.#nonce(slot)));
      // An operator may have ended the lease, which its holder does not know yet: the count is then that of another runner.
      if (found.count === this.attempts.count) await this.#write(run, taken, this.#runs.failAttempt(this.attempts, reason));
    });
  }

  /** Removes the count, since the work was done although it may have been given up. */
  async forget() {
    const standing = latest(await this.#read());
    if (standing === undefined) return;
    const removes = { keepMs: 0n, trustQuorum: true, evenIfDone: true };
    for (let tries = 0, most = FORGET_TRIES_OF_SLOW_NODES; tries < most; tries += 1) {
      const slot = await this.#take(this.#record, this.#owner, { ttl: FORGET_TTL_MS, wait: FORGET_WAIT_MS }, removes);
      const run = new Run(this.#machine, slot);
      await run.finish();
      // The completion of this run, which ends at once, hides an earlier one until then.
      const isEnding = (node) => doneOf(node)?.token === BigInt(run.token);
      let nodes = await this.#read();
      for (let look = 1; look < FORGET_LOOKS && nodes.some(isEnding); look += 1) nodes = await this.#read();
      // A node of a quorum that has missed this run keeps the count.
      if (nodes.every((node) => isRead(node) && !(doneOf(node)?.token <= standing))) return;
      if (!nodes.every(isRead)) most = FORGET_TRIES;
    }
  }

  /** Calls `body` while the count is locked. It is acquired as a run that may be done, since the count is its completion. */
  async #holding(waitMs, signal, body) {
    // A completion stands for the ttl of its lock at least.
    const ttl = Math.min(RECORD_TTL_MS, Number(this.#keepMs));
    const run = { keepMs: this.#keepMs, trustQuorum: false, evenIfDone: true };
    const slot = await this.#take(this.#record, this.#owner, { ttl, wait: waitMs }, run, signal);
    const taken = new Run(this.#machine, slot);
    try {
      return await body(taken, slot);
    } finally {
      // Unless it was finished.
      await taken.release().catch(() => {});
    }
  }

  #read() {
    return this.#machine.read(this.#record);
  }

  #nonce(slot) {
    return this.#machine.nonce(slot) ?? new Uint8Array();
  }

  /** Reads the count on all nodes, until enough of them show its holder: others may be empty since they have lost their data, or behind. */
  async #look(taken, enough) {
    for (let look = 0; look < LOOKS; look += 1) {
      const found = enough(await this.#read());
      if (found !== undefined) return found;
      taken.check();
    }
    throw messages.tooFewCount(this.#record);
  }

  /**
   * Writes the attempts while their record is locked. The run must be held before that, or its next runner may have read the record
   * already, and after it, or the next runner may begin as well.
   */
  async #write(run, taken, attempts) {
    run.check();
    await taken.finish({ result: this.#runs.keepAttempts(attempts).bytes }).catch((error) => {
      throw messages.notCounted(run.resource, error);
    });
    run.check();
  }
}

const isRead = ({ tag, val }) => tag === "applied" && val.applied.tag === "read";

/** The completion that a node shows. */
const doneOf = (node) => (isRead(node) ? node.val.applied.val.done : undefined);

/** The token of the latest completion that nodes show. @returns {bigint | undefined} */
function latest(nodes) {
  const tokens = nodes.map((node) => doneOf(node)?.token).filter((token) => token !== undefined);
  return tokens.reduce((most, token) => (most === undefined || token > most ? token : most), undefined);
}
