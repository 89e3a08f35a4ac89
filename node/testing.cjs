"use strict";

// Locks for tests of your own code: no server, and a clock that the test moves. Documented in testing.d.ts.

const { builtin } = require("./lib/builtin.cjs");
const { createHash } = builtin("node:crypto", () => require("node:crypto"));
const { Items } = require("./cas.cjs");
const { Client } = require("./lib/client.cjs");
const errors = require("./lib/errors.cjs");
const { FakeItemStore, FakeItems } = require("./lib/fake-items.cjs");
const permits = require("./lib/fake-permits.cjs");
const { FakeElection } = require("./lib/fake-election.cjs");
const shards = require("./lib/fake-shards.cjs");
const { Held, Several, nanoseconds } = require("./lib/fake-leases.cjs");
const { forgotten, markOf, requested } = require("./lib/fake-runs.cjs");
const { Client: Machine, drive, runs } = require("./lib/machine.cjs");
const native = require("./lib/native.cjs");
const { number, options } = require("./lib/options.cjs");
const { told } = require("./lib/told.cjs");

/** The wait for a release, in ms, as in the real client. */
const PATIENCE = 2_000;
/** A revoke writes it: no client sends it. */
const LAST_SEQ = 2 ** 32 - 1;
/** The limit of a wait without a limit: nobody else moves the clock meanwhile. */
const ENDLESS = 3_600_000;

const worlds = new WeakMap();

function connect({ clock = new FakeClock(), owner = "fake", ...settings } = {}) {
  const taken = options(settings, { driftPpm: "number", requestTimeout: "number" });
  return new FakeClient(new Process(worlds.get(clock), clock, owner, taken));
}

function connectItems({ store = new FakeItemStore(), tries = 10 } = {}) {
  return new Items(new FakeItems(store), number("tries", tries));
}

/** The shared state of the clients of a clock. */
class World {
  ns = 1_000_000_000n;
  store = new native.TestStore();
  processes = [];
  /** All locks that were ever asked for, and the numbers of permits, readers and shards. */
  names = new Set();
  numbers = new Map();
  /** The workers on shards, by name. */
  workers = new Map();
  #drawn = 0;

  now() {
    return { monotonicNs: this.ns, unixMs: 1_700_000_000_000 + Number(this.ns / 1_000_000n) };
  }

