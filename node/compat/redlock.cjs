"use strict";

// The face of npm's redlock 5, over leases. Documented in ./redlock.d.ts, and what is different in docs/migrating-node.md.

const { randomBytes } = require("node:crypto");
const { EventEmitter } = require("node:events");
const { setTimeout: sleep } = require("node:timers/promises");

const { Client, connect } = require("../lib/client.cjs");
const { ConfigError, LockBusyError, LockTimeoutError } = require("../lib/errors.cjs");
const { storeOf } = require("../lib/ioredis.cjs");
const { texts } = require("../lib/options.cjs");
const { under } = require("../lib/under.cjs");

const DEFAULTS = Object.freeze({
  driftFactor: 0.01,
  retryCount: 10,
  retryDelay: 200,
  retryJitter: 100,
  automaticExtensionThreshold: 500,
});
const SHORTEST_TTL = 100;
const LONGEST_TTL = 86_400_000;
/** Of a quorum, unless its client says otherwise. */
const QUORUM_TTL = 60_000;
/** A timer for longer fires at once. */
const LONGEST_TIMER = 2 ** 31 - 1;
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

/** What stands behind a lock, until its time is over or somebody gives it back. */
class Hold {
  #leases;
  #ends;
  #timer;
  #over;

  /** `over` hears of a release that has failed after the time was over. */
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

