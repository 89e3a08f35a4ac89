/**
 * Leases for runtimes without native code: the protocol as WebAssembly, and `fetch`. For edge workers, browsers, Deno,
 * Bun and Node.
 *
 * **All durations are in milliseconds.** A call that fails rejects with a {@link LeaseholdError}. A value of the wrong type,
 * or an unknown option, is a `TypeError`.
 *
 * @packageDocumentation
 */

/// <reference lib="esnext.disposable" />

import type { AttemptOptions, Attempts, RetryLater } from "../lib/attempts.js";
import type {
  AlreadyDone,
  Completion,
  FinishOptions,
  Occurrence,
  OccurrenceOptions,
  Ran,
  Replaced,
  ReplaceOptions,
  SaveOptions,
} from "../lib/runs.js";

export { noResult, unsettled } from "../lib/runs.js";
export type { AlreadyDone, Completion, FinishOptions, Occurrence, OccurrenceOptions, Ran, Replaced, ReplaceOptions, SaveOptions };
export type { AttemptOptions, Attempts, RetryLater };

/** Keys for DynamoDB and S3, or an HMAC key for Google Cloud Storage. */
export interface AwsCredentials {
  /** The public part. */
  accessKeyId: string;
  /** The secret part. */
  secretAccessKey: string;
  /** Comes with keys that expire. */
  sessionToken?: string | null | undefined;
  /** When they expire, as a date or in ms since 1970; a function is called for new ones five minutes before. */
  expiration?: Date | number | null | undefined;
}

/**
 * The token of a Redis with a REST interface or of a user of etcd, or an OAuth token for Azure Blob Storage, Google Cloud
 * Storage or Cosmos DB.
 */
export interface TokenCredentials {
  /** The token, without `Bearer`. */
  token: string;
  /** When it expires, as in {@link AwsCredentials}. */
  expiration?: Date | number | null | undefined;
}

/** The key of an account of Azure Blob Storage or Cosmos DB. */
export interface AccountKeyCredentials {
  /** The key as the portal shows it, in Base64. */
  accountKey: string;
}

/** A shared access signature for a container of Azure Blob Storage. */
export interface AccessSignatureCredentials {
  /** `sv=...&sig=...`, with or without a question mark. */
  sas: string;
  /** When it expires, as in {@link AwsCredentials}. */
  expiration?: Date | number | null | undefined;
}

/** The login for a Webdis or an etcd. */
export interface PasswordCredentials {
  /** The name of the user. */
  user: string;
  /** The password of that user. */
  password: string;
}

/** The credentials of a store, by its kind. */
export type Credentials =
  | AwsCredentials
  | TokenCredentials
  | PasswordCredentials
  | AccountKeyCredentials
  | AccessSignatureCredentials;

/** The result of a function for credentials: nothing for a Webdis without a login. */
export type MaybeCredentials = Credentials | null | undefined;

/** Settings of a client. */
export interface ConnectOptions {
  /**
   * The credentials: environment variables are not read. An object is for all stores of its kind. A function is called for each
   * store, with its url without secrets, and again when its result expires or is rejected. For a Webdis, it is also called when
   * the client is made: `undefined` or `null` means a Webdis without a login. Credentials in a url take precedence.
   */
  credentials?: Credentials | ((store: string) => MaybeCredentials | PromiseLike<MaybeCredentials>) | undefined;
  /** The label that others see beside a lock; default `edge:` and some digits. At most 256 bytes. */
  owner?: string | undefined;
  /** The largest rate error of any clock involved, in parts per million: 100 to 100,000, default 10,000 (1%). */
  driftPpm?: number | undefined;
  /** The longest wait for one reply of the store: 10 to 60,000 ms, default 500; never more than a sixth of the ttl. */
  requestTimeout?: number | undefined;
  /** Of a quorum: the most that `ttl`, `lockDelay` and 500 ms may be together; default 60,000 ms. The same for all clients. */
  maxTtl?: number | undefined;
  /** Of a quorum, which needs it: 32 hexadecimal digits, as `leasehold quorum status` shows them. */
  quorumId?: string | undefined;
  /** A replacement of the global `fetch`. It must send each request once. */
  fetch?: typeof globalThis.fetch | undefined;
}

