"use strict";

// Callbacks of elections and shards that have thrown.

const { errorOf } = require("./errors.cjs");

const isOfCallback = (error) => error.code === "callback_failed";

/** Warns of what a callback has thrown. Returns it for native code. */
function warn(what, callback, thrown) {
  let text = "a value without a text";
  let stack;
  try {
    text = `${thrown}`;
    stack = `${thrown?.stack ?? text}`;
  } catch {
    stack = text;
  }
  process.emitWarning(`${callback} of the ${what} has thrown: ${stack}`, { type: "LeaseholdWarning" });
  return `${callback} has thrown ${text}`;
}

/** The error to show for a failure, caused by what a callback has thrown where it is of one: `thrown` has that by resource. */
function lastError(failure, thrown) {
  if (!failure) return null;
  const error = /** @type {any} */ (errorOf(failure));
  if (isOfCallback(error)) error.cause = thrown.get(error.resource)?.error;
  return error;
}

/** Waits for the end, and throws what a callback has thrown where that is why it failed. */
async function ended(end, over, thrown) {
  const failure = await end.then(() => undefined, (error) => error);
  await over;
  if (failure === undefined) return;
  const cause = isOfCallback(failure) && thrown.get(failure.resource);
  throw cause ? cause.error : failure;
}

module.exports = { ended, lastError, warn };
