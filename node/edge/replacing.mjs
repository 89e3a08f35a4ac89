// Replaces the runner of a run: the newest request gets it, and its runner is asked to end. The component decides each step, and this
// performs it.

import { Run } from "./lease.mjs";
import * as messages from "./messages.mjs";
import errors from "./shared/errors.mjs";

const { LeaseLostError, StoreUnavailableError } = errors;

const FIRST = { tag: "look", val: undefined };
/** The run stays in hand while it is decided if its work may begin. Before all other steps others get it. */
const WITH_LEASE = new Set(["take-number", "read-newest", "count-newest", "begin"]);

/** One request. */
export class Replacing {
  /** "pending", "over" once it has its answer, or "given up" once its caller waits no longer. */
  phase = "pending";
  #machine;
  #runs;
  #acquire;
  #take;
  #newest;
  #asked;
  #replacement;
  /** The slot of the run, while this request has it. */
  #slot;
  /** The completion that was read last. */
  #done;
  /** The refusal, and the error, that came last. */
  #refusal;
  #trouble;

  /**
   * `acquire` answers the slot of an acquisition that has ended, and `take` that of a lock that is held for a moment. `newest` is the name of
   * the record. @param {any} machine @param {any} runs @param {{ acquire: Function, take: Function }} locks @param {string} newest
   * @param {{ resource: string, owner: string, locked: any, signal: AbortSignal | undefined }} asked
   */
  constructor(machine, runs, { acquire, take }, newest, asked) {
    this.#machine = machine;
    this.#runs = runs;
    this.#acquire = acquire;
    this.#take = take;
    this.#newest = newest;
    this.#asked = asked;
    const { run, wait } = asked.locked;
    this.#replacement = runs.Replacement.create(run.evenIfDone, wait.val?.waitMs, machine.now());
  }

  /** The `slot` of the run, or why it is not the caller's: a `completion`, `isReplaced` or a `failure`. */
  async ended() {
    try {
      return await this.#walk();
    } finally {
      // Memory of the component, which has no garbage collector. Its class has it in runtimes without the symbol as well.
      this.#replacement[Symbol.dispose ?? Symbol.for("dispose")]?.();
    }
  }

  /** Nobody waits for the answer any more. */
  giveUp() {
    this.phase = "given up";
    if (this.#slot !== undefined) this.#machine.release(this.#slot);
  }

  async #walk() {
    let step = FIRST;
    while (this.phase === "pending") {
      if (!WITH_LEASE.has(step.tag)) await this.#letGo();
      const end = this.#endedBy(step);
      if (end !== undefined) {
        this.phase = "over";
        return end;
      }
      const answer = await this.#answer(step).catch((failure) => this.#failed({ failure }));
      step = this.#replacement.next(answer, this.#machine.now());
    }
    return {};
  }

  async #letGo() {
    const slot = this.#slot;
    this.#slot = undefined;
    // The caller gets what was found; this release is not reported.
    if (slot !== undefined) await new Run(this.#machine, slot).release().catch(() => {});
  }

  /** The outcome of the request with this step; `undefined` if it goes on. */
  #endedBy({ tag }) {
    const { resource } = this.#asked;
    switch (tag) {
      case "begin":
        return this.#slot.remaining() > 0 ? { slot: this.#slot } : undefined;
      case "replaced":
        return { isReplaced: true };
      case "done":
        return { completion: this.#done };
      case "unsettled":
        return { failure: messages.newestUnsettled(resource) };
      case "running":
        return this.#refusal ?? { failure: messages.notReplaced(resource) };
      case "fail":
        return this.#trouble ?? { failure: messages.notReplaced(resource) };
      default:
        return undefined;
    }
  }

  /** Performs a step. */
  async #answer({ tag, val }) {
    const { resource } = this.#asked;
    switch (tag) {
      case "look": {
        const nodes = await this.#machine.read(resource);
        const trouble = messages.unread(resource, nodes);
        if (trouble !== undefined) throw trouble;
        const seen = this.#runs.readRun(nodes);
        this.#done = seen.done;
        return { tag: "looked", val: seen };
      }
      case "take-number": {
        const slot = await this.#record(val, true);
        if (slot.phase === "failed") throw messages.newestNotWritten(resource, slot.failure);
        return this.#numbered(slot);
      }
      case "ask":
        return this.#ask(val);
      case "read-newest": {
        const slot = await this.#record(val, false);
        // Granted: the store has forgotten the record.
        if (slot.phase !== "failed") return this.#numbered(slot);
        if (slot.completion === undefined) throw messages.newestNotRead(resource, slot.failure);
        return { tag: "newest", val: slot.completion };
      }
      case "count-newest":
        return this.#counted(val);
      case "end":
        await this.#machine.revoke(resource, val.holder);
        return { tag: "ended" };
      default:
        // To begin, with a lease that was lost meanwhile.
        throw this.#slot.failure;
    }
  }

  async #ask({ evenIfDone, waitMs }) {
    const { resource, owner, locked, signal } = this.#asked;
    const wait = waitMs === 0n ? { tag: "once" } : { tag: "for", val: { waitMs } };
    const options = { ...locked, wait, run: { ...locked.run, evenIfDone } };
    const slot = await this.#wanted(this.#acquire(resource, owner, options, signal));
    if (slot.phase !== "failed") {
      this.#slot = slot;
      return { tag: "granted" };
    }
    const { tag, val } = slot.refusal ?? {};
    if (tag !== "busy" && tag !== "timed-out") return this.#failed(slot);
    this.#refusal = slot;
    return { tag: "refused", val };
  }

  /** The slot of the record, which is acquired as a run: its completion is the newest request. */
  #record({ ttlMs, waitMs }, evenIfDone) {
    const { owner, signal } = this.#asked;
    const run = { keepMs: undefined, trustQuorum: false, evenIfDone };
    return this.#wanted(this.#take(this.#newest, owner, { ttl: Number(ttlMs), wait: Number(waitMs) }, run, signal));
  }

  /** Takes a number: the token of the record. */
  async #numbered(slot) {
    const val = { token: BigInt(slot.token) };
    try {
      await new Run(this.#machine, slot).finish();
    } catch (error) {
      const failure = messages.newestNotWritten(this.#asked.resource, error);
      if (!(failure instanceof StoreUnavailableError)) throw failure;
      this.#failed({ failure });
      return { tag: "unconfirmed", val };
    }
    return { tag: "numbered", val };
  }

  /** The nodes' records while this request has their lock. */
  async #counted(how) {
    const { resource } = this.#asked;
    const slot = await this.#record(how, true);
    if (slot.phase === "failed") throw messages.newestNotRead(resource, slot.failure);
    const holder = this.#machine.nonce(slot);
    try {
      const read = await this.#machine.read(this.#newest);
      return { tag: "counted", val: { read, holder: holder ?? new Uint8Array() } };
    } catch (error) {
      throw messages.newestNotRead(resource, error);
    } finally {
      // The caller gets what was found; this release is not reported.
      await new Run(this.#machine, slot).release().catch(() => {});
    }
  }

  /** A slot that may have been granted just when the caller gave up. */
  async #wanted(acquiring) {
    const slot = await acquiring;
    if (this.phase === "pending" || slot.phase === "failed") return slot;
    this.#machine.release(slot);
    throw this.#asked.signal?.reason;
  }

  #failed(trouble) {
    this.#trouble = trouble;
    const mayPass = [StoreUnavailableError, LeaseLostError].some((Kind) => trouble.failure instanceof Kind);
    return { tag: "failed", val: { mayPass } };
  }
}
