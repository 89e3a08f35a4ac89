"use strict";

const { errorOf } = require("./errors.cjs");
const { ASYNC_DISPOSE, Lease, forget } = require("./lease.cjs");
const { run } = require("./loop.cjs");
const { shows } = require("./shown.cjs");

class Election {
  #native;
  #resource;
  #thrown;
  #over;

  constructor(native, resource, { onStart, onStop }) {
    this.#native = native;
    this.#resource = resource;
    this.#over = this.#call(onStart, onStop);
  }

  get resource() {
    return this.#resource;
  }

  get term() {
    return this.#native.term ?? null;
  }

  get lastError() {
    const failure = this.#native.lastError;
    if (!failure) return null;
    const error = errorOf(failure);
    if (this.#thrown !== undefined) error.cause = this.#thrown.error;
    return error;
  }

  async resign() {
    await run(this.#native.resign());
    await this.#over;
  }

  async [ASYNC_DISPOSE]() {
    await this.resign();
  }

  toJSON() {
    return { resource: this.resource, term: this.term, lastError: this.lastError?.message };
  }

  /** Calls back until the candidacy is over. Never rejects: nobody would be there to hear. */
  async #call(onStart, onStop) {
    let lease;
    for (let step; (step = await run(this.#native.step())) !== undefined; ) {
      const begun = step.lease;
      try {
        if (begun) {
          lease = new Lease(begun);
          await onStart?.(lease);
        } else {
          await onStop?.(step.loss ? errorOf(step.loss) : null);
        }
        step.done();
      } catch (error) {
        this.#thrown = { error };
        const name = begun ? "onStart" : "onStop";
        process.emitWarning(`${name} of the election ${this.#resource} has thrown: ${error?.stack ?? error}`, {
          type: "LeaseholdWarning",
        });
        step.threw();
      }
      if (!begun) lease?.[forget]();
    }
    lease?.[forget]();
  }
}

shows(Election);

module.exports = { Election };
