"use strict";

/** The platform of this machine, such as `linux-x64-gnu`: the end of the name of the package with its native code. */
function platform() {
  const { platform: os, arch, report } = process;
  if (os !== "linux") return `${os}-${arch}`;
  return `${os}-${arch}-${/** @type {any} */ (report.getReport()).header.glibcVersionRuntime ? "gnu" : "musl"}`;
}

module.exports = { platform };
