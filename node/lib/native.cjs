"use strict";

// The native half: beside this package where it was built from source, else in the package of the platform.

const { existsSync, readFileSync, statSync } = require("node:fs");
const { join } = require("node:path");
const { version } = require("../package.json");
const { platform } = require("./platform.cjs");

const HERE = join(__dirname, "..", "leasehold.node");

/** Of all copies of this package on this thread: native halves by their versions. */
const COPIES = Symbol.for("leasehold.native");

function load() {
  if (existsSync(HERE)) return { ...require(HERE), elder: stranger(HERE) };
  const name = `@leasehold/${platform()}`;
  try {
    return { ...require(name), elder: stranger(require.resolve(name)) };
  } catch (cause) {
    throw new Error(`leasehold has no native code for this platform: ${name} is not installed`, { cause });
  }
}

/**
 * The file of another copy that is loaded in this process, be it by another thread. Looked for after ours was loaded: of two
 * threads that load at once both see the other's. Linux alone tells.
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
  // By what they are, for package managers link one file into several places.
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

// Copies of one version share what the first one has loaded, for two SQLites in one process undo each other's file locks.
const copies = (globalThis[COPIES] ??= new Map());
const native = copies.get(version) ?? load();
if (!copies.has(version)) copies.set(version, native);
const [first] = copies.keys();

/** `elder` is a copy that came first, by its version or its file, unless it is this one: SQLite is its alone. */
module.exports = { ...native, elder: first === version ? native.elder : `leasehold ${first}` };
