/**
 * Compare-and-set: updates of single items that need no lock.
 *
 * ```js
 * import { connect } from "leasehold/cas";
 *
 * const items = await connect("memory:");
 * const { value } = await items.update("visits", (old) => Buffer.from(String(Number(old ?? 0) + 1)));
 * ```
 *
 * docs/compare-and-set.md says when this beats a lock.
 *
 * @packageDocumentation
 */

/**
 * Connects to the store that a url names; without one as `connect` of `leasehold`. Any single store keeps items; `memory:`
 * serves tests.
 *
 * @throws ConfigError for an invalid url or setting, StoreRefusedError if permissions are missing, StoreUnavailableError if the
 * store cannot be reached.
 */
export function connect(store: string | null | undefined, options?: ItemsOptions): Promise<Items>;
export function connect(options?: ItemsOptions): Promise<Items>;

/** Settings of {@link connect}. */
export interface ItemsOptions {
  /** How often an update is tried; default 10, with random pauses that grow from 50 ms to 2 s. */
  tries?: number | undefined;
}

/** An item as it was read or written. */
export interface Item {
  /** The value. */
  value: Buffer;
  /** 1 for the first value, and one more with each write. */
  version: number;
}

/** The items of one store; made by {@link connect}. */
export class Items {
  private constructor();

  /** The item as it is; `null` if there is none. */
  read(name: string): Promise<Item | null>;

  /**
   * Gives `decide` the value of an item, `null` if there is none yet, and writes what it returns if nobody has written meanwhile;
   * otherwise it is called again with the newer value. If it returns `null`, nothing is written, and the result is `null`. What
   * it throws ends the update, and nothing is written. A value has at most 380 KiB. A write whose answer is lost is applied once.
   *
   * `decide` may run several times, so it must do nothing but compute. To do something once, use a lock or a run.
   *
   * @throws TooManyConflictsError with `tries` if others were faster each time. The `fate` of any other error is `"not_written"`,
   * or `"unknown"` if the value may have been written.
   */
  update(name: string, decide: (old: Buffer | null) => Decision | Promise<Decision>): Promise<Item | null>;
}

/** A new value, or `null` to leave the item as it is. */
export type Decision = Uint8Array | null | undefined;
