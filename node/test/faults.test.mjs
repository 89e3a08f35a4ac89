// Faults and invalid calls. The runner fails a test that has an unhandled rejection.

import assert from "node:assert/strict";
import { cpSync, linkSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { Redis } from "ioredis";
import * as leasehold from "leasehold";
import { run } from "./helpers/child.mjs";
import { sqlite } from "./helpers/folder.mjs";
import { startRedis } from "./helpers/servers.mjs";
import { aborted } from "./helpers/signals.mjs";
import { undo } from "./helpers/undo.mjs";

const { connect, ConfigError, LeaseLostError, LeaseholdError, NotOwnedError, StoreUnavailableError } = leasehold;
const installed = dirname(createRequire(import.meta.url).resolve("leasehold"));
const OPTIONS = { ttl: 20_000 };
/** Long enough for a busy machine. */
const PATIENT = { requestTimeout: 5_000 };

test("an event loop that is blocked past the ttl loses no lease", async (t) => {
  const { url } = await startRedis(t);
  const [client, rival] = await Promise.all([connect(url, PATIENT), connect(url, PATIENT)]);
  const lease = await client.acquire("a", { ttl: 4_000 });
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5_000);
  lease.check();
  assert.equal(lease.signal.aborted, false);
  assert.equal(await rival.tryAcquire("a"), null);
  await lease.release();
  await Promise.all([client.close(), rival.close()]);
});

test("an abort before, during and after an acquisition", async (t) => {
  const { url } = await startRedis(t);
  const client = await connect(url, PATIENT);
  const reason = new Error("enough");
  const isReason = (error) => error === reason;
  await assert.rejects(client.acquire("a", { signal: AbortSignal.abort(reason) }), isReason);
  assert.equal(await client.inspect("a"), null);

  // While requests are pending, and so in any state of an acquisition.
  for (let turns = 0; turns < 20; turns++) {
    const controller = new AbortController();
    const taken = client.acquire("a", { ...OPTIONS, signal: controller.signal });
    for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate);
    controller.abort(reason);
    const lease = await taken.catch((error) => assert.equal(error, reason));
    await lease?.release();
    await client.using("a", { ...OPTIONS, wait: 15_000 }, () => {});
  }

  const controller = new AbortController();
  const lease = await client.acquire("a", { ...OPTIONS, signal: controller.signal });
  controller.abort(reason);
  lease.check();
  assert.equal(lease.signal.aborted, false);
  await lease.release();
  await assert.rejects(client.lockAll(["a"], { signal: controller.signal }), isReason);
  await assert.rejects(client.tryAcquire("a", { signal: controller.signal }), isReason);
  await assert.rejects(client.using("a", { signal: controller.signal }, () => {}), isReason);
  await client.close();
});

test("a loss during using aborts the signal first, and then rejects", async (t) => {
  const client = await connect("memory:");
  const told = [];
  const body = client.using("a", { ttl: 300, renew: false }, async (lease) => {
    lease.signal.addEventListener("abort", () => told.push("signal"));
    await aborted(lease.signal);
    await new Promise(setImmediate);
    told.push("end of the body");
    return "nothing";
  });
  await assert.rejects(body.finally(() => told.push("rejection")), LeaseLostError);
  assert.deepEqual(told, ["signal", "end of the body", "rejection"]);
  await client.close();
});

test("using throws the error of the body first, and ignores an unconfirmed release", async (t) => {
  const server = await startRedis(t);
  const client = await connect(server.url, { requestTimeout: 1_000 });
  const error = new Error("of the body");
  const freeze = () => process.kill(server.pid, "SIGSTOP");
  try {
    const both = client.using("a", OPTIONS, () => {
      freeze();
      throw error;
    });
    await assert.rejects(both, (thrown) => thrown === error && thrown.cause === undefined && !(thrown instanceof AggregateError));
    process.kill(server.pid, "SIGCONT");
    assert.equal(await client.using("b", { ...OPTIONS, wait: 15_000 }, () => (freeze(), 42)), 42);
  } finally {
    process.kill(server.pid, "SIGCONT");
  }
  await client.close();
});

test("using settles only after the release, however the body ends", async () => {
  const { under } = createRequire(import.meta.url)(join(installed, "lib", "under.cjs"));
  const error = new Error("of the body");
  const ends = { result: () => 42, error: () => Promise.reject(error) };
  for (const [how, body] of Object.entries(ends)) {
    const heard = [];
    let release;
    const released = new Promise((resolve) => (release = resolve)).then(() => heard.push("released"));
    const lease = { [Symbol.asyncDispose]: () => released };
    const used = under(lease, body).then((result) => heard.push(result), (error) => heard.push(error));
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
    assert.deepEqual(heard, [], how);
    release();
    await used;
    assert.deepEqual(heard, ["released", how === "error" ? error : 42]);
  }
});

