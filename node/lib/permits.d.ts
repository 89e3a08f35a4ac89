// Several holders at a time: one lock of several, permits of a semaphore, readers and writers.

/// <reference lib="esnext.disposable" />

import { Lease, type AllOptions, type Client, type LockOptions } from "../index.js";

/** Settings of one lock of several, and of a permit. */
export interface AnyOptions extends AllOptions {
  /** See {@link LockOptions.data}. */
  data?: Uint8Array | undefined;
}

/** Settings of a lock for readers and writers. */
export interface RwLockOptions {
  /** The most readers at a time: 1 to 64, default 16. A write takes one lock more than this. The same for all clients. */
  readers?: number | undefined;
}

/** One lock of several; made by {@link Client.lockAny}. */
export class LockAny {
  private constructor();

  /** The names of the locks. */
  readonly names: string[];

  /** Acquires the first that is free; `resource` of the lease says which it is. Rejects as {@link Client.acquire} does. */
  acquire(options?: AnyOptions): Promise<Lease>;
  /** Tries each once: `null` when others hold all of them. */
  tryAcquire(options?: Omit<AnyOptions, "wait">): Promise<Lease | null>;
  /** Calls `body` with the lease; see {@link Client.using}. */
  using<T>(options: AnyOptions | undefined, body: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
  using<T>(body: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
  /** Shown by `JSON.stringify` and `console.log`. */
  toJSON(): { names: string[] };
}

/** A number of permits; made by {@link Client.semaphore}. */
export class Semaphore {
  private constructor();

  /** The name. */
  readonly name: string;
  /** The number of permits. */
  readonly permits: number;

  /**
   * Acquires a permit. Rejects as {@link Client.acquire} does.
   *
   * @throws {@link ConfigError} for a number of permits that cannot be, or that differs from that of other clients.
   */
  acquire(options?: AnyOptions): Promise<Permit>;
  /** Tries each permit once: `null` when all of them are held. */
  tryAcquire(options?: Omit<AnyOptions, "wait">): Promise<Permit | null>;
  /** Calls `body` with a permit; see {@link Client.using}. */
  using<T>(options: AnyOptions | undefined, body: (permit: Permit) => T | PromiseLike<T>): Promise<T>;
  using<T>(body: (permit: Permit) => T | PromiseLike<T>): Promise<T>;
  /** Shown by `JSON.stringify` and `console.log`. */
  toJSON(): { name: string; permits: number };
}

/**
 * A held permit of a semaphore: a lease with a number. Its fencing token grows with every grant of the same permit, and says
 * nothing about other permits.
 */
export class Permit extends Lease {
  private constructor();

  /** The number of the permit, from 0: which of N equal things its holder may use. */
  readonly index: number;
  /** Shown by `JSON.stringify` and `console.log`. */
  toJSON(): { resource: string; owner: string; token: number; remaining: number; index: number };
}

/**
 * A lock that many readers hold together, or one writer alone; made by {@link Client.rwLock}. A writer keeps later readers out
 * while it waits. A reader cannot become a writer: release the read lock first, or the write waits for it.
 */
export class RwLock {
  private constructor();

  /** The name. */
  readonly name: string;

  /**
   * Holds it together with other readers. The fencing token is above those of all writers before, and below those of all writers
   * after. Rejects as {@link Client.acquire} does.
   *
   * @throws {@link ConfigError} for a number of readers that cannot be, or that differs from that of other clients.
   */
  read(options?: AllOptions): Promise<Lease>;
  /**
   * Holds it alone: waits until all readers are gone, and lets no new ones in meanwhile. The fencing token is above those of all
   * readers and writers before. Rejects as {@link RwLock.read} does.
   */
  write(options?: AllOptions): Promise<Lease>;
  /** Tries to read without waiting: `null` while others write, or as many read as can. */
  tryRead(options?: Omit<AllOptions, "wait">): Promise<Lease | null>;
  /** Tries to write without waiting: `null` while others read or write. */
  tryWrite(options?: Omit<AllOptions, "wait">): Promise<Lease | null>;
  /** Calls `body` while it reads; see {@link Client.using}. */
  reading<T>(options: AllOptions | undefined, body: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
  reading<T>(body: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
  /** Calls `body` while it writes; see {@link Client.using}. */
  writing<T>(options: AllOptions | undefined, body: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
  writing<T>(body: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
  /** Shown by `JSON.stringify` and `console.log`. */
  toJSON(): { name: string; readers?: number | undefined };
}
