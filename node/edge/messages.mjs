// Translates outputs of the component to errors of the package.

import { SUSPENDED_MS } from "./clock.mjs";
import errors from "./shared/errors.mjs";
import results from "./shared/results.mjs";

const { LeaseholdError, LockBusyError, LockTimeoutError, LeaseLostError, NotOwnedError } = errors;
const { read } = results;
const { FinishUnconfirmedError, GivenUpError, ResultNotKeptError, StoreUnavailableError, StoreRefusedError, ClosedError, ConfigError } = errors;

const FAULTS = {
  timeout: "no reply in time",
  reset: "connection broken",
  unreachable: "not reachable",
  cancelled: "request abandoned",
  server: "store failure",
  busy: "store busy",
  protocol: "unintelligible answer",
};
const LOSSES = {
  expired: "no renewal was confirmed in time",
  "max-hold": "max_hold has passed",
  "taken-over": "somebody else holds the lock now",
  released: "somebody broke the lock",
  "record-gone": "the store has lost the record",
  revoked: "somebody revoked it",
};

const fault = ({ kind, detail }) => `${FAULTS[kind]}${detail === undefined ? "" : `: ${detail}`}`;
const on = (resource, message) => `${JSON.stringify(resource)}: ${message}`;

/** The error of an acquisition that ended without the lock. */
export function failed(resource, { tag, val }) {
  const unavailable = (message) => new StoreUnavailableError(on(resource, message), { resource, temporary: true });
  switch (tag) {
    case "busy":
      return held(LockBusyError, "busy", resource, val.holding);
    case "timed-out":
      return held(LockTimeoutError, "not free within the wait", resource, val.holding);
    case "throttled":
      return unavailable(`the store throttles requests (${fault(val)})`);
    case "unavailable":
      return unavailable(`the store cannot be used now (${fault(val)})`);
    case "abstains":
      return unavailable(
        `the quorum cannot grant locks for another ${seconds(val.leftMs, 1)} s, because too many of its nodes are new or have ` +
          "lost their data; if the quorum is new, run `leasehold quorum init`",
      );
    case "done":
      return new LeaseholdError(on(resource, "the work is done already"), { code: "done", resource });
    case "completions-in-doubt":
      return unavailable(
        "nodes of the quorum have lost their data within 7 days, perhaps with the completion of this work, and the others " +
          "are too few to say that it was not done; bring back nodes that are away, or, if you know that no completion was " +
          "lost, use trustQuorum",
      );
    case "refused":
      return new StoreRefusedError(on(resource, `the store refuses: ${val.detail}`), { resource });
    case "cancelled":
      return new ClosedError(on(resource, "the client was closed during the call, which has acquired nothing: connect again"), { resource });
    default:
      return new LeaseholdError(on(resource, val?.message ?? tag), { resource });
  }
}

/** A completion as `Completion`. @param {any} completion @param {any} runs */
export function completion({ atUnixMs, owner, token, leftMs, about, unsettled }, runs) {
  const record = about && runs.readAbout(about);
  const result = read(record?.runResult?.kind, record?.runResult?.bytes, unsettled);
  const shown = { at: Number(atUnixMs), token: Number(token), left: Number(leftMs), result };
  if (record) Object.assign(shown, { began: Number(record.beganUnixMs) });
  return owner === "" ? shown : { ...shown, owner };
}

function held(Kind, what, resource, holding) {
  const holder = holding && info(resource, holding);
  const message = `${what}: ${holder ? who(holder) : "held by somebody else"}`;
  return new Kind(on(resource, message), { resource, holder, temporary: true });
}

/** A holding as `LockInfo`. */
function info(resource, { holder, counter, owner, recordTtlMs, leftMs, sinceUnixMs, data }) {
  const number = (value) => (value === undefined ? undefined : Number(value));
  const shown = {
    resource,
    owner: owner || undefined,
    token: number(counter),
    since: number(sinceUnixMs),
    ttl: number(recordTtlMs),
    left: number(leftMs),
    data,
    foreign: holder === undefined,
    votes: 1,
    nodes: 1,
  };
  return Object.fromEntries(Object.entries(shown).filter(([, value]) => value !== undefined));
}

