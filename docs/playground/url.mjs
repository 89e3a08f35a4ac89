// The state of the playground as the part of a url behind its `#`, and back. What cannot be read is left out, and told.

import { SCENARIOS, scenarioOf } from "./scenarios.mjs";
import { DEEDS, MOST_DEEDS, MOST_SECONDS } from "./session.mjs";
import { STORES } from "./world.mjs";

const NS = 1e9;
/** `least` to `most`, in steps; `of` names the setting, `factor` its unit. */
export const NUMBERS = {
  ttl: { of: "ttlMs", least: 2, most: 30, step: 1, usual: 8, factor: 1_000 },
  drift: { of: "driftPercent", least: 0, most: 10, step: 0.5, usual: 1, factor: 1 },
  latency: { of: "latencyMs", least: 5, most: 1_000, step: 5, usual: 300, factor: 1 },
  loss: { of: "lossPercent", least: 0, most: 50, step: 1, usual: 0, factor: 1 },
  seed: { of: "seed", least: 0, most: 9_999, step: 1, usual: 7, factor: 1 },
};
const OTHERS = ["scenario", "store", "guard", "t", "do"];
/** More of them would fill the page. */
const MOST_NOTES = 4;

/** What a scenario begins with. */
export function usual(scenario = SCENARIOS[0].id) {
  const numbers = Object.values(NUMBERS).map(({ of, usual, factor }) => [of, usual * factor]);
  const { store = "single", seed = NUMBERS.seed.usual } = scenarioOf(scenario);
  return { scenario, store, isGuarded: true, ...Object.fromEntries(numbers), seed, atNs: 0, deeds: [] };
}

/** Answers `{ settings, notes }`; the notes say what could not be read. */
export function read(hash) {
  const notes = [];
  const given = new Map();
  for (const part of hash.replace(/^#/, "").split("&").filter(Boolean)) {
    const [name, value = ""] = part.split(/=(.*)/s);
    if (Object.hasOwn(NUMBERS, name) || OTHERS.includes(name)) given.set(name, value);
    else notes.push(`“${short(name)}” is no setting`);
  }
  const choose = (name, among, otherwise) => {
    const value = given.get(name);
    if (value === undefined || among.includes(value)) return value ?? otherwise;
    notes.push(`${name}=${short(value)} is not known, ${otherwise} is used`);
    return otherwise;
  };
  const settings = usual(
    choose(
      "scenario",
      SCENARIOS.map(({ id }) => id),
      SCENARIOS[0].id,
    ),
  );
  const { store: needed, title } = scenarioOf(settings.scenario);
  settings.store = choose("store", Object.keys(STORES), settings.store);
  if (needed !== undefined && settings.store !== needed) {
    notes.push(`“${title}” needs store=${needed}`);
    settings.store = needed;
  }
  settings.isGuarded = choose("guard", ["on", "off"], "on") === "on";
  for (const [name, { of, least, most, step, factor }] of Object.entries(NUMBERS)) {
    if (!given.has(name)) continue;
    const value = numberOf(given.get(name));
    if (value >= least && value <= most && Number.isInteger(value / step)) settings[of] = value * factor;
    else notes.push(`${name}=${short(given.get(name))} is not one of ${least} to ${most}, ${settings[of] / factor} is used`);
  }
  settings.atNs = timeOf(given.get("t") ?? "0") ?? 0;
  if (given.has("t") && timeOf(given.get("t")) === undefined) {
    notes.push(`t=${short(given.get("t"))} is not one of 0 to ${MOST_SECONDS} seconds, 0 is used`);
  }
  settings.deeds = deedsOf(given.get("do") ?? "", notes).filter(({ atNs }) => atNs <= settings.atNs);
  return { settings, notes: notes.length > MOST_NOTES ? [...notes.slice(0, MOST_NOTES), "and more"] : notes };
}

/** What `read` reads, with all that is usual left out but for what people may want to change. */
export function written({ scenario, store, isGuarded, ...settings }, atNs, deeds) {
  const parts = [`scenario=${scenario}`, `store=${store}`];
  for (const [name, { of, factor }] of Object.entries(NUMBERS)) parts.push(`${name}=${settings[of] / factor}`);
  if (!isGuarded) parts.push("guard=off");
  parts.push(`t=${seconds(atNs)}`);
  if (deeds.length > 0) parts.push(`do=${deeds.map(({ atNs, verb, to }) => `${seconds(atNs)}-${verb}-${to}`).join(",")}`);
  return `#${parts.join("&")}`;
}

function deedsOf(text, notes) {
  const deeds = [];
  for (const part of text.split(",").filter(Boolean)) {
    const [time, verb, to = ""] = part.split("-");
    const atNs = timeOf(time);
    if (atNs === undefined || !Object.hasOwn(DEEDS, verb ?? "") || !/^[a-z0-9]{1,4}$/.test(to)) {
      notes.push(`“${short(part)}” is nothing that can be done`);
    } else if (deeds.length === MOST_DEEDS) {
      notes.push(`only the first ${MOST_DEEDS} deeds are done`);
      break;
    } else if (atNs < (deeds.at(-1)?.atNs ?? 0)) {
      notes.push(`“${short(part)}” comes too late in the list`);
    } else {
      deeds.push({ atNs, verb, to });
    }
  }
  return deeds;
}

/** Plain decimals alone: no signs, no exponents. */
function numberOf(text) {
  return /^\d{1,6}(\.\d{1,3})?$/.test(text) ? Number(text) : NaN;
}

function timeOf(text) {
  if (!/^\d{1,4}(\.\d{1,2})?$/.test(text)) return undefined;
  const ns = Math.round(Number(text) * 100) * (NS / 100);
  return ns <= MOST_SECONDS * NS ? ns : undefined;
}

const seconds = (ns) => String(Math.round(ns / (NS / 100)) / 100);

function short(text) {
  return text.length > 24 ? `${text.slice(0, 24)}…` : text;
}
