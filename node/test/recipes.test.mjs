// The modules of docs/recipes-node.md, written to files and run.

import assert from "node:assert/strict";
import { once } from "node:events";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, test } from "node:test";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { StaleTokenError, connect } from "leasehold";
import pg from "pg";
import { start } from "./helpers/child.mjs";
import { folderOf } from "./helpers/others.mjs";
import { lockTable, startPostgres, startRedis } from "./helpers/servers.mjs";
import { undo } from "./helpers/undo.mjs";
import { until } from "./helpers/until.mjs";

const folder = new URL("../recipes/", import.meta.url);
const recipe = (name) => new URL(`${name}.mjs`, folder).href;

before(() => {
  const page = readFileSync(new URL("../recipes-node.md", import.meta.url), "utf8");
  mkdirSync(folder, { recursive: true });
  const modules = [...page.matchAll(/^```js\n\/\/ (\S+)\n(.*?)^```$/gms)];
  for (const [, name, code] of modules) writeFileSync(new URL(name, folder), code);
  assert.deepEqual(modules.map(([, name]) => name), ["sigterm.mjs", "express.mjs", "cron.mjs", "bullmq.mjs", "pg.mjs", "pg-once.mjs"]);
  const commands = page.match(/^```console$/gm).length; // the tests of the command line run them
  assert.equal(page.match(/^```/gm).length, 2 * (modules.length + commands), "all code is run");
});

/** A recipe in this process, over a separate store. */
async function load(t, name) {
  const { url } = await startRedis(t);
  process.env.LEASEHOLD_STORE = url;
  const module = await import(recipe(name));
  delete process.env.LEASEHOLD_STORE;
  undo(t, module.close);
  return { ...module, url };
}

test("SIGTERM frees locks, of steps that end and of those that do not", async (t) => {
  const { url } = await startRedis(t);
  const client = await connect(url);
  undo(t, () => client.close());
  const elsewhere = await client.acquire("held elsewhere");
  for (const [names, graceMs, code] of [[["ends", "held elsewhere"], 600_000, 0], [["ends", "hangs"], 1, 1]]) {
    process.env.LEASEHOLD_STORE = url;
    const { child, ended, until } = start("sigterm.mjs", recipe("sigterm"), graceMs, ...names);
    delete process.env.LEASEHOLD_STORE;
    for (const name of names) if (name !== "held elsewhere") await until(`holds ${name}\n`);
    child.kill("SIGTERM");
    assert.deepEqual({ ...(await ended), stdout: "" }, { code, signal: null, stdout: "", stderr: "" });
    for (const name of ["ends", "hangs"]) assert.equal(await client.inspect(name), null);
  }
  await elsewhere.release();
});

/** The recipe beside Express 4. */
function beforeFive() {
  const modules = new URL("express-4/node_modules/", folder);
  mkdirSync(modules, { recursive: true });
  rmSync(new URL("express", modules), { force: true });
  symlinkSync(folderOf("express"), new URL("express", modules));
  copyFileSync(new URL("express.mjs", folder), new URL("express-4/express.mjs", folder));
  const { version } = createRequire(new URL("express-4/express.mjs", folder))("express/package.json");
  assert.match(version, /^4\./);
  return "express-4/express";
}

for (const [version, name] of [[5, () => "express"], [4, beforeFive]]) {
  test(`Express ${version}: the second caller is rejected immediately`, (t) => express(t, name()));
}

