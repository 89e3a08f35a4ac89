"use strict";

// The native half: beside this package where it was built from source, else in the package of the platform.

const { existsSync } = require("node:fs");
const { join } = require("node:path");

const HERE = join(__dirname, "..", "leasehold.node");

function platform() {
  const isMusl = process.platform === "linux" && !process.report.getReport().header.glibcVersionRuntime;
  return `${process.platform}-${process.arch}${isMusl ? "-musl" : ""}`;
}

function load() {
  if (existsSync(HERE)) return require(HERE);
  const name = `@leasehold/${platform()}`;
  try {
    return require(name);
  } catch (cause) {
    throw new Error(`leasehold has no native code for this platform: ${name} is not installed`, { cause });
  }
}

module.exports = load();
