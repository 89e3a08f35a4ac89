// Bundlers, other runtimes and earlier versions of libraries, and a folder where the package is installed as users have it.

import { cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { remove } from "./folder.mjs";

const target = fileURLToPath(new URL("../../", import.meta.url));
const others = process.env.LEASEHOLD_OTHERS;
const require = createRequire(join(others, "package.json"));

/** The name of the package with the native code for this machine. */
export const { name: PLATFORM } = JSON.parse(readFileSync(join(target, "platform/package.json"), "utf8"));

/** One of the packages. */
export const other = (name) => require(name);
/** The folder of one of them. */
export const folderOf = (name) => join(others, "node_modules", name);
/** The program of a runtime: nothing was run that would have put it where npm does. */
export function binary(name) {
  const { bun, deno } = RUNTIMES[`${process.platform}-${process.arch}`];
  return join(others, "node_modules", { bun, deno }[name]);
}

const RUNTIMES = {
  "linux-x64": { bun: "@oven/bun-linux-x64/bin/bun", deno: "@deno/linux-x64-glibc/deno" },
  "linux-arm64": { bun: "@oven/bun-linux-aarch64/bin/bun", deno: "@deno/linux-arm64-glibc/deno" },
  "darwin-x64": { bun: "@oven/bun-darwin-x64/bin/bun", deno: "@deno/darwin-x64/deno" },
  "darwin-arm64": { bun: "@oven/bun-darwin-aarch64/bin/bun", deno: "@deno/darwin-arm64/deno" },
};

/** A new folder with both packages of ours in its `node_modules`, and these files. */
export function installed(t, files = {}) {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-others-"));
  remove(t, folder);
  const packages = { package: "leasehold", platform: PLATFORM };
  for (const [from, name] of Object.entries(packages)) cpSync(join(target, from), join(folder, "node_modules", name), { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}
