/**
 * Distributed locks that tell the truth: leases with fencing tokens, over stores you already run.
 *
 * **All lengths of time are milliseconds.** Whatever fails rejects with a {@link LeaseholdError}; a value of the wrong type,
 * or an option that does not exist, with a `TypeError`.
 *
 * @packageDocumentation
 */

/// <reference types="node" />
/// <reference lib="esnext.disposable" />

/** Settings of a client. */
export interface ConnectOptions {
  /** The label that others see beside a lock; default `host:pid:thread`. At most 256 bytes. */
  owner?: string | undefined;
  /** The largest rate error of any clock involved, in parts per million: 100 to 100,000, default 10,000 (1%). */
  driftPpm?: number | undefined;
  /** The longest that one reply of the store is awaited: 10 to 60,000 ms, default 500. A sixth of a ttl binds as well. */
  requestTimeout?: number | undefined;
  /** Of a quorum: the most that `ttl` and `lockDelay` may be together; default 60,000 ms. The same for all clients. */
  maxTtl?: number | undefined;
  /** Of a quorum: what its nodes know it by; by default that follows from their names. */
  quorumId?: string | undefined;
  /** Of a quorum: marks new nodes as members. For tests and the first start only; see `leasehold quorum init`. */
  createQuorum?: boolean | undefined;
}

/** Settings of several locks that are taken together. */
export interface AllOptions {
  /**
   * How long the grant lasts without renewal: 100 ms to 24 h, default 30,000 ms. If this process dies, others wait that
   * long; if it stalls for that long, the lease is lost.
   */
  ttl?: number | undefined;
  /** How long to try, in ms; for all locks together. Default `Infinity`; 0 tries once. */
  wait?: number | undefined;
  /** The label that others see; at most 256 bytes. Default: that of the client. */
  owner?: string | undefined;
  /** Ends renewal this many ms after the grant, so that a wedged worker cannot hold for ever; at least the ttl. Off by default. */
  maxHold?: number | undefined;
  /** Gives the wait up: the call rejects with the signal's reason, and nothing is held. It does not end a lease. */
  signal?: AbortSignal | undefined;
}

/** Settings of one lock. */
export interface LockOptions extends AllOptions {
  /** Bytes that others can read beside the lock, at most 4 KiB; none by default. */
  data?: Uint8Array | undefined;
  /** How many ms the lock stays closed after a lease ran out; default 0, at most 24 h. A release frees it at once. */
  lockDelay?: number | undefined;
  /** Time between renewals, in ms: at most half the ttl; default a third of it. */
  renewEvery?: number | undefined;
  /** `false` for no renewal at all: the lease ends when its ttl has passed. Default `true`. */
  renew?: boolean | undefined;
}

/** Settings of a lock that is tried for once. */
export type TryOptions = Omit<LockOptions, "wait">;

/** Which holder is meant: everything that is given must be true of it. */
export interface HolderOptions {
  /** Its fencing token, which each grant has of its own. */
  token?: number | undefined;
  /** Its label. `*` stands for any characters: `worker-7:1234:*` is all threads of a process, with the default labels. */
  owner?: string | undefined;
}

/** The outcome of a conditional release. */
export interface ReleaseIfOutcome {
  /** True if the lock was released for the holder that was meant. */
  released: boolean;
  /** The holder whose lock was released; otherwise the present holder, another than was meant. `null` where there is none. */
  holder: LockInfo | null;
}

/** Settings of a candidacy. */
export interface ElectOptions {
  /** See {@link AllOptions.ttl}. */
  ttl?: number | undefined;
  /** See {@link AllOptions.owner}. */
  owner?: string | undefined;
  /** Called each time this candidate is elected. It should start the work and return; the election waits for its promise. */
  onStart?: ((lease: Lease) => unknown) | undefined;
  /**
   * Called each time a term ends: with the reason when it was lost, with `null` when this candidate resigned. The work must
   * have stopped when its promise is fulfilled; only then is the lock released.
   */
  onStop?: ((loss: LeaseholdError | null) => unknown) | undefined;
}