function who({ owner, foreign, token, left }) {
  const somebody = foreign ? "held by a client of another library" : "held by a client without a label";
  const parts = [owner === undefined ? somebody : `held by ${owner}`];
  if (token !== undefined) parts.push(`token ${token}`);
  if (left !== undefined) parts.push(`${seconds(left, 1)} s left unless renewed`);
  return parts.join(", ");
}

const seconds = (ms, digits) => (Number(ms) / 1_000).toFixed(digits);

/** The error of a lost lease; `trouble` is the failure of its last renewal, if any. */
export function lost(resource, reason, trouble) {
  const why = LOSSES[reason.tag] ?? reason.val?.message ?? reason.tag;
  const advice = "the work under the lock must stop, since another worker may have the lock";
  const message = `the lease is lost: ${why}${because(trouble)}; ${advice}`;
  const error = new LeaseLostError(on(resource, message), { resource });
  if (reason.tag === "other") return error;
  return Object.assign(error, { reason: reason.tag.replaceAll("-", "_") });
}

/** The error of a lease that is still held, but not for long enough. */
export function tooShort(resource, left, min, trouble) {
  const message = `only ${seconds(left, 3)} s of validity are left, and ${seconds(min, 3)} s were asked for: renewals are late`;
  return new LeaseLostError(on(resource, message + because(trouble)), { resource });
}

const because = (trouble) => (trouble === undefined ? "" : ` (${fault(trouble)})`);

export function notOwned(resource) {
  const message = "this lease was already released";
  return new NotOwnedError(on(resource, message), { resource });
}

export function closed(resource) {
  const message = "the client was closed, and the lease was released; the work under the lock must stop";
  return new NotOwnedError(on(resource, message), { resource });
}

export function unconfirmed(resource) {
  const message = "the release is not confirmed: it is tried again in the background, and otherwise the lock expires after its ttl";
  return new StoreUnavailableError(on(resource, message), { resource, temporary: true });
}

export function resultNotKept(resource, why) {
  const message = `the work is done, but its result was not kept: ${why}; those who come later may find none`;
  return new ResultNotKeptError(on(resource, message), { resource });
}

/** The error of work that was begun as often as allowed. @param {string} resource @param {Record<string, any>} attempts */
export function givenUp(resource, attempts) {
  const { count, reason } = attempts;
  const times = count === 1 ? "1 attempt" : `${count} attempts`;
  const why = reason === null ? "" : `; the last one failed: ${reason}`;
  const message = `given up after ${times} without a finish${why}. Mend it, and forget the run to have it tried again`;
  return Object.assign(new GivenUpError(on(resource, message), { resource }), { attempts });
}

export function tooFewCount(resource) {
  const message = "too few nodes show the attempts at the work, so it is not begun";
  return new StoreUnavailableError(on(resource, message), { resource, temporary: true });
}

export function notCounted(resource, error) {
  const message = `this attempt at the work may count, and is not begun: it cannot be written down: ${error.message}`;
  const isRefused = error instanceof StoreRefusedError;
  const Kind = isRefused ? StoreRefusedError : StoreUnavailableError;
  return new Kind(on(resource, message), { resource, temporary: !isRefused });
}

/** The error of a lease that is not known to be revoked, with what is in the way. @param {string} resource @param {any[]} troubles */
export function notRevoked(resource, [trouble], nodes) {
  const error = trouble && notDone(resource, trouble);
  if (error !== undefined && nodes === 1) return error;
  const why = error === undefined ? "" : `: ${error.message}`;
  const message = `too few of ${nodes} nodes have revoked the lease, so its holder may keep it${why}; try again`;
  return new StoreUnavailableError(on(resource, message), { resource, temporary: true });
}

/** The error of a read that no majority of the nodes has answered; `undefined` if one has. @param {string} resource @param {any[]} nodes */
export function unread(resource, nodes) {
  const troubles = nodes.filter(({ tag }) => tag !== "applied").map((outcome) => notDone(resource, outcome));
  return 2 * troubles.length >= nodes.length ? troubles[0] : undefined;
}

