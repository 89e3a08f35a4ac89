// A held lease. Documented in index.d.ts.

import * as messages from "./messages.mjs";
import errors from "./shared/errors.mjs";
import options from "./shared/options.mjs";
import shown from "./shared/shown.mjs";
import ending from "./shared/under.mjs";
import { length } from "./settings.mjs";
import { PATIENCE_MS } from "./slot.mjs";

const { LeaseLostError } = errors;

export class Lease {
  #machine;
  #slot;
  #wasReleased = false;

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

  async release() {
    if (this.#slot.remaining() === 0) throw this.#over();
    this.#wasReleased = true;
    this.#machine.release(this.#slot);
    const ended = this.#slot.until(() => (this.#slot.phase === "releasing" ? undefined : this.#slot.phase));
    const phase = await this.#machine.within(PATIENCE_MS, ended, "releasing");
    if (phase === "lost" || phase === "closed") throw this.#over();
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

  /** The reason why the lease is over. */
  #over() {
    return this.#slot.failure ?? messages.notOwned(this.resource);
  }
}

shown.shows(Lease);
