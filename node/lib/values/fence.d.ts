// Generated from wit/leasehold.wit by `cargo xtask component --bless`. Do not edit.

/** The reason why a claim or a write was rejected. */
export type Rejected =
  /** A later holder has claimed the item. */
  | {
      type: "stale";
      /** The token that was presented. */
      token: number;
      /** The highest token the item has seen. */
      highWater: number;
    }
  /** A write of the same lease with a higher number has already been accepted. */
  | {
      type: "out-of-order";
      /** The number that was presented. */
      write: number;
      /** The highest number accepted. */
      last: number;
    }
  /** Nobody has claimed the item; a holder must claim before it writes. */
  | { type: "unclaimed" }
  /** The number is not a valid token. */
  | {
      type: "invalid-token";
      /** The number that was presented. */
      token: number;
      /** The largest token, 2^53 - 1. */
      max: number;
    };