/**
 * Opens a store: `sqlite:PATH` for all processes of one machine, `redis://HOST` or `dynamodb://TABLE` for many machines,
 * `memory:` for this process alone. Without a url, those in the environment variable `LEASEHOLD_STORE`, else a file in the
 * user's state folder, with a warning: no other machine sees it. `LEASEHOLD_REQUIRE_STORE=1` makes that an error. An array of urls is a quorum of independent stores.
 *
 * @throws {@link ConfigError} for a url or setting that cannot be.
 * @throws {@link StoreRefusedError} where permissions are missing.
 * @throws {@link StoreUnavailableError} where the store cannot be reached.
 */
export function connect(stores?: string | readonly string[] | null, options?: ConnectOptions): Promise<Client>;

/**
 * A connection to a store, and everything that keeps its leases alive; made by {@link connect}.
 *
 * Waiters of one client are served in order; across clients there is no order. Locks are not reentrant.
 */
export class Client {
  private constructor();

  /** The urls of the stores, without secrets. */
  readonly stores: string[];

  /**
   * Acquires a lock. The lease is held until it is released or lost, the client is closed or the process ends; never does
   * it end because nothing refers to it any more.
   *
   * @throws {@link LockTimeoutError} when others held the lock for as long as `wait`; {@link LockBusyError} for `wait: 0`.
   * @throws {@link StoreUnavailableError}, {@link StoreRefusedError} for the store's own troubles.
   * @throws {@link ConfigError} for settings that cannot be, {@link ClosedError} for a closed client.
   */
  acquire(name: string, options?: LockOptions): Promise<Lease>;

  /** Tries once: `null` when somebody else holds the lock. Rejects otherwise as {@link Client.acquire} does. */
  tryAcquire(name: string, options?: TryOptions): Promise<Lease | null>;

