"use strict";

const native = require("./native.cjs");
const { ClosedError, ConfigError, errorOf } = require("./errors.cjs");
const { Election } = require("./election.cjs");
const { ASYNC_DISPOSE, Lease, Leases, Run, fail, finish } = require("./lease.cjs");
const { Connected } = require("./handles.cjs");
const { run, runReady } = require("./loop.cjs");
const { deliver } = require("./observe.cjs");
const { LockAny, RwLock, Semaphore } = require("./permits.cjs");
const { read, saving } = require("./results.cjs");
const {
  ALL,
  CONNECT,
  ELECT,
  NATIVE_LOCK,
  HOLDER,
  NATIVE_RUN,
  RW_LOCK,
  SHARDS,
  NATIVE_TRY,
  WATCH,
  number,
  options,
  text,
  texts,
} = require("./options.cjs");
const { unspoken } = require("./occurrence.cjs");
const { Shards } = require("./shards.cjs");
const { told } = require("./told.cjs");
const { shows } = require("./shown.cjs");
const { under } = require("./under.cjs");

/** Open clients, which are closed when the process exits. */
const open = new Set();
/** Warnings that were shown. */
const shown = new Set();

function end() {
  native.end(Array.from(open, ({ client }) => client));
  // Also deliver the events of these releases.
  deliver();
}

async function connect(...given) {
  const { urls, taken } = connecting(...given);
  if (native.elder !== undefined) refuseFiles(urls);
  const connected = new Connected(await run(native.connect(urls, options(taken, CONNECT))));
  if (open.size === 0) process.on("exit", end);
  open.add(connected);
  connected.client.unheard.forEach(warn);
  return new Client(connected);
}

/** Shows a warning about the stores, which a program without an observer would not hear of, once. */
function warn(message) {
  if (shown.has(message)) return;
  shown.add(message);
  process.emitWarning(message, { type: "LeaseholdWarning" });
}

/** Only a call that names no store means the default: `undefined` is most often a variable that is not set. */
function connecting(...given) {
  const [stores, taken] = given;
  if (given.length === 0 || isOptions(stores)) return { urls: undefined, taken: stores };
  if (stores === undefined || stores === null) return { urls: [""], taken };
  if (typeof stores === "string") return { urls: [stores], taken };
  if (Array.isArray(stores)) return { urls: texts("stores", stores), taken };
  throw new TypeError("give a store as its url, a quorum as an array of urls");
}

const isOptions = (value) => typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;

/** Two SQLite libraries in one process remove each other's file locks. */
function refuseFiles(urls) {
  const named = urls ?? [process.env.LEASEHOLD_STORE ?? "sqlite:"];
  if (!named.some((text) => /(^|\s)sqlite:/i.test(text))) return;
  throw new ConfigError(`SQLite stores belong to ${native.elder} in this process: install one copy of the package`);
}

const held = (native) => new Lease(native);
const runs = (native, attempts) => new Run(native, attempts);

/** A completion, with its result as it was given. */
function completed({ kind, result, unsettled, began, ...completion }) {
  const known = began === undefined || began === null ? completion : { ...completion, began };
  return { ...known, result: read(kind ?? undefined, result ?? undefined, unsettled) };
}

/** The reason why there is nothing to do. */
function skipped({ completion, attempts, holder, replaced }) {
  if (completion) return { ran: false, reason: "done", ...completed(completion) };
  if (attempts) return { ran: false, reason: "later", attempts };
  if (replaced) return { ran: false, reason: "replaced" };
  return { ran: false, reason: "running", holder: holder ?? null };
}

/** A run as users see it. @param {Record<string, any>} run */
function known({ resource, name, key, holder, done, attempts }) {
  const state = { holder: holder ?? null, done: done ? completed(done) : null, attempts: attempts ?? null };
  return { resource, name, key: key ?? null, ...state };
}

/** A change of a lock, as users see it. */
function changed({ holder, failure }) {
  if (holder !== undefined && holder !== null) return { type: "held", holder };
  return failure ? { type: "unreadable", error: errorOf(failure) } : { type: "free" };
}

const optional = (key) => (key === undefined || key === null ? undefined : text("key", key));

class Client {
  #native;
  #isClosed = false;

  constructor(native) {
    this.#native = native;
  }

  get stores() {
    return this.#native.stores;
  }

