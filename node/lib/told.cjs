"use strict";

const { errorOf } = require("./errors.cjs");
const { Failure } = /** @type {any} */ (require("./native.cjs"));

/** The result of native code; throws if it is a failure. */
function told(answer) {
  if (answer instanceof Failure) throw errorOf(answer);
  return answer;
}

module.exports = { told };
