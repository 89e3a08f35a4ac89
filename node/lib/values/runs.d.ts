// Generated from wit/leasehold.wit by `cargo xtask component --bless`. Do not edit.

/** How often the work of a run may be begun. */
export interface AttemptLimit {
  /** The number of attempts, 1 or more. */
  max: number;
  /** The pause from the start of an attempt to the start of the next one. */
  retryAfterMs: number;
}

/** How often the work of a run was begun. */
export interface Attempts {
  /** The number of attempts that were begun. */
  count: number;
  /** How many were allowed when the last one began. */
  max: number;
  /** When the first of them began, in milliseconds since 1970 by the clock of the one that began it. */
  sinceUnixMs: number;
  /** When the next one may begin, in milliseconds since 1970 by the clock of the one that began the last. */
  retryUnixMs: number;
  /** Why the last one failed; absent where it did not say so, or is still under way. */
  reason?: string | undefined;
}

/** The decision about the next attempt. */
export type NextAttempt =
  /** It may begin, once these are written. */
  | {
      type: "begin";
      /** The number of attempts that were begun. */
      count: number;
      /** How many were allowed when the last one began. */
      max: number;
      /** When the first of them began, in milliseconds since 1970 by the clock of the one that began it. */
      sinceUnixMs: number;
      /** When the next one may begin, in milliseconds since 1970 by the clock of the one that began the last. */
      retryUnixMs: number;
      /** Why the last one failed; absent where it did not say so, or is still under way. */
      reason?: string | undefined;
    }
  /** Not before these say so. */
  | {
      type: "later";
      /** The number of attempts that were begun. */
      count: number;
      /** How many were allowed when the last one began. */
      max: number;
      /** When the first of them began, in milliseconds since 1970 by the clock of the one that began it. */
      sinceUnixMs: number;
      /** When the next one may begin, in milliseconds since 1970 by the clock of the one that began the last. */
      retryUnixMs: number;
      /** Why the last one failed; absent where it did not say so, or is still under way. */
      reason?: string | undefined;
    }
  /** As often as allowed it was begun, and never finished. */
  | {
      type: "given-up";
      /** The number of attempts that were begun. */
      count: number;
      /** How many were allowed when the last one began. */
      max: number;
      /** When the first of them began, in milliseconds since 1970 by the clock of the one that began it. */
      sinceUnixMs: number;
      /** When the next one may begin, in milliseconds since 1970 by the clock of the one that began the last. */
      retryUnixMs: number;
      /** Why the last one failed; absent where it did not say so, or is still under way. */
      reason?: string | undefined;
    }
  /** Too few nodes show the holder of the count: read it again. */
  | { type: "unsure" };
