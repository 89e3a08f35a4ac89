"use strict";

const { errorOf } = require("./errors.cjs");
const { Failure } = require("./native.cjs");

/** What native code answered, unless that is a failure. */
function told(answer) {
  if (answer instanceof Failure) throw errorOf(answer);
  return answer;
}

module.exports = { told };
