"use strict";

// The reason of a failure in words. Requires no other module, like errors.cjs.

/** Tells if this is an error, also one of another realm, such as a test runner makes. */
const isError = (value) => value instanceof Error || Object.prototype.toString.call(value) === "[object Error]";

/** The reason of a failure in words: of an error `name: message`, and nothing for a value without a text. */
function reasonOf(thrown) {
  try {
    return isError(thrown) ? Error.prototype.toString.call(thrown) : `${thrown}`;
  } catch {
    return "";
  }
}

/** The same of a reason that a caller gives. @param {unknown} reason */
function reasonGiven(reason) {
  if (typeof reason !== "string" && !isError(reason)) {
    throw new TypeError(`fail needs the reason, a string or an Error, not ${typeof reason}`);
  }
  return reasonOf(reason);
}

module.exports = { reasonGiven, reasonOf };
