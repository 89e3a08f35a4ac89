"use strict";

// From the client's events and samples to observers. While there are none, nothing is noted.

const { inspect } = require("node:util");
const native = require("./native.cjs");

const LEVELS = ["trace", "debug", "info", "warn", "error"];

const observers = new Set();
/** What was fetched, as pairs of who is to be told and what. */
const due = [];
let isTelling = false;
/** Made for the first observer; another thread has its own. */
let observation;

function observe(given) {
  const observer = checked(given);
  if (observation === undefined) {
    observation = new native.Observation(deliver);
    process.on("exit", deliver);
  }
  // What was noted before is for others.
  if (!isTelling) deliver();
  observers.add(observer);
  agree();
  return () => {
    // It has a right to what was noted before, unless it is being told of something.
    if (!isTelling) deliver();
    if (observers.delete(observer)) agree();
  };
}

function checked(given) {
  if (typeof given !== "object" || given === null) throw new TypeError("an observer is an object");
  const { level = "info", event, sample, ...rest } = given;
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw new TypeError(`an observer has event, sample and level, and no ${unknown}`);
  if (!LEVELS.includes(level)) throw new TypeError(`level is one of ${LEVELS.join(", ")}, not ${String(level)}`);
  for (const [name, call] of Object.entries({ event, sample })) {
    if (call !== undefined && typeof call !== "function") throw new TypeError(`${name} is a function to call`);
  }
  if (event === undefined && sample === undefined) throw new TypeError("an observer has an event, a sample or both");
  return { least: LEVELS.indexOf(level), event, sample };
}

/** Has noted what somebody wants, and no more. */
function agree() {
  const heeded = Array.from(observers).filter(({ event }) => event !== undefined);
  const samples = Array.from(observers).some(({ sample }) => sample !== undefined);
  // Of an empty list the least is infinite, and names no level.
  observation.want(LEVELS[Math.min(...heeded.map(({ least }) => least))], samples);
}

/** Passes on what was noted, also from within: an observer may end the process. */
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

/** Others listen too, and a lock is no worse for it. */
function warn(error) {
  process.emitWarning(`an observer has thrown: ${inspect(error)}`, "LeaseholdWarning");
}

function dropping(dropped) {
  const message = "more was told than an event loop that is busy could take";
  return { event: "lock.events_dropped", level: "warn", time: Date.now(), message, fields: { dropped } };
}

module.exports = { deliver, observe };
