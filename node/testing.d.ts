/**
 * Locks, runs, elections, shards and items for tests of your own code: no server, no sleeping, and a clock that the test moves.
 *
 * Clients of a clock are real ones: the same code and the same protocol, over a store in memory that belongs to the clock. Each is
 * another process on that store. Only time, randomness and threads are the clock's. A call that waits moves the clock, after
 * everything else that is ready has run. So `acquire("job", { wait: 10_000 })` takes no real time, and each run of a test gives
 * the same result.
 */

import type { Item, Items, ItemsOptions } from "./cas.js";
import type { Client, ConnectOptions } from "./index.js";

/** Settings of a {@link FakeClock}. */
export interface FakeClockOptions {
  /** What is random follows from it: a whole number, 1 unless set. */
  seed?: number | undefined;
}

/** Time that passes when a test says so, and the store that all of its clients share. */
export class FakeClock {
  constructor(options?: FakeClockOptions);

  /** Milliseconds since an arbitrary instant. */
  now(): number;

  /**
   * Lets this many ms pass, with everything that happens meanwhile: renewals, losses, and listeners of signals, which are called when
   * the clock is there. Callbacks of elections and shards are called after the code that calls this.
   */
  advance(ms: number): void;

  /** Lets happen what is due now. No time passes. Also happens by itself, once nothing else is ready to run. */
  settle(): void;

  /** Lets happen what is due now, or if that is nothing, moves the clock to the next time at which something is; `false` if nothing ever will be. */
  step(): boolean;

  /** From now on no request of any client of this clock reaches the store. Leases last until they expire. */
  storeDown(): void;

  /** Requests reach the store again; its records are still there. Candidates that pause after a failure stand again at once. */
  storeUp(): void;

  /** The next request is served, and its answer is lost: its sender does not know what has become of it. */
  loseReply(): void;

  /** From now on every answer takes so many ms, or does not come before the sender's patience ends; 0, as at the beginning, for none. */
  late(ms: number): void;
}

/** A client of a {@link FakeClock}, which is a real client; made by {@link connect}. */
export interface FakeClient extends Client {
  /** The clock of this client. */
  readonly clock: FakeClock;

  /**
   * Makes this client lose the lock, as if it had not been renewed for too long: the lock is free for others, and then the lease is
   * over. Throws `NotOwnedError` unless this client holds it.
   */
  lose(name: string): void;

  /** See {@link FakeClock.storeDown}. */
  storeDown(): void;

  /** See {@link FakeClock.storeUp}. */
  storeUp(): void;
}

/** Settings of a client of a test, as of a real one. Those of quorums are refused: there is one store. */
export interface FakeOptions extends ConnectOptions {
  /** Default: a new clock. */
  clock?: FakeClock | undefined;
  /** The label that others see. Default `fake`. */
  owner?: string | undefined;
}

/**
 * A client of the clock's store. A wait that nothing ends rejects with a `ConfigError` after an hour of the clock: otherwise the
 * test would never end.
 */
export function connect(options?: FakeOptions): FakeClient;

/** The items of a store of its own, and what others do to them. */
export class FakeItemStore {
  constructor();

  /** Writes an item now, as another client, even if no request reaches the store. */
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

/** Items as those of `leasehold/cas`, whose pauses take no time. */
export function connectItems(options?: FakeItemsOptions): Items;
