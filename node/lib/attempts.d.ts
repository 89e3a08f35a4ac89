// Attempts at runs: how often work was begun, so that work that always fails is given up.

/** The options of `once` and `beginRun` that count attempts. */
export interface AttemptOptions {
  /**
   * How often the work may be begun: 1 or more, without limit by default. Each attempt counts, also one whose process dies. Once so
   * many have begun and none has finished, the run is given up: a `GivenUpError`, until somebody forgets the run. Attempts are
   * remembered for as long as the completion is kept, from the start of the latest one. Not with `evenIfDone`.
   */
  maxAttempts?: number | undefined;
  /**
   * The pause in ms from the start of an attempt to the start of the next one, by this machine's clock: until then the answer is
   * {@link RetryLater}. Less than `keep`, default 0. Needs `maxAttempts`.
   */
  retryAfter?: number | undefined;
}

/** How often the work of a run was begun. */
export interface Attempts {
  /** The number of attempts that were begun. */
  count: number;
  /** How many were allowed when the last one began: the run is given up once there are as many. */
  max: number;
  /** When the first of them began, in ms since 1970. */
  since: number;
  /** When the next one may begin, in ms since 1970. */
  retryAt: number;
  /** The reason why the last one failed, in one line; `null` where it did not say so, or is still under way. */
  reason: string | null;
}

/** It has failed, and the pause before the next attempt is not over. */
export interface RetryLater {
  /** It was not done now. */
  ran: false;
  /** It may be tried again later. */
  reason: "later";
  /** The attempts so far, and when the next one may begin. */
  attempts: Attempts;
}
