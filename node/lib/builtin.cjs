"use strict";

/**
 * A module of Node. A bundle that is an ES module has no `require` for it, and needs none from Node 20.16 on; `required` does it
 * before.
 */
function builtin(name, required) {
  return process.getBuiltinModule?.(name) ?? required();
}

module.exports = { builtin };
