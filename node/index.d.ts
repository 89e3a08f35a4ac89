/**
 * Distributed locks that tell the truth: leases with fencing tokens, over stores you already run.
 *
 * **All durations are in milliseconds.** A call that fails rejects with a {@link LeaseholdError}. A value of the wrong type,
 * or an unknown option, is a `TypeError`.
 *
 * @packageDocumentation
 */

/// <reference types="node" />
/// <reference lib="esnext.disposable" />

import type { LeaseholdError, LockInfo } from "./lib/errors.js";
import type { BegunRun, Occurrence, OnceOptions, OnceOutcome, Run, RunInfo } from "./lib/once.js";
import type { LockAny, RwLock, RwLockOptions, Semaphore } from "./lib/permits.js";
import type { AlreadyDone, Completion, FinishOptions, OccurrenceOptions, Ran, Replaced, ReplaceOptions, SaveOptions } from "./lib/runs.js";
import type { Shards, ShardsOptions } from "./lib/shards.js";

export * from "./lib/attempts.js";
export * from "./lib/errors.js";
export * from "./lib/observe.js";
export * from "./lib/once.js";
export * from "./lib/permits.js";
export * from "./lib/shards.js";
export { noResult, unsettled } from "./lib/runs.js";
export type { AlreadyDone, Completion, FinishOptions, OccurrenceOptions, Ran, Replaced, ReplaceOptions, SaveOptions };

/** Settings of a client. */
export interface ConnectOptions {
  /** The label that others see beside a lock; default `host:pid:thread`. At most 256 bytes. */
  owner?: string | undefined;
  /**
   * A name for the session that all leases of the client belong to, such as `worker-7`. On DynamoDB, etcd and objects, one
   * heartbeat renews them all.
   */
  session?: string | undefined;
  /** The largest rate error of any clock involved, in parts per million: 100 to 100,000, default 10,000 (1%). */
  driftPpm?: number | undefined;
  /** The longest wait for one reply of the store: 10 to 60,000 ms, default 500; never more than a sixth of the ttl. */
  requestTimeout?: number | undefined;
  /** Of a quorum: the most that `ttl` and `lockDelay` may be together; default 60,000 ms. The same for all clients. */
  maxTtl?: number | undefined;
  /** Of a quorum: its id, which its nodes store; by default it follows from their names. */
  quorumId?: string | undefined;
  /** Of a quorum: marks new nodes as members. For tests and the first start only; see `leasehold quorum init`. */
  createQuorum?: boolean | undefined;
}

/** Settings of several locks that are acquired together. */
export interface AllOptions {
  /**
   * How long the lease lasts without renewal: 100 ms to 24 h, default 30,000 ms. If this process dies, others wait that
   * long; if it stalls for that long, the lease is lost.
   */
  ttl?: number | undefined;
  /** How long to try, in ms; for all locks together. Default `Infinity`; 0 tries once. */
  wait?: number | undefined;
  /** The label that others see; at most 256 bytes. Default: that of the client. */
  owner?: string | undefined;
  /** Ends renewal this many ms after the grant, so that a stuck worker cannot hold forever; at least the ttl. Off by default. */
  maxHold?: number | undefined;
  /** Cancels the wait: the call rejects with the signal's reason, and nothing is held. It does not end a lease. */
  signal?: AbortSignal | undefined;
}

/** Settings of one lock. */
export interface LockOptions extends AllOptions {
  /** Bytes that others can read beside the lock, at most 4 KiB; none by default. */
  data?: Uint8Array | undefined;
  /** How many ms the lock stays closed after a lease has expired; default 0, at most 24 h. A release frees it at once. */
  lockDelay?: number | undefined;
  /** Time between renewals, in ms: at most half the ttl; default a third of it. */
  renewEvery?: number | undefined;
  /** `false` for no renewal at all: the lease ends when its ttl has passed. Default `true`. */
  renew?: boolean | undefined;
  /**
   * `false` to try to take the lock ahead of the queue first; if it is held, the call queues as usual. One Redis, PostgreSQL,
   * SQLite and memory keep a queue. Default `true`.
   */
  fair?: boolean | undefined;
  /**
   * `true` to find out whether the holder lives, however short the `wait` is. On DynamoDB, etcd and objects only those who watch
   * its record can tell: beyond the wait, it is watched until it is renewed, for about a third of the holder's ttl, or has stood
   * unchanged for all of its ttl and is taken over. Elsewhere it changes nothing. Default `false`.
   */
  watchHolder?: boolean | undefined;
}

