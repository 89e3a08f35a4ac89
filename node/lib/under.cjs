"use strict";

// Runs code under a lock. Requires no other module, like errors.cjs.

const ASYNC_DISPOSE = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

/**
 * Runs the body, and then ends the lease: with `leave` after a body without an error, and otherwise with `fail`, which gets the error.
 * The body's own error takes precedence over that of a lost lease, which `told` makes.
 */
async function under(lease, body, told = (error) => error, leave = ASYNC_DISPOSE, fail = ASYNC_DISPOSE) {
  let result;
  try {
    result = await body(lease);
  } catch (error) {
    await lease[fail](error).catch(() => {});
    throw error;
  }
  await lease[leave]().catch((error) => {
    throw told(error);
  });
  return result;
}

module.exports = { ASYNC_DISPOSE, under };