test("a second release is refused", async () => {
  const client = await connect("memory:");
  const lease = await client.acquire("a", OPTIONS);
  const ends = await Promise.allSettled([lease.release(), lease.release(), lease[Symbol.asyncDispose]()]);
  assert.deepEqual(ends.map(({ status }) => status), ["fulfilled", "rejected", "fulfilled"]);
  assert.ok(ends[1].reason instanceof NotOwnedError);
  const leases = await client.lockAll(["a", "b"]);
  await leases.get("a").release();
  await assert.rejects(leases.release(), NotOwnedError);
  assert.equal(await client.inspect("b"), null);
  await client.close();
});

test("a client that was closed refuses everything, and can be closed again", async (t) => {
  const client = await connect(sqlite(t));
  const lease = await client.acquire("a", OPTIONS);
  await client.close();
  await client.close();
  const calls = {
    acquire: () => client.acquire("a"),
    tryAcquire: () => client.tryAcquire("a"),
    using: () => client.using("a", () => assert.fail("without a lock")),
    lockAll: () => client.lockAll(["a"]),
    elect: () => client.elect("a", { onStart: () => assert.fail("without a lock") }),
  };
  for (const [name, call] of Object.entries(calls)) await assert.rejects(call(), { name: "ClosedError", code: "closed" }, name);
  assert.equal(lease.remaining(), 0);
  assert.throws(() => lease.check(), NotOwnedError);
  await assert.rejects(lease.release(), LeaseholdError);
  await lease[Symbol.asyncDispose]().catch((error) => assert.ok(error instanceof LeaseholdError));
});

test("invalid durations are refused", async () => {
  const client = await connect("memory:");
  const refused = [["30s", TypeError], [NaN, ConfigError], [-1, ConfigError], [0, ConfigError], [2 ** 31, ConfigError], [2 ** 60, ConfigError]];
  for (const [ttl, error] of [...refused, [30_000n, TypeError], [new Date(), TypeError]]) {
    await assert.rejects(client.acquire("a", { ttl }), error, String(ttl));
    await assert.rejects(client.lockAll(["a"], { ttl }), error, String(ttl));
    await assert.rejects(client.elect("a", { ttl }), error, String(ttl));
  }
  // A timer of Node's would fire at once.
  const lease = await client.acquire("a", OPTIONS);
  const waiting = client.acquire("a", { ...OPTIONS, wait: 2 ** 40 });
  await lease.release();
  await (await waiting).release();
  for (const min of ["5", undefined, null, {}]) {
    if (min !== undefined) assert.throws(() => lease.check(min), TypeError, String(min));
  }
  for (const min of [NaN, -1, Infinity]) assert.throws(() => lease.check(min), ConfigError, String(min));
  await client.close();
});

test("invalid names are refused", async () => {
  const client = await connect("memory:");
  for (const name of [Buffer.from("a"), 5, null, undefined, ["a"], Symbol("a"), new String("a")]) {
    for (const call of [client.acquire(name), client.tryAcquire(name), client.using(name, () => {}), client.inspect(name)]) {
      await assert.rejects(call, TypeError, String(name));
    }
    await assert.rejects(client.lockAll([name]), TypeError, String(name));
  }
  for (const name of ["", "a\0b", "a\nb", "x".repeat(1_025)]) await assert.rejects(client.acquire(name), ConfigError);
  await client.using("ünïcode/🔒", OPTIONS, (lease) => assert.equal(lease.resource, "ünïcode/🔒"));
  await client.close();
});

test("a server that is down, at each step", async (t) => {
  const server = await startRedis(t);
  const client = await connect(server.url, PATIENT);
  const lease = await client.acquire("held", { ttl: 4_000 });
  const waiting = assert.rejects(client.acquire("held", { wait: 3_000 }), LeaseholdError);
  const election = await client.elect("elected", { ttl: 4_000 });
  await server.stop();
  const unavailable = (call) => assert.rejects(call, StoreUnavailableError);
  await Promise.all([
    unavailable(connect(server.url)),
    unavailable(client.acquire("a", { wait: 100 })),
    unavailable(client.tryAcquire("b")),
    unavailable(client.lockAll(["c", "d"], { wait: 100 })),
    unavailable(client.using("e", { wait: 0 }, () => assert.fail("without a lock"))),
    unavailable(client.inspect("a")),
  ]);
  await aborted(lease.signal);
  assert.ok(lease.signal.reason instanceof LeaseLostError);
  await waiting;
  await assert.rejects(lease.release(), LeaseLostError);
  await election.resign();

  await server.restart();
  const late = await client.acquire("held", { ttl: 20_000, wait: 20_000 });
  await server.stop();
  await unavailable(late.release());
  await client.close().catch((error) => assert.ok(error instanceof StoreUnavailableError));
});

