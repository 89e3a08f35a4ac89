// Generated from wit/leasehold.wit by `cargo xtask component --bless`. Do not edit.

/**
 * The settings that say which part of a job is done once. One of `key`, `everyMs` and `cron` names the occurrence;
 * without any, it is the job as a whole, which needs a cooldown or a time for which its completion is kept.
 */
export interface Occurrence {
  /** The name of the occurrence: a date, an invoice, a batch. */
  key?: string | undefined;
  /**
   * One occurrence in each period of this length, at least 1,000. Its key is the start of the period, in UTC or by the
   * clocks of `tz`.
   */
  everyMs?: number | undefined;
  /** How long after the start of 1970, a Thursday, the periods begin; less than a period. Default 0. */
  offsetMs?: number | undefined;
  /**
   * The time of day at which the periods begin, from `00:00` to `23:59` by the clocks of `tz`. They are whole days
   * then.
   */
  at?: string | undefined;
  /**
   * The zone by whose clocks `everyMs` and `cron` count, by its name in the IANA database, as it was typed: it ends the
   * key.
   */
  tz?: string | undefined;
  /**
   * One occurrence for each time of a cron expression of five fields by the clocks of `tz`: the latest one until now.
   */
  cron?: string | undefined;
  /** Once done, the job is not done again for so long. In place of a key. */
  cooldownMs?: number | undefined;
  /**
   * How long the completion stands: at least the ttl and the period. Default 604,800,000 (7 days), or what a longer
   * period takes.
   */
  keepMs?: number | undefined;
}

/** The offset of the clocks of a zone since they were set. */
export interface ZoneOffset {
  /** The time at which it began to count, in milliseconds since 1970. */
  sinceUnixMs: number;
  /** The local time that they showed then, in milliseconds since they showed the start of 1970. */
  shownMs: number;
}

/** The resource of an occurrence, and how long its completion stands. */
export interface RunPlan {
  /** The resource to acquire. */
  resource: string;
  /** The `keep` of its run. */
  keepMs: number;
}

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
