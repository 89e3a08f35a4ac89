"use strict";

// Lists, watches, permits, readers and writers of the fake clients of testing.cjs.

const errors = require("./errors.cjs");
const { lose } = require("./lease.cjs");

const MOST = 64;
const READERS = 16;
/** The limit of a wait for a change, in ms: nobody else moves the clock meanwhile. */
const ENDLESS = 3_600_000;

/** One lease of what is made of locks, and the number of its permit. */
async function composed(process, { kind, names, count = READERS }, { signal, ...settings }, tries) {
  const until = ending(process, tries ? { ...settings, wait: 0 } : settings);
  if (kind === "any") {
    if (names.length < 1 || names.length > MOST) {
      const message = `one of ${names.length} locks cannot be acquired: name at least one, and at most ${MOST}`;
      throw new errors.ConfigError(message);
    }
    const { held } = await first(process, names, until, signal);
    return { held };
  }
  const [name] = names;
  const resources = locks(name, kind, count);
  if (kind === "permit") {
    const { held, at } = await first(process, resources, until, signal);
    agree(process, name, kind, count, [held]);
    return { held, index: at };
  }
  const gate = await one(process, `${name}#gate`, until.left(), signal);
  const taken = [gate];
  try {
    if (kind === "read") taken.push((await first(process, resources, until, signal)).held);
    else for (const resource of resources) taken.push(await one(process, resource, until.left(), signal));
  } catch (error) {
    giveBack(taken);
    throw error;
  }
  agree(process, name, kind, count, taken);
  if (kind === "write") return { held: new Together(taken) };
  taken[1].token = gate.token;
  gate.releaseNow();
  return { held: taken[1] };
}

/** The end of a wait for several locks. */
function ending(process, { wait = Infinity, ...settings }) {
  const end = process.clock.now() + wait;
  const left = () => ({ ...settings, wait: wait === 0 ? 0 : Math.max(1e-6, end - process.clock.now()) });
  return { isOnce: wait === 0, once: () => ({ ...settings, wait: 0 }), left };
}

async function one(process, resource, settings, signal) {
  const { lease, failure } = await process.attempt([resource], settings, signal);
  if (failure !== undefined) throw process.error(resource, failure);
  return lease;
}

/** One of the locks, and its position: tried one by one from a random one on, and then all at the same time. */
async function first(process, resources, until, signal) {
  const start = process.world.random(1)[0] % resources.length;
  const failures = [];
  for (let step = 0; step < resources.length; step += 1) {
    const at = (start + step) % resources.length;
    const { lease, failure } = await process.attempt([resources[at]], until.once(), signal);
    if (lease !== undefined) return { held: lease, at };
    failures.push([resources[at], failure]);
  }
  if (!until.isOnce && failures.every(([, { type }]) => type !== "refused")) {
    const { lease, failure, at } = await process.attempt(resources, until.left(), signal);
    if (lease !== undefined) return { held: lease, at };
    failures.splice(0, Infinity, [resources[at], failure]);
  }
  // A lock that could not be asked for may be free.
  const told = failures.find(([, { type }]) => type !== "busy" && type !== "timed-out") ?? failures[0];
  throw process.error(...told);
}

const word = (kind) => (kind === "permit" ? "permits" : "readers");

/** The locks of which each holder has one. */
function locks(name, kind, count) {
  if (!Number.isInteger(count) || count < 1 || count > MOST) {
    throw new errors.ConfigError(`${word(kind)} is ${count}; it can be 1 to ${MOST}`, { resource: name });
  }
  const before = kind === "permit" ? "#" : "#reader";
  return Array.from({ length: count }, (_, at) => `${name}${before}${at}`);
}

/** Compares the number with that of the other clients, and releases what was taken where they differ. */
function agree({ world }, name, kind, count, taken) {
  const key = `${name}#${word(kind)}`;
  const recorded = world.numbers.get(key) ?? count;
  world.numbers.set(key, recorded);
  if (recorded === count) return;
  giveBack(taken);
  const both = `${word(kind)} is ${count} here, and ${recorded} in the store`;
  throw new errors.ConfigError(`${both}: all clients must name the same number`, { resource: name });
}

