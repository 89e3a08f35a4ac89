"use strict";

// Shards of the fake clients of testing.cjs.

const errors = require("./errors.cjs");
const { number } = require("./options.cjs");

const COUNT = 16;
const MOST = 64;
/** The shortest time between two looks, in ms. */
const SHORTEST_LOOK = 100;

/** Between the failures of a callback, in ms: each pause is twice as long as the last. */
const SHORTEST_REST = 1_000;
const LONGEST_REST = 60_000;

/** A worker's part in the shards of a name; `Shards` uses it as its native object. */
class FakeShards {
  #error;
  /** The shards whose callbacks have thrown, by number: the error, and until when they are left to others. */
  #resting = new Map();
  isStopping = false;
  #process;
  #name;
  #count;
  #settings;
  /** By number: the lease, and how far its callbacks are. */
  #shards = new Map();
  #steps = [];
  #taker;
  #stopped = [];
  #isOver = false;

  constructor(process, name, { count, lookEvery = Infinity, ...settings }) {
    this.#count = checked(name, count);
    if (!(lookEvery >= SHORTEST_LOOK)) {
      throw new errors.ConfigError(`${lookEvery} ms between two looks is too short`, { resource: name });
    }
    this.#process = process;
    this.#name = name;
    process.checkLock(this.resourceOf(0), settings);
    this.#settings = { ...settings, wait: 0 };
    const { workers } = process.world;
    workers.set(this.key, [...(workers.get(this.key) ?? []), this]);
    balance(process.world);
  }

  get name() {
    return this.#name;
  }

  get lastError() {
    return this.#failure ?? this.#error;
  }

