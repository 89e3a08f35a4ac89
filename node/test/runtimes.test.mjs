// Other runtimes that load addons: Bun and Deno.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { sqlite } from "./helpers/folder.mjs";
import { binary, installed } from "./helpers/others.mjs";
import { startRedis } from "./helpers/servers.mjs";

const RUNTIMES = {
  node: [process.execPath],
  bun: [binary("bun")],
  deno: [binary("deno"), "run", "--allow-all", "--quiet"],
};
const PROGRAM = "everywhere.mjs";
const DOES = ["excludes", "waits", "tells of losses", "aborts", "runs once", "elects", "closes"];

for (const [name, [command, ...flags]] of Object.entries(RUNTIMES)) {
  test(`${name} does all that a program needs`, async (t) => {
    const program = readFileSync(new URL(`programs/${PROGRAM}`, import.meta.url), "utf8");
    const cwd = installed(t, { [PROGRAM]: program, "package.json": '{ "dependencies": { "leasehold": "*" } }' });
    const { url } = await startRedis(t);
    for (const store of [sqlite(t), url]) {
      const { stdout, stderr, status, signal } = spawnSync(command, [...flags, PROGRAM, store], { cwd, encoding: "utf8", timeout: 300_000 });
      assert.deepEqual({ stdout: stdout.trimEnd().split("\n"), stderr, status, signal }, { stdout: DOES, stderr: "", status: 0, signal: null }, store);
    }
  });
}