  /**
   * Acquires a lock, calls `body` with the lease, releases, and answers what `body` answers. An error of `body` is passed
   * on; the lock is released before.
   *
   * @throws what {@link Client.acquire} throws; `body` has not been called then.
   * @throws {@link LeaseLostError} when the lease was lost before `body` had ended without an error of its own.
   */
  using<T>(name: string, options: LockOptions | undefined, body: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
  using<T>(name: string, body: (lease: Lease) => T | PromiseLike<T>): Promise<T>;

  /**
   * Acquires several locks, all or none, in the order of their names, so that two callers who want the same ones cannot
   * block each other for ever.
   *
   * @throws what {@link Client.acquire} throws, of the first lock that was not to be had; {@link LeaseLostError} when one
   * was lost while another was waited for.
   */
  lockAll(names: Iterable<string>, options?: AllOptions): Promise<Leases>;

  /**
   * Stands for election until the candidacy is resigned, the client is closed, or a callback throws. It keeps the process
   * alive.
   *
   * @throws {@link ConfigError} for a name, ttl or owner that cannot be.
   */
  elect(name: string, options?: ElectOptions): Promise<Election>;

  /**
   * Who holds a lock, `null` when nobody does. The answer is old when it arrives: use it to look, never to decide.
   *
   * @throws {@link StoreUnavailableError}, {@link StoreRefusedError}, and {@link ConfigError} for a name that cannot be.
   */
  inspect(name: string): Promise<LockInfo | null>;

  /**
   * Releases a lock if its holder is the one that is meant, for a supervisor that knows that this holder is dead. What was
   * compared is released in one conditional write, so a holder that came in between is left alone.
   *
   * If the holder still works, two do from now on; it learns of the loss with its next renewal.
   *
   * @throws {@link ConfigError} if neither `token` nor `owner` is given, {@link StoreRefusedError} if a client of another
   * library is meant, and otherwise what {@link Client.inspect} throws.
   */
  releaseIf(name: string, holder: HolderOptions): Promise<ReleaseIfOutcome>;

  /**
   * Releases all leases of this client, cancels all its waiters, and waits up to 2,000 ms until the store has confirmed it.
   * The client can acquire nothing afterwards.
   *
   * @throws {@link StoreUnavailableError} when a release is not confirmed yet; it goes on in the background.
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
 * A lease is no proof: between a check and the write that it guards any amount of time can pass. Only the resource itself,
 * refusing tokens older than it has seen, closes that gap: see `leasehold/fence`.
 */
export class Lease {
  private constructor();

  /** The fencing token: grows with every grant of the resource; always a safe integer. */
  readonly token: number;
  /** What is locked. */
  readonly resource: string;
  /** The label that others see. */
  readonly owner: string;
  /**
   * Aborted when the lease is lost, with the {@link LeaseLostError} as reason: before the store lets anybody else have the
   * lock. Closing the client aborts it as well, with a {@link NotOwnedError}; a release never does. An event loop that is
   * blocked hears of it late; {@link Lease.check} does not.
   */
  readonly signal: AbortSignal;

  /** For how many ms the lease can still be believed in if no renewal succeeds; 0 once it is lost or released. Never waits. */
  remaining(): number;

  /**
   * Throws unless at least `min` ms (default 0) of validity are left: to be called before a step that takes that long.
   *
   * @throws {@link LeaseLostError}; {@link NotOwnedError} after a release.
   */
  check(min?: number): void;

  /**
   * Gives the lock back. It ends here at once; the store's confirmation is awaited for up to 2,000 ms.
   *
   * @throws {@link LeaseLostError} if the lease was lost before, or the store shows that the lock was not ours any more;
   * {@link NotOwnedError} if it was released before.
   * @throws {@link StoreUnavailableError} if the store has not confirmed: the release goes on in the background.
   */
  release(): Promise<void>;

  /**
   * Releases at the end of an `await using` block. Rejects with {@link LeaseLostError} if the lease was lost, with
   * {@link NotOwnedError} if the client was closed meanwhile, and with nothing else.
   */
  [Symbol.asyncDispose](): Promise<void>;
  /** Shown by `JSON.stringify` and `console.log`. */
  toJSON(): { resource: string; owner: string; token: number; remaining: number };
}

/** Several leases that were taken together, in the order of their names. */
export class Leases implements Iterable<Lease> {
  private constructor();

  /** How many. */
  readonly size: number;
  /** The lease of this resource. */
  get(resource: string): Lease | undefined;
  [Symbol.iterator](): IterableIterator<Lease>;
  /** As {@link Lease.check}, of each. */
  check(min?: number): void;
  /** Releases all of them, the last one taken first, within one patience of 2,000 ms. Rejects as {@link Lease.release}. */
  release(): Promise<void>;
  /** As that of {@link Lease}, of all. */
  [Symbol.asyncDispose](): Promise<void>;
  /** Shown by `JSON.stringify` and `console.log`. */
  toJSON(): Lease[];
}

/**
 * A candidacy that goes on until it is resigned, its client is closed, or a callback throws; never does it end because nothing
 * refers to it any more.
 */
export class Election {
  private constructor();

  /** What is stood for. */
  readonly resource: string;
  /** The fencing token of the current term; `null` while somebody else leads, and once the lease of the term is over. */
  readonly term: number | null;
  /** Why the last campaign failed, if it did. Has the exception of a callback as its `cause`. */
  readonly lastError: LeaseholdError | null;

  /**
   * Stops campaigning; a current term ends, `onStop` is called, and the lock is released. In a callback of its own it resolves
   * at once, and the term ends when the callback is done.
   */
  resign(): Promise<void>;
  /** As {@link Election.resign}. */
  [Symbol.asyncDispose](): Promise<void>;
  /** Shown by `JSON.stringify` and `console.log`. */
  toJSON(): { resource: string; term: number | null; lastError?: string | undefined };
}

/** Who holds a lock, as far as the store shows it. */
export interface LockInfo {
  /** What is locked. */
  resource: string;
  /** The holder's label; missing for holders that leave none. */
  owner?: string;
  /** The holder's fencing token. */
  token?: number;
  /** When the lease was granted, in ms since 1970 by the store's wall clock. */
  since?: number;
  /** How long the lease lasts without renewal, in ms. */
  ttl?: number;
  /** How many ms until the store frees the lock unless it is renewed; missing where only observation can tell. */
  left?: number;
  /** The holder's payload. */
  data?: Buffer;
  /** Whether another lock library wrote the record. */
  foreign: boolean;
  /** How many nodes showed this record, of those that were looked at. */
  votes: number;
  /** How many nodes were looked at: 1 for a single store, and for the holder that an error names. */
  of: number;
}

/**
 * Calls the observer with what all clients of this package do in this process from now on, whichever thread they are of: on
 * this event loop, a moment later. The function that it answers delivers what was noted before, and ends it. Observing does
 * not keep the process alive; what is noted when that ends by itself, or by `process.exit`, is delivered then.
 *
 * An observer that is slow holds up no renewal: what the loop has no time for is dropped beyond 10,000 events and samples,
 * and told as the event `lock.events_dropped`. What it throws, or rejects with, is shown as a warning of the process.
 *
 * @throws TypeError for what is no observer.
 */
export function observe(observer: Observer): () => void;

/** Somebody who hears of events, of samples, or of both. */
export interface Observer {
  /** The least level of events that matter; default `"info"`. */
  level?: Level | undefined;
  /** Called with each event of that level and above. */
  event?: ((event: LockEvent) => void) | undefined;
  /** Called with each sample of a metric. */
  sample?: ((sample: Sample) => void) | undefined;
}

/** How much an event matters, from the least up. */
export type Level = "trace" | "debug" | "info" | "warn" | "error";

/** Something that a client has done or seen. */
export interface LockEvent {
  /** A stable name, such as `lock.acquired` or `lock.lost`; empty for what has none. docs/reliability.md lists them. */
  event: string;
  /** How much it matters. */
  level: Level;
  /** When it happened, in ms since 1970. */
  time: number;
  /** What happened, in words that may change. */
  message: string;
  /**
   * What it happened to: `resource`, `owner`, `token`, `reason` and so on. As in every language, a name that ends in `_s` is
   * a length of time in seconds.
   */
  fields: Record<string, string | number | boolean>;
}

/** One step of a counter, or one value of a histogram. */
export interface Sample {
  /** Such as `leasehold_lost_total`; docs/reliability.md lists them. */
  name: string;
  /** What it is. */
  kind: "counter" | "histogram";
  /** By how much to count; of a histogram, seconds. */
  value: number;
  /** Such as `reason`; never the name of a resource, each of which would become a time series of its own. */
  labels: Record<string, string>;
}

/** The base of all errors of leasehold. The message is for people and may change; match on the class or on `code`. */
export class LeaseholdError extends Error {
  constructor(message: string, details?: Partial<Pick<LeaseholdError, "code" | "resource" | "holder" | "temporary">>);
  /** The stable name of the kind, the same in every language. */
  readonly code: string;
  /** The resource that it is about. */
  readonly resource?: string | undefined;
  /** Who holds the lock, where that is the reason. */
  readonly holder?: LockInfo | undefined;
  /** Whether the same call may succeed later without anybody changing anything. */
  readonly temporary: boolean;
}

/** Somebody else holds the lock, and the caller did not want to wait. Code `busy`. */
export class LockBusyError extends LeaseholdError {}
/** Somebody else held the lock for as long as the caller would wait. Code `timed_out`. */
export class LockTimeoutError extends LeaseholdError {}
/** The lease is over, so the work it protected must stop. Code `lost`. */
export class LeaseLostError extends LeaseholdError {}
/** Nothing is held that could be released. Code `not_owned`. */
export class NotOwnedError extends LeaseholdError {}
/** The store cannot be reached, does not answer, or asks for patience. It may pass. Code `store_unavailable`. */
export class StoreUnavailableError extends LeaseholdError {}
/** The store refuses, and trying again will not help: permissions, schema, a corrupt record. Code `store_refused`. */
export class StoreRefusedError extends LeaseholdError {}
/** The client was closed before the call. Code `closed`. */
export class ClosedError extends LeaseholdError {}
/** A setting, url or use of the client that cannot work. Code `config`. */
export class ConfigError extends LeaseholdError {}
/** The protected resource has seen a later holder. Code `stale_token`. */
export class StaleTokenError extends LeaseholdError {}
/** No thread could be started, or there is a bug in leasehold. Code `internal`. */
export class InternalError extends LeaseholdError {}