/** Settings of a watch. */
export interface WatchOptions {
  /** The time between two readings, in ms: at least 100, default 1,000. */
  every?: number | undefined;
  /** Ends the watch: it throws the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** A change of a lock's holder. */
export type Change =
  /** Somebody holds it, who did not at the last reading. */
  | { type: "held"; holder: LockInfo }
  /** Nobody holds it any more. */
  | { type: "free" }
  /** The store cannot be reached, or refuses. When it answers again, the state is reported again. */
  | { type: "unreadable"; error: LeaseholdError };

/** Settings of a lock that is tried once. */
export type TryOptions = Omit<LockOptions, "wait">;

/** A description of a holder: every given field must match. */
export interface HolderOptions {
  /** Its fencing token, which is unique for each grant. */
  token?: number | undefined;
  /** Its label. `*` matches any characters: `worker-7:1234:*` is all threads of a process, with the default labels. */
  owner?: string | undefined;
}

/** The outcome of a conditional release. */
export interface ReleaseIfOutcome {
  /** True if the holder matched and the lock was released. */
  released: boolean;
  /** The released holder; otherwise the current holder, which did not match. `null` if there is none. */
  holder: LockInfo | null;
}

/** The answer of {@link Client.revoke}. */
export interface RevokeOutcome {
  /** True if the lease of the named holder is revoked, by this call or an earlier one. */
  revoked: boolean;
  /** The holder of the revoked lease, or else the current one; `null` if the lock is free. */
  holder: LockInfo | null;
}

/** A session and its locks. It is out of date when it arrives: use it for information, never for decisions. */
export interface SessionInfo {
  /** Its name. Where a session is a record of its own, a second one of the same name is `NAME/2`. */
  label: string;
  /** When it began, in milliseconds since 1970 by the store's wall clock. */
  since?: number;
  /** True if it is revoked as a whole: its holder is told by its next renewal. */
  revoked: boolean;
  /** Its locks, by their names. */
  locks: LockInfo[];
}

/** Settings of a candidacy. */
export interface ElectOptions {
  /** See {@link AllOptions.ttl}. */
  ttl?: number | undefined;
  /** See {@link AllOptions.owner}. */
  owner?: string | undefined;
  /**
   * Called each time this candidate is elected. It should start the work and return; the election waits for its promise. If it
   * throws, `onStop` is called, the term ends, and the candidate stands again after 1 s, and after twice as long each further
   * time, up to a minute. {@link Election.lastError} tells it, and `resign()` throws it unless a later term has begun well.
   */
  onStart?: ((lease: Lease) => unknown) | undefined;
  /**
   * Called each time a term ends: with the reason when it was lost, with `null` when this candidate resigned. The work must
   * have stopped when its promise is fulfilled; only then is the lock released.
   */
  onStop?: ((loss: LeaseholdError | null) => unknown) | undefined;
}

/**
 * Opens a store: `sqlite:PATH` for all processes of one machine, `redis://HOST` or `dynamodb://TABLE` for many machines,
 * `memory:` for this process alone. An array of urls is a quorum of independent stores.
 *
 * A call that names no store uses the urls in the environment variable `LEASEHOLD_STORE`. If that is not set, it uses a file in
 * the user's state folder, which no other machine sees, and warns; `LEASEHOLD_REQUIRE_STORE=1` makes that an error. `undefined`
 * and an empty text, as of a variable that is not set, are errors.
 *
 * @throws {@link ConfigError} for an invalid url or setting.
 * @throws {@link StoreRefusedError} if permissions are missing.
 * @throws {@link StoreUnavailableError} if the store cannot be reached.
 */
export function connect(stores: string | readonly string[] | null | undefined, options?: ConnectOptions): Promise<Client>;
export function connect(options?: ConnectOptions): Promise<Client>;

/**
 * A connection to a store, and everything that keeps its leases alive; made by {@link connect}.
 *
 * Waiters of one client are served in order; across clients only in memory, in SQLite, on
 * PostgreSQL and on one Redis. Locks are not reentrant.
 */
export class Client {
  private constructor();

  /** The urls of the stores, without secrets. */
  readonly stores: string[];

