/**
 * The lock protocol as a state machine, for frameworks with I/O of their own.
 *
 * It owns no socket, clock, timer or randomness. The host performs the requests that {@link Client.pollOutput} hands out,
 * reports what became of them, and passes its clocks and fresh random bytes with every call that needs them.
 *
 * Values are plain objects. One of several cases has the name of its case as `type`. What is absent is missing. A value
 * that does not fit is refused with a `TypeError`, or a `ConfigError` where only its value is wrong; nothing has happened
 * then. Settings that are lengths of time are milliseconds: `ttl`, `wait`. Everything else has its unit in its name: what
 * ends in `Ns` is a `bigint` of nanoseconds, all other numbers are of the type `number`.
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
  Stats,
  Stepped,
  Store,
} from "./lib/values/index.js";

export type * from "./lib/values/index.js";

/**
 * The machine for all locks of one set of nodes. Every method first expires what is due at its `now`.
 *
 * `seed` are at least 32 random bytes, drawn once. `fresh` are at least 16 that are drawn from the operating system for
 * the very call that carries them (`randomBytes(16)`), so that no cloned machine repeats a nonce.
 */
export class Client {
  private constructor();

  /** A client of the configured nodes, whose operations the host performs: it is told `transmit`. */
  static create(config: Config, seed: Uint8Array, now: Now): Client;

  /**
   * A client that writes its requests in the formats of stores: `stores` has one for each of `config.nodes`, in their
   * order. How to `poll` is then decided here, and `watch` counts for `redis` alone: the host subscribes to
   * {@link channel}.
   */
  static createWired(config: Config, stores: Store[], seed: Uint8Array, now: Now): Client;

  /** Starts an acquisition under a lock id of the host's choice. Throws {@link CommandRejectedError}. */
  acquire(lock: number, resource: string, options: LockOptions, fresh: Uint8Array, now: Now): void;

  /**
   * Gives a lock back, or gives up on getting it: takes effect at once here, and is cleaned up in the background. A pending
   * acquisition ends with `failed`, a lease with `released`. Throws {@link CommandRejectedError} for what is no longer
   * alive.
   */
  release(lock: number, now: Now): void;

  /**
   * The host's own reading of the deadline has told somebody that the lease is lost, so it must stay lost. Throws
   * {@link CommandRejectedError} for what is no longer alive.
   */
  declareLost(lock: number, now: Now): void;

  /**
   * Cancels all that is pending and releases all that is held; nothing new is accepted. Go on driving until
   * {@link isIdle}.
   */
  close(now: Now): void;

  /** The result of a request. One that belongs to no open request is counted and ignored. */
  handleResponse(id: number, response: Response, now: Now): void;

  /** Does what is due. */
  handleTimeout(fresh: Uint8Array, now: Now): void;

  /** A hint that a resource was released; it may be wrong. A name that no lock can have is ignored. */
  notified(resource: string, now: Now): void;

  /** The node confirms that wake-ups on a resource will come. */
  subscribed(node: number, resource: string, now: Now): void;

  /** The node has fresh credentials: whoever waits may try again. */
  credentialsRenewed(node: number, now: Now): void;

  /** What the requests to a node carry from now on, asked for or not; those that wait for it leave. */
  setCredentials(node: number, credentials: Credentials, now: Now): void;

  /**
   * A look at a node of a quorum has shown that it votes; `loss` (16 bytes) names the loss of data since which its counters
   * are in doubt, where it had one.
   */
  nodeVotes(node: number, loss: Uint8Array | undefined, now: Now): void;

  /** Replaces the seed, for hosts that know that they were copied. */
  reseed(seed: Uint8Array): void;

  /** The next thing for the host to do; `wake-at` means that there is nothing more. */
  pollOutput(now: Now): Output;

  /**
   * The whole loop in one call: takes the inputs, does what is due, and answers with all outputs. A command that is not
   * accepted comes back as `rejected`.
   */
  step(fresh: Uint8Array, now: Now, inputs?: Input[]): Stepped;

  /** How much validity a lease has left, in nanoseconds; 0n when it is not held. */
  remainingNs(lock: number, now: Now): bigint;

  /** Who stands in the way of a pending acquisition, as far as the store shows it. */
  holder(lock: number): Holding | null;

  /** The name of the state that a lock is in, for logs and tests; null when it is not alive. */
  state(lock: number): string | null;

  /** What the client keeps and has seen. */
  stats(): Stats;

  /** Whether nothing is alive, in flight or undrained. */
  isIdle(): boolean;
}

/** The client did not accept a command. Code `rejected`. */
export class CommandRejectedError extends LeaseholdError {
  /** Why. */
  readonly reason: CommandError;
}

/** The mark of one guarded item, to be kept beside it. `leasehold/fence` has guards that keep it themselves. */
export class Guard {
  /** A mark as read from storage; nothing where the item was never claimed. */
  constructor(highWater?: number | null);

  /** The highest token seen, to be written back to storage. */
  readonly highWater: number | null;

  /** Makes a token the only one accepted from now on, apart from higher ones. Throws `StaleTokenError`. */
  claim(token: number): void;

  /**
   * Whether a write with a token may happen. A `sequence` starts at 1, grows with each write, and refuses delayed writes of
   * the same lease as well. Throws `StaleTokenError`, and `ConfigError` for an item that was never claimed.
   */
  check(token: number, sequence?: number): void;
}

/** Tells whole replies of a Redis apart in what comes over one connection. */
export class Reader {
  /** A reader that has read nothing. The longest that one reply may be is 1,048,576 bytes by default. */
  constructor(maxReplyBytes?: number);

  /** What has arrived, in pieces of any size. */
  push(bytes: Uint8Array): void;

  /**
   * The next so many replies, for `redis-replies`; null as long as they are not all there. Throws `StoreUnavailableError`
   * where the server does not speak RESP or says too much: close the connection then.
   */
  take(replies: number): Uint8Array | null;
}

/** Commands for a Redis as the bytes to be sent, one after the other. */
export function encode(commands: Uint8Array[][]): Uint8Array;

/** The channel on which the release of a resource is told. Throws `ConfigError` for a name that no lock can have. */
export function channel(resource: string): Uint8Array;

/** The resource that a message on a channel says is free, for {@link Client.notified}; null if it is none of ours. */
export function releasedBy(channel: Uint8Array, message: Uint8Array): string | null;

/** What the clocks of this machine show; the monotonic one counts on while the machine is suspended. */
export function now(): Now;
