// The command under its name in the package, and its statuses: store.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const require = createRequire(import.meta.url);
const { bin } = require("leasehold/package.json");
const command = join(dirname(require.resolve("leasehold")), bin.leasehold);
const run = (...args) => spawnSync(process.execPath, [command, ...args], { encoding: "utf8" });

const help = run("--help");
assert.equal(help.status, 0, help.stderr);
assert.match(help.stdout, /inspect/);
for (const whole of ["serve", "top"]) {
  const { status, stdout, stderr } = run(whole, "--help");
  assert.deepEqual([status, stdout.includes(`leasehold ${whole}`)], [0, true], stderr);
}
assert.equal(run("no-such-command").status, 64);
const program = "process.exit(process.env.LEASEHOLD_TOKEN ? 7 : 1)";
const exec = run("exec", "--store", process.argv[2], "a", "--", process.execPath, "-e", program);
assert.equal(exec.status, 7, exec.stderr);
