// The client, independent of how the component is loaded. Documented in index.d.mts.

import { Counting, begin } from "./attempts.mjs";
import { SUSPENDED_MS } from "./clock.mjs";
import { Lease, Run, fail, finish } from "./lease.mjs";
import { Machine, random } from "./machine.mjs";
import * as messages from "./messages.mjs";
import { Replacing } from "./replacing.mjs";
import errors from "./shared/errors.mjs";
import shared from "./shared/options.mjs";
import results from "./shared/results.mjs";
import shownAs from "./shared/shown.mjs";
import ending from "./shared/under.mjs";
import { attemptLimit, config, credentials, kindOf, lockOptions, occurrence } from "./settings.mjs";
import { PATIENCE_MS } from "./slot.mjs";
import { shown } from "./parameters.mjs";
import { parsed } from "./urls.mjs";
import { zoneOffsets } from "./zones.mjs";

const { LOCK, RUN, TRY, options, text, texts } = shared;
const { ConfigError, LockBusyError, LockTimeoutError, StoreRefusedError, StoreUnavailableError } = errors;
/** The types are held against it. */
export const CONNECT = /** @type {const} */ ({
  owner: "text",
  driftPpm: "number",
  requestTimeout: "number",
  maxTtl: "number",
  quorumId: "text",
  credentials: "object or function",
  fetch: "function",
});

/** `connect` over a component; `load` makes its instances. */
export function connector(load) {
  return async function connect(stores, given) {
    const urls = named(stores);
    const { owner, fetch = globalThis.fetch, credentials: source, ...settings } = options(given, CONNECT);
    const all = urls.map((url) => ({ url, ...parsed(url) }));
    const names = all.map(({ name }) => name);
    const double = names.find((name, at) => names.indexOf(name) !== at);
    if (double !== undefined) throw new ConfigError(`${double} is given twice: each node of a quorum votes once`);
    const nodes = await Promise.all(all.map((each) => node(each, sourceOf(each, all, source), fetch)));
    const made = config(settings, nodes);
    const component = (await load())();
    // Called as a function, as the global `fetch` requires.
    const machine = new Machine(component.client, made, nodes, (url, request) => fetch(url, request));
    return new Client(machine, component.runs, names, owner ?? `edge:${hex(random(4))}`, settings.maxTtl);
  };
}

function named(stores) {
  if (typeof stores === "string") return [stores];
  if (Array.isArray(stores) && stores.length > 0) return texts("stores", stores);
  throw new TypeError("give a store as its url, a quorum as an array of urls");
}

/** The credentials option for this store: an object of another kind belongs to another store. */
function sourceOf({ kinds }, all, given) {
  const isOf = ({ kinds }) => kinds.includes(kindOf(given));
  return typeof given === "object" && !isOf({ kinds }) && all.some(isOf) ? undefined : given;
}

/** A node of the machine: the contents of the url, with the credentials of the url or of the option. @param {Record<string, any>} store */
async function node({ url, name, store, durability, credentials: own, needsCredentials, isDecidedByKind, kinds, login }, given, fetch) {
  const made = (access, credentials, source) => ({ name, durability, store: store(access, credentials?.tag), credentials, source });
  const fixed = own ?? (typeof given === "function" ? undefined : given);
  const loggedIn = async (given) => {
    const checked = credentials(given, kinds);
    return login !== undefined && checked.tag === "password" ? login((url, request) => fetch(url, request), checked.val) : checked;
  };
  if (fixed !== undefined) {
    const checked = credentials(fixed, kinds);
    if (login === undefined || checked.tag !== "password") return made("with-credentials", checked);
    return made("with-credentials", undefined, () => loggedIn(fixed));
  }
  if (given === undefined && needsCredentials) {
    throw new ConfigError(`${shown(url)}: credentials are missing; give them as an option, or a function that returns them`);
  }
  if (given === undefined) return made("anonymous");
  const source = async () => loggedIn(await given(name));
  if (needsCredentials && !isDecidedByKind) return made("with-credentials", undefined, source);
  // The first request depends on the credentials, so they are fetched before it.
  try {
    const first = await given(name);
    if (!needsCredentials && (first === undefined || first === null)) return made("anonymous");
    const checked = credentials(first, kinds);
    const isReady = login === undefined || checked.tag !== "password";
    return made("with-credentials", isReady ? checked : undefined, source);
  } catch {
    // The function is called again for the first request, whose error has the reason.
    return made("with-credentials", undefined, source);
  }
}

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

