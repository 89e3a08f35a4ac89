"use strict";

// Delivers the client's events and samples to observers. Without observers, nothing is recorded.

const { builtin } = require("./builtin.cjs");
const { inspect } = builtin("node:util", () => require("node:util"));
const native = require("./native.cjs");

const LEVELS = ["trace", "debug", "info", "warn", "error"];

const observers = new Set();
/** Fetched items, as pairs of receivers and items. */
const due = [];
let isTelling = false;
/** Created for the first observer; each thread has its own. */
let observation;

function observe(given) {
  const observer = checked(given);
  if (observation === undefined) {
    observation = new native.Observation(deliver);
    process.on("exit", deliver);
  }
  // Earlier items are for earlier observers.
  if (!isTelling) deliver();
  observers.add(observer);
  agree();
  return () => {
    // Deliver earlier items first, unless a delivery is running.
    if (!isTelling) deliver();
    if (observers.delete(observer)) agree();
  };
}

function checked(given) {
  if (typeof given !== "object" || given === null) throw new TypeError("an observer must be an object");
  const { level = "info", event, sample, ...rest } = given;
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw new TypeError(`an observer has event, sample and level, but not ${unknown}`);
  if (!LEVELS.includes(level)) throw new TypeError(`level must be one of ${LEVELS.join(", ")}, not ${String(level)}`);
  for (const [name, call] of Object.entries({ event, sample })) {
    if (call !== undefined && typeof call !== "function") throw new TypeError(`${name} must be a function`);
  }
  if (event === undefined && sample === undefined) throw new TypeError("an observer needs event, sample or both");
  return { least: LEVELS.indexOf(level), event, sample };
}

/** Records only the levels and samples that have observers. */
function agree() {
  const heeded = Array.from(observers).filter(({ event }) => event !== undefined);
  const samples = Array.from(observers).some(({ sample }) => sample !== undefined);
  // The minimum of an empty list is infinite, which is not a level.
  observation.want(LEVELS[Math.min(...heeded.map(({ least }) => least))], samples);
}

/** Delivers recorded items, also when called by an observer, which may end the process. */
function deliver() {
  if (observation === undefined) return;
  const { items, dropped } = observation.fetch();
  if (dropped > 0) items.push(dropping(dropped));
  for (const item of items) {
    for (const observer of observers) due.push([observer, item]);
  }
  const wasTelling = isTelling;
  isTelling = true;
  while (due.length > 0) {
    const [observer, item] = due.shift();
    if (observers.has(observer)) tell(observer, item);
  }
  isTelling = wasTelling;
}

function tell(observer, item) {
  try {
    const told = item.level === undefined ? observer.sample?.(item) : heed(observer, item);
    if (told instanceof Promise) told.catch(warn);
  } catch (error) {
    warn(error);
  }
}

function heed({ least, event }, item) {
  return LEVELS.indexOf(item.level) >= least ? event?.(item) : undefined;
}

/** Shows an exception of an observer; other observers and locks are not affected. */
function warn(error) {
  process.emitWarning(`an observer has thrown: ${inspect(error)}`, "LeaseholdWarning");
}

function dropping(dropped) {
  const message = "there were more events than the busy event loop could take";
  return { event: "lock.events_dropped", level: "warn", time: Date.now(), message, fields: { dropped } };
}

module.exports = { deliver, observe };
