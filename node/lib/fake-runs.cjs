"use strict";

// Runs of the fake clients of testing.cjs.

const errors = require("./errors.cjs");
const { runs } = require("./machine.cjs");
const { contradiction, kept } = require("./occurrence.cjs");
const { told } = require("./told.cjs");

/** How long to wait for a runner before its completion is removed, in ms, as in the real client. */
const FORGET_WAIT = 10_000;

/** The resource of a run that is asked for at this time, and the settings of its lock. */
function requested(name, given, unixMs) {
  const { key, every, offset, cooldown: _, keep: __, trustQuorum, evenIfDone, watchHolder: ___, wait = 0, ...rest } = given;
  const problem = contradiction(given);
  if (problem !== undefined) throw new errors.ConfigError(problem, { resource: name });
  const named = every === undefined ? key : runs("period-key", unixMs, every, offset ?? 0);
  const resource = runs("run-resource", name, named);
  return { resource, settings: { ...rest, wait, run: { keep: kept(given), trustQuorum, evenIfDone } } };
}

/** Removes the completion of a run that was seen. */
async function forgotten(process, { resource, done }) {
  if (done === undefined) return undefined;
  const { world } = process;
  const isFree = () => process.inspect(resource).begin() === undefined;
  await world.meanwhile(FORGET_WAIT, isFree);
  if (!isFree()) throw new errors.LockTimeoutError(`"${resource}" was run for the whole wait`, { resource });
  told(world.store.forget(resource));
  return done;
}

function markOf(seen) {
  if (seen === undefined) return undefined;
  const { atUnixMs: at, owner, token, leftMs: left } = seen;
  return owner ? { at, owner, token, left } : { at, token, left };
}

function unconfirmed(resource) {
  const message = `the work of "${resource}" was done, but the store did not confirm its completion`;
  return new errors.FinishUnconfirmedError(message, { resource });
}

module.exports = { forgotten, markOf, requested, unconfirmed };
