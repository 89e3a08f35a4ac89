"use strict";

const { builtin } = require("./builtin.cjs");
const { AsyncLocalStorage } = builtin("node:async_hooks", () => require("node:async_hooks"));
const { ended, lastError, warn } = require("./callbacks.cjs");
const { errorOf } = require("./errors.cjs");
const { begun: leaseOf } = require("./handles.cjs");
const { ASYNC_DISPOSE, Lease, forget } = require("./lease.cjs");
const { clocks, run } = require("./loop.cjs");
const { shows } = require("./shown.cjs");

// The callback within which the current code runs.
const within = new AsyncLocalStorage();

class Election {
  #native;
  #resource;
  /** What a callback has thrown last, by resource. */
  #thrown = new Map();
  #over;
  /** The running callback. */
  #running;

  constructor(native, resource, { onStart, onStop }) {
    this.#native = native;
    this.#resource = resource;
    this.#over = this.#call(onStart, onStop);
  }

  get resource() {
    return this.#resource;
  }

  get token() {
    return this.#native.token ?? null;
  }

  get lastError() {
    return lastError(this.#native.lastError, this.#thrown);
  }

  async resign() {
    const resigned = run(this.#native.resign());
    // Within a callback it would wait for itself.
    if (this.#running !== undefined && within.getStore() === this.#running) return void resigned.catch(() => {});
    await ended(resigned, this.#over, this.#thrown);
  }

  async [ASYNC_DISPOSE]() {
    await this.resign();
  }

  toJSON() {
    return { resource: this.resource, token: this.token, lastError: this.lastError?.message };
  }

  /** Calls the callbacks until the candidacy is over. Never rejects, since nobody awaits it. */
  async #call(onStart, onStop) {
    let lease;
    for (let step; (step = await run(this.#native.step())) !== undefined; ) {
      const begun = leaseOf(step);
      try {
        if (begun) lease = new Lease(begun);
        const loss = step.loss ? errorOf(step.loss) : null;
        this.#running = {};
        await clocks.calling(() => within.run(this.#running, () => (begun ? onStart?.(lease) : onStop?.(loss))));
        step.done();
      } catch (error) {
        this.#thrown.set(this.#resource, { error });
        const name = begun ? "onStart" : "onStop";
        const text = warn(`election ${this.#resource}`, name, error);
        step.threw(text);
      } finally {
        this.#running = undefined;
      }
      if (!begun) lease?.[forget]();
    }
    lease?.[forget]();
  }
}

shows(Election);

module.exports = { Election };
