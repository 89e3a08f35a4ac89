"use strict";

// The interface of npm's redlock 5, over leases. Documented in ./redlock.d.ts; docs/migrating-node.md lists the differences.

const { builtin } = require("../lib/builtin.cjs");
const { randomBytes } = builtin("node:crypto", () => require("node:crypto"));
const { EventEmitter, setMaxListeners } = builtin("node:events", () => require("node:events"));
const { setTimeout: sleep } = builtin("node:timers/promises", () => require("node:timers/promises"));

const { Client, connect } = require("../lib/client.cjs");
const errors = require("../lib/errors.cjs");
const { storeOf } = require("../lib/ioredis.cjs");
const { exactly } = require("../lib/lengths.cjs");
const { texts } = require("../lib/options.cjs");
const { shows } = require("../lib/shown.cjs");
const { under } = require("../lib/under.cjs");

const { ClosedError, ConfigError, LeaseLostError, LockBusyError, LockTimeoutError, StoreUnavailableError } = errors;

const DEFAULTS = Object.freeze({
  driftFactor: 0.01,
  retryCount: 10,
  retryDelay: 200,
  retryJitter: 100,
  automaticExtensionThreshold: 500,
});
/** The bounds of the rate error of clocks for clients of leasehold. */
const [LEAST_DRIFT, MOST_DRIFT] = [0.0001, 0.1];
const SHORTEST_TTL = 100;
const LONGEST_TTL = 86_400_000;
/** The default of a quorum. */
const QUORUM_TTL = 60_000;
/** The longest timer; a longer one fires at once. */
const LONGEST_TIMER = 2 ** 31 - 1;
const CLUSTER = /^rediss?\+cluster:/i;
const NO_QUORUM = "The operation was unable to achieve a quorum during its retry window.";

class ResourceLockedError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = "ResourceLockedError";
  }
}

class ExecutionError extends Error {
  constructor(message, attempts, options) {
    super(message, options);
    this.attempts = attempts;
    this.name = "ExecutionError";
  }
}

/** The leases behind a lock and its extensions, until its time is over or it is released. */
class Hold {
  /** "held", "unconfirmed" after a release that no server has confirmed, or "released". */
  phase = "held";
  /** The lock itself, or its last extension. */
  lock;
  #leases;
  #ends;
  #timer;
  #over;

  /** Calls `over` when the time is over. */
  constructor(leases, duration, over) {
    this.#leases = leases;
    this.#over = over;
    this.lastFor(duration);
  }

  get leases() {
    return this.#leases;
  }

  lastFor(duration) {
    this.#ends = performance.now() + duration;
    this.#wind();
  }