export class Client {
  #machine;
  /** The names of runs. */
  #runs;
  #stores;
  #owner;
  /** The most that a quorum allows a lock to last, where it was set. */
  #maxTtl;

  constructor(machine, runs, stores, owner, maxTtl = Infinity) {
    this.#machine = machine;
    this.#runs = runs;
    this.#stores = stores;
    this.#owner = owner;
    this.#maxTtl = maxTtl;
  }

  get stores() {
    return [...this.#stores];
  }

  async acquire(name, given) {
    return this.#acquire(text("name", name), options(given, LOCK));
  }

  async tryAcquire(name, given) {
    const taken = options(given, TRY);
    try {
      return await this.#acquire(text("name", name), { ...taken, wait: 0 });
    } catch (error) {
      if (error instanceof LockBusyError) return null;
      throw error;
    }
  }

  async using(name, given, body) {
    if (body === undefined && typeof given === "function") return this.using(name, undefined, given);
    if (typeof body !== "function") throw new TypeError("using needs a function to call with the lease");
    return ending.under(await this.acquire(name, given), body);
  }

  async once(name, given, body) {
    if (body === undefined && typeof given === "function") return this.once(name, undefined, given);
    if (typeof body !== "function") throw new TypeError("once needs a function to call with the run");
    const { saveResult = false, ...settings } = given ?? {};
    const { run, ...outcome } = await this.beginRun(name, settings);
    if (run === null) return outcome;
    const saved = saveResult ? results.saving(body) : body;
    return { ran: true, value: await ending.under(run, saved, undefined, finish, fail), token: run.token };
  }

  async beginRun(name, given) {
    const { signal, owner = this.#owner, replace = false, wait = replace ? undefined : 0, ...settings } = options(given, RUN);
    const planned = this.#planned(text("name", name), owner, { ...settings, replace, wait });
    const { resource, run, limit, record, newest } = planned;
    const locked = { ...lockOptions({ ...settings, wait }, owner), run };
    const asked = { resource, owner, locked, signal };
    const { slot, completion, failure, isReplaced } = newest ? await this.#replaced(newest, asked) : await this.#asked(asked);
    if (slot !== undefined) {
      const counting = record && new Counting(this.#machine, this.#runs, this.#take, { record, owner, keepMs: run.keepMs });
      if (limit === undefined) return { run: new Run(this.#machine, slot, { forgets: counting }) };
      return begin(new Run(this.#machine, slot, { counting }), counting, limit, signal);
    }
    if (isReplaced) return { run: null, ran: false, reason: "replaced" };
    if (completion !== undefined) {
      return { run: null, ran: false, reason: "done", ...messages.completion(completion, this.#runs) };
    }
    if (failure instanceof LockBusyError || failure instanceof LockTimeoutError) {
      return { run: null, ran: false, reason: "running", holder: failure.holder ?? null };
    }
    throw this.#explained(failure);
  }

  async close() {
    this.#machine.close();
    if (!(await this.#machine.isIdleWithin(PATIENCE_MS))) throw messages.unconfirmedClose();
  }

  async [ending.ASYNC_DISPOSE]() {
    await this.close();
  }

  toJSON() {
    return { stores: this.stores };
  }

  /** @param {string} name @param {Record<string, any>} settings */
  async #acquire(name, { signal, owner = this.#owner, ...settings }) {
    const slot = await this.#begun(name, owner, lockOptions(settings, owner), signal);
    if (slot.phase === "failed") throw this.#explained(slot.failure);
    return new Lease(this.#machine, slot);
  }

  /** The slot of an acquisition that has ended. If its lease is already over, its holder finds out. */
  async #begun(resource, owner, locked, signal) {
    signal?.throwIfAborted();
    const machine = this.#machine;
    const slot = machine.acquire(resource, owner, locked);
    const ended = slot.until(() => (slot.phase === "pending" ? undefined : slot.phase));
    await machine.awaited(orAborted(ended, signal, slot, () => machine.release(slot)));
    return slot;
  }

  /** The outcome of a request for a run: its slot, or the reason why it has none. */
  async #asked({ resource, owner, locked, signal }) {
    const slot = await this.#begun(resource, owner, locked, signal);
    return slot.phase === "failed" ? slot : { slot };
  }

  /** As `#asked`, of a request that replaces the runner; `newest` is the name of the record of the newest one. */
  async #replaced(newest, asked) {
    asked.signal?.throwIfAborted();
    const acquire = this.#begun.bind(this);
    const replacing = new Replacing(this.#machine, this.#runs, { acquire, take: this.#taken }, newest, asked);
    return this.#machine.awaited(orAborted(replacing.ended(), asked.signal, replacing, () => replacing.giveUp()));
  }

  /**
   * The meaning of a run's settings now: its resource and options, of attempts their limit and the name of their record, and of a request
   * that replaces the runner the name of the record of the newest one.
   */
  #planned(name, owner, settings) {
    const { trustQuorum = false, evenIfDone = false, tz, replace } = settings;
    const meant = occurrence(settings, name);
    const { unixMs } = this.#machine.now();
    try {
      const offsets = zoneOffsets(tz, unixMs);
      const { resource, keepMs } = this.#runs.planRun(name, meant, unixMs, offsets, this.#stores.length > 1, evenIfDone);
      const run = { keepMs, trustQuorum, evenIfDone };
      const limit = this.#runs.limitAttempts(...attemptLimit(settings), run);
      const counts = limit !== undefined;
      const newest = replace ? this.#runs.newestResource(resource, lockOptions(settings, owner), counts) : undefined;
      return { resource, run, limit, record: this.#recordOf(resource, counts, evenIfDone), newest };
    } catch (error) {
      throw error?.payload === undefined ? error : messages.refused(error.payload, name);
    }
  }

  /** The name of the record of attempts, where it is needed. Where the name is too long, none were counted. */
  #recordOf(resource, counts, evenIfDone) {
    if (!counts && !evenIfDone) return undefined;
    try {
      return this.#runs.attemptsResource(resource);
    } catch (error) {
      if (counts) throw error;
      return undefined;
    }
  }

  /** The slot of a lock that is held for a moment, also where a quorum allows less. */
  #taken = (resource, owner, { ttl, wait }, run, signal) => {
    const locked = lockOptions({ ttl: Math.min(ttl, this.#maxTtl - SUSPENDED_MS), wait }, owner);
    return this.#begun(resource, owner, { ...locked, run }, signal);
  };

  /** As `#taken`, and fails if it is not granted. */
  #take = async (...lock) => {
    const slot = await this.#taken(...lock);
    if (slot.phase === "failed") throw this.#explained(slot.failure);
    return slot;
  };

  /** Adds the reason for missing credentials to an error of the store. */
  #explained(failure) {
    const isOfStore = failure instanceof StoreUnavailableError || failure instanceof StoreRefusedError;
    if (isOfStore && this.#machine.trouble !== undefined) failure.cause = this.#machine.trouble;
    return failure;
  }
}

shownAs.shows(Client);

/** The value of `ended`. If the signal is aborted while the phase of `asked` is pending, calls `giveUp` and rejects with the signal's reason. */
async function orAborted(ended, signal, asked, giveUp) {
  if (signal === undefined) return ended;
  let abort;
  const aborted = new Promise((_, reject) => {
    abort = () => {
      // The result is decided, and the caller is about to get it.
      if (asked.phase !== "pending") return;
      reject(signal.reason);
      giveUp();
    };
    signal.addEventListener("abort", abort, { once: true });
    // The first request has been sent already, and a `fetch` may have aborted the signal.
    if (signal.aborted) abort();
  });
  try {
    // Giving up also ends it, but is not the reason.
    return await Promise.race([aborted, ended]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