  acquire(name, given) {
    try {
      return this.#native.acquire(text("name", name), options(given, NATIVE_LOCK), held);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  tryAcquire(name, given) {
    try {
      return this.#native.tryAcquire(text("name", name), options(given, NATIVE_TRY), held);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async using(name, given, body) {
    if (body === undefined && typeof given === "function") return this.using(name, undefined, given);
    if (typeof body !== "function") throw new TypeError("using needs a function to call with the lease");
    return under(await this.acquire(name, given), body);
  }

  async once(name, given, body) {
    if (body === undefined && typeof given === "function") return this.once(name, undefined, given);
    if (typeof body !== "function") throw new TypeError("once needs a function to call with the run");
    const { saveResult = false, ...settings } = given ?? {};
    const { run, ...outcome } = await this.beginRun(name, settings);
    if (run === null) return outcome;
    const value = await under(run, saveResult ? saving(body) : body, undefined, finish, fail);
    return { ran: true, value, token: run.token };
  }

  async beginRun(name, given) {
    const settings = options(given, NATIVE_RUN);
    const missing = unspoken(settings);
    if (missing !== undefined) throw new ConfigError(missing, { resource: text("name", name) });
    const begun = await this.#native.beginRun(text("name", name), settings, runs);
    return begun.run === undefined ? { run: null, ...skipped(begun) } : begun;
  }

  async inspectRun(name, key) {
    return known(await run(this.#native.inspectRun(text("name", name), optional(key))));
  }

  async forgetRun(name, key) {
    return (await run(this.#native.forgetRun(text("name", name), optional(key)))) ?? null;
  }

  async lockAll(names, given) {
    const { signal, ...settings } = options(given, ALL);
    return new Leases(await this.#native.lockAll(texts("names", names), settings, signal));
  }

  lockAny(names) {
    return new LockAny(this.#native, texts("names", names));
  }

  semaphore(name, permits) {
    return new Semaphore(this.#native, text("name", name), permits);
  }

  async setPermits(name, permits) {
    await run(this.#native.setPermits(text("name", name), number("permits", permits)));
  }

  rwLock(name, given) {
    return new RwLock(this.#native, text("name", name), options(given, RW_LOCK).readers);
  }

  async setReaders(name, readers) {
    await run(this.#native.setReaders(text("name", name), number("readers", readers)));
  }

  async *list(prefix = "") {
    const pages = this.#native.pages(text("prefix", prefix));
    for (let page = await run(pages.next()); page; page = await run(pages.next())) yield* page;
  }

  async *runs(prefix = "") {
    const pages = this.#native.runPages(text("prefix", prefix));
    for (let page = await run(pages.next()); page; page = await run(pages.next())) yield* page.map(known);
  }

  async *watch(name, given) {
    const { every, signal } = options(given, WATCH);
    const changes = told(this.#native.changes(text("name", name), every));
    for (;;) yield changed(await run(changes.next(), signal));
  }

  async elect(name, given) {
    const { onStart, onStop, ...settings } = options(given, ELECT);
    // It would end before it starts, without an error.
    this.#refuseClosed(name);
    return new Election(await run(this.#native.elect(text("name", name), settings)), name, { onStart, onStop });
  }

  async shards(name, given) {
    const { onGain, onLoss, ...settings } = options(given, SHARDS);
    // It would end before it starts, without an error.
    this.#refuseClosed(name);
    return new Shards(await run(this.#native.shards(text("name", name), settings)), name, { onGain, onLoss });
  }

  async setShards(name, count) {
    await run(this.#native.setShards(text("name", name), number("count", count)));
  }

  async inspect(name) {
    return (await run(this.#native.inspect(text("name", name)))) ?? null;
  }

  async releaseIf(name, holder) {
    const { released, holder: shown } = await run(this.#native.releaseIf(text("name", name), options(holder, HOLDER)));
    return { released, holder: shown ?? null };
  }

  async revoke(name, token, holder = {}) {
    const meant = options({ ...holder, token: number("token", token) }, HOLDER);
    const { revoked, holder: shown } = await run(this.#native.revoke(text("name", name), meant));
    return { revoked, holder: shown ?? null };
  }

  async sessions() {
    return await run(this.#native.sessions());
  }

  async revokeSession(label) {
    return await run(this.#native.revokeSession(text("label", label)));
  }

  async close() {
    this.#isClosed = true;
    open.delete(this.#native);
    if (open.size === 0) process.off("exit", end);
    try {
      await run(this.#native.close());
    } finally {
      // Closing may end before the loop hears of the leases that it ended: their signals come first.
      runReady();
    }
  }

  async [ASYNC_DISPOSE]() {
    await this.close();
  }

  toJSON() {
    return { stores: this.stores };
  }

  #refuseClosed(name) {
    if (this.#isClosed) throw new ClosedError("the client was closed: connect again", { resource: name });
  }
}

shows(Client);

module.exports = { Client, connect, connecting, refuseFiles };
