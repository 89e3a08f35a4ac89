"use strict";

// The native half: beside this package where it was built from source, else in the package of the platform.

const { existsSync } = require("node:fs");
const { join } = require("node:path");
const { version } = require("../package.json");
const { platform } = require("./platform.cjs");

const HERE = join(__dirname, "..", "leasehold.node");

/** Of all copies of this package on this thread: native halves by their versions. */
const COPIES = Symbol.for("leasehold.native");

function load() {
  if (existsSync(HERE)) return require(HERE);
  const name = `@leasehold/${platform()}`;
  try {
    return require(name);
  } catch (cause) {
    throw new Error(`leasehold has no native code for this platform: ${name} is not installed`, { cause });
  }
}

// Copies of one version share what the first one has loaded, for two SQLites in one process undo each other's file locks.
const copies = (globalThis[COPIES] ??= new Map());
const native = copies.get(version) ?? load();
if (!copies.has(version)) copies.set(version, native);
const [first] = copies.keys();

/** `elder` is the version of a copy that came first, unless it is this one: SQLite is its alone. */
module.exports = { ...native, elder: first === version ? undefined : first };
