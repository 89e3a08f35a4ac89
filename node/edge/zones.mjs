// The offsets of a zone, by the tables of the runtime.

import errors from "./shared/errors.mjs";

const { ConfigError } = errors;

/** How far back the component wants to know them. */
const BACK_MS = 172_800_000;
/** Zones keep an offset for longer than this: half a day. */
const STEP_MS = 43_200_000;

/**
 * The offsets of a zone that counted lately, for the component; none without a zone.
 *
 * @param {string | undefined} zone @param {bigint} unixMs
 */
export function zoneOffsets(zone, unixMs) {
  if (zone === undefined) return [];
  const ahead = aheadIn(zone);
  const now = Number(unixMs);
  let at = Math.max(now - BACK_MS, 0);
  let offset = ahead(at);
  const found = [[at, offset]];
  while (at < now) {
    let next = Math.min(at + STEP_MS, now);
    if (ahead(next) !== offset) {
      next = firstThat((ms) => ahead(ms) !== offset, at, next);
      offset = ahead(next);
      found.push([next, offset]);
    }
    at = next;
  }
  return found.map(([since, ahead]) => ({ sinceUnixMs: BigInt(since), shownMs: BigInt(Math.max(since + ahead, 0)) }));
}

/** The first ms that has the property, which `from` has not and `to` has. */
function firstThat(has, from, to) {
  let [before, first] = [from, to];
  while (first - before > 1) {
    const middle = Math.floor((before + first) / 2);
    if (has(middle)) first = middle;
    else before = middle;
  }
  return first;
}

/** A function that answers by how many ms the clocks of a zone are ahead of UTC. @returns {(unixMs: number) => number} */
function aheadIn(zone) {
  const shown = format(zone);
  return (unixMs) => {
    // Clocks show whole seconds.
    const second = Math.floor(unixMs / 1_000) * 1_000;
    const { year, month, day, hour, minute, second: of } = shown(second);
    return Date.UTC(year, month - 1, day, hour, minute, of) - second;
  };
}

/** @returns {(unixMs: number) => Record<string, number>} */
function format(timeZone) {
  const parts = { year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" };
  /** @type {any} */
  const settings = { calendar: "gregory", numberingSystem: "latn", hourCycle: "h23", timeZone, ...parts };
  try {
    // Later runtimes take an offset, too, which is no zone elsewhere.
    if (/^[+-]/.test(timeZone)) throw new RangeError("an offset");
    const clock = new Intl.DateTimeFormat("en-US", settings);
    return (unixMs) => Object.fromEntries(clock.formatToParts(unixMs).map(({ type, value }) => [type, Number(value)]));
  } catch {
    throw new ConfigError(
      `${JSON.stringify(timeZone)} is no zone that this machine knows: give its name in the IANA database, such as Europe/Berlin or UTC`,
    );
  }
}
