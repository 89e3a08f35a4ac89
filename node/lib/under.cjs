"use strict";

// Code that runs under a lock. Asks for no other module, as errors.cjs.

const ASYNC_DISPOSE = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

/** Runs the body, whose own error goes before that of a lost lease, which `told` puts into words. */
async function under(lease, body, told = (error) => error) {
  let result;
  try {
    result = await body(lease);
  } catch (error) {
    await lease[ASYNC_DISPOSE]().catch(() => {});
    throw error;
  }
  await lease[ASYNC_DISPOSE]().catch((error) => {
    throw told(error);
  });
  return result;
}

module.exports = { ASYNC_DISPOSE, under };
