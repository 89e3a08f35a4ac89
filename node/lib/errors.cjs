"use strict";

// Errors, one class for each way a caller can react. Documented in errors.d.ts.
//
// It requires no other module, since it is also used without native code.

class LeaseholdError extends Error {
  /** @param {string} message @param {Record<string, any>} details */
  constructor(message, details = {}) {
    super(message);
    this.code = details.code ?? /** @type {any} */ (this.constructor).code;
    this.resource = details.resource;
    this.holder = details.holder;
    this.temporary = details.temporary ?? false;
  }
}
LeaseholdError.code = "other";

function kind(name, code) {
  const { [name]: made } = { [name]: class extends LeaseholdError {} };
  made.code = code;
  made.prototype.name = name;
  return made;
}
LeaseholdError.prototype.name = "LeaseholdError";

const classes = {
  LockBusyError: kind("LockBusyError", "busy"),
  LockTimeoutError: kind("LockTimeoutError", "timed_out"),
  LeaseLostError: kind("LeaseLostError", "lost"),
  NotOwnedError: kind("NotOwnedError", "not_owned"),
  FinishUnconfirmedError: kind("FinishUnconfirmedError", "finish_unconfirmed"),
  ResultNotKeptError: kind("ResultNotKeptError", "result_not_kept"),
  GivenUpError: kind("GivenUpError", "given_up"),
  TooManyConflictsError: kind("TooManyConflictsError", "too_many_conflicts"),
  StoreUnavailableError: kind("StoreUnavailableError", "store_unavailable"),
  StoreRefusedError: kind("StoreRefusedError", "store_refused"),
  ConfigError: kind("ConfigError", "config"),
  ClosedError: kind("ClosedError", "closed"),
  StaleTokenError: kind("StaleTokenError", "stale_token"),
  CallbackError: kind("CallbackError", "callback_failed"),
  InternalError: kind("InternalError", "internal"),
};
/** Advice for users of libraries whose locks end unless they are extended. */
const NOTHING_TO_EXTEND =
  "a lease is renewed in the background until it is released, so there is nothing to extend: call check(ms) before a step that " +
  "takes so long, pass a longer ttl to outlast longer stalls, or maxHold to end renewals";

// For leasehold/protocol only.
const CommandRejectedError = kind("CommandRejectedError", "rejected");
const byCode = new Map([CommandRejectedError, ...Object.values(classes)].map((made) => [made.code, made]));

function errorOf(failure) {
  const { kind: code, message, resource, holder, isTemporary: temporary } = failure;
  if (code === "type") return new TypeError(message);
  const Class = byCode.get(code) ?? LeaseholdError;
  const error = new Class(message, { code, resource: resource ?? undefined, holder: holder ?? undefined, temporary });
  if (Class === CommandRejectedError) Object.assign(error, { reason: failure.reason });
  if (failure.lostReason) Object.assign(error, { reason: failure.lostReason });
  if (failure.attempts) Object.assign(error, { attempts: failure.attempts });
  if (failure.fate) Object.assign(error, { tries: failure.tries, fate: failure.fate });
  return error;
}

module.exports = { LeaseholdError, ...classes, CommandRejectedError, NOTHING_TO_EXTEND, errorOf };
