/**
 * The lock protocol as a state machine, for frameworks with their own I/O.
 *
 * It owns no socket, clock, timer or randomness. The host performs the requests of {@link Client.pollOutput},
 * reports their results, and passes its clocks and fresh random bytes with every call that needs them.
 *
 * Values are plain objects. A variant has the name of its case as `type`. Optional fields without a value are missing. A value
 * of a wrong type throws a `TypeError`, an invalid value a `ConfigError`; then nothing has changed.
 * Durations in settings are milliseconds: `ttl`, `wait`. Every other time has its unit in its name: names ending in `Ns` are
 * `bigint`s of nanoseconds, all other numbers are of the type `number`.
 */

import { LeaseholdError } from "./index.js";
import type {
  CommandError,
  Config,
  Credentials,
  Holding,
  Input,
  LockOptions,
  Now,
  Output,
  Response,
  RunResult,
  Stats,
  Stepped,
  Store,
} from "./lib/values/index.js";

export type * from "./lib/values/index.js";

/**
 * The machine for all locks of one set of nodes. Every method first expires what is due at its `now`.
 *
 * `seed` is at least 32 random bytes, drawn once. `fresh` is at least 16 bytes, drawn from the operating system for
 * each call (`randomBytes(16)`), so that no cloned machine repeats a nonce.
 */
export class Client {
  private constructor();

  /** A client of the configured nodes, whose operations the host performs: it gets `transmit`. */
  static create(config: Config, seed: Uint8Array, now: Now): Client;

  /**
   * A client that writes its requests in the formats of stores: `stores` has one for each of `config.nodes`, in their
   * order. The client then chooses `poll`, and `watch` applies to `redis` only: the host subscribes to
   * {@link channel}.
   */
  static createWired(config: Config, stores: Store[], seed: Uint8Array, now: Now): Client;

  /** Starts an acquisition under a lock id of the host's choice. Throws {@link CommandRejectedError}. */
  acquire(lock: number, resource: string, options: LockOptions, fresh: Uint8Array, now: Now): void;

  /**
   * Releases a lock, or abandons its acquisition. Takes effect at once here, and is cleaned up in the background. A pending
   * acquisition ends with `failed`, a lease with `released`. Throws {@link CommandRejectedError} for a lock that is no longer
   * alive.
   */
  release(lock: number, now: Now): void;

  /**
   * Finishes a run that is held: the store writes the completion that the work is done and frees the resource, in one step. It
   * ends with `finished`, or with `lost` if the record was not ours any more and no completion was written. Throws
   * {@link CommandRejectedError} for a lock without `LockOptions.run`, for one that is not held, and for a result above 4,096 bytes.
   */
  finish(lock: number, runResult: RunResult | undefined, now: Now): void;

  /**
   * Declares a lease lost: the host has reported the loss from its own reading of the deadline, so the lease must stay lost.
   * Throws {@link CommandRejectedError} for a lock that is no longer alive.
   */
  declareLost(lock: number, now: Now): void;

  /**
   * Cancels all acquisitions and releases all leases; no new commands are accepted. Keep driving until
   * {@link isIdle}.
   */
  close(now: Now): void;

  /** Passes in the result of a request. A result of an unknown request is counted and ignored. */
  handleResponse(id: number, response: Response, now: Now): void;

  /** Does everything that is due. */
  handleTimeout(fresh: Uint8Array, now: Now): void;

  /** A hint that a resource was released; it may be wrong. A name that no lock can have is ignored. */
  notified(resource: string, now: Now): void;

  /** The node confirms that wake-ups on a resource will come. */
  subscribed(node: number, resource: string, now: Now): void;

  /** The node has fresh credentials: waiting acquisitions may try again. */
  credentialsRenewed(node: number, now: Now): void;

  /** Sets the credentials for requests to a node, requested or not. Requests that wait for them are sent. */
  setCredentials(node: number, credentials: Credentials, now: Now): void;

  /**
   * Reports that a node of a quorum votes. `loss` (16 bytes) names its last loss of data, after which its counters are in
   * doubt, if there was one.
   */
  nodeVotes(node: number, loss: Uint8Array | undefined, now: Now): void;

  /** Replaces the seed, for hosts that know that they were copied. */
  reseed(seed: Uint8Array): void;

  /** The next thing for the host to do; `wake-at` means that there is nothing more. */
  pollOutput(now: Now): Output;

  /**
   * The whole loop in one call: takes the inputs, does what is due, and returns all outputs. A command that is not
   * accepted is returned as `rejected`.
   */
  step(fresh: Uint8Array, now: Now, inputs?: Input[]): Stepped;

  /** The remaining validity of a lease, in nanoseconds; 0n when it is not held. */
  remainingNs(lock: number, now: Now): bigint;

  /** The holder that blocks a pending acquisition, as far as the store shows it. */
  holder(lock: number): Holding | null;

  /** The name of the state that a lock is in, for logs and tests; null when it is not alive. */
  state(lock: number): string | null;

  /** Counts of the client's state and history. */
  stats(): Stats;

  /** True if nothing is alive, in flight or undrained. */
  isIdle(): boolean;
}

/** The client did not accept a command. Code `rejected`. */
export class CommandRejectedError extends LeaseholdError {
  /** The reason. */
  readonly reason: CommandError;
}

/** The mark of one guarded item, to be stored beside it. `leasehold/fence` has guards that store it themselves. */
export class Guard {
  /** A mark as read from storage; omitted if the item was never claimed. */
  constructor(highWater?: number | null);

  /** The highest token seen, to be written back to storage. */
  readonly highWater: number | null;

  /** From now on only this token and higher ones are accepted. Throws `StaleTokenError`. */
  claim(token: number): void;

  /**
   * Checks that a write with a token is allowed. A `sequence` starts at 1 and grows with each write; with it, delayed writes of
   * the same lease are rejected as well. Throws `StaleTokenError`, and `ConfigError` for an item that was never claimed.
   */
  check(token: number, sequence?: number): void;
}

/** Splits the bytes of a Redis connection into whole replies. */
export class Reader {
  /** A reader that has read nothing. The longest that one reply may be is 1,048,576 bytes by default. */
  constructor(maxReplyBytes?: number);

  /** Adds received bytes, in pieces of any size. */
  push(bytes: Uint8Array): void;

  /**
   * The next replies, for `redis-replies`; null until all of them have arrived. Throws `StoreUnavailableError`
   * if the server does not speak RESP or sends too much: close the connection then.
   */
  take(replies: number): Uint8Array | null;
}

/** Encodes commands for a Redis as the bytes to send, one after the other. */
export function encode(commands: Uint8Array[][]): Uint8Array;

/** The channel for releases of a resource. Throws `ConfigError` for an invalid name. */
export function channel(resource: string): Uint8Array;

/** The resource whose release a message reports, for {@link Client.notified}; null if the message is not ours. */
export function releasedBy(channel: Uint8Array, message: Uint8Array): string | null;

/** The resource of one occurrence of a job: `name@key`. Throws `ConfigError` for a name or key that cannot be. */
export function runResource(name: string, key?: string | null): string;

/**
 * The key of a job that runs once in every period: the start of the period in UTC, such as `2026-11-24T00:00:00Z`. All are
 * whole milliseconds. Throws `ConfigError` for a period below 1,000 or above 100 years, and for an offset that is not below
 * the period.
 */
export function periodKey(unixMs: number, every: number, offset?: number): string;

/** The readings of this machine's clocks; the monotonic one counts suspended time. */
export function now(): Now;