/** The error of an operation that has failed, or may have. */
function notDone(resource, { tag, val }) {
  if (tag === "unknown") return failed(resource, { tag: "unavailable", val });
  const { refusal } = val;
  switch (refusal.tag) {
    case "denied":
      return failed(resource, { tag: "refused", val: refusal.val });
    case "needs-credentials":
      return failed(resource, { tag: "unavailable", val: refusal.val });
    default:
      return failed(resource, refusal);
  }
}

export function newestNotWritten(resource, error) {
  return notBegun(resource, error, "that this is the newest request cannot be written down");
}

export function newestNotRead(resource, error) {
  return notBegun(resource, error, "which request is the newest cannot be read");
}

function notBegun(resource, error, why) {
  const isFinal = [StoreRefusedError, ClosedError, ConfigError].some((Kind) => error instanceof Kind);
  const Kind = isFinal ? error.constructor : StoreUnavailableError;
  return new Kind(on(resource, `the work is not begun: ${why}: ${error.message}`), { resource, temporary: !isFinal });
}

export function newestUnsettled(resource) {
  const message = "too few nodes show which request is the newest";
  return new StoreUnavailableError(on(resource, message), { resource, temporary: true });
}

export function notReplaced(resource) {
  return new StoreUnavailableError(on(resource, "the runner cannot be replaced"), { resource, temporary: true });
}

export function finishUnconfirmed(resource) {
  const message = "the work was done, but the store did not confirm its completion: it may be done again";
  return new FinishUnconfirmedError(on(resource, message), { resource });
}

export function unconfirmedClose() {
  const message =
    "some releases are not confirmed yet: they are tried again in the background while the process lives, and locks " +
    "that they do not reach expire after their ttl";
  return new StoreUnavailableError(message, { temporary: true });
}

/** The error of an argument or setting that the component rejected, or of a command at the wrong time. */
export function refused({ tag, val }, resource) {
  const details = { resource };
  switch (tag) {
    case "invalid":
      return refused(val.error, resource);
    case "closed":
      return new ClosedError("the client was closed", details);
    case "too-many-locks":
      return new ConfigError(`the client holds or waits for ${val.limit} locks, which is its limit; release some first`, details);
    case "above-max-ttl":
      return new ConfigError(
        `ttl, lockDelay and ${SUSPENDED_MS} ms are ${val.recordTtlMs} ms together, but the quorum allows at most ${val.maxTtlMs} ms, its maxTtl: make them shorter`,
        details,
      );
    case "above-max-keep":
      return new ConfigError(
        `the completion would be kept for ${val.keepMs} ms, but a quorum keeps completions for at most ${val.maxKeepMs} ms: make keep, cooldown or the period shorter`,
        details,
      );
    case "empty-key":
      return new ConfigError("the key is empty; name the occurrence of the job, such as its date", details);
    case "empty-resource":
      return new ConfigError("the resource has no name; give it 1 to 1024 bytes");
    case "too-long":
      return new ConfigError(`${val.what} has ${val.bytes} bytes; at most ${val.maxBytes} are allowed`);
    case "control-character": {
      const code = val.code.toString(16).toUpperCase().padStart(4, "0");
      return new ConfigError(
        `${val.what} has the control character U+${code} at byte ${val.at}; names hold printable text only`,
      );
    }
    case "session-label":
      return new ConfigError(
        `session ${JSON.stringify(val.given)} does not fit: a session is named by 1 to 64 letters, digits and -_.:@/ characters, such as "worker-7"`,
      );
    case "too-short":
      return new ConfigError(`${val.what} is ${val.valueMs} ms, but must be at least ${val.minMs} ms`);
    case "too-far":
      return new ConfigError(`${val.what} is ${val.valueMs} ms, but must be at most ${val.maxMs} ms`);
    case "drift":
      return new ConfigError(`drift of ${val.ppm} ppm is outside ${val.minPpm} to ${val.maxPpm} ppm`);
    case "nodes":
      return new ConfigError(`${val.count} nodes configured; there must be 1 to ${val.max}`);
    case "store":
      return new ConfigError(val.detail);
    default:
      return new ConfigError(val?.message ?? `refused: ${tag}`, details);
  }
}
