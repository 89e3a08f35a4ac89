"use strict";

// The native code, once for each thread.

const { builtin } = require("./builtin.cjs");
const { readFileSync, statSync } = builtin("node:fs", () => require("node:fs"));
const { isMainThread, threadId } = builtin("node:worker_threads", () => require("node:worker_threads"));
const { version } = require("../package.json");
const { binary } = require("./binary.cjs");

/** The native code of all copies of this package on this thread, by version. */
const COPIES = Symbol.for("leasehold.native");

function load() {
  const { native, file } = binary();
  return { ...native, elder: stranger(file) };
}

/**
 * The file of another copy that is loaded in this process, also by another thread. Checked after loading ours, so that of two
 * threads that load at once, each sees the other's. Works only on Linux.
 */
function stranger(ours) {
  let maps;
  try {
    maps = readFileSync("/proc/self/maps", "utf8");
  } catch {
    return undefined;
  }
  const same = fileOf(ours);
  const found = maps.matchAll(/^(?:\S+ +){5}(\/.*\/leasehold\.node(?: \(deleted\))?)$/gm);
  // Compared by identity, since package managers link one file into several places.
  return Array.from(found, ([, file]) => file).find((file) => fileOf(file) !== same);
}

function fileOf(path) {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return path;
  }
}

// Copies of one version share the code that the first one has loaded: two SQLite libraries remove each other's file locks.
const copies = (globalThis[COPIES] ??= new Map());
const native = copies.get(version) ?? load();
if (!copies.has(version)) copies.set(version, native);
// For the labels of leases.
native.nameThread(isMainThread ? "main" : `worker-${threadId}`);
const [first] = copies.keys();

/** `elder` is the version or file of an earlier copy, if there is one: only that copy may use SQLite. */
module.exports = { ...native, elder: first === version ? native.elder : `leasehold ${first}` };