/** Settings of one lock. */
export interface LockOptions {
  /**
   * How long the lease lasts without renewal: 100 ms to 24 h, default 30,000 ms. If this runtime ends, others wait that long;
   * if it stalls for that long, the lease is lost.
   */
  ttl?: number | undefined;
  /** How long to try, in ms. Default `Infinity`; 0 tries once. */
  wait?: number | undefined;
  /** The label that others see; at most 256 bytes. Default: that of the client. */
  owner?: string | undefined;
  /** Ends renewal this many ms after the grant, so that a stuck worker cannot hold forever; at least the ttl. Off by default. */
  maxHold?: number | undefined;
  /** Cancels the wait: the call rejects with the signal's reason, and nothing is held. It does not end a lease. */
  signal?: AbortSignal | undefined;
  /** Bytes that others can read beside the lock, at most 4 KiB; none by default. */
  data?: Uint8Array | undefined;
  /**
   * How many ms the lock stays closed after a lease has expired; default 0, at most 24 h less 500 ms. A release frees it at once.
   * 500 ms are added, since the clock of this runtime may miss that much of a suspension.
   */
  lockDelay?: number | undefined;
  /** Time between renewals, in ms: at most half the ttl; default a third of it. */
  renewEvery?: number | undefined;
  /** `false` for no renewal at all: the lease ends when its ttl has passed. Default `true`. */
  renew?: boolean | undefined;
}

/** Settings of a lock that is tried once. */
export type TryOptions = Omit<LockOptions, "wait">;

/** Settings of a run, which are used with one of {@link Occurrence}: a `key`, a period (`every`), `cron`, a `cooldown` or `keep`. */
export interface OnceOptions extends OccurrenceOptions, AttemptOptions, ReplaceOptions, LockOptions {}

/** Somebody else is at it, who may still fail. */
export interface RunningElsewhere {
  /** It was not done now. */
  ran: false;
  /** Somebody else runs it. */
  reason: "running";
  /** That holder, as far as the store shows it. */
  holder: LockInfo | null;
}

/** The answer of {@link Client.once}. */
export type OnceOutcome<T> = Ran<T> | AlreadyDone | RunningElsewhere | RetryLater | Replaced;

/** The answer of {@link Client.beginRun}: a run, or the reason why there is nothing to do. */
export type BegunRun = { run: Run } | ({ run: null } & (AlreadyDone | RunningElsewhere | RetryLater | Replaced));

/**
 * Makes a client of `dynamodb://TABLE?region=REGION`, `s3://BUCKET?region=REGION`, `azblob://ACCOUNT/CONTAINER`,
 * `gs://BUCKET`, `cosmos://ACCOUNT/DATABASE/CONTAINER`, `etcd://HOST:2379`, `upstash+https://:TOKEN@HOST` or
 * `webdis+http://HOST`. An array of urls is a quorum of independent stores. No request is made yet.
 *
 * In Cloudflare's workers a client belongs to the request that made it: make one for each, and keep none in a global.
 *
 * @throws {@link ConfigError} for an invalid url or setting.
 */
export function connect(stores: string | readonly string[], options?: ConnectOptions): Promise<Client>;

/**
 * A client of a store, and everything that keeps its leases alive; made by {@link connect}.
 *
 * Waiters of one client are served in order; across clients there is no order. Locks are not reentrant.
 */
export class Client {
  private constructor();

  /** The urls of the stores, without secrets. */
  readonly stores: string[];

  /**
   * Acquires a lock. The lease is held until it is released or lost, the client is closed or the runtime ends.
   *
   * @throws {@link LockTimeoutError} when others held the lock for the whole `wait`; {@link LockBusyError} for `wait: 0`.
   * @throws {@link StoreUnavailableError}, {@link StoreRefusedError} if the store fails; with a `cause` if
   *   there are no credentials.
   * @throws {@link ConfigError} for invalid settings, {@link ClosedError} for a closed client.
   */
  acquire(name: string, options?: LockOptions): Promise<Lease>;

  /** Tries once: `null` when somebody else holds the lock. Rejects otherwise as {@link Client.acquire} does. */
  tryAcquire(name: string, options?: TryOptions): Promise<Lease | null>;