/** Changes a number, while nobody holds any of the locks. */
function setNumber(process, name, kind, count) {
  const { numbers } = process.world;
  const key = `${name}#${word(kind)}`;
  locks(name, kind, count);
  const gate = kind === "permit" ? [] : [`${name}#gate`];
  for (const resource of [...locks(name, kind, Math.max(count, numbers.get(key) ?? 0)), ...gate]) {
    const holder = process.inspect(resource).begin();
    if (holder) throw new errors.LockBusyError(`"${resource}" is held by ${holder.owner}`, { resource, holder });
  }
  numbers.set(key, count);
}

function giveBack(taken) {
  for (const held of taken.toReversed()) failure(() => held.releaseNow());
}

function failure(call) {
  try {
    call();
    return undefined;
  } catch (error) {
    return error;
  }
}

/** The native lease of a writer: that of the gate, valid only while all other locks are held as well. */
class Together {
  #all;

  constructor(all) {
    this.#all = all;
  }

  get token() {
    return this.#all[0].token;
  }

  get resource() {
    return this.#all[0].resource;
  }

  get owner() {
    return this.#all[0].owner;
  }

  isLost() {
    return false;
  }

  remaining() {
    return Math.min(...this.#all.map((held) => held.remaining()));
  }

  check(min) {
    for (const held of this.#all) held.check(min);
  }

  watch(lease) {
    const told = (loss) => {
      lease[lose](loss);
      // Those that are not lost serve nobody any more. The machine that has told of the loss is not through yet.
      queueMicrotask(() => giveBack(this.#all));
    };
    for (const held of this.#all) held.watch({ [lose]: told });
  }

  forget() {
    for (const held of this.#all) held.forget();
  }

  async release() {
    const failures = this.#all.map((held) => failure(() => held.releaseNow())).filter((error) => error !== undefined);
    const told = failures.find((error) => error instanceof errors.LeaseLostError) ?? failures[0];
    if (told !== undefined) throw told;
  }

  async leave() {
    const isLost = this.#all.some((held) => failure(() => held.check(0)) instanceof errors.LeaseLostError);
    if (this.#all[0].isOver && !isLost) return;
    await this.release().catch((error) => {
      // The work was done under the lock.
      if (!(error instanceof errors.StoreUnavailableError)) throw error;
    });
  }
}

/** The held locks, on one page. */
function pages(process, prefix) {
  let isOver = false;
  const begin = () => {
    if (isOver) return undefined;
    if (prefix !== "") process.checkName(prefix);
    const names = [...process.world.names].filter((name) => name.startsWith(prefix)).sort();
    const locks = names.map((name) => process.inspect(name).begin()).filter(Boolean);
    isOver = true;
    return locks;
  };
  return { next: () => ({ begin }) };
}

/** The changes of a lock. The clock moves to the next one. */
function changes(process, name, every = 1_000) {
  let told;
  const begin = async (signal) => {
    if (!(every >= 100 && every < Infinity)) {
      const message = `${every} ms between two readings is too short; the shortest is 100 ms`;
      throw new errors.ConfigError(message, { resource: name });
    }
    process.checkName(name);
    for (const end = process.clock.now() + ENDLESS; process.clock.now() < end; ) {
      if (told !== undefined) await process.world.meanwhile(every, () => signal?.aborted);
      signal?.throwIfAborted();
      if (process.isClosed) throw new errors.ClosedError("the client was closed", { resource: name });
      const change = read(process, name);
      const seen = change.failure?.kind ?? change.holder?.token ?? "free";
      if (seen !== told) {
        told = seen;
        return change;
      }
    }
    throw new Error(`nobody took or released "${name}" within an hour of the fake clock`);
  };
  return { next: () => ({ begin }) };
}

function read(process, name) {
  try {
    return { holder: process.inspect(name).begin() };
  } catch ({ code: kind, message, resource, temporary: isTemporary }) {
    return { failure: { kind, message, resource, isTemporary } };
  }
}

module.exports = { changes, composed, pages, setNumber };
