"use strict";

// The part of the settings of a run that says which work it does, and how long that counts as done. Native code has rules of its
// own; these are for the clients without it, apart from the first, which is for all. Requires no other module, like errors.cjs.

const DAY = 86_400_000;
const DEFAULT_KEEP = 7 * DAY;
const MAX_KEEP = 36_500 * DAY;

/**
 * What is missing in the settings, for people: without it, work would be done once and not again for seven days.
 *
 * @param {Record<string, any>} settings @param {boolean} hasCron Native code alone has times of a zone.
 */
function unspoken({ key, every, cron, cooldown, keep }, hasCron = false) {
  if ((key ?? every ?? cron ?? cooldown ?? keep) !== undefined) return undefined;
  return (
    "say when the work may be done again: key (never for this key, such as a date), every (in the next period), " +
    `${hasCron ? "cron (at its next time, by the clocks of tz), " : ""}cooldown (after so many milliseconds), or keep (after so ` +
    "many, if the name alone identifies the work)"
  );
}

/** What contradicts itself in the settings, for people; `undefined` if nothing does. @param {Record<string, any>} settings */
function contradiction({ key, every, offset, cooldown, keep, evenIfDone }) {
  if (key !== undefined && every !== undefined) return "a run has a key or a period, not both: leave out key or every";
  if (cooldown !== undefined && (key ?? every) !== undefined) return "a run has a key or a cooldown, not both";
  if (cooldown !== undefined && keep !== undefined) return "the cooldown already says how long the completion is kept: leave keep out";
  if (offset !== undefined && every === undefined) return "an offset moves the start of the periods, so it needs every: add every, or leave offset out";
  if (every !== undefined && keep < every && !(evenIfDone && keep === 0)) {
    return "keep is shorter than the period, so the job would be done again in it: make keep at least as long as the period";
  }
  return undefined;
}

/** How many ms the completion stands; `undefined` is the default of the protocol. @param {Record<string, any>} settings */
function kept({ every, cooldown, keep }) {
  // The next period may begin later by the clock of another machine.
  return cooldown ?? keep ?? (every === undefined ? undefined : Math.max(DEFAULT_KEEP, Math.min(2 * every, MAX_KEEP)));
}

module.exports = { contradiction, kept, unspoken };
