"use strict";

// Lengths of time that were most likely meant in another unit. Here they are milliseconds, and people think of leases in seconds.
// The rule for what is too long is that of client/src/lengths.rs.

const { ConfigError } = require("./errors.cjs");

const SECOND = 1_000;
const HOUR = 3_600_000;
const YEAR = 366 * 24 * HOUR;
const LONGEST = 36_500 * 24 * HOUR;
/** The least that the protocol takes. */
const LEAST_TTL = 100;
/** Below this they are possible, and hardly meant: a wait of 0 tries once. */
const SHORT = { ttl: SECOND, wait: 100 };
const LONG = ["every", "cooldown", "keep"];

/** Names of settings of which a warning was shown. */
const doubted = new Set();
let isExact = false;

/** Refuses a ttl that cannot be, and warns once of a length that is hardly meant. */
function checkLength(name, ms) {
  if (name === "ttl" && ms > 0 && ms < LEAST_TTL) {
    throw new ConfigError(`ttl: ${ms} is below the smallest, ${LEAST_TTL}: lengths of time are milliseconds, so ${inSeconds(ms)}`);
  }
  if (isExact || doubted.has(name)) return;
  if (ms > 0 && ms < SHORT[name]) {
    doubt(name, `${name}: ${ms} is ${ms / SECOND} s, since lengths of time are milliseconds: ${inSeconds(ms)}`);
  }
  if (LONG.includes(name) && ms > YEAR && ms < LONGEST && (ms / 1_000) % HOUR === 0) {
    const days = Math.round(ms / (24 * HOUR));
    doubt(name, `${name}: ${ms} is ${days} days, since lengths of time are milliseconds: if smaller units were meant, write ${grouped(ms / 1_000)}`);
  }
}

const inSeconds = (ms) => `for ${ms} s write ${grouped(ms * SECOND)}`;

/** A whole number as it is written in a program. */
const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, "_");

function doubt(name, message) {
  doubted.add(name);
  const warning = { type: "LeaseholdWarning", code: "LEASEHOLD_LENGTH" };
  // Browsers have none.
  const emit = globalThis.process?.emitWarning;
  if (emit !== undefined) emit(message, warning);
  else globalThis.console?.warn(`${warning.type}: ${message}`);
}

/** Makes a call whose lengths of time a program has computed: none of them is doubted. */
function exactly(call) {
  const before = isExact;
  isExact = true;
  try {
    return call();
  } finally {
    isExact = before;
  }
}

module.exports = { checkLength, exactly };