  /** The same in each run. */
  random(count) {
    return createHash("sha256").update(String((this.#drawn += 1))).digest().subarray(0, count);
  }

  /** Moves from one due time to the next. */
  until(ms, isOver = () => false) {
    const end = this.ns + nanoseconds(ms);
    for (;;) {
      this.settle();
      if (isOver() || this.ns >= end) return;
      this.#step(end);
    }
  }

  /** The same, but lets everything that is ready run before time passes. */
  async meanwhile(ms, isOver) {
    const end = this.ns + nanoseconds(ms);
    for (;;) {
      this.settle();
      if (isOver() || this.ns >= end) return;
      await new Promise(setImmediate);
      this.settle();
      if (!isOver() && this.ns < end) this.#step(end);
    }
  }

  #step(end) {
    const due = this.processes.map((process) => process.wakeAt).filter((at) => at !== undefined);
    const next = due.reduce((least, at) => (at < least ? at : least), end);
    this.ns = next > this.ns ? next : this.ns + 1n;
  }

  /** Does everything that is due now. */
  settle() {
    while (this.processes.map((process) => process.drive()).some(Boolean));
    if (this.workers.size > 0 && !this.isBalancing) shards.balance(this);
  }
}

class FakeClock {
  constructor() {
    worlds.set(this, new World());
  }

  now() {
    return Number(worlds.get(this).ns) / 1e6;
  }

  advance(ms) {
    worlds.get(this).until(ms);
  }
}

class FakeClient extends Client {
  #process;

  constructor(process) {
    super(process);
    this.#process = process;
  }

  get clock() {
    return this.#process.clock;
  }

  lose(name) {
    this.#process.lose(name);
  }

  storeDown() {
    this.#process.world.store.setUp(false);
  }

  storeUp() {
    this.#process.world.store.setUp(true);
    this.#process.world.settle();
  }
}

/** One state machine of the protocol with its locks; a client uses it as its native client. */
class Process {
  stores = ["fake:"];
  wakeAt;
  #machine;
  #owner;
  #locks = 0;
  #pending = new Map();
  #failed = new Map();
  #leases = new Map();
  #granted = new Map();
  #isClosed = false;

  constructor(world, clock, owner, settings) {
    Object.assign(this, { world, clock });
    this.#owner = owner;
    this.#machine = Machine.create({ nodes: [{}], ...settings }, world.random(32), world.now());
    world.processes.push(this);
  }

  /** Does what is due. Returns true if anything has happened. */
  drive() {
    const { outputs, wakeAtNs } = drive(this.#machine, this.world.store, this.world.random(16), this.world.now());
    this.wakeAt = wakeAtNs;
    for (const output of outputs) if (output.type === "event") this.#happened(output.lock, output.event);
    return outputs.length > 0;
  }

  #happened(lock, event) {
    if (event.type === "acquired") {
      const lease = new Held(this, lock, take(this.#pending, lock), event.token);
      this.#leases.set(lock, lease);
      // Other code may end it before its owner has it.
      this.#granted.set(lock, lease);
    } else if (event.type === "failed") {
      this.#failed.set(lock, event.failure);
      this.#pending.delete(lock);
    } else if (event.type === "lost" || event.type === "released" || event.type === "finished") {
      take(this.#leases, lock).end(event);
    }
  }

  async acquire(name, settings, wrap) {
    return wrap(await this.#lock(name, settings));
  }

  async tryAcquire(name, settings, wrap) {
    try {
      return await this.acquire(name, { ...settings, wait: 0 }, wrap);
    } catch (error) {
      if (error instanceof errors.LockBusyError) return null;
      throw error;
    }
  }

  async beginRun(name, { signal, ...given }, wrap) {
    const { resource, settings } = requested(name, given, this.world.now().unixMs);
    const { lease, failure } = await this.#attempt(resource, settings, signal);
    if (lease !== undefined) return { run: wrap(lease) };
    if (failure.type === "done") return { completion: markOf(failure) };
    if (failure.type === "busy" || failure.type === "timed-out") return { holder: failed(resource, failure).holder };
    throw failed(resource, failure);
  }

  inspectRun(name, key) {
    const begin = () => {
      const resource = runs("run-resource", name, key);
      const holder = this.inspect(resource).begin();
      return { resource, holder, done: markOf(told(this.world.store.completion(resource, this.world.now()))) };
    };
    return { begin };
  }

  forgetRun(name, key) {
    return { begin: () => forgotten(this, this.inspectRun(name, key).begin()) };
  }

  async #lock(name, { signal, ...settings }) {
    const { lease, failure } = await this.#attempt(name, settings, signal);
    if (failure !== undefined) throw failed(name, failure);
    return lease;
  }

  /** The lease, or the failure of the protocol. */
  #attempt(resource, settings, signal) {
    return this.attempt([resource], settings, signal);
  }

  /** The first of these locks that is granted, with its position, or else the last failure of the protocol. */
  async attempt(resources, given, signal) {
    signal?.throwIfAborted();
    const settings = this.#settings(given);
    if (this.#isClosed) throw new errors.ClosedError("the client was closed", { resource: resources[0] });
    const { world } = this;
    const locks = resources.map((resource) => this.#begin(resource, settings));
    const isGranted = () => locks.some((lock) => this.#granted.has(lock));
    const isPending = () => locks.some((lock) => this.#pending.has(lock));
    await world.meanwhile(ENDLESS, () => isGranted() || !isPending() || signal?.aborted);
    const at = locks.findIndex((lock) => this.#granted.has(lock));
    const wasPending = isPending();
    const lease = at < 0 ? undefined : take(this.#granted, locks[at]);
    const failures = locks.map((lock, at) => ({ at, failure: take(this.#failed, lock) })).filter(({ failure }) => failure);
    locks.filter((_, other) => other !== at).forEach((lock) => this.#giveUp(lock));
    if (lease !== undefined) return { lease, at };
    if (!wasPending) return failures.at(-1);
    signal?.throwIfAborted();
    const why = "stayed locked for an hour of the fake clock: set `wait`, or this test never ends";
    throw new Error(`"${resources[0]}" ${why}`);
  }

  /** The settings as the protocol takes them. The reference store keeps no line, and expires records itself. */
  #settings({ wait, renew = true, renewEvery, owner = this.#owner, fair: _, watchHolder: __, ...rest }) {
    const waiting = wait === undefined || wait === Infinity ? { type: "forever" } : { type: "for", wait };
    if (!renew && renewEvery !== undefined) {
      throw new errors.ConfigError("renew: false and renewEvery contradict each other: leave one out");
    }
    const every = renewEvery === undefined ? undefined : { type: "every", interval: renewEvery };
    return { ...rest, owner, wait: wait === 0 ? { type: "once" } : waiting, renewal: renew ? every : { type: "off" } };
  }

  #begin(resource, settings) {
    const { world } = this;
    const lock = (this.#locks += 1);
    this.#machine.acquire(lock, resource, settings, world.random(16), world.now());
    world.names.add(resource);
    this.#pending.set(lock, { resource, owner: settings.owner });
    return lock;
  }

  #giveUp(lock) {
    if (this.#pending.has(lock) || this.#granted.has(lock)) {
      this.#machine.release(lock, this.world.now());
      this.drive();
    }
    this.#granted.delete(lock);
    this.#failed.delete(lock);
  }

  /** Throws for a name that no lock can have. */
  checkName(name) {
    this.checkLock(name, {});
  }

  /** Throws for a name or settings that no lock can have. */
  checkLock(name, settings) {
    const now = { monotonicNs: 0n, unixMs: 0 };
    const machine = Machine.create({ nodes: [{}] }, new Uint8Array(32), now);
    machine.acquire(1, name, this.#settings(settings), new Uint8Array(16), now);
  }

  get isClosed() {
    return this.#isClosed;
  }

  error(resource, failure) {
    return failed(resource, failure);
  }

  async acquireComposed(composition, settings, wrap, tries) {
    try {
      const { held, index } = await permits.composed(this, composition, settings, tries);
      return wrap(held, index);
    } catch (error) {
      if (tries && error instanceof errors.LockBusyError) return null;
      throw error;
    }
  }

  setPermits(name, count) {
    return { begin: () => permits.setNumber(this, name, "permit", count) };
  }

  setReaders(name, count) {
    return { begin: () => permits.setNumber(this, name, "read", count) };
  }

  shards(name, settings) {
    return { begin: async () => new shards.FakeShards(this, name, settings) };
  }

  setShards(name, count) {
    return { begin: async () => shards.setNumber(this, name, count) };
  }

  pages(prefix) {
    return permits.pages(this, prefix);
  }

  changes(name, every) {
    return permits.changes(this, name, every);
  }

  lockAll(names, { wait, ...settings }) {
    const begin = async (signal) => {
      const end = this.clock.now() + (wait ?? Infinity);
      const leases = [];
      try {
        for (const name of [...new Set(names)].sort()) {
          const left = Math.max(0, end - this.clock.now());
          leases.push(await this.#lock(name, { ...settings, wait: left, signal }));
        }
      } catch (error) {
        leases.reverse().forEach((lease) => lease.giveBack());
        throw error;
      }
      return new Several(leases);
    };
    return { begin };
  }

  elect(name, settings) {
    return { begin: async () => new FakeElection(this, name, settings) };
  }

  inspect(resource) {
    const begin = () => {
      if (!this.world.store.isUp) {
        throw new errors.StoreUnavailableError("the test has taken the store down", { resource, temporary: true });
      }
      const holding = told(this.world.store.holder(resource, this.world.now()));
      return holding && info(resource, holding);
    };
    return { begin };
  }

  releaseIf(resource, meant) {
    const begin = () => {
      const holder = this.inspect(resource).begin();
      const released = told(native.isMeant(meant, holder?.token, holder?.owner)) && Boolean(holder);
      if (released) told(this.world.store.free(resource));
      return { released, holder };
    };
    return { begin };
  }

  revoke(resource, meant) {
    const begin = () => {
      const shown = this.inspect(resource).begin();
      const revoked = told(native.isMeant(meant, shown?.token, shown?.owner)) && Boolean(shown);
      if (revoked) told(this.world.store.revoke(resource, this.world.now()));
      return { revoked, holder: this.inspect(resource).begin() };
    };
    return { begin };
  }

  sessions() {
    // Fake clients are given no names.
    return { begin: () => [] };
  }

  revokeSession(label) {
    if (label === "") throw new errors.ConfigError("the name of the session is empty");
    return this.sessions();
  }

  lose(resource) {
    const held = [...this.#leases].filter(([, lease]) => lease.resource === resource && !lease.isOver);
    if (held.length === 0) throw new errors.NotOwnedError(`this client does not hold "${resource}"`, { resource });
    told(this.world.store.free(resource));
    for (const [lock] of held) this.#machine.declareLost(lock, this.world.now());
    this.world.settle();
  }

  letGo(lock) {
    try {
      this.#machine.release(lock, this.world.now());
    } catch (error) {
      // The record has run out meanwhile.
      if (error.code !== "rejected") throw error;
    }
    this.world.settle();
  }

  release(lock, isOver) {
    this.#machine.release(lock, this.world.now());
    this.world.until(PATIENCE, isOver);
  }

  finish(lock, left, isOver) {
    this.#machine.finish(lock, this.world.now());
    this.world.until(left + PATIENCE, isOver);
  }

  remaining(lock) {
    return Number(this.#machine.remainingNs(lock, this.world.now())) / 1e6;
  }

  close() {
    const begin = async () => {
      const workers = [...this.world.workers.values()].flat().filter((worker) => worker.isOf(this));
      if (workers.length > 0) await Promise.all(workers.map((worker) => worker.stop().begin()));
      this.#isClosed = true;
      for (const lease of this.#leases.values()) lease.close();
      this.#machine.close(this.world.now());
      this.world.until(PATIENCE, () => this.#machine.isIdle());
      if (!this.#machine.isIdle()) {
        const message = "the store has not confirmed that everything is released";
        throw new errors.StoreUnavailableError(message, { temporary: true });
      }
    };
    return { begin };
  }
}

function take(map, key) {
  const value = map.get(key);
  map.delete(key);
  return value;
}

function failed(resource, failure) {
  const holder = failure.holding && info(resource, failure.holding);
  const by = holder?.owner ?? "somebody else";
  const details = { resource, holder };
  switch (failure.type) {
    case "busy":
      return new errors.LockBusyError(`"${resource}" is held by ${by}`, details);
    case "timed-out":
      return new errors.LockTimeoutError(`"${resource}" was held by ${by} for the whole wait`, details);
    case "refused":
      return new errors.StoreRefusedError(`"${resource}": ${failure.detail}`, { resource });
    default:
      details.temporary = true;
      return new errors.StoreUnavailableError(`"${resource}": ${failure.detail ?? failure.type}`, details);
  }
}

function info(resource, { holder, owner, counter, sinceUnixMs, recordTtlMs, leftMs, data }) {
  const bytes = data && Buffer.from(data);
  const times = { since: sinceUnixMs, ttl: recordTtlMs, left: leftMs };
  return { resource, owner, token: counter, ...times, data: bytes, foreign: false, revoked: holder?.seq === LAST_SEQ, votes: 1, nodes: 1 };
}

module.exports = { FakeClock, FakeItemStore, connect, connectItems };