  /** For how long it is certain by now, in ms: renewals that are late make it less than was asked for. */
  left() {
    const each = Array.from(this.#leases, (lease) => lease.remaining());
    return Math.max(0, Math.min(this.#ends - performance.now(), ...each));
  }

  async giveBack() {
    clearTimeout(this.#timer);
    await this.#leases.release();
  }

  #wind() {
    clearTimeout(this.#timer);
    const left = Math.max(0, this.#ends - performance.now());
    this.#timer = setTimeout(() => this.#ring(), Math.min(left, LONGEST_TIMER)).unref();
  }

  #ring() {
    if (performance.now() < this.#ends) this.#wind();
    else this.giveBack().catch(this.#over);
  }
}

/** Locks that were neither released nor replaced by an extension of theirs. */
const holds = new WeakMap();

class Lock {
  constructor(redlock, resources, value, attempts) {
    this.redlock = redlock;
    this.resources = resources;
    this.value = value;
    this.attempts = attempts;
  }

  get expiration() {
    const left = holds.get(this)?.left() ?? 0;
    return left > 0 ? Math.floor(Date.now() + left) : 0;
  }

  get leases() {
    return holds.get(this)?.leases;
  }

  async release() {
    return this.redlock.release(this);
  }

  async extend(duration) {
    return this.redlock.extend(this, duration);
  }
}

class Redlock extends EventEmitter {
  #urls;
  #prefix;
  #client;
  #isOurs = true;
  #hasQuit = false;

  constructor(clients, settings = {}, scripts = {}) {
    super();
    // An error event that nobody listens to would throw.
    this.on("error", () => {});
    this.clients = new Set(clients);
    if (this.clients.size === 0) throw new Error("Redlock must be instantiated with at least one redis client.");
    if (Object.keys(scripts).length > 0) throw new ConfigError("scripts of your own cannot be used here");
    this.settings = Object.fromEntries(
      Object.entries(DEFAULTS).map(([name, usual]) => [name, typeof settings[name] === "number" ? settings[name] : usual]),
    );
    const [first] = this.clients;
    if (first instanceof Client) {
      if (this.clients.size > 1) throw new ConfigError("a client of leasehold has all its stores already: give it alone");
      [this.#client, this.#isOurs, this.#urls, this.#prefix] = [Promise.resolve(first), false, first.stores, ""];
      return;
    }
    const stores = Array.from(this.clients, storeOf);
    if (stores.some(({ prefix }) => prefix !== stores[0].prefix)) {
      throw new ConfigError("these clients put different prefixes before their keys: a lock has one name on all servers");
    }
    [this.#urls, this.#prefix] = [stores.map(({ url }) => url), stores[0].prefix];
  }

  async quit() {
    this.#hasQuit = true;
    const ours = this.#isOurs && this.#client !== undefined ? [this.#client.then((client) => client.close())] : [];
    const theirs = Array.from(this.clients, (client) => (typeof client.quit === "function" ? client.quit() : undefined));
    await Promise.all([...ours, ...theirs]);
  }

  async acquire(resources, duration, settings) {
    const leases = await this.#take(resources, duration, settings);
    const hold = new Hold(leases, duration, (error) => this.emit("error", error));
    return this.#lock(hold, resources, randomBytes(16).toString("hex"));
  }

  async release(lock) {
    const hold = holds.get(lock);
    holds.delete(lock);
    if (hold === undefined) throw this.#failed(NO_QUORUM, new ResourceLockedError("The lock was released or extended before."));
    try {
      await hold.giveBack();
    } catch (error) {
      throw this.#failed(NO_QUORUM, error);
    }
    return { attempts: this.#attempts() };
  }

  async extend(existing, duration) {
    whole(duration);
    const hold = holds.get(existing);
    if (hold === undefined || hold.left() === 0) {
      throw new ExecutionError("Cannot extend an already-expired lock.", []);
    }
    holds.delete(existing);
    hold.lastFor(duration);
    return this.#lock(hold, existing.resources, existing.value);
  }

  async using(resources, duration, settings, routine) {
    if (typeof settings === "function") return this.using(resources, duration, undefined, settings);
    if (typeof routine !== "function") throw new Error("INVARIANT: routine is not a function.");
    const leases = await this.#take(resources, duration, settings);
    const controller = new AbortController();
    for (const { signal } of leases) {
      const tell = () => {
        controller.signal.error ??= signal.reason;
        controller.abort(signal.reason);
      };
      if (signal.aborted) tell();
      else signal.addEventListener("abort", tell, { once: true });
    }
    return under(leases, () => routine(controller.signal), (error) => this.#failed(NO_QUORUM, error));
  }

  async #take(resources, duration, settings) {
    whole(duration);
    const { retryCount, retryDelay } = { ...this.settings, ...settings };
    const names = texts("resources", resources).map((name) => this.#prefix + name);
    const wait = retryCount < 0 ? Infinity : retryCount * Math.max(1, retryDelay);
    const until = performance.now() + wait;
    const longest = this.#urls.length > 1 ? QUORUM_TTL : LONGEST_TTL;
    const ttl = Math.min(Math.max(duration, SHORTEST_TTL), longest);
    try {
      const client = await this.#connected(until, retryDelay);
      return await client.lockAll(names, { ttl, wait: Math.max(0, until - performance.now()) });
    } catch (error) {
      throw this.#failed(NO_QUORUM, error);
    }
  }

  /** Connects when it is first needed, and again for as long as a lock may be tried for. */
  async #connected(until, pause) {
    for (;;) {
      if (this.#hasQuit && this.#isOurs) throw new ConfigError("the connection was closed by quit()");
      // One text is a store, an array a quorum.
      const stores = this.#urls.length === 1 ? this.#urls[0] : this.#urls;
      const driftPpm = Math.round(this.settings.driftFactor * 1_000_000);
      const opening = (this.#client ??= connect(stores, { driftPpm }));
      try {
        return await opening;
      } catch (error) {
        if (this.#client === opening) this.#client = undefined;
        if (!error.temporary || performance.now() + pause > until) throw error;
        await sleep(pause);
      }
    }
  }

  #lock(hold, resources, value) {
    const lock = new Lock(this, resources, value, this.#attempts());
    holds.set(lock, hold);
    return lock;
  }

  /** Nobody knows here which server has voted how: it is told as if they had agreed. */
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

  /** What can be mended in the program is passed on as it is. */
  #failed(message, error) {
    if (error instanceof ConfigError || error instanceof TypeError) return error;
    const isHeld = error instanceof LockBusyError || error instanceof LockTimeoutError;
    const cause = isHeld ? new ResourceLockedError(error.message, { cause: error }) : error;
    this.emit("error", cause);
    return new ExecutionError(message, this.#attempts(cause), { cause });
  }
}

function whole(duration) {
  if (!Number.isInteger(duration)) throw new Error("Duration must be an integer value in milliseconds.");
}

module.exports = { __esModule: true, default: Redlock, Redlock, Lock, ExecutionError, ResourceLockedError };
