"use strict";

// What is missing in the settings of a run, in words that have its unit of time. All other rules about them are in the core. Requires
// no other module, like errors.cjs.

/**
 * What is missing, for people: without it, work would be done once and not again for seven days.
 *
 * @param {Record<string, any>} settings
 */
function unspoken({ key, every, cron, cooldown, keep }) {
  if ((key ?? every ?? cron ?? cooldown ?? keep) !== undefined) return undefined;
  return (
    "say when the work may be done again: key (never for this key, such as a date), every (in the next period), cron (at its next time, " +
    "by the clocks of tz), cooldown (after so many milliseconds), or keep (after so many, if the name alone identifies the work)"
  );
}

module.exports = { unspoken };
