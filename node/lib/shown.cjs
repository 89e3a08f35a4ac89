"use strict";

// The text of an object in logs: its class, and the result of its `toJSON`. Requires no other module, like errors.cjs.

const INSPECT = Symbol.for("nodejs.util.inspect.custom");

/** Makes `console.log` show for these classes what `JSON.stringify` shows. */
function shows(...classes) {
  for (const { prototype } of classes) Object.defineProperty(prototype, INSPECT, { value: show, configurable: true });
}

/** @this {any} */
function show(depth, options, inspect) {
  const { name } = this.constructor;
  return depth < 0 ? `[${name}]` : `${name} ${inspect(this.toJSON(), options)}`;
}

module.exports = { shows };
