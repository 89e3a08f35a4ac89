"use strict";

// Checks the types of values that users pass, with errors that name them. Native code or the component interprets the values.

const { checkLength } = require("./lengths.cjs");

const KINDS = {
  number: (value) => typeof value === "number",
  text: (value) => typeof value === "string",
  "true or false": (value) => typeof value === "boolean",
  "object or function": (value) => typeof value === "object" || typeof value === "function",
  function: (value) => typeof value === "function",
  "Uint8Array or Buffer": (value) => value instanceof Uint8Array,
  AbortSignal: (value) => value instanceof AbortSignal,
};

// The types hold these against those of the declarations: types/lib/options.mts.
const LENGTH = "number";
const CONNECT = /** @type {const} */ ({
  owner: "text",
  session: "text",
  driftPpm: "number",
  requestTimeout: LENGTH,
  maxTtl: LENGTH,
  quorumId: "text",
  createQuorum: "true or false",
});
const ALL = /** @type {const} */ ({ ttl: LENGTH, wait: LENGTH, owner: "text", maxHold: LENGTH, signal: "AbortSignal" });
const LOCK = /** @type {const} */ ({ ...ALL, data: "Uint8Array or Buffer", lockDelay: LENGTH, renewEvery: LENGTH, renew: "true or false" });
const { wait: _, ...TRY } = LOCK;
/** For stores of all kinds: those that keep a queue of waiters, and those where only observers can declare a holder dead. */
const NATIVE = /** @type {const} */ ({ fair: "true or false", watchHolder: "true or false" });
const NATIVE_LOCK = /** @type {const} */ ({ ...LOCK, ...NATIVE });
const NATIVE_TRY = /** @type {const} */ ({ ...TRY, ...NATIVE });
const ANY = /** @type {const} */ ({ ...ALL, data: "Uint8Array or Buffer" });
const { wait: __, ...TRY_ALL } = ALL;
const TRY_ANY = /** @type {const} */ ({ ...TRY_ALL, data: ANY.data });
const RW_LOCK = /** @type {const} */ ({ readers: "number" });
const WATCH = /** @type {const} */ ({ every: LENGTH, signal: "AbortSignal" });
const RUN = /** @type {const} */ ({
  key: "text",
  every: LENGTH,
  offset: LENGTH,
  at: "text",
  tz: "text",
  cron: "text",
  cooldown: LENGTH,
  keep: LENGTH,
  ...LOCK,
  trustQuorum: "true or false",
  evenIfDone: "true or false",
  maxAttempts: "number",
  retryAfter: LENGTH,
  replace: "true or false",
});
const NATIVE_RUN = /** @type {const} */ ({ ...RUN, watchHolder: NATIVE.watchHolder });
const HOLDER = /** @type {const} */ ({ token: "number", owner: "text" });
const ELECT = /** @type {const} */ ({ ttl: LENGTH, owner: "text", onStart: "function", onStop: "function" });

const SHARDS = /** @type {const} */ ({ count: "number", ttl: LENGTH, owner: "text", lookEvery: LENGTH, onGain: "function", onLoss: "function" });

/** Numbers without a unit. */
const COUNTED = new Set(["driftPpm", "token", "readers", "count", "tries", "maxAttempts", "maxBody"]);

/** A copy of the given options, which must all be known. @returns {Record<string, any>} */
function options(given, known) {
  if (given === undefined || given === null) return {};
  if (typeof given !== "object") throw new TypeError(`options must be an object, not ${typeof given}`);
  /** @type {Record<string, any>} */
  const taken = {};
  for (const name of Object.keys(given)) {
    const value = given[name];
    if (!Object.hasOwn(known, name)) {
      throw new TypeError(`there is no option ${name}; there are ${Object.keys(known).join(", ")}`);
    }
    if (value === undefined || value === null) continue;
    const isLength = known[name] === LENGTH && !COUNTED.has(name);
    if (!KINDS[known[name]](value)) {
      throw new TypeError(`${name} must be a ${known[name]}${isLength ? " of milliseconds" : ""}, not ${typeof value}`);
    }
    if (isLength) checkLength(name, value);
    taken[name] = value;
  }
  return taken;
}

function text(name, value) {
  if (typeof value !== "string") throw new TypeError(`${name} must be a string, not ${typeof value}`);
  return value;
}

function texts(name, values) {
  // A string would be read as a list of letters.
  if (typeof values === "string" || typeof values?.[Symbol.iterator] !== "function") {
    throw new TypeError(`${name} must be several strings, in an array or another iterable`);
  }
  return Array.from(values, (value) => text("each of them", value));
}

function number(name, value) {
  if (typeof value !== "number") throw new TypeError(`${name} must be a number, not ${typeof value}`);
  return value;
}

module.exports = {
  options,
  text,
  texts,
  number,
  CONNECT,
  ALL,
  TRY_ALL,
  ANY,
  TRY_ANY,
  LOCK,
  TRY,
  NATIVE_LOCK,
  NATIVE_TRY,
  RW_LOCK,
  WATCH,
  RUN,
  NATIVE_RUN,
  HOLDER,
  ELECT,
  SHARDS,
};
