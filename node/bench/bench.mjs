// Compares lock libraries on a separate redis-server: milliseconds for each measurement, and repetitions; or --quick.

import { spawnSync } from "node:child_process";
import { appendFileSync, readdirSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { startRedis } from "../test/helpers/servers.mjs";

const require = createRequire(import.meta.url);
const quick = process.argv.includes("--quick");
const [length = quick ? "400" : "1000", rounds = quick ? "3" : "5"] = process.argv.slice(2).filter((word) => word !== "--quick");
const LIBRARIES = ["ioredis, SET and DEL", "redlock", "redis-semaphore", "redlock-universal", "leasehold", "leasehold/compat/redlock"];
const LOADS = { "redlock": "ioredis+redlock", "redis-semaphore": "ioredis+redis-semaphore", "redlock-universal": "ioredis+redlock-universal", "leasehold": "leasehold" };
const QUORUM = ["ioredis, SET and DEL", "redlock", "leasehold"];
const NODES = 5;
const TRIALS = quick ? 200 : 1_000;
/** The base of comparison for the stored figures. */
const FLOOR = LIBRARIES[0];

function told(program, ...args) {
  const file = fileURLToPath(new URL(program, import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [file, ...args], { encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")} has failed:\n${stderr}`);
  return JSON.parse(stdout);
}

function median(numbers) {
  return [...numbers].sort((a, b) => a - b)[numbers.length >> 1];
}

/** The figure of this library first, then each other in proportion to it. */
function table(title, columns, rows, base) {
  console.log(`\n${title}\n`);
  console.log(`| | ${columns.join(" | ")} |\n|---|${"---|".repeat(columns.length)}`);
  for (const [name, values] of Object.entries(rows)) {
    const cells = values.map((value, n) => `${value.toFixed(value < 10 ? 1 : 0)} (${(value / rows[base][n]).toFixed(2)}x)`);
    console.log(`| ${name} | ${cells.join(" | ")} |`);
  }
}

/** For `cargo xtask bench --plot`: a line in the file that it names. */
function tell(...cells) {
  const file = process.env.LEASEHOLD_FIGURES;
  if (file) appendFileSync(file, `${cells.join(" | ")}\n`);
}

/** Each in proportion to the base. Higher is worse: a rate is given as the time of one of many. */
function tellRatios(what, rows, base, of) {
  for (const [name, values] of Object.entries(rows)) {
    const ratio = of(values) / of(rows[base]);
    tell("figure", "Node", ...what, name, of(values).toFixed(6), ratio.toFixed(6), base);
  }
}

function folderOf(name) {
  for (const folder of require.resolve.paths(name)) {
    try {
      if (statSync(join(folder, name)).isDirectory()) return join(folder, name);
    } catch {
      // Not measured here.
    }
  }
  throw new Error(`${name} is not installed`);
}

function sizeOf(path) {
  const stat = statSync(path);
  return stat.isDirectory() ? readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0) : stat.size;
}

/** Includes dependencies. */
function installed(names, seen = new Set()) {
  for (const name of names) {
    if (seen.has(name)) continue;
    seen.add(name);
    installed(Object.keys(require(join(folderOf(name), "package.json")).dependencies ?? {}), seen);
  }
  return seen;
}

/** All runs of each library, in turn, so that other load of the machine affects all alike. */
function inTurns(libraries, urls) {
  const measured = Object.fromEntries(libraries.map((name) => [name, []]));
  for (let round = 0; round < Number(rounds); round++) {
    for (const name of libraries) measured[name].push(told("pairs.mjs", name, length, ...urls));
  }
  return measured;
}

const ends = [];
try {
  const start = async () => (await startRedis({ after: (end) => ends.push(end) })).url;
  const url = await start();
  const measured = inTurns(LIBRARIES, [url]);
  const pairs = Object.fromEntries(LIBRARIES.map((name) => {
    const of = (value) => median(measured[name].map(value));
    return [name, [of((it) => it.one.p50), of((it) => it.one.each), of((it) => it.many.rate), of((it) => it.many.each)]];
  }));
  const columns = ["one at a time, p50 in us", "CPU in us", "64 at a time, pairs/s", "CPU in us"];
  table("Acquire and release (beside redlock)", columns, pairs, "redlock");
  tell("version", "node", process.versions.node);
  for (const name of ["ioredis", "redlock", "redis-semaphore", "redlock-universal"]) {
    tell("version", `${name} for Node`, require(join(folderOf(name), "package.json")).version);
  }
  tellRatios(["one at a time", "p50", "us"], pairs, FLOOR, ([p50]) => p50);
  tellRatios(["one at a time", "CPU", "us"], pairs, FLOOR, ([, cpu]) => cpu);
  tellRatios(["64 at a time", "time per pair, overall", "us"], pairs, FLOOR, ([, , rate]) => 1e6 / rate);
  tellRatios(["64 at a time", "CPU", "us"], pairs, FLOOR, ([, , , cpu]) => cpu);

  const nodes = [];
  while (nodes.length < NODES) nodes.push(await start());
  const ofQuorum = Object.entries(inTurns(QUORUM, nodes));
  const quorum = Object.fromEntries(ofQuorum.map(([name, runs]) => {
    return [name, [median(runs.map(({ one }) => one.p50)), median(runs.map(({ one }) => one.each))]];
  }));
  table(`On a quorum of ${NODES} (beside redlock)`, columns.slice(0, 2), quorum, "redlock");
  tellRatios([`quorum of ${NODES}`, "p50", "us"], quorum, FLOOR, ([p50]) => p50);
  tellRatios([`quorum of ${NODES}`, "CPU", "us"], quorum, FLOOR, ([, cpu]) => cpu);

  const loads = Object.fromEntries(Object.entries(LOADS).map(([name, modules]) => {
    const runs = Array.from({ length: 11 }, () => told("load.cjs", modules));
    const size = [...installed(modules.split("+"))].reduce((sum, module) => sum + sizeOf(folderOf(module)), 0);
    return [name, [median(runs.map(({ took }) => took)), median(runs.map(({ memory }) => memory)) / 1e6, size / 1e6]];
  }));
  table("To load, with what it needs (beside redlock)", ["require, ms", "memory, MB", "installed, MB"], loads, "redlock");
  tellRatios(["require", "time", "ms"], loads, "redlock", ([took]) => took);
  tellRatios(["require", "memory", "MB"], loads, "redlock", ([, memory]) => memory);
  tellRatios(["installed", "size", "MB"], loads, "redlock", ([, , size]) => size);

  for (const [store, at] of [["memory:", "memory:"], ["Redis", url]]) {
    const { trials, late, excused, least, median } = told("loss.mjs", String(TRIALS), at);
    console.log(`\nSignals of ${trials} leases that were lost, ${store.replace(":", "")}: ${late} after the end of the lease,`);
    console.log(`besides ${excused} of a time in which the machine stood still; ${median.toFixed(2)} ms before it in the`);
    console.log(`middle, ${least.toFixed(2)} ms at least.`);
    const what = `signals of ${trials} lost leases, ${store.replace(":", "")}`;
    tell("figure", "Node", what, "late", "1", "leasehold", late, "-", "-");
    tell("figure", "Node", what, "before the end, median", "ms", "leasehold", Math.max(median, 0).toFixed(2), "-", "-");
    if (late > 0) process.exitCode = 1;
  }
} finally {
  for (const end of ends) await end();
}
