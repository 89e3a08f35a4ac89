/**
 * node-cron 4: tasks that many processes schedule, and that run once at each time, in one of them.
 *
 * ```js
 * const coordinator = new RunCoordinator(await connect());
 * const report = coordinator.job(async (context, run) => write(context.date, { fence: run?.token, signal: run?.signal }));
 * cron.schedule("0 2 * * *", report, { name: "nightly-report", distributed: true, runCoordinator: coordinator });
 * ```
 *
 * The other processes stand by: if the one that runs dies, another one runs the task after its `distributedLease`, with a
 * higher token. What has run to its end at a time is not run again for that time.
 */

import type { Client, OnceOptions, Run } from "./index.js";

/**
 * Settings of all runs of a coordinator. The schedule itself names them, and a task's `distributedLease` is their ttl. `maxAttempts` is
 * how many processes may run a task that fails, of those that stand by.
 */
export interface CoordinatorOptions
  extends Omit<OnceOptions, "key" | "every" | "offset" | "at" | "tz" | "cron" | "cooldown" | "ttl" | "replace" | "retryAfter" | "signal"> {
  /** How many ms a process stands by while another one runs; default an hour. With 0, a run that dies is not repeated. */
  wait?: number | undefined;
}

/** What node-cron calls a task with, and more. */
export interface TimeOfTask {
  /** The time of the schedule. */
  date: Date;
  /** The same, as text in the time zone of the schedule. */
  dateLocalIso: string;
  /** When it was really called. */
  triggeredAt: Date;
}

/** The `runCoordinator` of distributed tasks, for `setRunCoordinator` or for single tasks. */
export class RunCoordinator {
  constructor(client: Client, options?: CoordinatorOptions);

  /**
   * Called by node-cron at each time of a task's schedule: true if this process is to run it now. The lease is renewed for as
   * long as the task runs. Rejects with a `GivenUpError` after `maxAttempts`, which node-cron logs.
   */
  shouldRun(key: string, ttlMs: number): Promise<boolean>;

  /** Called by node-cron when the task has ended: writes the completion. Its errors are logged by node-cron. */
  onComplete(key: string): Promise<void>;

  /**
   * The function of a task, which is called with the run: its token for the writes, and its signal, which is aborted when the lease
   * is lost. The run is undefined for a call that is not of the schedule, by `task.execute()`.
   *
   * An error leaves no completion, so that a process that stands by runs the task again, up to `maxAttempts` times in all. Of a function
   * that is not given to `job`, the coordinator sees no error: its work counts as done in any case.
   */
  job<Context = TimeOfTask>(work: (context: Context, run: Run | undefined) => unknown): (context: Context) => Promise<unknown>;

  /** Stands by no longer: what waits is told not to run. Before the client is closed; tasks that run are not affected. */
  close(): void;
}
