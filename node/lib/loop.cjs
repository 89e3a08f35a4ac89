"use strict";

// Operations of native code on this event loop. An awaited operation keeps the process alive, like a request of Node itself;
// a watch does not.

const { Failure, Reactor } = require("./native.cjs");
const { errorOf } = require("./errors.cjs");

const settlers = new Map();
let awaited = 0;

/** Settles all operations that can go on. */
function runReady() {
  const ended = reactor.run();
  for (let at = 0; at < ended.length; at += 2) {
    const settle = settlers.get(ended[at]);
    settlers.delete(ended[at]);
    settle?.(ended[at + 1]);
  }
}

const reactor = new Reactor(runReady);

function hold() {
  if (++awaited === 1) reactor.hold();
}

function letGo() {
  if (--awaited === 0) reactor.letGo();
}

/**
 * The result of an operation. An abort cancels the operation, undoes its effects, and rejects with the signal's reason.
 */
async function run(operation, signal) {
  signal?.throwIfAborted();
  // Operations of leasehold/testing.
  if (operation.begin !== undefined) return operation.begin(signal);
  const begun = reactor.start(operation);
  if (begun instanceof Failure) throw errorOf(begun);
  if (typeof begun !== "number") return begun;
  hold();
  let abort;
  try {
    return await new Promise((resolve, reject) => {
      settlers.set(begun, (answer) => (answer instanceof Failure ? reject(errorOf(answer)) : resolve(answer)));
      if (signal === undefined) return;
      abort = () => {
        // The result is settled, and the caller is about to get it.
        if (!settlers.delete(begun)) return;
        reactor.cancel(begun);
        reject(signal.reason);
      };
      signal.addEventListener("abort", abort, { once: true });
    });
  } finally {
    letGo();
    if (abort !== undefined) signal.removeEventListener("abort", abort);
  }
}

/** Calls `ended` with the failure of the operation. Returns a function that ends the watch earlier. */
function watch(operation, ended) {
  if (operation.begin !== undefined) return operation.begin(ended);
  const begun = reactor.start(operation);
  if (typeof begun !== "number") {
    queueMicrotask(() => ended(errorOf(begun)));
    return () => {};
  }
  settlers.set(begun, (failure) => ended(errorOf(failure)));
  return () => {
    if (settlers.delete(begun)) reactor.cancel(begun);
  };
}

/** The number of pending operations; for tests. */
function left() {
  return { settlers: settlers.size, running: reactor.running };
}

module.exports = { left, run, runReady, watch };