  /**
   * Acquires a lock, calls `body` with the lease, releases, and returns the result of `body`. An error of `body` is thrown
   * unchanged, after the release.
   *
   * @throws the errors of {@link Client.acquire}; then `body` has not been called.
   * @throws {@link LeaseLostError} when the lease was lost before `body` ended without an error;
   *   {@link NotOwnedError} when the client was closed before.
   */
  using<T>(name: string, options: LockOptions | undefined, body: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
  using<T>(name: string, body: (lease: Lease) => T | PromiseLike<T>): Promise<T>;

  /**
   * Does a job once: calls `body` with the run unless the work was done or somebody else is at it, and writes the completion that it is
   * done. A key, a period, a cron expression, a cooldown or `keep` says when it is to be done again. An error of `body` is thrown
   * unchanged, after {@link Run.fail}, so that another machine may try.
   *
   * @throws the errors of {@link Client.beginRun}; then `body` has not been called.
   * @throws {@link LeaseLostError} when the lease was lost before the completion was written: another worker may do the work again.
   * @throws {@link FinishUnconfirmedError} when no answer of the store says that the completion stands.
   */
  once<T>(
    name: string,
    options: OnceOptions & Occurrence & SaveOptions,
    body: (run: Run) => T | PromiseLike<T>,
  ): Promise<OnceOutcome<T>>;

  /**
   * Begins a run that the caller finishes or releases. Busy locks are no error here: the answer says who holds them.
   *
   * @throws {@link GivenUpError} when the work was begun `maxAttempts` times and never finished.
   * @throws {@link StoreUnavailableError}, {@link StoreRefusedError} if the store fails; the former also while too many nodes of
   * a quorum may have lost completions.
   * @throws {@link ConfigError} for invalid settings, {@link ClosedError} for a closed client.
   */
  beginRun(name: string, options: OnceOptions & Occurrence): Promise<BegunRun>;

  /**
   * Releases all leases of this client, cancels all its waiters, and waits up to 2,000 ms until the store has confirmed it.
   * The client can acquire nothing afterwards.
   *
   * @throws {@link StoreUnavailableError} if a release is not confirmed yet; it continues in the background.
   */
  close(): Promise<void>;

  /** As {@link Client.close}. */
  [Symbol.asyncDispose](): Promise<void>;
  /** Shown by `JSON.stringify` and `console.log`. */
  toJSON(): { stores: string[] };
}

/**
 * A held lock, renewed by timers until it is released or lost.
 *
 * Any amount of time can pass between a check of a lease and the write that it guards. Only the resource itself closes that
 * gap, by rejecting tokens older than the newest it has seen.
 */
export class Lease {
  protected constructor();

  /** The fencing token: grows with every grant of the resource; always a safe integer. */
  readonly token: number;
  /** The name of the lock. */
  readonly resource: string;
  /** The label that others see. */
  readonly owner: string;
  /**
   * Aborted when the lease is lost, with the {@link LeaseLostError} as reason, before the store grants the lock to anybody
   * else. Closing the client aborts it as well, with a {@link NotOwnedError}; a release never does. A blocked event loop
   * learns of it late, and renews late; {@link Lease.check} reads the clock.
   */
  readonly signal: AbortSignal;

  /** How many ms the lease is valid if no further renewal succeeds; 0 once it is lost or released. Never waits. */
  remaining(): number;

  /**
   * Throws unless at least `min` ms (default 0) of validity are left. Call it before a step that takes that long.
   *
   * @throws {@link LeaseLostError}; {@link NotOwnedError} after a release.
   */
  check(min?: number): void;

  /**
   * Throws, with advice: a lease renews itself until it is released, so there is nothing to extend.
   *
   * @throws {@link ConfigError}
   */
  extend(ms?: number): never;

  /**
   * Releases the lock. The lease ends here at once; the call waits up to 2,000 ms for the store's confirmation.
   *
   * @throws {@link LeaseLostError} if the lease was lost before, or the store shows that the lock was no longer ours;
   * {@link NotOwnedError} if it was released before.
   * @throws {@link StoreUnavailableError} if the store has not confirmed: the release continues in the background.
   */
  release(): Promise<void>;

