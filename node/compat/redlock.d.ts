/**
 * The interface of npm's `redlock` 5 over leases of leasehold, on the same keys: processes with either library exclude each
 * other. `docs/migrating-node.md` lists the differences.
 *
 * All durations are in milliseconds.
 *
 * @packageDocumentation
 */

/// <reference types="node" />

import { EventEmitter } from "node:events";
import { Client, Leases } from "../index.js";

/**
 * A server: its store url, a `Redis` or `Cluster` of ioredis with its address in the options, or, as the only entry, a client
 * of leasehold. Connections of ioredis are not used.
 */
export type Server = string | Client | { readonly options: object };

/** The outcome of a request. The votes of single servers are not known here: all have the same entry. */
export interface ExecutionStats {
  /** The number of servers. */
  readonly membershipSize: number;
  /** The number of servers that make a majority. */
  readonly quorumSize: number;
  /** The servers that agreed. */
  readonly votesFor: Set<Server>;
  /** The servers that did not, with the reason of each. */
  readonly votesAgainst: Map<Server, Error>;
}

/** The result of a release. */
export interface ExecutionResult {
  /** One attempt, with the same entry for all servers. */
  attempts: ReadonlyArray<Promise<ExecutionStats>>;
}

/** Settings, also for a single call. */
export interface Settings {
  /** The rate error of clocks, default 0.01; from 0.0001 to 0.1, the same for all calls. */
  readonly driftFactor: number;
  /** Multiplied by `retryDelay`, the time to try. Default 10; -1 means no limit, 0 tries once. */
  readonly retryCount: number;
  /** See `retryCount`; default 200 ms. Releases wake waiters, so it is not a pause here. */
  readonly retryDelay: number;
  /** Not used. */
  readonly retryJitter: number;
  /** Not used: renewal has its own interval. */
  readonly automaticExtensionThreshold: number;
}

/** One of the resources is locked by somebody else. Its `cause` is the error of leasehold. */
export class ResourceLockedError extends Error {
  /** The error of leasehold. */
  readonly cause?: unknown;
  constructor(message: string, options?: { cause?: unknown });
}

/** A lock could not be acquired, extended or released. Its `cause` is the reason. */
export class ExecutionError extends Error {
  /** The error of leasehold. */
  readonly cause?: unknown;
  constructor(message: string, attempts: ReadonlyArray<Promise<ExecutionStats>>, options?: { cause?: unknown });
  /** One attempt, with the same entry for all servers. */
  readonly attempts: ReadonlyArray<Promise<ExecutionStats>>;
}

/** Resources that are locked for the requested time. */
export class Lock {
  constructor(redlock: Redlock, resources: string[], value: string, attempts: ReadonlyArray<Promise<ExecutionStats>>);
  /** The object that acquired it. */
  readonly redlock: Redlock;
  /** The names of the locks. */
  readonly resources: string[];
  /** Random, the same after an extension. It is not the value in Redis: compare tokens of {@link Lock.leases}. */
  readonly value: string;
  /** One attempt, with the same entry for all servers. */
  readonly attempts: ReadonlyArray<Promise<ExecutionStats>>;
  /**
   * The time until which the lock is certain, in ms since 1970; 0 once it is over. It grows with renewals, up to the requested
   * end.
   */
  readonly expiration: number;
  /** The leases behind the lock, with their fencing tokens and signals; `undefined` once it was released or extended. */
  readonly leases: Leases | undefined;
  /**
   * Releases the lock and its extensions. A release that no server has confirmed continues in the background. A repeated
   * release waits, by the settings of the instance, until the servers show that the lock is gone.
   *
   * @throws {@link ExecutionError} if the lock was over, or no server has confirmed.
   */
  release(): Promise<ExecutionResult>;
  /**
   * Moves the end to `duration` from now, and returns the lock that replaces this one.
   *
   * @throws {@link ExecutionError} if the lock was over, and for a duration of 0 or less, which does not change the lock.
   */
  extend(duration: number): Promise<Lock>;
  /** Shown by `JSON.stringify` and `console.log`: no clients, which have passwords. */
  toJSON(): { resources: string[]; value: string; expiration: number };
}

/** Aborted when the lock is lost, before the servers grant it to anybody else; `error` and `reason` have the cause. */
export type RedlockAbortSignal = AbortSignal & { error?: Error };

/** Takes locks on one server, or on a quorum of several. Emits `error` for each operation that fails. */
export class Redlock extends EventEmitter {
  /**
   * @throws ConfigError of leasehold for a client that no store url can describe, a Redis Cluster among several servers, and
   * an invalid `driftFactor`.
   */
  constructor(clients: Iterable<Server>, settings?: Partial<Settings>);
  /** The servers, as they were given. */
  readonly clients: Set<Server>;
  /** The settings, with defaults. */
  readonly settings: Settings;
  /** Shown by `JSON.stringify` and `console.log`: the number of servers, and the settings. */
  toJSON(): { servers: number; settings: Settings };
  /**
   * Releases all locks, closes the connections, and calls `quit` of the given clients; a client of
   * leasehold stays open. Pending and later calls reject with `ConfigError`.
   */
  quit(): Promise<void>;
  /**
   * Locks all of the resources. The lock is renewed until `duration` has passed, and then released.
   *
   * @throws {@link ExecutionError} if others held one of them for the whole wait of the settings, or no server answered;
   * and for a duration of 0 or less.
   */
  acquire(resources: string[], duration: number, settings?: Partial<Settings>): Promise<Lock>;
  /** See {@link Lock.release}. Settings are accepted, so that calls compile, and ignored. */
  release(lock: Lock, settings?: Partial<Settings>): Promise<ExecutionResult>;
  /** See {@link Lock.extend}. Settings are accepted, so that calls compile, and ignored. */
  extend(existing: Lock, duration: number, settings?: Partial<Settings>): Promise<Lock>;
  /**
   * Locks all of the resources while `routine` runs. An error of `routine` is thrown unchanged.
   *
   * @throws {@link ExecutionError} as {@link Redlock.acquire}, and when the lock was lost, or released by `quit`, before
   * `routine` ended.
   */
  using<T>(
    resources: string[],
    duration: number,
    settings: Partial<Settings>,
    routine: (signal: RedlockAbortSignal) => Promise<T>,
  ): Promise<T>;
  using<T>(resources: string[], duration: number, routine: (signal: RedlockAbortSignal) => Promise<T>): Promise<T>;
}

export default Redlock;
