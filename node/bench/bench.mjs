// Beside other lock libraries on a redis-server of its own: milliseconds for each measurement, and how often.

import { spawnSync } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { startRedis } from "../test/helpers/redis.mjs";

const require = createRequire(import.meta.url);
const [length = "1000", rounds = "5"] = process.argv.slice(2);
const LIBRARIES = ["ioredis, SET and DEL", "redlock", "redis-semaphore", "redlock-universal", "leasehold", "leasehold/compat/redlock"];
const LOADS = { "redlock": "ioredis+redlock", "redis-semaphore": "ioredis+redis-semaphore", "redlock-universal": "ioredis+redlock-universal", "leasehold": "leasehold" };
const TRIALS = 1_000;

function told(program, ...args) {
  const file = fileURLToPath(new URL(program, import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [file, ...args], { encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")} has failed:\n${stderr}`);
  return JSON.parse(stdout);
}

function median(numbers) {
  return [...numbers].sort((a, b) => a - b)[numbers.length >> 1];
}

/** With the library's own in the first place, then each in proportion to it. */
function table(title, columns, rows, base) {
  console.log(`\n${title}\n`);
  console.log(`| | ${columns.join(" | ")} |\n|---|${"---|".repeat(columns.length)}`);
  for (const [name, values] of Object.entries(rows)) {
    const cells = values.map((value, n) => `${value.toFixed(value < 10 ? 1 : 0)} (${(value / rows[base][n]).toFixed(2)}x)`);
    console.log(`| ${name} | ${cells.join(" | ")} |`);
  }
}

function folderOf(name) {
  for (const folder of require.resolve.paths(name)) {
    try {
      if (statSync(join(folder, name)).isDirectory()) return join(folder, name);
    } catch {
      // Not in this one.
    }
  }
  throw new Error(`${name} is not installed`);
}

function sizeOf(path) {
  const stat = statSync(path);
  return stat.isDirectory() ? readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0) : stat.size;
}

/** With all that it needs. */
function installed(names, seen = new Set()) {
  for (const name of names) {
    if (seen.has(name)) continue;
    seen.add(name);
    installed(Object.keys(require(join(folderOf(name), "package.json")).dependencies ?? {}), seen);
  }
  return seen;
}

const ends = [];
try {
  const { url } = await startRedis({ after: (end) => ends.push(end) });
  // In turn, so that what else the machine does hits all alike.
  const measured = Object.fromEntries(LIBRARIES.map((name) => [name, []]));
  for (let round = 0; round < Number(rounds); round++) {
    for (const name of LIBRARIES) measured[name].push(told("pairs.mjs", name, url, length));
  }
  const pairs = LIBRARIES.map((name) => {
    const of = (value) => median(measured[name].map(value));
    return [name, [of((it) => it.one.p50), of((it) => it.one.each), of((it) => it.many.rate), of((it) => it.many.each)]];
  });
  const columns = ["one at a time, p50 in us", "CPU in us", "64 at a time, pairs/s", "CPU in us"];
  table("Acquire and release (beside redlock)", columns, Object.fromEntries(pairs), "redlock");

  const loads = Object.entries(LOADS).map(([name, modules]) => {
    const runs = Array.from({ length: 11 }, () => told("load.cjs", modules));
    const size = [...installed(modules.split("+"))].reduce((sum, module) => sum + sizeOf(folderOf(module)), 0);
    return [name, [median(runs.map(({ took }) => took)), median(runs.map(({ memory }) => memory)) / 1e6, size / 1e6]];
  });
  table("To load, with what it needs (beside redlock)", ["require, ms", "memory, MB", "installed, MB"], Object.fromEntries(loads), "redlock");

  for (const [store, at] of [["memory:", "memory:"], ["Redis", url]]) {
    const { trials, late, least, median } = told("loss.mjs", String(TRIALS), at);
    console.log(`\nSignals of ${trials} leases that were lost, ${store}: ${late} after the end of the lease;`);
    console.log(`at least ${least.toFixed(2)} ms before it, ${median.toFixed(2)} ms in the middle.`);
    if (late > 0) process.exitCode = 1;
  }
} finally {
  for (const end of ends) await end();
}
