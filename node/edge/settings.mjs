// Settings as users give them, in the words of the component. What they may be is decided there.

import { SUSPENDED_MS } from "./clock.mjs";
import errors from "./shared/errors.mjs";

const { ConfigError } = errors;

/** A length of time in ms that makes sense as one. */
export function length(name, ms) {
  if (ms === Infinity) throw new ConfigError(`${name} cannot be infinite`);
  if (!(ms >= 0)) throw new ConfigError(`${name}: ${ms} is not a length of time: give milliseconds, from 0 on`);
  return ms;
}

/** As whole milliseconds that the component can read; what is beyond them is beyond its bounds too. */
function whole(name, ms) {
  return ms === undefined ? undefined : BigInt(Math.min(Math.floor(length(name, ms)), Number.MAX_SAFE_INTEGER));
}

function patience(wait) {
  if (wait === undefined || wait === Infinity) return { tag: "forever" };
  // A fraction of a millisecond is no reason to try but once.
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

/** What one acquisition asks for. */
export function lockOptions(given, owner) {
  return {
    ttlMs: whole("ttl", given.ttl),
    wait: patience(given.wait),
    // What the clock may have missed of a suspension, the lock stays closed.
    lockDelayMs: (whole("lockDelay", given.lockDelay) ?? 0n) + BigInt(SUSPENDED_MS),
    maxHoldMs: whole("maxHold", given.maxHold),
    renewal: renewal(given),
    owner,
    data: given.data,
  };
}

/** Settings of a client of these nodes. */
export function config({ driftPpm, requestTimeout, maxTtl, quorumId }, nodes) {
  if (driftPpm !== undefined && !(Number.isSafeInteger(driftPpm) && driftPpm >= 0)) {
    throw new ConfigError(`driftPpm: ${driftPpm} is not a safe integer from 0 on`);
  }
  return {
    nodes: nodes.map(({ durability }) => ({ poll: "acquire", watch: false, durability })),
    driftPpm: driftPpm === undefined ? undefined : Math.min(driftPpm, 0xffff_ffff),
    requestTimeoutMs: whole("requestTimeout", requestTimeout),
    limits: {},
    quorum: nodes.length === 1 ? single({ maxTtl, quorumId }) : { id: id(quorumId), maxTtlMs: whole("maxTtl", maxTtl) },
  };
}

function single(given) {
  const set = Object.keys(given).find((name) => given[name] !== undefined);
  if (set !== undefined) throw new ConfigError(`${set} is a setting of quorums, and one store is named: leave it out`);
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
  token: "{ token }",
  password: "{ user, password }",
};

/** Credentials as the component knows them, which have to be of one of the `kinds`. */
export function credentials(given, kinds) {
  const kind = kindOf(given);
  if (kind === undefined || !kinds.includes(kind)) {
    throw new ConfigError(`credentials for this store are ${kinds.map((kind) => FORMS[kind]).join(" or ")}, as texts`);
  }
  if (kind !== "aws") return { tag: kind, val: given };
  const { accessKeyId, secretAccessKey, sessionToken, expiration } = given;
  if (typeof (sessionToken ?? "") !== "string") throw new ConfigError("the sessionToken of credentials is a text");
  const expires = expiration === undefined || expiration === null ? undefined : Number(expiration);
  if (expires !== undefined && !(expires >= 0)) {
    throw new ConfigError("the expiration of credentials is a Date, or ms since 1970");
  }
  const expiresUnixMs = expires === undefined ? undefined : BigInt(Math.floor(expires));
  return { tag: "aws", val: { accessKeyId, secretAccessKey, sessionToken: sessionToken ?? undefined, expiresUnixMs } };
}

/** Which of the forms it has. */
export function kindOf(given) {
  const has = (...names) => names.every((name) => typeof given?.[name] === "string");
  if (has("accessKeyId", "secretAccessKey")) return "aws";
  if (has("token")) return "token";
  return has("user", "password") ? "password" : undefined;
}
