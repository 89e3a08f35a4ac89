"use strict";

const { builtin } = require("./builtin.cjs");
const { AsyncLocalStorage } = builtin("node:async_hooks", () => require("node:async_hooks"));
const { ended, lastError, warn } = require("./callbacks.cjs");
const { errorOf } = require("./errors.cjs");
const { shardLease } = require("./handles.cjs");
const { ASYNC_DISPOSE, Lease, forget } = require("./lease.cjs");
const { clocks, run } = require("./loop.cjs");
const { shows } = require("./shown.cjs");

// The callback within which the current code runs.
const within = new AsyncLocalStorage();

/** A shard that this worker holds. */
class Shard extends Lease {
  #index;

  constructor(native, index) {
    super(native);
    this.#index = index;
  }

  get index() {
    return this.#index;
  }

  toJSON() {
    return { ...super.toJSON(), index: this.#index };
  }
}

class Shards {
  #native;
  #name;
  #over;
  /** What a callback of a shard has thrown last, by resource. */
  #thrown = new Map();
  /** The shards from their gain to the end of `onLoss`, by number. */
  #shards = new Map();
  /** The callbacks that run. */
  #running = new Set();

  constructor(native, name, callbacks) {
    this.#native = native;
    this.#name = name;
    this.#over = this.#call(callbacks);
  }

  get name() {
    return this.#name;
  }

  get held() {
    // Of one that was gained just now, JavaScript may not have been told.
    return this.#native.held.map((index) => this.#shards.get(index)).filter((shard) => shard !== undefined);
  }

  get members() {
    return this.#native.members;
  }

  get lastError() {
    return lastError(this.#native.lastError, this.#thrown);
  }

  async stop() {
    const stopped = run(this.#native.stop());
    // Within a callback it would wait for itself.
    if (this.#running.has(within.getStore())) return void stopped.catch(() => {});
    await ended(stopped, this.#over, this.#thrown);
  }

  async [ASYNC_DISPOSE]() {
    await this.stop();
  }

  toJSON() {
    return {
      name: this.name,
      held: this.held.map((shard) => shard.index),
      members: this.members,
      lastError: this.lastError?.message,
    };
  }

  /** Calls the callbacks until the worker is over. Never rejects, since nobody awaits it. */
  async #call(callbacks) {
    // The steps of one shard come one after the other, since each waits for the end of the last.
    for (let step; (step = await run(this.#native.step())) !== undefined; ) this.#take(step, callbacks);
    for (const shard of this.#shards.values()) shard[forget]();
    this.#shards.clear();
  }

  async #take(step, { onGain, onLoss }) {
    const { index, isGain } = step;
    const running = {};
    try {
      if (isGain) this.#shards.set(index, new Shard(shardLease(step), index));
      const shard = this.#shards.get(index);
      const loss = step.loss ? errorOf(step.loss) : null;
      this.#running.add(running);
      await clocks.calling(() => within.run(running, () => (isGain ? onGain?.(shard) : onLoss?.(shard, loss))));
      this.#ended(step);
      step.done();
    } catch (error) {
      this.#thrown.set(`${this.#name}#shard${index}`, { error });
      const name = isGain ? "onGain" : "onLoss";
      const text = warn(`shards ${this.#name}`, name, error);
      this.#ended(step);
      step.threw(text);
    } finally {
      this.#running.delete(running);
    }
  }

  /** Before native code lets go of the shard and another worker gains it. */
  #ended({ index, isGain }) {
    if (isGain) return;
    this.#shards.get(index)?.[forget]();
    this.#shards.delete(index);
  }
}

shows(Shard, Shards);

module.exports = { Shard, Shards };
