/**
 * The face of npm's `redlock` 5 over leases of leasehold, on the same keys: a process with that library and one with this
 * exclude each other. What is different is told by `docs/migrating-node.md`.
 *
 * All lengths of time are milliseconds.
 *
 * @packageDocumentation
 */

/// <reference types="node" />

import { EventEmitter } from "node:events";
import { Client, Leases } from "../index.js";

/**
 * A server: its store url, a `Redis` or `Cluster` of ioredis whose options say where it is, or, alone, a client of
 * leasehold. Connections of ioredis are not used.
 */
export type Server = string | Client | { readonly options: object };

/** How a request has ended. Which server voted how is not known here: all are shown alike. */
export interface ExecutionStats {
  readonly membershipSize: number;
  readonly quorumSize: number;
  readonly votesFor: Set<Server>;
  readonly votesAgainst: Map<Server, Error>;
}

/** What a release answers. */
export interface ExecutionResult {
  attempts: ReadonlyArray<Promise<ExecutionStats>>;
}

/** Settings, also of a single call. */
export interface Settings {
  /** The rate error of clocks, default 0.01; from 0.0001 to 0.1, and for all calls alike. */
  readonly driftFactor: number;
  /** With `retryDelay`, how long to try: their product. Default 10; -1 for ever, 0 tries once. */
  readonly retryCount: number;
  /** See `retryCount`; default 200 ms. Waiters are woken by releases, so it is no pause here. */
  readonly retryDelay: number;
  /** Not used. */
  readonly retryJitter: number;
  /** Not used: renewal has a rhythm of its own. */
  readonly automaticExtensionThreshold: number;
}

/** One of the resources is locked by somebody else. Its `cause` is the error of leasehold. */
export class ResourceLockedError extends Error {
  readonly cause?: unknown;
  constructor(message: string, options?: { cause?: unknown });
}

/** A lock could not be taken, extended or released. Its `cause` says why. */
export class ExecutionError extends Error {
  readonly cause?: unknown;
  constructor(message: string, attempts: ReadonlyArray<Promise<ExecutionStats>>, options?: { cause?: unknown });
  readonly attempts: ReadonlyArray<Promise<ExecutionStats>>;
}

/** Resources that are locked, for as long as was asked for. */
export class Lock {
  constructor(redlock: Redlock, resources: string[], value: string, attempts: ReadonlyArray<Promise<ExecutionStats>>);
  readonly redlock: Redlock;
  readonly resources: string[];
  /** Random, the same after an extension. It is not what stands in Redis: compare tokens of {@link Lock.leases}. */
  readonly value: string;
  readonly attempts: ReadonlyArray<Promise<ExecutionStats>>;
  /**
   * Until when the lock is certain, in ms since 1970; 0 once it is over. It grows with renewals, up to the end that was asked
   * for.
   */
  readonly expiration: number;
  /** The leases behind it, with their fencing tokens and signals; `undefined` once it was released or extended. */
  readonly leases: Leases | undefined;
  /**
   * Gives it back, with what an extension of it holds. A release that no server has confirmed goes on in the background;
   * repeated, it waits as the settings of the instance say for the servers to show that the lock is gone.
   *
   * @throws {@link ExecutionError} when it was over, or no server has confirmed.
   */
  release(): Promise<ExecutionResult>;
  /**
   * Moves the end to `duration` from now, and answers the lock that takes the place of this one.
   *
   * @throws {@link ExecutionError} when it was over, and for a duration of 0 or less, which leaves it as it was.
   */
  extend(duration: number): Promise<Lock>;
  /** Shown by `JSON.stringify` and `console.log`: no clients, which have passwords. */
  toJSON(): { resources: string[]; value: string; expiration: number };
}

/** Aborted when the lock is lost, before the servers let anybody else have it; `error` and `reason` say why. */
export type RedlockAbortSignal = AbortSignal & { error?: Error };

/** Takes locks on one server, or on a quorum of several. Emits `error` with whatever makes an operation fail. */
export class Redlock extends EventEmitter {
  /**
   * @throws ConfigError of leasehold for a client that no store url can stand for, a Redis Cluster among several servers, and
   * a `driftFactor` that cannot be.
   */
  constructor(clients: Iterable<Server>, settings?: Partial<Settings>);
  readonly clients: Set<Server>;
  readonly settings: Settings;
  /** Shown by `JSON.stringify` and `console.log`: how many servers, and the settings. */
  toJSON(): { servers: number; settings: Settings };
  /**
   * Gives back what is still held, closes the connections, and calls `quit` of the clients that were given; a client of
   * leasehold stays open. What waits for a lock rejects with `ConfigError`, as everything that is tried afterwards.
   */
  quit(): Promise<void>;
  /**
   * Locks all of the resources. The lock is renewed until `duration` has passed, and then given back.
   *
   * @throws {@link ExecutionError} when others held one of them for as long as the settings would wait, or no server answered;
   * and for a duration of 0 or less.
   */
  acquire(resources: string[], duration: number, settings?: Partial<Settings>): Promise<Lock>;
  /** See {@link Lock.release}. Settings are taken, so that calls compile, and ignored. */
  release(lock: Lock, settings?: Partial<Settings>): Promise<ExecutionResult>;
  /** See {@link Lock.extend}. Settings are taken, so that calls compile, and ignored. */
  extend(existing: Lock, duration: number, settings?: Partial<Settings>): Promise<Lock>;
  /**
   * Locks all of the resources for as long as `routine` runs. An error of `routine` is passed on.
   *
   * @throws {@link ExecutionError} as {@link Redlock.acquire}, and when the lock was lost, or given back by `quit`, before
   * `routine` had ended.
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
