// Lengths of time in another unit than milliseconds: refused with what to write where they cannot be, and doubted once otherwise.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Redlock } from "leasehold/compat/redlock";
import { connect } from "leasehold";
import * as edge from "leasehold/edge";
import * as testing from "leasehold/testing";
import { startRedis } from "./helpers/servers.mjs";

const warnings = [];
process.on("warning", (warning) => warnings.push(warning));

/** The warnings since the last call. */
async function warned() {
  await new Promise(setImmediate);
  return warnings.splice(0).map(({ name, code, message }) => {
    assert.deepEqual([name, code], ["LeaseholdWarning", "LEASEHOLD_LENGTH"], message);
    return message;
  });
}

const FACES = { "the client": connect, "the fake client": () => testing.connect(), "the edge client": () => edge.connect("webdis+http://127.0.0.1:9") };

for (const [name, made] of Object.entries(FACES)) {
  test(`a ttl of 30 says what to write for 30 s: ${name}`, async () => {
    const client = await made("memory:");
    const refused = { code: "config", message: "ttl: 30 is below the smallest, 100: lengths of time are milliseconds, so for 30 s write 30_000" };
    const calls = [
      () => client.acquire("a", { ttl: 30 }),
      () => client.tryAcquire("a", { ttl: 30 }),
      () => client.using("a", { ttl: 30 }, () => assert.fail("it is held")),
      () => client.once("a", { key: "1", ttl: 30 }, () => assert.fail("it runs")),
    ];
    const others = [
      () => client.lockAll(["a", "b"], { ttl: 30 }),
      () => client.lockAny(["a", "b"]).acquire({ ttl: 30 }),
      () => client.semaphore("a", 2).acquire({ ttl: 30 }),
      () => client.rwLock("a").write({ ttl: 30 }),
      () => client.elect("a", { ttl: 30 }),
      () => client.shards("a", { count: 2, ttl: 30 }),
    ];
    for (const call of name.includes("edge") ? calls : [...calls, ...others]) await assert.rejects(async () => call(), refused, String(call));
    await client.close();
    assert.deepEqual(await warned(), []);
  });
}

test("lengths that are computed are not doubted", async (t) => {
  const { url } = await startRedis(t);
  const redlock = new Redlock([url], { retryCount: 1, retryDelay: 20 });
  const lock = await redlock.acquire(["a"], 300);
  await assert.rejects(redlock.acquire(["a"], 300));
  await lock.release();
  await redlock.quit();
  assert.deepEqual(await warned(), []);
});

test("lengths that were meant in seconds are doubted, once in a process", async () => {
  const client = await connect("memory:");
  const usual = { ttl: 30_000, wait: 10_000 };
  await client.using("a", { ...usual, wait: 0 }, () => {});
  await client.once("a", { every: 86_400_000, keep: 10 * 365 * 86_400_000, ttl: 1_000, wait: Infinity }, () => {});
  assert.deepEqual(await warned(), []);

  await client.using("a", { ...usual, ttl: 300 }, () => {});
  assert.deepEqual(await warned(), ["ttl: 300 is 0.3 s, since lengths of time are milliseconds: for 300 s write 300_000"]);
  await client.using("a", { ...usual, wait: 10 }, () => {});
  assert.deepEqual(await warned(), ["wait: 10 is 0.01 s, since lengths of time are milliseconds: for 10 s write 10_000"]);
  await client.once("b", { every: 86_400_000_000 }, () => {});
  assert.deepEqual(await warned(), [
    "every: 86400000000 is 1000 days, since lengths of time are milliseconds: if smaller units were meant, write 86_400_000",
  ]);
  for (const doubtful of [{ ttl: 500 }, { wait: 50 }]) await client.using("a", doubtful, () => {});
  await client.once("c", { every: 86_400_000_000 }, () => {});
  assert.deepEqual(await warned(), []);
  await client.close();
});
