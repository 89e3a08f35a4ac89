// Runs: work that is done once, for clients with native code. What all clients share is in runs.d.ts.

/// <reference lib="esnext.disposable" />

import { Lease, type Client, type LockOptions } from "../index.js";
import type { AttemptOptions, Attempts, RetryLater } from "./attempts.js";
import type { LockInfo } from "./errors.js";
import type { AlreadyDone, Completion, FinishOptions, Occurrence, OccurrenceOptions, Ran, Replaced, ReplaceOptions } from "./runs.js";

export type { Occurrence };

/** Settings of a run, which are used with one of {@link Occurrence}: a `key`, a period (`every`), `cron`, a `cooldown` or `keep`. */
export interface OnceOptions extends OccurrenceOptions, AttemptOptions, ReplaceOptions, Omit<LockOptions, "fair"> {}

/** Somebody else is at it, who may still fail. */
export interface RunningElsewhere {
  /** It was not done now. */
  ran: false;
  /** Somebody else runs it. */
  reason: "running";
  /** That holder, as far as the store shows it. */
  holder: LockInfo | null;
}

/** The answer of {@link Client.once}. */
export type OnceOutcome<T> = Ran<T> | AlreadyDone | RunningElsewhere | RetryLater | Replaced;

/** The answer of {@link Client.beginRun}: a run, or the reason why there is nothing to do. */
export type BegunRun = { run: Run } | ({ run: null } & (AlreadyDone | RunningElsewhere | RetryLater | Replaced));

/** The state of one occurrence of a job. It is out of date when it arrives. */
export interface RunInfo {
  /** The resource that stands for it in the store. */
  resource: string;
  /** The name of the job. */
  name: string;
  /** The key of the occurrence; `null` for the job as a whole. */
  key: string | null;
  /** The holder that runs it now; `null` if nobody does. */
  holder: LockInfo | null;
  /** The completion of the finished work; `null` if it is not done. */
  done: Completion | null;
  /**
   * How often the work was begun, where {@link AttemptOptions.maxAttempts} has it counted, and otherwise `null`. {@link Client.runs}
   * gives that of runs that are neither done nor under way.
   */
  attempts: Attempts | null;
}

/**
 * A lease under which work is done that is done once. {@link Run.finish} writes down that it is done; a release leaves no
 * completion, and neither does the end of an `await using` block without a finish, so that another worker may do the work. Such a
 * block does not learn what was thrown in it: {@link Run.fail} says why.
 */
export class Run extends Lease {
  private constructor();

  /** The attempts at the work with this one, as they were when it began; `null` without {@link AttemptOptions.maxAttempts}. */
  readonly attempts: Attempts | null;

  /**
   * Writes the completion that the work is done, and releases the lock, in one step. Awaits the answer for as long as the lease
   * lasts.
   *
   * @throws {@link LeaseLostError} if the lease was lost before: no completion was written, and another worker may do the work again.
   * @throws {@link FinishUnconfirmedError} if no answer of the store says that the completion stands.
   * @throws {@link ResultNotKeptError} if the result cannot be kept: the work counts as done all the same.
   * @throws {@link NotOwnedError} after a release or finish.
   */
  finish(options?: FinishOptions): Promise<void>;
  /**
   * Releases the lock because the work has failed, so that another worker may do it. With {@link AttemptOptions.maxAttempts} the reason
   * is kept, for people who look at the run or are notified that it was given up: of an error its `name: message`, in one line, cut after
   * 256 bytes. Others can read it in the store, so leave secrets out. {@link Client.once} does this with what its function throws.
   *
   * @throws the errors of {@link Lease.release}. A reason that cannot be kept is only logged.
   */
  fail(reason: string | Error): Promise<void>;
  /**
   * A statement that writes the completion in a transaction of yours, as `pg` takes it: work and completion are then committed together, or
   * not at all. The lock has to be in the same PostgreSQL database as the work.
   *
   * Run it last in the transaction, commit, and finish only then. It fails if the lease is over: roll back. Keep the values out
   * of logs.
   *
   * @throws {@link ConfigError} if the store is no single PostgreSQL database.
   * @throws {@link LeaseLostError} if the lease is over, {@link NotOwnedError} after a release.
   */
  completionIn(options?: FinishOptions): { text: string; values: [string[]] };
}
