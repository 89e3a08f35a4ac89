// Shards, and the settings of a worker on them.

/// <reference lib="esnext.disposable" />

import { Lease, type AllOptions } from "../index.js";
import type { LeaseholdError } from "./errors.js";

/** Settings of a worker on shards. */
export interface ShardsOptions {
  /** The number of shards, 1 to 64, default 16. All workers name the same: the first one writes it down, and another is an error. */
  count?: number | undefined;
  /** See {@link AllOptions.ttl}. The shards of a worker that dies are free after so long. */
  ttl?: number | undefined;
  /** See {@link AllOptions.owner}. */
  owner?: string | undefined;
  /** The time between two looks at the other workers, in ms: at least 100, default 5,000. */
  lookEvery?: number | undefined;
  /**
   * Called with each shard that this worker gets. It should start the work and return; other shards do not wait for its promise.
   * If it throws, `onLoss` is called and the shard is let go. This worker leaves it to others for 1 s, and for twice as long each
   * further time, up to a minute. {@link Shards.lastError} tells it, and `stop()` throws it unless it has got that shard since.
   */
  onGain?: ((shard: Shard) => unknown) | undefined;
  /**
   * Called when a shard ends: with the reason when it was lost, with `null` when it is to be let go. The work on it must have
   * stopped when its promise is fulfilled; only then is the shard released, and it is renewed until then.
   */
  onLoss?: ((shard: Shard, loss: LeaseholdError | null) => unknown) | undefined;
}

/** A shard that this worker holds. Its fencing token grows with every grant of the same shard. */
export class Shard extends Lease {
  private constructor();

  /** The number of the shard, from 0. */
  readonly index: number;
  /** Shown by `JSON.stringify` and `console.log`. */
  toJSON(): { resource: string; owner: string; token: number; remaining: number; index: number };
}

/** A worker's part in the shards of a name. Garbage collection does not end it. */
export class Shards {
  private constructor();

  /** The name that the workers share. */
  readonly name: string;
  /** The shards that are held now and not to be let go, in the order of their numbers. */
  readonly held: Shard[];
  /** The number of workers at the last look, this one among them; 0 before it has joined, and while it stands by. */
  readonly members: number;
  /** The error of the last try to join, look or acquire, or a {@link CallbackError} with what a callback has thrown as `cause`. */
  readonly lastError: LeaseholdError | null;

  /**
   * Leaves: `onLoss` is called for all shards at the same time, and each is released when its promise is fulfilled. In a
   * callback of these shards it resolves at once, and they end when the callback is done.
   */
  stop(): Promise<void>;
  /** As {@link Shards.stop}. */
  [Symbol.asyncDispose](): Promise<void>;
  /** Shown by `JSON.stringify` and `console.log`. */
  toJSON(): { name: string; held: number[]; members: number; lastError?: string | undefined };
}
