"use strict";

// Calls of native code on this event loop. A call that is awaited keeps the process alive, like a request of Node itself; a held
// lease does not.

const { Failure, Reactor } = /** @type {any} */ (require("./native.cjs"));
const { errorOf } = require("./errors.cjs");

/** Results that fit into the memory shared with native code: more arrive in several parts. */
const MOST_RESULTS = 256;
const FIELDS = 4;
const NO_LEASE = -1;
const results = new Float64Array(MOST_RESULTS * FIELDS);

/** Calls that are awaited. A slot is used again; the generation tells its calls apart. */
const calls = [];
const freeSlots = [];
let generations = 0;

/** Leases that are held, by their number in native code. They stay until they end, even if nothing else refers to them. */
const leases = [];

/** One call, whose promise is the only one of an operation. Subclasses `begin` it, and say what is `made` of a lease. */
class Call {
  slot = 0;
  generation = 0;
  /** The number of the operation, while it goes on. */
  id = 0;
  resolve;
  reject;
  /** @type {AbortSignal | undefined} */
  signal = undefined;
  /** @type {any} */
  abort = undefined;

  constructor(resolve, reject) {
    this.resolve = resolve;
    this.reject = reject;
  }

  go(signal) {
    signal?.throwIfAborted();
    clocks.goOn();
    this.slot = freeSlots.length > 0 ? freeSlots.pop() : calls.length;
    this.generation = generations = (generations + 1) >>> 0;
    calls[this.slot] = this;
    let answer;
    try {
      answer = this.begin(this.slot, this.generation);
    } catch (error) {
      take(this.slot, this.generation);
      throw error;
    }
    this.#begun(answer, signal);
  }

  /** Subclasses answer what native code does. @returns {unknown} */
  begin(_slot, _generation) {
    throw new Error("a subclass begins");
  }

  settle(value) {
    if (this.signal !== undefined) this.signal.removeEventListener("abort", this.abort);
    this.resolve(value instanceof Failure ? this.#failed(value) : value);
  }

  /** Subclasses take the error of a failed call before its caller does. */
  failing(_error) {}

  /**
   * Rejects. Two turns of the queue later the caller's promise depends on this one, so that V8 finds the code that awaits it for
   * the stack of the error. Native code calls with nothing of the user's on the stack.
   */
  async #failed(failure) {
    await undefined;
    await undefined;
    const error = errorOf(failure);
    this.failing(error);
    throw error;
  }

  /** Takes what native code has answered to the beginning: a number if the operation goes on, 0 if its result is there. */
  #begun(answer, signal) {
    if (typeof answer !== "number") {
      take(this.slot, this.generation);
      this.settle(answer);
    } else if (answer === 0) {
      settle(1);
    } else {
      this.id = answer;
      if (signal !== undefined) this.#heed(signal);
    }
  }

  /** An abort cancels the operation, undoes its effects, and rejects with the signal's reason. */
  #heed(signal) {
    this.signal = signal;
    this.abort = () => {
      // The result may be settled, and the caller is about to get it.
      if (take(this.slot, this.generation) === undefined) return;
      reactor.cancel(this.id);
      this.reject(signal.reason);
    };
    signal.addEventListener("abort", this.abort, { once: true });
  }
}

/** A call that runs an operation of native code. */
class Run extends Call {
  constructor(resolve, reject, operation) {
    super(resolve, reject);
    this.operation = operation;
  }

  begin(slot, generation) {
    return reactor.start(this.operation, slot, generation);
  }
}

function take(slot, generation) {
  const call = calls[slot];
  if (call === undefined || call.generation !== generation) return undefined;
  calls[slot] = undefined;
  freeSlots.push(slot);
  return call;
}

/** Settles the calls whose results are in the shared memory. */
function settle(count) {
  for (let at = 0; at < count * FIELDS; at += FIELDS) {
    const call = take(results[at], results[at + 1]);
    const lease = results[at + 2];
    if (lease === NO_LEASE) call?.settle(undefined);
    else if (call === undefined) drop(lease);
    else call.settle(call.made(lease, results[at + 3]));
  }
}

function settleValue(slot, generation, value) {
  take(slot, generation)?.settle(value);
}

function lose(number, failure) {
  leases[number]?.lose(failure);
}

/** Runtimes other than Node load addons too, but have an event loop of their own. */
function isNode() {
  const { bun, deno, electron, nw } = process.versions;
  return process.release.name === "node" && [bun, deno, electron, nw].every((version) => version === undefined);
}

/** Settles all calls that can go on. */
function runReady() {
  reactor.run();
}

const endTurn = () => reactor.endTurn();
const schedule = () => process.nextTick(endTurn);

/** The clocks of leasehold/testing. They stand still while anything is ready to run, and move for calls that wait for them. */
const clocks = {
  /** Set by the first of them. */
  isThere: false,
  isDue: false,
  /** The number of callbacks of candidates and workers that run. They may wait for anything. */
  called: 0,

  exist() {
    this.isThere = true;
  },

  /** Has them go on once the loop is idle. */
  goOn() {
    if (!this.isThere || this.isDue) return;
    this.isDue = true;
    setImmediate(() => {
      this.isDue = false;
      if (reactor.tick(this.called > 0)) this.goOn();
    });
  },

  /** Runs a callback. */
  async calling(callback) {
    this.called += 1;
    try {
      await callback();
    } finally {
      this.called -= 1;
      this.goOn();
    }
  },
};

/** Drops a lease that is nobody's any more. */
function drop(lease) {
  native.drop(lease);
  clocks.goOn();
}

const reactor = new Reactor({ run: runReady, schedule, settle, settleValue, lose }, results, isNode());
const native = reactor.calls();

/** The result of an operation of native code. */
function run(operation, signal) {
  return new Promise((resolve, reject) => new Run(resolve, reject, operation).go(signal));
}

/** The number of pending operations; for tests. */
function left() {
  const count = (slots) => slots.filter((slot) => slot !== undefined).length;
  return { settlers: count(calls) + count(leases), running: reactor.running };
}

module.exports = { Call, clocks, drop, leases, left, native, reactor, run, runReady };
