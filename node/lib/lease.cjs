"use strict";

const { LeaseLostError, errorOf } = require("./errors.cjs");
const { run, watch } = require("./loop.cjs");
const { number } = require("./options.cjs");
const { shows } = require("./shown.cjs");
const { told } = require("./told.cjs");
const { ASYNC_DISPOSE } = require("./under.cjs");

/** Stops watching a lease that other code ends. */
const forget = Symbol("forget");

class Lease {
  #native;
  #forget;
  #loss;
  /** Created when the signal is first read. */
  #controller;

  constructor(native) {
    this.#native = native;
    // The watch refers to the lease, so that garbage collection does not end it.
    this.#forget = watch(native.lost(), (loss) => this.#lose(loss));
  }

  get token() {
    return this.#native.token;
  }

  get resource() {
    return this.#native.resource;
  }

  get owner() {
    return this.#native.owner;
  }

  get signal() {
    this.#look();
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#loss !== undefined) this.#controller.abort(this.#loss);
    }
    return this.#controller.signal;
  }

  remaining() {
    return this.#native.remaining();
  }

  check(min = 0) {
    told(this.#native.check(number("check", min)));
  }

  async release() {
    await this.#end(this.#native.release());
  }

  async [ASYNC_DISPOSE]() {
    await this.#end(this.#native.leave());
  }

  toJSON() {
    return { resource: this.resource, owner: this.owner, token: this.token, remaining: this.remaining() };
  }

  [forget]() {
    this.#look();
    this.#forget();
  }

  /** The loop may have been too busy to abort the signal. */
  #look() {
    if (this.#loss === undefined && this.#native.isLost()) this.#lose(errorOf(this.#native.check(0)));
  }

  async #end(operation) {
    try {
      await run(operation);
    } catch (error) {
      if (error instanceof LeaseLostError) this.#lose(error);
      throw error;
    } finally {
      this.#forget();
    }
  }

  #lose(loss) {
    if (this.#loss !== undefined) return;
    this.#loss = loss;
    this.#controller?.abort(loss);
  }
}

class Leases {
  #native;
  #each;

  constructor(native) {
    this.#native = native;
    this.#each = native.each().map((lease) => new Lease(lease));
  }

  get size() {
    return this.#each.length;
  }

  get(resource) {
    return this.#each.find((lease) => lease.resource === resource);
  }

  [Symbol.iterator]() {
    return this.#each[Symbol.iterator]();
  }

  check(min = 0) {
    told(this.#native.check(number("check", min)));
  }

  async release() {
    await this.#end(this.#native.release());
  }

  async [ASYNC_DISPOSE]() {
    await this.#end(this.#native.leave());
  }

  toJSON() {
    return [...this.#each];
  }

  async #end(operation) {
    try {
      await run(operation);
    } finally {
      for (const lease of this.#each) lease[forget]();
    }
  }
}

shows(Lease, Leases);

module.exports = { ASYNC_DISPOSE, Lease, Leases, forget };
