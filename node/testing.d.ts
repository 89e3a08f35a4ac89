/**
 * Locks for tests of your own code: no server, no sleeping, and a clock that the test moves.
 *
 * Behind it are the protocol itself, whose clock is the test's, and the reference store: all clients of one clock share one
 * store, each as a process of its own. Who waits for a lock moves the clock, once everything else that is ready has had its
 * turn: so `acquire("job", { wait: 10_000 })` takes no time, and the same test goes the same way each time.
 */

import type { Client } from "./index.js";

/** Time that passes when a test says so, and the store that all of its clients share. */
export class FakeClock {
  constructor();

  /** Milliseconds since an instant of its own. */
  now(): number;

  /** Lets so many ms pass, with everything that happens meanwhile: renewals, losses, and whatever listens to signals. */
  advance(ms: number): void;
}

/** A client without a server, with the face of a real one, but for elections; made by {@link connect}. */
export interface FakeClient extends Client {
  /** What moves its time. */
  readonly clock: FakeClock;

  /**
   * Has this client lose the lock, as if nothing had been renewed for too long: the lease is over now, and the lock free for
   * others. Throws `NotOwnedError` unless this client holds it.
   */
  lose(name: string): void;

  /** From now on no request of any client of this clock reaches the store. Leases go on until they run out. */
  storeDown(): void;

  /** Requests reach the store again; what was in it is still there. */
  storeUp(): void;
}

/** Settings of a fake client. */
export interface FakeOptions {
  /** Default: one of its own. */
  clock?: FakeClock | undefined;
  /** The label that others see. Default `fake`. */
  owner?: string | undefined;
  /** As of a real one. */
  driftPpm?: number | undefined;
  /** As of a real one. */
  requestTimeout?: number | undefined;
}

/**
 * A client of the clock's store. A wait without an end rejects after an hour of the clock, since nobody else would move it.
 */
export function connect(options?: FakeOptions): FakeClient;