  /**
   * Releases at the end of an `await using` block. Rejects with {@link LeaseLostError} if the lease was lost, with
   * {@link NotOwnedError} if the client was closed meanwhile, and with no other error.
   */
  [Symbol.asyncDispose](): Promise<void>;
  /** Shown by `JSON.stringify` and `console.log`. */
  toJSON(): { resource: string; owner: string; token: number; remaining: number };
}

/**
 * A lease under which work is done that is done once. {@link Run.finish} writes down that it is done; a release leaves no
 * completion, and neither does the end of an `await using` block without a finish, so that another worker may do the work.
 */
export class Run extends Lease {
  private constructor();

  /** The attempts at the work with this one, as they were when it began; `null` without {@link AttemptOptions.maxAttempts}. */
  readonly attempts: Attempts | null;

  /**
   * Writes the completion that the work is done, and releases the lock, in one step. Awaits the answer for as long as the lease
   * lasts.
   *
   * @throws {@link LeaseLostError} if the lease was lost before: no completion was written, and another worker may do the work again.
   * @throws {@link FinishUnconfirmedError} if no answer of the store says that the completion stands.
   * @throws {@link ResultNotKeptError} if the result cannot be kept: the work counts as done all the same.
   * @throws {@link NotOwnedError} after a release or finish.
   */
  finish(options?: FinishOptions): Promise<void>;
  /**
   * Releases the lock because the work has failed, so that another worker may do it. With {@link AttemptOptions.maxAttempts} the reason
   * is kept, for people who look at the run or are notified that it was given up: of an error its `name: message`, in one line, cut after
   * 256 bytes. Others can read it in the store, so leave secrets out. {@link Client.once} does this with what its function throws.
   *
   * @throws the errors of {@link Lease.release}. A reason that cannot be kept is left out.
   */
  fail(reason: string | Error): Promise<void>;
}

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
  /** The holder's data. */
  data?: Uint8Array;
  /** True if another lock library wrote the record. */
  foreign: boolean;
  /** The number of nodes that showed this record: here always 1. */
  votes: number;
  /** The number of nodes that were read: here always 1. */
  nodes: number;
}

/**
 * The base of all errors of leasehold. The message is for people and may change; match on `code`, which is the same in both
 * halves of the package, or on the classes of this one.
 */
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
}

/** Somebody else holds the lock, and the caller did not want to wait. Code `busy`. */
export class LockBusyError extends LeaseholdError {}
/** Somebody else held the lock for the whole `wait`. Code `timed_out`. */
export class LockTimeoutError extends LeaseholdError {}
/** The lease is over, so the work under the lock must stop. Code `lost`. */
export class LeaseLostError extends LeaseholdError {}
/** There is no lease to release or finish. Code `not_owned`. */
export class NotOwnedError extends LeaseholdError {}
/**
 * The work of a run was done, and no answer of the store says that its completion stands: it may be done again. Code
 * `finish_unconfirmed`.
 */
export class FinishUnconfirmedError extends LeaseholdError {}
/** The work of a run is done and its completion stands, without the result that was given. Code `result_not_kept`. */
export class ResultNotKeptError extends LeaseholdError {}
/**
 * The work of a run was begun `maxAttempts` times and never finished, so it is not begun again until somebody forgets the run, by
 * `leasehold once --forget` or a client with native code. Code `given_up`.
 */
export class GivenUpError extends LeaseholdError {
  /** How often it was begun, since when, and the reason why the last attempt failed. */
  readonly attempts: Attempts;
}
/** The store cannot be reached, does not answer, or throttles. A later call may succeed. Code `store_unavailable`. */
export class StoreUnavailableError extends LeaseholdError {}
/** The store refuses, and trying again will not help: permissions, schema, a corrupt record. Code `store_refused`. */
export class StoreRefusedError extends LeaseholdError {}
/** The client was closed, before the call or while it waited. It acquires nothing any more: connect again. Code `closed`. */
export class ClosedError extends LeaseholdError {}
/** An invalid setting, url or use of the client. Code `config`. */
export class ConfigError extends LeaseholdError {}
