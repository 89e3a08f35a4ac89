// Errors, and the holder that they name.

/// <reference types="node" />

import type { Attempts } from "./attempts.js";

/** The holder of a lock, as far as the store shows it. */
export interface LockInfo {
  /** The name of the lock. */
  resource: string;
  /** The holder's label; missing for holders without one. */
  owner?: string;
  /** The holder's fencing token. */
  token?: number;
  /** When the lease was granted, in ms since 1970 by the store's wall clock. */
  since?: number;
  /** How long the lease lasts without renewal, in ms. */
  ttl?: number;
  /** How many ms until the store frees the lock unless it is renewed; missing for stores that do not free locks by themselves. */
  left?: number;
  /**
   * For how many ms this client has seen the record unchanged, for the holder of an error and of a run that is done elsewhere. Only
   * for stores that do not free locks by themselves: there, it is taken over once this is a little more than the ttl.
   */
  unchanged?: number;
  /** The holder's data. */
  data?: Buffer;
  /** The name of the session that the lease belongs to; missing if its client was given none. */
  session?: string;
  /** True if another lock library wrote the record. */
  foreign: boolean;
  /** True if the lease is revoked: its holder cannot renew it any more. */
  revoked: boolean;
  /** The number of nodes that showed this record. */
  votes: number;
  /** The number of nodes that were read: 1 for a single store, and for the holder in an error. */
  nodes: number;
}

/** The base of all errors of leasehold. The message is for people and may change; match on the class or on `code`. */
export class LeaseholdError extends Error {
  constructor(message: string, details?: Partial<Pick<LeaseholdError, "code" | "resource" | "holder" | "temporary">>);
  /** The stable name of the kind, the same in every language. */
  readonly code: string;
  /** The resource of the failed call. */
  readonly resource?: string | undefined;
  /** The holder of the lock, if that is the reason. */
  readonly holder?: LockInfo | undefined;
  /** True if the same call may succeed later by itself. */
  readonly temporary: boolean;
  /** How often an update of `leasehold/cas` was tried. */
  readonly tries?: number;
  /** The fate of its value: it was not written, or it may have been. Look at the item before you try again. */
  readonly fate?: "not_written" | "unknown";
}

/** Somebody else holds the lock, and the caller did not want to wait. Code `busy`. */
export class LockBusyError extends LeaseholdError {}
/** Somebody else held the lock for the whole `wait`. Code `timed_out`. */
export class LockTimeoutError extends LeaseholdError {}
/** The lease is over, so the work under the lock must stop. Code `lost`. */
export class LeaseLostError extends LeaseholdError {
  /** Why it is over, where that is known: `"expired"`, `"taken_over"`, `"revoked"` and so on, as in the metrics. */
  reason?: string;
}
/** There is no lease to release or finish. Code `not_owned`. */
export class NotOwnedError extends LeaseholdError {}
/**
 * The work of a run was done, and no answer of the store says that its completion stands: it may be done again. Code
 * `finish_unconfirmed`.
 */
export class FinishUnconfirmedError extends LeaseholdError {}
/**
 * The work of a run is done and its completion stands, without the result that was given: it is too long, cannot be written down, or
 * the store has no room for it. Those who come later may find none. Code `result_not_kept`.
 */
export class ResultNotKeptError extends LeaseholdError {}
/**
 * The work of a run was begun `maxAttempts` times and never finished, so it is not begun again until somebody forgets the run, by
 * `forgetRun` or `leasehold once --forget`. Code `given_up`.
 */
export class GivenUpError extends LeaseholdError {
  /** How often it was begun, since when, and the reason why the last attempt failed. */
  readonly attempts: Attempts;
}
/** An update of an item was tried `tries` times, and others were faster each time. Code `too_many_conflicts`. */
export class TooManyConflictsError extends LeaseholdError {}
/** The store cannot be reached, does not answer, or throttles. A later call may succeed. Code `store_unavailable`. */
export class StoreUnavailableError extends LeaseholdError {}
/** The store refuses, and trying again will not help: permissions, schema, a corrupt record. Code `store_refused`. */
export class StoreRefusedError extends LeaseholdError {}
/** The client was closed, before the call or while it waited. It acquires nothing any more: connect again. Code `closed`. */
export class ClosedError extends LeaseholdError {}
/** An invalid setting, url or use of the client. Code `config`. */
export class ConfigError extends LeaseholdError {}
/** The protected resource has seen a later holder. Code `stale_token`. */
export class StaleTokenError extends LeaseholdError {}
/** A callback of an election or of shards has thrown: `cause` is what it has thrown. Code `callback_failed`. */
export class CallbackError extends LeaseholdError {}
/** No thread could be started, or there is a bug in leasehold. Code `internal`. */
export class InternalError extends LeaseholdError {}
