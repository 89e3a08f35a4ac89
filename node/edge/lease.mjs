// A held lease. Documented in index.d.mts.

import * as messages from "./messages.mjs";
import errors from "./shared/errors.mjs";
import options from "./shared/options.mjs";
import reasons from "./shared/reasons.mjs";
import results from "./shared/results.mjs";
import shown from "./shared/shown.mjs";
import ending from "./shared/under.mjs";
import { length } from "./settings.mjs";
import { PATIENCE_MS } from "./slot.mjs";

const { ConfigError, LeaseLostError, ResultNotKeptError, NOTHING_TO_EXTEND } = errors;

const { reasonGiven, reasonOf } = reasons;
const { written } = results;
/** The most bytes of a result, which the component refuses to exceed as well. */
const MOST_BYTES = 4_096;

/** Finishes a run at the end of its body. */
export const finish = Symbol("finish");
/** Releases a run at the end of a body that has thrown. */
export const fail = Symbol("fail");
/** Finishes the run of a lease. */
const finishNow = Symbol("finishNow");

export class Lease {
  #machine;
  #slot;
  #wasReleased = false;
  #isHeard = false;

  constructor(machine, slot) {
    this.#machine = machine;
    this.#slot = slot;
  }

  get token() {
    return this.#slot.token;
  }

  get resource() {
    return this.#slot.resource;
  }

  get owner() {
    return this.#slot.owner;
  }

  get signal() {
    // The loop may have been too busy to abort the signal.
    this.#slot.remaining();
    return this.#slot.signal;
  }

  remaining() {
    return this.#slot.remaining();
  }

  check(min = 0) {
    const wanted = length("check", options.number("check", min));
    const left = this.#slot.remaining();
    if (left > 0 && left >= wanted) return;
    throw left > 0 ? this.#slot.tooShort(left, wanted) : this.#over();
  }

  extend() {
    throw new ConfigError(NOTHING_TO_EXTEND, { resource: this.resource });
  }

  async release() {
    if (this.#slot.remaining() === 0) throw this.#letGo();
    this.#wasReleased = true;
    this.#machine.release(this.#slot);
    const phase = await this.#ended(PATIENCE_MS);
    if (phase !== "released" || !this.#slot.isFree) throw messages.unconfirmed(this.resource);
  }

  async [ending.ASYNC_DISPOSE]() {
    const wasLost = this.#slot.remaining() === 0 && !this.#wasReleased;
    try {
      await this.release();
    } catch (error) {
      if (wasLost || error instanceof LeaseLostError) throw error;
    }
  }

  toJSON() {
    return { resource: this.resource, owner: this.owner, token: this.token, remaining: this.remaining() };
  }

  async [finishNow](how) {
    const [kind, kept] = how !== undefined && how !== null && "result" in how ? written(how.result) : [];
    const bytes = typeof kept === "string" ? new TextEncoder().encode(kept) : kept;
    const unfit = kind === "unfit" ? kept : tooLong(bytes);
    const left = this.#slot.remaining();
    if (left === 0) throw this.#letGo();
    this.#wasReleased = true;
    this.#machine.finish(this.#slot, kind === undefined || unfit !== undefined ? undefined : { kind, bytes });
    await this.#ended(left + PATIENCE_MS);
    if (!this.#slot.isMarked) throw messages.finishUnconfirmed(this.resource);
    if (unfit !== undefined) throw messages.resultNotKept(this.resource, unfit);
    if (this.#slot.isResultDropped) throw messages.resultNotKept(this.resource, "the store had no room for it");
  }

  async [finish]() {
    // The body may have finished or released by itself.
    if (!this.#wasReleased || this.#slot.failure !== undefined) await this[finishNow]();
  }

  /** Waits for the end of a lease that was released or finished. */
  async #ended(patienceMs) {
    const ended = this.#slot.until(() => (this.#slot.phase === "releasing" ? undefined : this.#slot.phase));
    const phase = await this.#machine.within(patienceMs, ended, "releasing");
    if (phase === "lost" || phase === "closed") throw this.#over();
    return phase;
  }

  /** The work has ended, so a record that was revoked protects nothing any more. Returns the reason why the lease is over. */
  #letGo() {
    if (this.#slot.failure?.reason === "revoked") this.#machine.letGo(this.#slot);
    return this.#over();
  }

  /** The reason why the lease is over. The stack of a loss names the code that hears of it first, not the loop that has found it. */
  #over() {
    const { failure } = this.#slot;
    if (failure === undefined) return messages.notOwned(this.resource);
    if (!this.#isHeard) /** @type {any} */ (Error).captureStackTrace?.(failure);
    this.#isHeard = true;
    return failure;
  }
}

/** Why a result does not fit; `undefined` if it does. @param {Uint8Array | undefined} bytes */
function tooLong(bytes) {
  const count = bytes?.length ?? 0;
  return count > MOST_BYTES ? `result has ${count} bytes; at most ${MOST_BYTES} are allowed` : undefined;
}

/** A lease under which work is done that is done once. */
export class Run extends Lease {
  #counting;
  #forgets;

  /** With `counting` where its attempts count, and `forgets` where its finish removes the count of others. */
  constructor(machine, slot, { counting = undefined, forgets = undefined } = {}) {
    super(machine, slot);
    this.#counting = counting;
    this.#forgets = forgets;
  }

  get attempts() {
    const attempts = this.#counting?.attempts;
    return attempts === undefined ? null : asShown(attempts);
  }

  finish(how) {
    return this[finishNow](how);
  }

  async fail(reason) {
    await this.#failed(reasonGiven(reason));
  }

  async [finishNow](how) {
    try {
      await super[finishNow](how);
    } catch (error) {
      if (!(error instanceof ResultNotKeptError)) throw error;
      // The work is done, whatever becomes of its attempts.
      await this.#forgets?.forget().catch(() => {});
      throw error;
    }
    await this.#forgets?.forget().catch(() => {});
  }

  [fail](thrown) {
    return this.#failed(reasonOf(thrown));
  }

  async #failed(reason) {
    await this.#counting?.note(this, reason);
    await this.release();
  }
}

/** Attempts as users see them. @param {any} attempts */
export function asShown({ count, max, sinceUnixMs, retryUnixMs, reason }) {
  return { count, max, since: Number(sinceUnixMs), retryAt: Number(retryUnixMs), reason: reason ?? null };
}

shown.shows(Lease, Run);