  /**
   * Acquires a lock. The lease is held until it is released or lost, the client is closed or the process exits. Garbage
   * collection does not end it.
   *
   * @throws {@link LockTimeoutError} when others held the lock for the whole `wait`; {@link LockBusyError} for `wait: 0`.
   * @throws {@link StoreUnavailableError}, {@link StoreRefusedError} if the store fails.
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
   * @throws {@link LeaseLostError} when the lease was lost before `body` ended without an error.
   */
  using<T>(name: string, options: LockOptions | undefined, body: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
  using<T>(name: string, body: (lease: Lease) => T | PromiseLike<T>): Promise<T>;

  /**
   * Does a job once: calls `body` with the run unless the work was done or somebody else is at it, and writes the completion that it is
   * done. A key, a period, a cooldown or `keep` says when it is to be done again. An error of `body` is thrown unchanged, after a release without a completion, so that another machine may try.
   * With {@link AttemptOptions.maxAttempts} it is the reason that is kept, as by {@link Run.fail}.
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
   * @throws {@link GivenUpError} if the work was begun as often as {@link AttemptOptions.maxAttempts} allows, and never finished.
   * @throws {@link StoreUnavailableError}, {@link StoreRefusedError} if the store fails; the former also while too many nodes of
   * a quorum may have lost completions.
   * @throws {@link ConfigError} for invalid settings, {@link ClosedError} for a closed client.
   */
  beginRun(name: string, options: OnceOptions & Occurrence): Promise<BegunRun>;

  /** The runner and the completion of one occurrence of a job, and how often it was begun. Rejects as {@link Client.inspect}. */
  inspectRun(name: string, key?: string | null): Promise<RunInfo>;

  /**
   * Removes the completion of one occurrence of a job and the number of its attempts, so that it is done again. The answer is the
   * completion; `null` if there was none. For people: waits until nobody runs it, up to 10,000 ms.
   *
   * @throws {@link LockTimeoutError} while somebody runs it, and otherwise the errors of {@link Run.finish}.
   */
  forgetRun(name: string, key?: string | null): Promise<Completion | null>;

  /**
   * Acquires several locks, all or none, in the order of their names, so that two callers with the same locks cannot
   * block each other forever.
   *
   * @throws the error of {@link Client.acquire} for the first lock that could not be acquired; {@link LeaseLostError} when one
   * was lost while waiting for another.
   */
  lockAll(names: Iterable<string>, options?: AllOptions): Promise<Leases>;

  /**
   * The first of several locks that is free, at most 64: one GPU, port or licence of a pool. Nothing is held yet.
   *
   * The locks are tried one by one, from a random one on; if all are held, all are waited for at the same time.
   */
  lockAny(names: Iterable<string>): LockAny;

  /**
   * One of so many permits, 1 to 64. Nothing is held yet.
   *
   * Each permit is a lock, so there are never more holders than permits; that of a dead holder comes back after its ttl. All
   * clients name the same number: the first one writes it down, and another one is a {@link ConfigError}.
   */
  semaphore(name: string, permits: number): Semaphore;

  /**
   * Changes the number of permits of a semaphore, while nobody holds one.
   *
   * @throws {@link LockBusyError} while somebody does.
   */
  setPermits(name: string, permits: number): Promise<void>;

  /** A lock that many readers hold together, or one writer alone. Nothing is held yet. */
  rwLock(name: string, options?: RwLockOptions): RwLock;

  /**
   * Changes the number of readers of a lock, while nobody holds it.
   *
   * @throws {@link LockBusyError} while somebody does.
   */
  setReaders(name: string, readers: number): Promise<void>;

  /**
   * The locks that are held and whose names begin with `prefix`, in no promised order, one page after the other.
   *
   * It is for looking, never for deciding: a lock that is taken or released meanwhile may be missing, or be shown all the same.
   * Each page is a bounded request that blocks nobody. Keys of other programs are left out. DynamoDB reads the whole table for it.
   *
   * @throws {@link StoreUnavailableError}, {@link StoreRefusedError}, and {@link ConfigError} for a prefix that no name can have.
   */
  list(prefix?: string): AsyncGenerator<LockInfo, void, undefined>;

  /**
   * The runs whose resources begin with `prefix`, in no promised order: those whose completion stands, those that somebody is at, and
   * those that have failed and whose attempts are counted. A resource is `name@key`, so `"nightly@"` has all occurrences of one job.
   *
   * It is for looking, never for deciding, and costs what `list` costs; on Redis and DynamoDB each run is read, too.
   *
   * @throws the errors of {@link Client.list}.
   */
  runs(prefix?: string): AsyncGenerator<RunInfo, void, undefined>;

  /**
   * The changes of a lock's holder, without end, by reading it again and again: `break` or the signal ends it. The first one is
   * the state now. A holder that comes and goes between two readings is not seen: use it to look, never to decide.
   *
   * @throws {@link ConfigError} for an invalid name or time, {@link ClosedError} once the client is closed.
   */
  watch(name: string, options?: WatchOptions): AsyncGenerator<Change, never, undefined>;

  /**
   * Runs as a candidate in an election until it resigns or the client is closed. It keeps the process alive.
   *
   * @throws {@link ConfigError} for an invalid name, ttl or owner.
   */
  elect(name: string, options?: ElectOptions): Promise<Election>;

  /**
   * Works on shards beside other workers until it stops or the client is closed. Each shard is a lock, so it has one holder at
   * a time, and each worker gets a fair share. It keeps the process alive.
   *
   * @throws {@link ConfigError} for an invalid name, count, time or owner. Later errors are in `lastError`.
   */
  shards(name: string, options?: ShardsOptions): Promise<Shards>;

  /**
   * Changes the number of shards of a name, while no worker runs.
   *
   * @throws {@link LockBusyError} while a worker runs.
   */
  setShards(name: string, count: number): Promise<void>;

  /**
   * The holder of a lock, or `null` if it is free. The answer is already old when it arrives: never decide by it.
   *
   * @throws {@link StoreUnavailableError}, {@link StoreRefusedError}, and {@link ConfigError} for an invalid name.
   */
  inspect(name: string): Promise<LockInfo | null>;

  /**
   * Releases a lock if its holder matches, for a supervisor that knows that this holder is dead. One conditional write releases
   * exactly the compared lease, so a new holder keeps the lock.
   *
   * If the released holder still works, two holders work from now on; it learns of the loss with its next renewal.
   *
   * @throws {@link ConfigError} if neither `token` nor `owner` is given, {@link StoreRefusedError} if the holder is a client of
   * another library, and otherwise the errors of {@link Client.inspect}.
   */
  releaseIf(name: string, holder: HolderOptions): Promise<ReleaseIfOutcome>;

  /**
   * Asks the holder of a lock to let go. With its next renewal, at most a third of its ttl later, it learns that its lease is lost,
   * with the `reason` `"revoked"`, and its lock is free as soon as its work has ended. Nobody else gets it before. A holder that
   * is dead, or does not listen, keeps it until its ttl is over. The token is unique for each grant, so a new holder keeps the
   * lock.
   *
   * @throws {@link StoreUnavailableError} also if too few nodes of a quorum have revoked the lease: ask again then. Otherwise the
   * errors of {@link Client.releaseIf}.
   */
  revoke(name: string, token: number, holder?: Pick<HolderOptions, "owner">): Promise<RevokeOutcome>;

  /**
   * The sessions of the clients that have locks, by their names: one for each client that was connected with
   * {@link ConnectOptions.session}. It is for information, never for decisions, and costs as much as a {@link Client.list} of
   * all locks.
   *
   * @throws the errors of {@link Client.list}.
   */
  sessions(): Promise<SessionInfo[]>;

  /**
   * Asks the holders of all sessions of this name to let go of all of their locks, as {@link Client.revoke} does for one: those
   * that are shown as `NAME/2` and so on, too; `*` matches any characters. The answer is the sessions that were revoked. If it fails halfway, some locks are revoked: ask
   * again.
   *
   * @throws {@link ConfigError} for an empty name, and otherwise the errors of {@link Client.sessions} and
   * {@link Client.revoke}.
   */
  revokeSession(label: string): Promise<SessionInfo[]>;

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
 * A held lock, renewed in the background until it is released or lost.
 *
 * Any amount of time can pass between a check of a lease and the write that it guards. Only the resource itself closes that
 * gap, by rejecting tokens older than the newest it has seen: see `leasehold/fence`.
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
   * learns of it late; {@link Lease.check} is never late.
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

/** Several leases that were acquired together, in the order of their names. */
export class Leases implements Iterable<Lease> {
  private constructor();

  /** The number of leases. */
  readonly size: number;
  /** The lease of this resource. */
  get(resource: string): Lease | undefined;
  /** The leases, in the order of their names. */
  [Symbol.iterator](): IterableIterator<Lease>;
  /** As {@link Lease.check}, of each. */
  check(min?: number): void;
  /** Releases all of them, the last acquired first, within 2,000 ms altogether. Rejects as {@link Lease.release}. */
  release(): Promise<void>;
  /** As that of {@link Lease}, of all. */
  [Symbol.asyncDispose](): Promise<void>;
  /** Shown by `JSON.stringify` and `console.log`. */
  toJSON(): Lease[];
}

/**
 * A candidacy that lasts until it resigns or its client is closed. Garbage collection does not end it.
 */
export class Election {
  private constructor();

  /** The name of the election's lock. */
  readonly resource: string;
  /** The fencing token of the current term; `null` while somebody else leads, and after the lease of the term ended. */
  readonly token: number | null;
  /** The error of the last campaign, or a {@link CallbackError} with what a callback has thrown as its `cause`. */
  readonly lastError: LeaseholdError | null;

  /**
   * Stops campaigning; a current term ends, `onStop` is called, and the lock is released. In a callback of this election it
   * resolves at once, and the term ends when the callback is done.
   */
  resign(): Promise<void>;
  /** As {@link Election.resign}. */
  [Symbol.asyncDispose](): Promise<void>;
  /** Shown by `JSON.stringify` and `console.log`. */
  toJSON(): { resource: string; token: number | null; lastError?: string | undefined };
}
