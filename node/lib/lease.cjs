"use strict";

const { ConfigError, NOTHING_TO_EXTEND, errorOf } = require("./errors.cjs");
const { run } = require("./loop.cjs");
const { number } = require("./options.cjs");
const { reasonGiven, reasonOf } = require("./reasons.cjs");
const { written } = require("./results.cjs");
const { shows } = require("./shown.cjs");
const { told } = require("./told.cjs");
const { ASYNC_DISPOSE } = require("./under.cjs");

/** Ends a lease as the method of this name of its native lease does. */
const end = Symbol("end");
/** Finishes a run at the end of its body. */
const finish = Symbol("finish");
/** Releases a run at the end of a body that has thrown. */
const fail = Symbol("fail");
/** Makes the statement that marks a run. */
const mark = Symbol("mark");
/** Stops watching a lease that other code ends. */
const forget = Symbol("forget");
/** Takes the loss of a lease. */
const lose = Symbol("lose");

class Lease {
  #native;
  #loss;
  #isHeard = false;
  /** Created when the signal is first read. */
  #controller;

  constructor(native) {
    this.#native = native;
    native.watch(this);
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
    if (this.#loss !== undefined && number("check", min) >= 0) throw this.#heard();
    told(this.#native.check(number("check", min)));
  }

  extend() {
    throw new ConfigError(NOTHING_TO_EXTEND, { resource: this.resource });
  }

  release() {
    return this[end]("release");
  }

  [ASYNC_DISPOSE]() {
    return this[end]("leave");
  }

  toJSON() {
    return { resource: this.resource, owner: this.owner, token: this.token, remaining: this.remaining() };
  }

  /** After a loss, only a run whose mark is in a transaction of the user's asks native code how it ended. */
  [end](how, isMarked = false, result) {
    if (this.#loss === undefined || isMarked) return this.#native[how](result);
    this.#native.letGo?.();
    return Promise.reject(this.#heard());
  }

  [mark](result) {
    if (this.#loss !== undefined) throw this.#heard();
    return this.#native.completionIn(result);
  }

  [forget]() {
    this.#look();
    this.#native.forget();
  }

  /** The loop may have been too busy to abort the signal. */
  #look() {
    if (this.#loss === undefined && this.#native.isLost()) this[lose](errorOf(this.#native.check(0)));
  }

  /** The loss for its holder. Its stack names the code that hears of it first, not the loop that has found it. */
  #heard() {
    if (!this.#isHeard) Error.captureStackTrace(this.#loss);
    this.#isHeard = true;
    return this.#loss;
  }

  [lose](loss) {
    if (this.#loss !== undefined) return;
    this.#loss = loss;
    this.#controller?.abort(loss);
  }
}

/** A result as it is written down, where one is given. */
function given(how) {
  return how !== undefined && how !== null && "result" in how ? written(how.result) : undefined;
}

/** A lease under which work is done that is done once. */
class Run extends Lease {
  #isMarked = false;
  #attempts;

  constructor(native, attempts) {
    super(native);
    this.#attempts = attempts ?? null;
  }

  get attempts() {
    return this.#attempts;
  }

  finish(how) {
    return this[end]("finish", this.#isMarked, given(how));
  }

  async fail(reason) {
    await this[end]("fail", false, reasonGiven(reason));
  }

  completionIn(how) {
    const statement = this[mark](given(how));
    this.#isMarked = true;
    return statement;
  }

  [finish]() {
    return this[end]("finishLeft", this.#isMarked);
  }

  [fail](thrown) {
    return this[end]("fail", false, reasonOf(thrown));
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

shows(Lease, Leases, Run);

module.exports = { ASYNC_DISPOSE, Lease, Leases, Run, fail, finish, forget, lose };