test("10,000 acquisitions at once share one connection or two, and all end", async (t) => {
  const { url } = await startRedis(t);
  const client = await connect(url, { requestTimeout: 60_000 });
  const before = process.memoryUsage().rss;
  const leases = await Promise.all(Array.from({ length: 10_000 }, (_, n) => client.acquire(`lock/${n}`, { ttl: 600_000 })));
  const redis = new Redis(url);
  undo(t, () => redis.disconnect());
  const connections = Number(/connected_clients:(\d+)/.exec(await redis.info("clients"))[1]);
  assert.ok(connections <= 5, `${connections} connections`);
  assert.equal(await redis.exists("lock/9999"), 1);
  // A release that takes longer than 2 s goes on by itself, and a loaded machine may need that for all of them.
  while (leases.length > 0) await Promise.all(leases.splice(0, 1_000).map((lease) => lease.release()));
  assert.equal(await redis.exists("lock/9999"), 0);
  // On one name they are queued.
  let inside = 0;
  const visits = Array.from({ length: 2_000 }, () =>
    client.using("one", { ttl: 600_000 }, async () => {
      assert.equal(++inside, 1);
      await null;
      inside--;
    }),
  );
  await Promise.all(visits);
  const grown = (process.memoryUsage().rss - before) / 12_000;
  assert.ok(grown < 20_000, `${grown} bytes for each of them`);
  await client.close();
});

test("two copies of the package in one process exclude each other", async (t) => {
  const require = createRequire(import.meta.url);
  const folder = mkdtempSync(join(tmpdir(), "leasehold-node-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [copy, later] = [join(folder, "copy"), join(folder, "later")];
  for (const to of [copy, later]) cpSync(installed, to, { recursive: true });
  const other = require(copy);
  assert.notEqual(other.Client, leasehold.Client);
  const url = sqlite(t);
  const [one, two] = await Promise.all([connect(url, PATIENT), other.connect(url, PATIENT)]);
  const lease = await one.acquire("a", { ttl: 600_000 });
  const error = await two.acquire("a", { wait: 0 }).catch((error) => error);
  assert.ok(error instanceof other.LockBusyError && !(error instanceof leasehold.LockBusyError));
  // Only the code is the same in both.
  assert.equal(error.code, "busy");
  const waiting = two.acquire("a", { wait: 30_000 });
  await lease.release();
  await (await waiting).release();
  await Promise.all([one.close(), two.close()]);

  // Another version has another SQLite, which would remove the file locks of the first.
  const file = join(later, "package.json");
  writeFileSync(file, readFileSync(file, "utf8").replace(/"version": ".*?"/, '"version": "999.0.0"'));
  const third = require(later);
  for (const stores of [url, ["memory:", url], `memory: ${url}`]) await assert.rejects(third.connect(stores), { code: "config", message: /SQLite/ });
  await (await third.connect("memory:")).close();
});

test("a copy on another thread leaves SQLite to the first one", { skip: process.platform !== "linux" }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-node-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [copy, linked] = [join(folder, "copy"), join(folder, "linked")];
  for (const to of [copy, linked]) cpSync(installed, to, { recursive: true });
  // As package managers do: one file in two places.
  rmSync(join(linked, "leasehold.node"));
  linkSync(join(copy, "leasehold.node"), join(linked, "leasehold.node"));
  const url = sqlite(t);
  const opens = async (...args) => (await run("copies.mjs", ...args)).stdout;
  assert.equal(await opens(copy, copy, url), "opened\n");
  assert.equal(await opens(copy, linked, url), "opened\n");
  assert.equal(await opens(installed, copy, "memory:"), "opened\n");
  assert.match(await opens(installed, copy, url), /^config SQLite stores belong to .*leasehold\.node in this process/);
});

test("timers keep no process alive", async (t) => {
  const { url } = await startRedis(t);
  const end = await run("unref.mjs", url);
  assert.deepEqual([end.code, end.stdout, end.stderr], [0, "held\n", ""]);
  const client = await connect(url, PATIENT);
  assert.equal(await client.inspect("of redlock"), null);
  await client.close();
});
