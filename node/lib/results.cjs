"use strict";

// Results of runs, as they are written down and read again.
//
// It requires no other module, since it is also used without native code.

/** In the place of a result that was not kept, since `undefined` and `null` are results like any other. */
const noResult = Symbol("leasehold.noResult");
/** In the place of one of which no majority of a quorum is known to show the same. */
const unsettled = Symbol("leasehold.unsettled");

/** JSON has no number for these, and would keep `null` in their place. @param {string} _key @param {unknown} value */
function exact(_key, value) {
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError(`JSON has no number for ${value}`);
  return value;
}

/**
 * The kind of a result and what is kept of it; of the kind "unfit" the reason why it cannot be.
 *
 * @param {unknown} value
 * @returns {["bytes", Uint8Array] | ["json" | "unfit", string]}
 */
function written(value) {
  if (value instanceof Uint8Array) return ["bytes", value];
  try {
    const text = value === undefined ? "null" : JSON.stringify(value, exact);
    if (text === undefined) throw new TypeError(`JSON cannot hold a ${typeof value}`);
    return ["json", text];
  } catch (error) {
    return ["unfit", `it is neither bytes nor a value that JSON can hold: ${error instanceof Error ? error.message : error}`];
  }
}

/**
 * The value of a result. What cannot be read is none, as anybody can write to the store.
 *
 * @param {string | undefined} kind @param {Uint8Array | undefined} bytes @param {boolean} isUnsettled
 * @returns {unknown}
 */
function read(kind, bytes, isUnsettled = false) {
  if (kind === undefined || bytes === undefined) return isUnsettled ? unsettled : noResult;
  if (kind !== "json") return bytes;
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return noResult;
  }
}

/** The value as those who come later read it, so that the first caller gets the same. @param {unknown} value */
function asRead(value) {
  const [kind, kept] = written(value);
  return kind === "json" ? JSON.parse(kept) : value;
}

/** A body that leaves what it returns as the result of its run. @param {Function} body */
function saving(body) {
  return async (/** @type {{ finish(how: { result: unknown }): Promise<void> }} */ run) => {
    const value = await body(run);
    await run.finish({ result: value });
    return asRead(value);
  };
}

module.exports = { asRead, noResult, read, saving, unsettled, written };
