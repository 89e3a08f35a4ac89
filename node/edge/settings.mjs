// Translates settings of users to values of the component. The component checks their bounds.

import { SUSPENDED_MS } from "./clock.mjs";
import errors from "./shared/errors.mjs";
import rules from "./shared/occurrence.mjs";

const { ConfigError } = errors;
const { unspoken } = rules;

/** A valid duration in ms. */
export function length(name, ms) {
  if (ms === Infinity) throw new ConfigError(`${name} cannot be infinite`);
  if (!(ms >= 0)) throw new ConfigError(`${name}: ${ms} is not a duration: give milliseconds, 0 or more`);
  return ms;
}

/** As whole milliseconds that the component can read; larger values are above its bounds anyway. */
function whole(name, ms) {
  return ms === undefined ? undefined : BigInt(Math.min(Math.floor(length(name, ms)), Number.MAX_SAFE_INTEGER));
}

function patience(wait) {
  if (wait === undefined || wait === Infinity) return { tag: "forever" };
  // A fraction of a millisecond must not mean a single try.
  return wait === 0 ? { tag: "once" } : { tag: "for", val: { waitMs: whole("wait", Math.ceil(wait)) } };
}

function renewal({ renew, renewEvery }) {
  if (renew === false && renewEvery !== undefined) {
    throw new ConfigError("renew: false and renewEvery contradict each other: leave one out");
  }
  if (renew === false) return { tag: "off" };
  return renewEvery === undefined
    ? { tag: "automatic" }
    : { tag: "every", val: { intervalMs: whole("renewEvery", renewEvery) } };
}

/** The options of one acquisition. */
export function lockOptions(given, owner) {
  return {
    ttlMs: whole("ttl", given.ttl),
    wait: patience(given.wait),
    // The lock stays closed for the time that the clock may have missed.
    lockDelayMs: (whole("lockDelay", given.lockDelay) ?? 0n) + BigInt(SUSPENDED_MS),
    maxHoldMs: whole("maxHold", given.maxHold),
    renewal: renewal(given),
    owner,
    data: given.data,
  };
}

/** The settings of a run that say which part of a job is done once. */
export function occurrence(given, name) {
  const missing = unspoken(given);
  if (missing !== undefined) throw new ConfigError(missing, { resource: name });
  const { key, at, tz, cron } = given;
  const length = (name) => whole(name, given[name]);
  return { key, everyMs: length("every"), offsetMs: length("offset"), at, tz, cron, cooldownMs: length("cooldown"), keepMs: length("keep") };
}

/** The attempts that a run may have: their number, and the pause between them. A larger number is not reached either. */
export function attemptLimit({ maxAttempts, retryAfter }) {
  return [natural("maxAttempts", maxAttempts), whole("retryAfter", retryAfter)];
}

/** A whole number that the component can read. */
function natural(name, number) {
  if (number === undefined) return undefined;
  if (!Number.isSafeInteger(number) || number < 0) throw new ConfigError(`${name}: ${number} is not a safe integer of 0 or more`);
  return Math.min(number, 0xffff_ffff);
}

/** Settings of a client of these nodes. @param {Record<string, any>} settings @param {any[]} nodes */
export function config({ driftPpm, requestTimeout, maxTtl, quorumId }, nodes) {
  return {
    nodes: nodes.map(({ durability }) => ({ poll: "acquire", watch: false, durability })),
    driftPpm: natural("driftPpm", driftPpm),
    requestTimeoutMs: whole("requestTimeout", requestTimeout),
    limits: {},
    quorum: nodes.length === 1 ? single({ maxTtl, quorumId }) : { id: id(quorumId), maxTtlMs: whole("maxTtl", maxTtl) },
  };
}

function single(given) {
  const set = Object.keys(given).find((name) => given[name] !== undefined);
  if (set !== undefined) throw new ConfigError(`${set} is a setting of quorums, but there is only one store: leave it out`);
  return undefined;
}

function id(text) {
  if (!/^[0-9a-f]{32}$/i.test(text ?? "")) {
    throw new ConfigError(
      "several stores are a quorum, which needs its quorumId here: the 32 hexadecimal digits that `leasehold quorum " +
        "status` shows",
    );
  }
  return Uint8Array.from(text.match(/../g), (pair) => Number.parseInt(pair, 16));
}

const FORMS = {
  aws: "{ accessKeyId, secretAccessKey, sessionToken?, expiration? }",
  token: "{ token, expiration? }",
  "account-key": "{ accountKey }",
  "access-signature": "{ sas, expiration? }",
  password: "{ user, password }",
};

/** Credentials for the component, which must be of one of the `kinds`. */
export function credentials(given, kinds) {
  const kind = kindOf(given);
  if (kind === undefined || !kinds.includes(kind)) {
    throw new ConfigError(`credentials for this store must be ${kinds.map((kind) => FORMS[kind]).join(" or ")}, as texts`);
  }
  const { accessKeyId, secretAccessKey, sessionToken, token, user, password, accountKey, sas, expiration } = given;
  if (typeof (sessionToken ?? "") !== "string") throw new ConfigError("the sessionToken of credentials must be a string");
  const expires = expiration === undefined || expiration === null ? undefined : Number(expiration);
  if (expires !== undefined && !(expires >= 0)) {
    throw new ConfigError("the expiration of credentials must be a Date, or ms since 1970");
  }
  const expiresUnixMs = expires === undefined ? undefined : BigInt(Math.floor(expires));
  const values = {
    aws: { accessKeyId, secretAccessKey, sessionToken: sessionToken ?? undefined, expiresUnixMs },
    token: { token, expiresUnixMs },
    password: { user, password },
    "account-key": { key: accountKey },
    "access-signature": { query: sas, expiresUnixMs },
  };
  return { tag: kind, val: values[kind] };
}

/** The form of given credentials. */
export function kindOf(given) {
  const has = (...names) => names.every((name) => typeof given?.[name] === "string");
  if (has("accessKeyId", "secretAccessKey")) return "aws";
  if (has("token")) return "token";
  if (has("accountKey")) return "account-key";
  if (has("sas")) return "access-signature";
  return has("user", "password") ? "password" : undefined;
}
