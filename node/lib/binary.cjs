"use strict";

// The file with the native code: in a checkout beside this package, and otherwise in the package of the platform.

const { builtin } = require("./builtin.cjs");
const { basename, isAbsolute } = builtin("node:path", () => require("node:path"));
const { createRequire } = builtin("node:module", () => require("node:module"));
const { optionalDependencies: PACKAGES } = require("../package.json");
const { platform } = require("./platform.cjs");

const PACKAGE = `@leasehold/${platform()}`;
/** The file of a checkout, and one that was put beside a bundle. */
const FILES = ["../leasehold.node", "./leasehold.node"];

/**
 * Never called. Tools that trace files, such as `@vercel/nft`, read it: each package is written out, those of package.json.
 * Bundlers cannot put native code into a bundle: webpack leaves out the branch, and others leave `require.resolve` as it is. What
 * is tried may fail, so they do not complain about other platforms.
 */
function traced() {
  if (typeof __webpack_require__ === "undefined") {
    try {
      require.resolve("@leasehold/darwin-arm64");
      require.resolve("@leasehold/darwin-x64");
      require.resolve("@leasehold/linux-arm64-gnu");
      require.resolve("@leasehold/linux-arm64-musl");
      require.resolve("@leasehold/linux-x64-gnu");
      require.resolve("@leasehold/linux-x64-musl");
    } catch {
      // It is the tool that looks for them.
    }
  }
}

/** This file, or a bundle with this in it. Undefined in bundles that are ES modules or hide their place. */
const HERE = typeof __filename === "string" ? __filename : undefined;

/** The native code and its file. */
function binary() {
  const found = search();
  if (found === undefined) throw new Error(absent());
  const { load, file } = found;
  try {
    return { native: load(file), file };
  } catch (cause) {
    throw new Error(`the native code of leasehold, ${file}, cannot be loaded on ${platform()}: ${cause.message}`, { cause });
  }
}

/** From here, or else, in a bundle that does not know its place, from the program that was started. */
function search() {
  for (const from of new Set([HERE, process.argv[1]])) {
    // `node -` and `node -e` have no file, and some bundles have a relative name for their place.
    if (from === undefined || !isAbsolute(from)) continue;
    const load = createRequire(from);
    const names = from === HERE ? [FILES[0], PACKAGE, FILES[1]] : [PACKAGE, FILES[1]];
    for (const name of names) {
      try {
        return { load, file: load.resolve(name) };
      } catch (error) {
        if (error.code !== "MODULE_NOT_FOUND") throw error;
      }
    }
  }
  return undefined;
}

function absent() {
  if (!Object.hasOwn(PACKAGES, PACKAGE)) {
    const known = Object.keys(PACKAGES).map((name) => name.slice("@leasehold/".length)).join(", ");
    return (
      `leasehold has no native code for ${platform()}, but for ${known}: on other platforms, use \`leasehold/edge\`, ` +
      "which runs without native code, on stores with an HTTP interface"
    );
  }
  const from = `the native code of leasehold is not here: ${PACKAGE} cannot be found from ${HERE ?? process.argv[1]}`;
  // A bundler has put this into another file.
  if (HERE === undefined || basename(HERE) !== "binary.cjs") {
    return (
      `${from}. That is a bundle, and bundles cannot contain native code: install ${PACKAGE} where it runs, or tell the ` +
      "bundler that leasehold is external; docs/bundlers.md has the setting of each"
    );
  }
  return (
    `${from}. Install leasehold on this machine, without --omit=optional, instead of copying node_modules from one of ` +
    "another platform. If a tool has copied the files, tell it to copy that package too: docs/bundlers.md"
  );
}

module.exports = { binary, traced };
