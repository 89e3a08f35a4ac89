"use strict";

/** What this machine runs native code for, such as `linux-x64-gnu`: the end of the name of the package that has it. */
function platform() {
  const { platform: os, arch, report } = process;
  if (os !== "linux") return `${os}-${arch}`;
  return `${os}-${arch}-${report.getReport().header.glibcVersionRuntime ? "gnu" : "musl"}`;
}

module.exports = { platform };
