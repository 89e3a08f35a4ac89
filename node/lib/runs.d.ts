// The types of runs that all clients share.

/** The part of the settings of a run that says which work it does, and how long that counts as done. */
export interface OccurrenceOptions {
  /** The occurrence of the job: a date, an invoice, a batch. Each is done once. At most 1,024 bytes with the name. */
  key?: string | undefined;
  /**
   * One occurrence in each period of this many ms, at least 1,000 (7 days at most on a quorum), by this machine's clock: the key
   * is the start of the period in UTC. Machines whose clocks differ agree on all but the moments in which a period begins.
   */
  every?: number | undefined;
  /** How many ms after the start of 1970, in UTC or by the clocks of `tz`, the periods of `every` begin; less than a period, default 0. */
  offset?: number | undefined;
  /** The time of day at which the periods of `every` begin, from "00:00" to "23:59" by the clocks of `tz`. They are whole days then. Default: midnight. */
  at?: string | undefined;
  /**
   * The zone by whose clocks `every` and `cron` count, by its name in the IANA database, such as "Europe/Berlin" or "UTC". The key
   * is the local time with the zone as you wrote it, `2026-10-25T02:30[Europe/Berlin]`: a time that comes twice when clocks are set
   * back is done once, and so is one that clocks leave out, as soon as they are past it.
   */
  tz?: string | undefined;
  /**
   * One occurrence for each time of a cron expression by the clocks of `tz`: minute, hour, day of the month, month and day of the
   * week, such as "0 2 * * 1-5". The occurrence is the latest one until now, so a process that comes late does it.
   */
  cron?: string | undefined;
  /** Once done, the job is not done again for this many ms, counted from the end of the work. In place of a key or period. */
  cooldown?: number | undefined;
  /**
   * How many ms the completion of the finished work stands: at least the ttl and the period, at most 100 years (7 days on a quorum).
   * By default 7 days, or twice the period if that is longer than 7 days. With `tz` it stands until a day after the next time at least.
   */
  keep?: number | undefined;
  /**
   * How long to stand by while somebody else runs, in ms. The answer is "done" when that one finishes; if it dies, this call
   * takes over, with a higher token. Default 0: step aside at once.
   */
  wait?: number | undefined;
  /**
   * An operator's word that no completion was lost: on a quorum, nodes that have lost their data within 7 days count all the same.
   * Default `false`.
   */
  trustQuorum?: boolean | undefined;
  /** Runs although the work may be done, but not while somebody else runs; its finish replaces the completion. Default `false`. */
  evenIfDone?: boolean | undefined;
}

/**
 * When the work is to be done again: one of these has to be given. A `keep` alone is for work that its name already tells from all
 * other, such as `welcome-42`.
 */
export type Occurrence = { key: string } | { every: number } | { cron: string; tz: string } | { cooldown: number } | { keep: number };

/** The completion of finished work: while it stands, nobody does the work again. */
export interface Completion {
  /** When the work was finished, in ms since 1970. */
  at: number;
  /** The label of the run that did it; missing for runs without one. */
  owner?: string;
  /** The fencing token of that run. */
  token: number;
  /** How many ms the completion still stands. */
  left: number;
  /**
   * The result of the run: a value of JSON, or a `Uint8Array`; {@link noResult} or {@link unsettled} where there is none.
   */
  result: unknown;
  /** When the run began, in ms since 1970; known of runs that left a result. */
  began?: number;
}

/** In the place of a result: none was left, or the store had no room for it. */
export const noResult: unique symbol;
/** In the place of a result: there may be one, but no majority of the quorum's nodes has shown the same completion yet. */
export const unsettled: unique symbol;

/** The option of `once` that leaves a result. */
export interface SaveOptions {
  /** Leaves what `body` returns, as {@link FinishOptions.result}; `value` is then as those who come later read it. Default `false`. */
  saveResult?: boolean | undefined;
}

/** How a run is finished. */
export interface FinishOptions {
  /**
   * The `result` that later callers get: a `Uint8Array`, or a value that JSON can hold, at most 4 KiB. `undefined` is kept as
   * `null`.
   */
  result?: unknown;
}

/** The option of `once` and `beginRun` by which the newest call gets the run. */
export interface ReplaceOptions {
  /**
   * Takes the run over from its runner, for work that only the newest call has right. Its lease is lost, with the reason `"revoked"`. The call
   * waits until its holder has let go, or the lease has run out; of several calls that wait the newest runs, and the others are answered
   * {@link Replaced}. `wait` is the longest wait, by default without limit. Work that was done before is not done again, unless with
   * `evenIfDone`. Not with `maxAttempts`, a wait of 0 and, in clients that have it, `watchHolder`. Default `false`.
   */
  replace?: boolean | undefined;
}

/** A newer call with {@link ReplaceOptions.replace} has taken the place of this one. */
export interface Replaced {
  /** It was not done now. */
  ran: false;
  /** A newer call does it. */
  reason: "replaced";
}

/** This call has done the work, and its completion stands. */
export interface Ran<T> {
  /** It was done now. */
  ran: true;
  /** The result of the function. */
  value: T;
  /** The fencing token under which it ran. */
  token: number;
}

/** The work was done before, by the run of this completion. */
export interface AlreadyDone extends Completion {
  /** It was not done now. */
  ran: false;
  /** A completion stands. */
  reason: "done";
}