  /** How long the lock is certain from now, in ms: late renewals make it shorter than requested. */
  left() {
    const each = Array.from(this.#leases, (lease) => lease.remaining());
    return Math.max(0, Math.min(this.#ends - performance.now(), ...each));
  }

  stop() {
    clearTimeout(this.#timer);
  }

  #wind() {
    this.stop();
    const left = Math.max(0, this.#ends - performance.now());
    this.#timer = setTimeout(() => this.#ring(), Math.min(left, LONGEST_TIMER)).unref();
  }

  #ring() {
    if (performance.now() < this.#ends) this.#wind();
    else this.#over();
  }
}

/** The leases of locks that were acquired or extended. */
const holds = new WeakMap();

class Lock {
  constructor(redlock, resources, value, attempts) {
    this.redlock = redlock;
    this.resources = resources;
    this.value = value;
    this.attempts = attempts;
  }

  get expiration() {
    const left = current(this)?.left() ?? 0;
    return left > 0 ? Math.floor(Date.now() + left) : 0;
  }

  get leases() {
    return current(this)?.leases;
  }

  async release() {
    return this.redlock.release(this);
  }

  async extend(duration) {
    return this.redlock.extend(this, duration);
  }

  /** Without the instance, since its clients contain passwords. */
  toJSON() {
    return { resources: this.resources, value: this.value, expiration: this.expiration };
  }
}

/** The lease behind a lock that was neither released nor replaced by an extension. */
function current(lock) {
  const hold = holds.get(lock);
  return hold?.phase === "held" && hold.lock === lock ? hold : undefined;
}

class Redlock extends EventEmitter {
  #urls;
  #prefix;
  #client;
  #isOurs = true;
  #quitting = new AbortController();
  /** Held leases, and a function for each that ends its work when `quit` releases it. */
  #taken = new Map();

  constructor(clients, settings = {}, scripts = {}) {
    super();
    // An error event without a listener would throw.
    this.on("error", () => {});
    // One listener for each waiting lock.
    setMaxListeners(0, this.#quitting.signal);
    this.clients = new Set(clients);
    if (this.clients.size === 0) throw new Error("Redlock must be instantiated with at least one redis client.");
    if (Object.keys(scripts).length > 0) throw new ConfigError("your own scripts cannot be used here");
    this.settings = Object.fromEntries(
      Object.entries(DEFAULTS).map(([name, usual]) => [name, typeof settings[name] === "number" ? settings[name] : usual]),
    );
    const [first] = this.clients;
    if (first instanceof Client) {
      if (this.clients.size > 1) throw new ConfigError("a client of leasehold must be the only entry: it has all of its stores already");
      [this.#client, this.#isOurs, this.#urls, this.#prefix] = [Promise.resolve(first), false, first.stores, ""];
      return;
    }
    const { driftFactor } = this.settings;
    if (!(driftFactor >= LEAST_DRIFT && driftFactor <= MOST_DRIFT)) {
      throw new ConfigError(`driftFactor is ${driftFactor}, but must be ${LEAST_DRIFT} to ${MOST_DRIFT}`);
    }
    const stores = Array.from(this.clients, storeOf);
    if (stores.some(({ prefix }) => prefix !== stores[0].prefix)) {
      throw new ConfigError("these clients have different key prefixes: a lock has one name on all servers");
    }
    if (stores.length > 1 && stores.some(({ url }) => CLUSTER.test(url))) {
      throw new ConfigError("a Redis Cluster cannot be a node of a quorum: give one cluster alone, or servers");
    }
    [this.#urls, this.#prefix] = [stores.map(({ url }) => url), stores[0].prefix];
  }

  /** Without the clients, since they contain passwords. */
  toJSON() {
    return { servers: this.clients.size, settings: this.settings };
  }

  async quit() {
    this.#quitting.abort(new ConfigError("no lock can be acquired: quit() was called"));
    const taken = Array.from(this.#taken);
    this.#taken.clear();
    for (const [, end] of taken) end();
    const theirs = Array.from(this.clients, (client) => (typeof client.quit === "function" ? client.quit() : undefined));
    await Promise.all([this.#isOurs ? this.#close() : this.#giveBackAll(taken), ...theirs]);
  }

  async acquire(resources, duration, settings) {
    const leases = await this.#take(resources, duration, settings);
    const hold = new Hold(leases, duration, () => this.#giveBack(hold).catch((error) => this.emit("error", error)));
    this.#taken.set(leases, () => hold.stop());
    return this.#lock(hold, resources, randomBytes(16).toString("hex"));
  }

  async release(lock) {
    // An extension replaces a lock, but has its value: the release of either frees both.
    const hold = holds.get(lock) ?? { phase: "released" };
    const { phase } = hold;
    hold.phase = "released";
    try {
      if (phase === "released") throw new ResourceLockedError("The lock was already released.");
      await (phase === "held" ? this.#giveBack(hold) : this.#confirm(hold.leases));
    } catch (error) {
      if (error instanceof StoreUnavailableError) hold.phase = "unconfirmed";
      throw this.#failed(NO_QUORUM, error);
    }
    return { attempts: this.#attempts() };
  }

  async extend(existing, duration) {
    whole(duration);
    const hold = current(existing);
    if (hold === undefined || hold.left() === 0) {
      throw new ExecutionError("Cannot extend an already-expired lock.", []);
    }
    // The lock does not change.
    if (duration <= 0) throw this.#tooShort(duration);
    hold.lastFor(duration);
    return this.#lock(hold, existing.resources, existing.value);
  }

  async using(resources, duration, settings, routine) {
    if (typeof settings === "function") return this.using(resources, duration, undefined, settings);
    if (typeof routine !== "function") throw new Error("INVARIANT: routine is not a function.");
    const leases = await this.#take(resources, duration, settings);
    const controller = new AbortController();
    const tell = (reason) => {
      controller.signal.error ??= reason;
      controller.abort(reason);
    };
    for (const { signal } of leases) {
      if (signal.aborted) tell(signal.reason);
      else signal.addEventListener("abort", () => tell(signal.reason), { once: true });
    }
    let given;
    this.#taken.set(leases, () => tell((given = new LeaseLostError("the lock was released by quit()"))));
    try {
      const told = (error) => this.#failed(NO_QUORUM, given ?? error);
      const result = await under(leases, () => routine(controller.signal), told);
      if (given !== undefined) throw told(given);
      return result;
    } finally {
      this.#taken.delete(leases);
    }
  }

  async #take(resources, duration, settings) {
    whole(duration);
    if (duration <= 0) throw this.#tooShort(duration);
    const { wait, pause } = patienceOf({ ...this.settings, ...settings });
    const names = texts("resources", resources).map((name) => this.#prefix + name);
    const until = performance.now() + wait;
    const longest = this.#urls.length > 1 ? QUORUM_TTL : LONGEST_TTL;
    const ttl = Math.min(Math.max(duration, SHORTEST_TTL), longest);
    const { signal } = this.#quitting;
    try {
      const client = await this.#connected(until, pause);
      const leases = await exactly(() => client.lockAll(names, { ttl, wait: Math.max(0, until - performance.now()), signal }));
      // The abort may come too late to cancel the wait.
      if (signal.aborted) {
        await leases.release().catch(() => {});
        throw signal.reason;
      }
      this.#taken.set(leases, () => {});
      return leases;
    } catch (error) {
      throw this.#failed(NO_QUORUM, error);
    }
  }

  /** Connects on first use, and tries again for the time of the retries. */
  async #connected(until, pause) {
    const { signal } = this.#quitting;
    for (;;) {
      signal.throwIfAborted();
      // A string is one store, an array is a quorum.
      const stores = this.#urls.length === 1 ? this.#urls[0] : this.#urls;
      const driftPpm = Math.round(this.settings.driftFactor * 1_000_000);
      const opening = (this.#client ??= connect(stores, { driftPpm }));
      try {
        return await opening;
      } catch (error) {
        if (this.#client === opening) this.#client = undefined;
        if (!error.temporary || performance.now() + pause > until) throw error;
        await sleep(pause, undefined, { signal }).catch(() => {});
      }
    }
  }

  /** A connection that was never made need not be closed. */
  async #close() {
    const client = await this.#client?.catch(() => undefined);
    await client?.close();
  }

  async #giveBack(hold) {
    hold.stop();
    this.#taken.delete(hold.leases);
    await hold.leases.release();
  }

  async #giveBackAll(taken) {
    await Promise.all(taken.map(([leases]) => leases.release().catch((error) => this.emit("error", error))));
  }

  /** The release continues in the background, which reports no result: read the records on the servers. */
  async #confirm(leases) {
    const { wait, pause } = patienceOf(this.settings);
    const until = performance.now() + wait;
    const client = await this.#client;
    const isGone = async ({ resource, token }) => {
      try {
        const found = await client.inspect(resource);
        return found === null || found.foreign || (found.token !== undefined && found.token !== token);
      } catch (error) {
        if (error.temporary) return false;
        throw error;
      }
    };
    for (const lease of leases) {
      while (!(await isGone(lease))) {
        if (performance.now() + pause > until) {
          const { resource } = lease;
          throw new StoreUnavailableError(`"${resource}": the release is still not confirmed`, { resource, temporary: true });
        }
        await sleep(pause, undefined, { signal: this.#quitting.signal });
      }
    }
  }

  #lock(hold, resources, value) {
    const lock = new Lock(this, resources, value, this.#attempts());
    holds.set(lock, hold);
    hold.lock = lock;
    return lock;
  }

  /** The votes of single servers are not known here: all have the same entry. */
  #attempts(error) {
    const [membershipSize, all] = [this.clients.size, Array.from(this.clients)];
    const stats = {
      membershipSize,
      quorumSize: Math.floor(membershipSize / 2) + 1,
      votesFor: new Set(error ? [] : all),
      votesAgainst: new Map(error ? all.map((client) => [client, error]) : []),
    };
    return [Promise.resolve(stats)];
  }

  #tooShort(duration) {
    const message = `A lock of ${duration} ms would be over before it is held.`;
    return this.#failed(message, new RangeError(message));
  }

  /** Errors of the program are thrown unchanged. */
  #failed(message, error) {
    if (error instanceof ConfigError || error instanceof ClosedError || error instanceof TypeError) return error;
    const isHeld = error instanceof LockBusyError || error instanceof LockTimeoutError;
    const cause = isHeld ? new ResourceLockedError(error.message, { cause: error }) : error;
    this.emit("error", cause);
    return new ExecutionError(message, this.#attempts(cause), { cause });
  }
}

function whole(duration) {
  if (!Number.isInteger(duration)) throw new Error("Duration must be an integer value in milliseconds.");
}

/** The time to try, and the pause. A value that is not a number means the same as in redlock 5: one try, and no pause. */
function patienceOf({ retryCount, retryDelay }) {
  const pause = retryDelay > 1 ? Math.min(retryDelay, LONGEST_TIMER) : 1;
  if (retryCount === -1) return { wait: Infinity, pause };
  return { wait: retryCount > 0 ? retryCount * pause : 0, pause };
}

shows(Lock, Redlock);

module.exports = { __esModule: true, default: Redlock, Redlock, Lock, ExecutionError, ResourceLockedError };