async function express(t, name) {
  const { serve, url } = await load(t, name);
  let [enter, leave] = [deferred(), deferred()];
  const server = serve(async (id, { fence, signal }) => {
    enter.resolve(signal);
    await leave.promise;
    if (signal.aborted) throw signal.reason;
    return { id, fence };
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  undo(t, () => server.closeAllConnections());
  undo(t, () => void server.close());
  const post = (id) => fetch(`http://127.0.0.1:${server.address().port}/invoices/${id}/charge`, { method: "POST" });
  const first = post(42);
  await enter.promise;
  const second = await post(42);
  assert.deepEqual([second.status, second.headers.get("retry-after")], [409, "1"]);
  leave.resolve();
  const receipt = await first;
  assert.equal(receipt.status, 200);
  const { id, fence } = await receipt.json();
  assert.ok(id === "42" && Number.isSafeInteger(fence));

  // A lost lock is reported.
  [enter, leave] = [deferred(), deferred()];
  const lost = post(43);
  const signal = await enter.promise;
  const redis = new Redis(url);
  await redis.del("invoice/43");
  await once(signal, "abort");
  leave.resolve();
  assert.equal((await lost).status, 503);
  redis.disconnect();
}

test("node-cron: a job runs once, in the process that leads", async (t) => {
  const { url } = await startRedis(t);
  const folder = mkdtempSync(join(tmpdir(), "leasehold-node-"));
  undo(t, () => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "runs");
  writeFileSync(file, "");
  const runs = () => readFileSync(file, "utf8").split("\n").filter(Boolean).map((line) => line.split(" "));
  process.env.LEASEHOLD_STORE = url;
  const processes = [0, 1].map(() => start("cron.mjs", recipe("cron"), file));
  delete process.env.LEASEHOLD_STORE;
  for (const { child } of processes) undo(t, () => void child.kill("SIGKILL"));
  const byWhom = (pid) => runs().filter(([, by]) => by === String(pid)).length;
  const leader = await until(() => processes.find(({ child }) => byWhom(child.pid) >= 2));
  leader.child.kill("SIGKILL");
  const other = processes.find((one) => one !== leader);
  await until(() => byWhom(other.child.pid) >= 2);
  other.child.stdin.end();
  // A busy machine misses ticks, which node-cron writes to stderr.
  assert.equal((await other.ended).code, 0);
  const seconds = runs().map(([second]) => second);
  assert.equal(new Set(seconds).size, seconds.length, `twice in a second: ${runs().join(" | ")}`);
});

test("BullMQ: a job is done once, whenever its worker dies", async (t) => {
  const { url } = await startRedis(t);
  const { port } = new URL(url);
  const folder = mkdtempSync(join(tmpdir(), "leasehold-node-"));
  undo(t, () => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "record");
  writeFileSync(file, "");
  const lines = () => readFileSync(file, "utf8").split("\n").filter(Boolean).map((line) => line.split(" "));
  const of = (what, job) => lines().filter((line) => line[0] === what && line[1] === job);
  process.env.LEASEHOLD_STORE = url;
  const workers = [0, 1, 2].map(() => start("bullmq.mjs", recipe("bullmq"), port, file));
  delete process.env.LEASEHOLD_STORE;
  for (const { child } of workers) undo(t, () => void child.kill("SIGKILL"));
  const queue = new Queue("charges", { connection: { host: "127.0.0.1", port } });
  undo(t, () => queue.close());
  const jobs = {};
  for (const name of ["plain", "throws once", "stays", "dies late"].map((name) => name.replaceAll(" ", "-"))) {
    jobs[name] = await queue.add(name, {}, { attempts: 2 });
  }
  const [, , pid, fence] = await until(() => of("begun", "stays")[0]);
  workers.find(({ child }) => String(child.pid) === pid).child.kill("SIGKILL");
  const states = async () => Promise.all(Object.values(jobs).map((job) => job.getState()));
  await until(async () => (await states()).every((state) => state === "completed"));
  const [[, , by, higher]] = of("done", "stays");
  assert.ok(by !== pid && Number(higher) > Number(fence));
  assert.deepEqual(Object.keys(jobs).map((name) => of("done", name).length), [1, 1, 1, 1]);
  assert.deepEqual(Object.keys(jobs).map((name) => of("begun", name).length), [1, 2, 2, 1]);
  const late = await queue.getJob(jobs["dies-late"].id);
  assert.deepEqual([late.stalledCounter, late.returnvalue], [1, null], "its worker died before the acknowledgement");
});

test("pg: a suspended holder is rejected", async (t) => {
  const [{ migrate, update, url }, server] = await Promise.all([load(t, "pg"), startPostgres(t)]);
  const pool = new pg.Pool(server);
  undo(t, () => pool.end());
  await pool.query("CREATE TABLE invoices (id int PRIMARY KEY, total int)");
  await pool.query("INSERT INTO invoices VALUES (42, 100)");
  await migrate(pool);
  await Promise.all(Array.from({ length: 5 }, () => update(pool, 42, async (total) => total + 10)));
  const total = async () => (await pool.query("SELECT total FROM invoices WHERE id = 42")).rows[0].total;
  assert.equal(await total(), 150);

  // While it is blocked it relies on its lock; meanwhile the record is removed, and another process gets the lock.
  const redis = new Redis(url);
  const late = update(pool, 42, async (total) => {
    await redis.del("invoice/42");
    await update(pool, 42, async (total) => total + 1);
    return total - 150;
  });
  await assert.rejects(late, StaleTokenError);
  assert.equal(await total(), 151);
  redis.disconnect();
});

test("pg: lock, guard, completion and work in one database", async (t) => {
  const server = await startPostgres(t);
  const url = await lockTable(server);
  process.env.LEASEHOLD_STORE = url;
  const { add, bill, close, migrate } = await import(recipe("pg-once"));
  delete process.env.LEASEHOLD_STORE;
  undo(t, close);
  const pool = new pg.Pool(server);
  undo(t, () => pool.end());
  await pool.query("CREATE TABLE invoices (id int PRIMARY KEY, total int); INSERT INTO invoices VALUES (42, 100)");
  await pool.query("CREATE TABLE bills (month text)");
  await migrate(pool);
  await Promise.all([add(pool, 42, 5), add(pool, 42, 5)]);
  await pool.query("UPDATE leasehold_fence SET fence = 9007199254740991"); // a later holder
  await assert.rejects(add(pool, 42, 5), StaleTokenError);
  assert.equal((await pool.query("SELECT total FROM invoices")).rows[0].total, 110);
  assert.equal((await bill(pool, "2026-11")).ran, true);
  assert.equal((await bill(pool, "2026-11")).reason, "done");
  assert.equal((await pool.query("SELECT count(*)::int FROM bills")).rows[0].count, 1);
});

function deferred() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}
