"use strict";

// Clients and leases of native code, as lib/client.cjs and lib/lease.cjs use them.

const { alreadyReleased } = /** @type {any} */ (require("./native.cjs"));
const { LeaseLostError, errorOf } = require("./errors.cjs");
const { lose } = require("./lease.cjs");
const { Call, drop, leases, native, reactor, run } = require("./loop.cjs");
const { told } = require("./told.cjs");

/** The number of no lease. */
const NO_LEASE = 2 ** 32 - 1;

/** A client. */
class Connected {
  #client;
  #connection;
  #owner;

  constructor(client) {
    this.#client = client;
    this.#connection = client.connection();
  }

  /** The object of native code. */
  get client() {
    return this.#client;
  }

  get stores() {
    return this.#client.stores;
  }

  get owner() {
    return (this.#owner ??= this.#client.owner);
  }

  /** `wrap` makes the result of the lease. */
  acquire(name, settings, wrap) {
    return this.#lock(name, settings, wrap, false);
  }

  /** The same, but `null` if somebody else holds the lock. */
  tryAcquire(name, settings, wrap) {
    return this.#lock(name, settings, wrap, true);
  }

  /** Begins a run. `wrap` makes its part of the result, of its lease and the attempts at its work. */
  beginRun(name, settings, wrap) {
    return new Promise((resolve, reject) => {
      new Begin(resolve, reject, this, name, settings, wrap).go(settings.signal);
    });
  }

  inspectRun(name, key) {
    return this.#client.inspectRun(name, key);
  }

  forgetRun(name, key) {
    return this.#client.forgetRun(name, key);
  }

  /** One lease of what is made of locks; `null` if it only tries and others hold it. `wrap` takes its permit's number as well. */
  acquireComposed(composition, settings, wrap, tries) {
    return new Promise((resolve, reject) => {
      new AcquireComposed(resolve, reject, this, composition, settings, wrap, tries).go(settings.signal);
    });
  }

  setPermits(name, permits) {
    return this.#client.setPermits(name, permits);
  }

  setReaders(name, readers) {
    return this.#client.setReaders(name, readers);
  }

  pages(prefix) {
    return this.#client.pages(prefix);
  }

  runPages(prefix) {
    return this.#client.runPages(prefix);
  }

  changes(name, every) {
    return this.#client.changes(name, every);
  }

  async lockAll(names, settings, signal) {
    return new Several(await run(this.#client.lockAll(names, settings), signal));
  }

  elect(name, settings) {
    return this.#client.elect(name, settings);
  }

  shards(name, settings) {
    return this.#client.shards(name, settings);
  }

  setShards(name, count) {
    return this.#client.setShards(name, count);
  }

  inspect(name) {
    return this.#client.inspect(name);
  }

  releaseIf(name, holder) {
    return this.#client.releaseIf(name, holder);
  }

  revoke(name, holder) {
    return this.#client.revoke(name, holder);
  }

  sessions() {
    return this.#client.sessions();
  }

  revokeSession(label) {
    return this.#client.revokeSession(label);
  }

  close() {
    return this.#client.close();
  }

  /** Begins to acquire a lock, and answers as native code. */
  begin(name, settings, tries, slot, generation) {
    if (isRare(settings)) {
      const operation = tries ? this.#client.tryAcquire(name, settings) : this.#client.acquire(name, settings);
      return reactor.start(operation, slot, generation);
    }
    const { ttl, wait, owner } = settings;
    return native.acquire(this.#connection, name, ttl, wait, owner, tries, slot, generation);
  }

  #lock(name, settings, wrap, tries) {
    return new Promise((resolve, reject) => {
      new Acquire(resolve, reject, this, name, settings, wrap, tries).go(settings.signal);
    });
  }
}

/** Tells if there are settings that the plain function of native code does not take. */
function isRare({ data, lockDelay, maxHold, renewEvery, renew, fair, watchHolder }) {
  return (
    data !== undefined ||
    lockDelay !== undefined ||
    maxHold !== undefined ||
    renewEvery !== undefined ||
    renew !== undefined ||
    fair !== undefined ||
    watchHolder !== undefined
  );
}

class Acquire extends Call {
  constructor(resolve, reject, client, name, settings, wrap, tries) {
    super(resolve, reject);
    this.client = client;
    this.name = name;
    this.settings = settings;
    this.wrap = wrap;
    this.tries = tries;
  }

  begin(slot, generation) {
    return this.client.begin(this.name, this.settings, this.tries, slot, generation);
  }

  made(number, token) {
    return this.wrap(new Held(number, token, this.name, this.settings.owner ?? this.client));
  }

  settle(value) {
    super.settle(value ?? null);
  }
}

class AcquireComposed extends Acquire {
  begin(slot, generation) {
    const operation = this.client.client.acquireComposed(this.name, this.settings, this.tries);
    return reactor.start(operation, slot, generation);
  }

  made(number, token) {
    // Native code alone knows which of the locks it is.
    const held = new Held(number, token, reactor.resource(number), this.settings.owner ?? this.client);
    return this.wrap(held, reactor.permit(number) ?? undefined);
  }
}

class Begin extends Call {
  constructor(resolve, reject, client, name, settings, wrap) {
    super(resolve, reject);
    this.client = client;
    this.name = name;
    this.settings = settings;
    this.wrap = wrap;
  }

  begin(slot, generation) {
    return reactor.start(this.client.client.beginRun(this.name, this.settings), slot, generation);
  }

  made(number, token) {
    // A period in place of a key is known to native code alone.
    const held = new Held(number, token, reactor.resource(number), this.settings.owner ?? this.client);
    return { run: this.wrap(held, this.settings.maxAttempts === undefined ? null : reactor.attempts(number)) };
  }
}

class Release extends Call {
  constructor(resolve, reject, held, number, leaves) {
    super(resolve, reject);
    this.held = held;
    this.number = number;
    this.leaves = leaves;
  }

  begin(slot, generation) {
    return native.release(this.number, this.leaves, slot, generation);
  }

  failing(error) {
    if (error instanceof LeaseLostError) this.held.tell(error);
  }
}

class Finish extends Release {
  begin(slot, generation) {
    return native.finish(this.number, this.leaves, slot, generation, ...(this.held.result ?? []));
  }
}

class Fail extends Release {
  begin(slot, generation) {
    return native.fail(this.number, this.leaves, slot, generation, this.held.reason);
  }
}

/** A lease that native code keeps under a number, until it ends. */
class Held {
  /** `undefined` once the lease was released or lost. */
  #number;
  #token;
  #resource;
  /** The label, or the client whose label it is. */
  #owner;
  #loss;
  /** The number of a lease that was revoked, until its work has ended. */
  #revoked;
  #watcher;
  /** The run, once a transaction of the user's was given its completion: that transaction decides, even after a loss. */
  #marking;

  constructor(number, token, resource, owner) {
    this.#number = number;
    this.#token = token;
    this.#resource = resource;
    this.#owner = owner;
    leases[number] = this;
  }

  get token() {
    return this.#token;
  }

  get resource() {
    return this.#resource;
  }

  get owner() {
    return typeof this.#owner === "string" ? this.#owner : this.#owner.owner;
  }

  remaining() {
    return this.#number === undefined ? 0 : native.remaining(this.#number);
  }

  isLost() {
    return this.#number === undefined ? this.#loss !== undefined : native.isLost(this.#number);
  }

  check(min) {
    const failure = reactor.check(this.#number ?? NO_LEASE, min);
    return failure ?? (this.#number === undefined ? this.#over() : undefined);
  }

  /** Tells the lease of its loss. */
  watch(lease) {
    this.#watcher = lease;
  }

  /** For a lease whose work has ended: a record that was revoked has kept others out until now. */
  letGo() {
    const number = this.#revoked;
    this.#revoked = undefined;
    if (number !== undefined) drop(number);
  }

  /** For a lease that other code has ended. */
  forget() {
    this.letGo();
    this.#watcher = undefined;
    const number = this.#take();
    if (number !== undefined) drop(number);
  }

  lose(failure) {
    const number = this.#take();
    if (failure.lostReason === "revoked") this.#revoked = number;
    this.#loss = failure;
    this.tell(errorOf(failure));
  }

  tell(loss) {
    this.#watcher?.[lose](loss);
  }

  release() {
    return this.#end(Release, false);
  }

  /** Releases at the end of a body. */
  leave() {
    return this.#end(Release, true);
  }

  completionIn(result) {
    if (this.#number === undefined) throw errorOf(this.#over());
    this.#marking = told(reactor.completionIn(this.#number, ...(result ?? [])));
    return { text: this.#marking.sql, values: [this.#marking.parameter] };
  }

  /** Finishes a run, with a result as it is written down, or none. */
  finish(result) {
    this.result = result;
    return this.#end(Finish, false);
  }

  /** Finishes at the end of a body. */
  finishLeft() {
    return this.#end(Finish, true);
  }

  /** Releases a run whose work has failed, for a reason in words. */
  fail(reason) {
    this.reason = reason;
    return this.#end(Fail, false);
  }

  #over() {
    return this.#loss ?? alreadyReleased(this.#resource);
  }

  #end(Ending, leaves) {
    const number = this.#take();
    if (number === undefined) {
      if (Ending === Finish && this.#loss !== undefined && this.#marking !== undefined) return run(this.#marking.finish());
      // The end of a body does not fail because the body has ended the lease itself.
      if (leaves && this.#loss === undefined) return Promise.resolve();
      return Promise.reject(errorOf(this.#over()));
    }
    return new Promise((resolve, reject) => new Ending(resolve, reject, this, number, leaves).go());
  }

  #take() {
    const number = this.#number;
    if (number !== undefined) leases[number] = this.#number = undefined;
    return number;
  }
}

/** Several leases that were taken together. */
class Several {
  #leases;
  #each;

  constructor(several) {
    this.#leases = several;
    this.#each = reactor.each(several).map(held);
  }

  each() {
    return this.#each;
  }

  check(min) {
    return this.#leases.check(min);
  }

  release() {
    return this.#leases.release();
  }

  leave() {
    return this.#leases.leave();
  }
}

/** The lease of an election's term, if one has begun. */
function begun(step) {
  const kept = reactor.term(step);
  return kept && held(kept);
}

/** The lease of a shard. */
function shardLease(step) {
  return held(reactor.shard(step));
}

function held({ number, token, resource, owner }) {
  return new Held(number, token, resource, owner);
}

module.exports = { Connected, begun, shardLease };
