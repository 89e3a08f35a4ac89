/**
 * Locks, runs, elections and items for tests of your own code: no server, no sleeping, and a clock that the test moves.
 *
 * It runs the real protocol with the clock of the test, over the reference store. All clients of one clock share one
 * store, each as a separate process. Waiting for a lock moves the clock, after everything else that is ready has run. So
 * `acquire("job", { wait: 10_000 })` takes no real time, and each run of a test gives the same result.
 */

import type { Item, Items, ItemsOptions } from "./cas.js";
import type { Client } from "./index.js";

/** Time that passes when a test says so, and the store that all of its clients share. */
export class FakeClock {
  constructor();

  /** Milliseconds since an arbitrary instant. */
  now(): number;

  /** Lets this many ms pass, with everything that happens meanwhile: renewals, losses, and listeners of signals. */
  advance(ms: number): void;
}

/** A client without a server, with the interface of a real one; made by {@link connect}. */
export interface FakeClient extends Client {
  /** The clock of this client. */
  readonly clock: FakeClock;

  /**
   * Makes this client lose the lock, as if it had not been renewed for too long: the lease is over now, and the lock is free
   * for others. Throws `NotOwnedError` unless this client holds it.
   */
  lose(name: string): void;

  /** From now on no request of any client of this clock reaches the store. Leases last until they expire. */
  storeDown(): void;

  /** Requests reach the store again; its records are still there. */
  storeUp(): void;
}

/** Settings of a fake client. */
export interface FakeOptions {
  /** Default: a new clock. */
  clock?: FakeClock | undefined;
  /** The label that others see. Default `fake`. */
  owner?: string | undefined;
  /** As of a real one. */
  driftPpm?: number | undefined;
  /** As of a real one. */
  requestTimeout?: number | undefined;
}

/**
 * A client of the clock's store. A wait without a limit rejects after an hour of the clock, since nobody else would move it.
 */
export function connect(options?: FakeOptions): FakeClient;

/** The items of fake clients, and what others do to them. */
export class FakeItemStore {
  constructor();

  /** Writes an item now, as another client. */
  write(name: string, value: Uint8Array): Item;

  /**
   * Makes another client write these values, each just before the next write to the item, which then fails and is tried again.
   */
  writeFirst(name: string, values: Iterable<Uint8Array>): void;

  /** From now on no request reaches the store. */
  down(): void;

  /** Requests reach the store again; its items are still there. */
  up(): void;
}

/** Settings of fake items. */
export interface FakeItemsOptions extends ItemsOptions {
  /** Default: a new store. Tests of several clients give them one. */
  store?: FakeItemStore | undefined;
}

/** Items as those of `leasehold/cas`, without pauses. */
export function connectItems(options?: FakeItemsOptions): Items;