  get #failure() {
    return this.#resting.values().next().value?.error;
  }

  #rests(index) {
    return this.#process.clock.now() < (this.#resting.get(index)?.until ?? 0);
  }

  /** Tells if it works on no shard since the callbacks of its whole share have thrown. */
  get standsBy() {
    const workers = this.#process.world.workers.get(this.key) ?? [];
    const share = Math.ceil(this.#count / Math.max(1, workers.filter((worker) => !worker.isStopping).length));
    return this.#shards.size === 0 && [...this.#resting.keys()].filter((index) => this.#rests(index)).length >= share;
  }

  /** What its workers have in common. */
  get key() {
    return this.#name;
  }

  resourceOf(index) {
    return `${this.#name}#shard${index}`;
  }

  get count() {
    return this.#count;
  }

  isOf(process) {
    return this.#process === process;
  }

  get isEmpty() {
    return this.#shards.size === 0;
  }

  get held() {
    return this.#kept.map(({ index }) => index).sort((a, b) => a - b);
  }

  get leases() {
    return this.#kept.map(({ held }) => held);
  }

  get #kept() {
    return [...this.#shards.values()].filter((shard) => !shard.isLeaving && !shard.held.isOver);
  }

  get members() {
    const members = membersOf(this.#process.world.workers.get(this.key) ?? []);
    return members.includes(this) ? members.length : 0;
  }

  step() {
    const begin = () => {
      if (this.#steps.length > 0 || this.#isOver) return Promise.resolve(this.#steps.shift());
      return new Promise((resolve) => (this.#taker = resolve));
    };
    return { begin };
  }

  stop() {
    const begin = () => {
      this.isStopping = true;
      balance(this.#process.world);
      const over = this.#isOver ? Promise.resolve() : new Promise((resolve) => this.#stopped.push(resolve));
      return over.then(() => {
        if (this.#failure !== undefined) throw this.#failure;
      });
    };
    return { begin };
  }

  /** Compares the number of shards with that of the other clients. */
  agrees() {
    const { numbers } = this.#process.world;
    const key = `${this.#name} shards`;
    const recorded = numbers.get(key) ?? numbers.set(key, this.#count).get(key);
    if (recorded !== this.#count) {
      const why = "all clients must name the same number";
      const message = `shards is ${this.#count} here, and ${recorded} in the store: ${why}`;
      this.#error = new errors.ConfigError(message, { resource: this.#name });
    }
    return recorded === this.#count;
  }

  /** Ends shards that are over, and those beyond the share. */
  letGo(share) {
    const kept = [...this.#shards.values()].filter((shard) => !shard.isLeaving);
    const over = kept.filter((shard) => shard.held.isOver);
    const surplus = kept.filter((shard) => !shard.held.isOver).slice(share);
    for (const shard of [...over, ...surplus]) {
      shard.isLeaving = true;
      if (!shard.isStarting) this.#end(shard);
    }
  }

  /** Acquires one shard that is free, up to the share. Answers true if there was one. */
  async seek(share) {
    if (this.isStopping || this.held.length >= share) return false;
    const { world } = this.#process;
    if (!world.store.isUp) {
      const message = "the test has taken the store down";
      this.#error = new errors.StoreUnavailableError(message, { resource: this.#name, temporary: true });
      return false;
    }
    for (let index = 0; index < this.#count; index++) {
      if (this.#shards.has(index) || this.#rests(index)) continue;
      const { lease } = await this.#process.attempt([this.resourceOf(index)], this.#settings);
      if (lease === undefined) continue;
      this.#error = undefined;
      this.#begin({ index, held: lease, isStarting: true, isLeaving: false });
      return true;
    }
    return false;
  }

  async #begin(shard) {
    this.#shards.set(shard.index, shard);
    const rest = this.#resting.get(shard.index);
    const has = await this.#call(shard, true);
    shard.isStarting = false;
    if (!has) shard.isLeaving = true;
    else if (this.#resting.get(shard.index) === rest) this.#resting.delete(shard.index);
    if (shard.isLeaving) this.#end(shard);
    else balance(this.#process.world);
  }

  async #end(shard) {
    await this.#call(shard, false);
    try {
      if (!shard.held.isOver) shard.held.giveBack();
    } finally {
      this.#shards.delete(shard.index);
      this.ended(shard.held);
      balance(this.#process.world);
    }
  }

  /** Hears of the end of a shard. */
  ended() {}

  /** Has `Shards` call the callback, and waits for its end. Answers false if it has thrown: the shard is left to others then. */
  async #call({ index, held }, isGain) {
    const text = await new Promise((resolve) => {
      const loss = isGain ? undefined : held.loss;
      this.#give({ index, isGain, loss, held, done: () => resolve(undefined), threw: resolve });
    });
    if (text === undefined) return true;
    const resource = this.resourceOf(index);
    const error = new errors.CallbackError(`${JSON.stringify(resource)}: ${text}`, { resource });
    const pause = Math.min(2 * (this.#resting.get(index)?.pause ?? SHORTEST_REST / 2), LONGEST_REST);
    this.#resting.set(index, { error, pause, until: this.#process.clock.now() + pause });
    return false;
  }

  #give(step) {
    const taker = this.#taker;
    this.#taker = undefined;
    if (taker === undefined) this.#steps.push(step);
    else taker(step);
  }

  end() {
    this.#isOver = true;
    this.#taker?.(undefined);
    this.#stopped.forEach((resolve) => resolve());
  }
}

/** A number of shards. */
function checked(name, count = COUNT) {
  if (!(Number.isInteger(number("count", count)) && count >= 1 && count <= MOST)) {
    throw new errors.ConfigError(`shards is ${count}; it can be 1 to ${MOST}`, { resource: name });
  }
  return count;
}

function setNumber(process, name, count) {
  checked(name, count);
  if (process.world.workers.has(name)) throw new errors.LockBusyError(`"${name}": a worker runs`, { resource: name });
  process.world.numbers.set(`${name} shards`, count);
}

/** Moves shards until each worker has its share, as far as they are free. */
async function balance(world) {
  world.balanceAgain = true;
  if (world.isBalancing) return;
  world.isBalancing = true;
  // After the code that has changed something.
  await Promise.resolve();
  while (world.balanceAgain) {
    world.balanceAgain = false;
    for (const [name, workers] of [...world.workers]) await share(world, name, workers);
  }
  world.isBalancing = false;
}

function membersOf(workers) {
  const willing = workers.filter((worker) => !worker.isStopping && !worker.standsBy && worker.agrees());
  return willing.slice(0, willing[0]?.count);
}

/** Shares are those of the real client. */
async function share(world, name, workers) {
  const members = membersOf(workers);
  const shareOf = (worker) => {
    const rank = members.indexOf(worker);
    return rank < 0 ? 0 : Math.ceil((worker.count - rank) / members.length);
  };
  for (const worker of workers) worker.letGo(shareOf(worker));
  const [over, left] = [workers.filter(isDone), workers.filter((worker) => !isDone(worker))];
  if (left.length > 0) world.workers.set(name, left);
  else world.workers.delete(name);
  over.forEach((worker) => worker.end());
  for (const worker of members) if (await worker.seek(shareOf(worker))) world.balanceAgain = true;
}

function isDone(worker) {
  return worker.isStopping && worker.isEmpty;
}

module.exports = { FakeShards, balance, setNumber };
