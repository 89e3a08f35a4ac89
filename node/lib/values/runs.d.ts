// Generated from wit/leasehold.wit by `cargo xtask component --bless`. Do not edit.

import type { Completion, Holding, Outcome } from "./ops.js";

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

/** The next step of a request that replaces the runner. */
export type ReplaceStep =
  /** Read the run, by `Client.read` and `readRun`: `looked`. */
  | { type: "look" }
  /** Acquire the `newestResource` as a run with `evenIfDone`, and finish it: `numbered`, or `unconfirmed`. */
  | {
      type: "take-number";
      /** The ttl in milliseconds, where a quorum does not allow less. */
      ttlMs: number;
      /** The wait in milliseconds. */
      waitMs: number;
    }
  /** Acquire the run: `granted` or `refused`. */
  | {
      type: "ask";
      /** The `evenIfDone` of its run. */
      evenIfDone: boolean;
      /** The wait in milliseconds; 0 asks once. */
      waitMs: number;
    }
  /**
   * Acquire the `newestResource` as a run that may be done: `newest`. Where the lock is granted, since the store has
   * forgotten the completion, finish it as in `takeNumber`.
   */
  | {
      type: "read-newest";
      /** The ttl in milliseconds, where a quorum does not allow less. */
      ttlMs: number;
      /** The wait in milliseconds. */
      waitMs: number;
    }
  /** Acquire the `newestResource` as a run with `evenIfDone`, read it by `Client.read`, and release it: `counted`. */
  | {
      type: "count-newest";
      /** The ttl in milliseconds, where a quorum does not allow less. */
      ttlMs: number;
      /** The wait in milliseconds. */
      waitMs: number;
    }
  /** Revoke this lease: `ended`. */
  | {
      type: "end";
      /** The nonce of the lease to revoke. */
      holder: Uint8Array;
    }
  /** The work is the caller's, if its lease is still held; else `failed`. */
  | { type: "begin" }
  /** A newer request has taken the place of this one. */
  | { type: "replaced" }
  /** The work was done before this request, as the last `look` has shown. */
  | { type: "done" }
  /** The runner has not ended in time, or cannot be asked to: the refusal that came last is the answer. */
  | { type: "running" }
  /** Too few nodes show which request is the newest. */
  | { type: "unsettled" }
  /** The error that came last is the answer. */
  | { type: "fail" };

/** The outcome of a step. */
export type ReplaceAnswer =
  /** The state of the run. */
  | {
      type: "looked";
      /** The record; absent if the resource is free without a trace of the last holder. */
      holding?: Holding | undefined;
      /** The completion of finished work, in the answer to `Op read`; absent if none stands. */
      done?: Completion | undefined;
    }
  /** The completion was written, with this token. */
  | {
      type: "numbered";
      /** The token of the completion. */
      token: number;
    }
  /**
   * The completion may be written, with this token: the store has not answered. That error is the one that came last.
   */
  | {
      type: "unconfirmed";
      /** The token of the completion. */
      token: number;
    }
  /** The run is acquired. */
  | { type: "granted" }
  /** Somebody has the run. */
  | {
      type: "refused";
      /** The holder of the run, as `Failure busy` and `Failure timed-out` show it. */
      holding?: Holding | undefined;
    }
  /** The completion that has refused the acquisition. */
  | {
      type: "newest";
      /** The fencing token of the lease under which the work was done. */
      token: number;
      /** The label of its holder; may be empty. */
      owner: string;
      /** When the work was finished, by the holder's or store's wall clock, in milliseconds since 1970. */
      atUnixMs: number;
      /** How much longer the completion stands; rounded up. */
      leftMs: number;
      /**
       * The record of the run that wrote the completion, as it came with `Op finish`; absent where none was kept, and
       * where the store shows one that does not begin with the nonce of that finish. `Runs.readAbout` reads it.
       */
      about?: Uint8Array | undefined;
      /**
       * In a quorum: a node shows a record of the run, but no majority is known to show the same completion. A store
       * says false.
       */
      unsettled: boolean;
    }
  /** The nodes' records while the `newestResource` was locked. */
  | {
      type: "counted";
      /** The answers of `Client.takeRead`. */
      read: Outcome[];
      /** The nonce of the lock, by `Client.nonce`. */
      holder: Uint8Array;
    }
  /** The lease is revoked, or over. */
  | { type: "ended" }
  /** An error. */
  | {
      type: "failed";
      /** It may pass by itself: the store did not answer, or the lease was lost. */
      mayPass: boolean;
    };
