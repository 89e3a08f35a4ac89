// Listing the locks of a store, and watching one.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createConnection } from "node:net";
import { test } from "node:test";

import { connect, ClosedError, ConfigError, StoreUnavailableError } from "leasehold";
import { sqlite } from "./helpers/folder.mjs";
import { startRedis } from "./helpers/servers.mjs";
import { undo } from "./helpers/undo.mjs";

/** For leases that must not be lost. */
const LONG = { ttl: 300_000 };
const SLOW = { requestTimeout: 5_000 };

let count = 0;
const stores = {
  memory: async () => `memory:listing-${(count += 1)}`,
  sqlite: async (t) => sqlite(t),
  redis: async (t) => (await startRedis(t)).url,
};

/** The same for each store, with two clients that are closed in the end. */
function testEach(name, body) {
  for (const [store, url] of Object.entries(stores)) {
    test(`${name}: ${store}`, async (t) => {
      const at = await url(t);
      const clients = [await connect(at, SLOW), await connect(at, SLOW)];
      try {
        await body(...clients, t);
      } finally {
        for (const client of clients) await client.close();
      }
    });
  }
}

async function listed(client, prefix) {
  const locks = [];
  for await (const lock of client.list(prefix)) locks.push(lock);
  return locks;
}

const names = async (client, prefix) => (await listed(client, prefix)).map(({ resource }) => resource).sort();

testEach("the held locks of a prefix are listed", async (one, two) => {
  const all = await one.lockAll(["job/1", "job/2", "job/30", "other"], { ...LONG, owner: "one" });
  assert.deepEqual(await names(two), ["job/1", "job/2", "job/30", "other"]);
  assert.deepEqual(await names(two, "job/"), ["job/1", "job/2", "job/30"]);
  const [info] = await listed(two, "job/3");
  assert.deepEqual([info.owner, info.token, info.foreign], ["one", all.get("job/30").token, false]);
  await all.release();
  assert.deepEqual(await names(one), []);
});

testEach("runs are listed while they are under way and done", async (one, two) => {
  const runs = async (prefix) => {
    const found = [];
    for await (const run of two.runs(prefix)) found.push(run);
    return found;
  };
  const { token } = await one.once("night", { ...LONG, key: "mon", owner: "night shift" }, async (run) => {
    const [underWay] = await runs("night@");
    assert.deepEqual([underWay.name, underWay.key, underWay.done, underWay.holder.token], ["night", "mon", null, run.token]);
  });
  await one.once("other", { ...LONG, keep: 604_800_000 }, () => 0);
  const [done, ...more] = await runs("night");
  assert.deepEqual(more, []);
  assert.deepEqual([done.resource, done.holder, done.done.token, done.done.owner], ["night@mon", null, token, "night shift"]);
  assert.deepEqual((await runs()).map(({ name, key }) => `${name} ${key}`).sort(), ["night mon", "other null"]);
  await assert.rejects(runs("a\n"), ConfigError);
});

testEach("more locks than a page are listed once each", async (one) => {
  const locks = Array.from({ length: 260 }, (_, number) => `crowd/${number}`).sort();
  const all = await one.lockAll(locks, LONG);
  assert.deepEqual(await names(one, "crowd/"), locks);
  // It asks for pages as they are needed, and can be left.
  for await (const { resource } of one.list("crowd/")) {
    assert.ok(locks.includes(resource));
    break;
  }
  await all.release();
});

testEach("bad prefixes are refused", async (one) => {
  for (const prefix of ["a\n", "x".repeat(1_025)]) await assert.rejects(listed(one, prefix), ConfigError);
  await assert.rejects(listed(one, 5), TypeError);
});

test("hostile records are left out of a list", async (t) => {
  const { url } = await startRedis(t);
  const client = await connect(url, SLOW);
  undo(t, () => client.close());
  const raw = createConnection(Number(new URL(url).port), "127.0.0.1");
  undo(t, () => raw.destroy());
  for (const command of ["LPUSH job/list x", "SET job/text not-ours", "SET job/none ''", "SADD job/set x"]) {
    raw.write(`${command}\r\n`);
    await once(raw, "data");
  }
  const lease = await client.acquire("job/held", LONG);
  const ours = (await listed(client, "job/")).filter(({ foreign }) => !foreign);
  assert.deepEqual(ours.map(({ resource, token }) => [resource, token]), [["job/held", lease.token]]);
});

testEach("each change of the holder is told", async (one, two) => {
  const changes = two.watch("job", { every: 100 });
  assert.deepEqual((await changes.next()).value, { type: "free" });
  const lease = await one.acquire("job", { ...LONG, owner: "one" });
  const { value } = await changes.next();
  assert.deepEqual([value.type, value.holder.owner, value.holder.token], ["held", "one", lease.token]);
  await lease.release();
  for await (const change of changes) {
    assert.deepEqual(change, { type: "free" });
    break;
  }
});

test("a watch ends with its signal, and with its client", async () => {
  const client = await connect("memory:");
  const controller = new AbortController();
  const changes = client.watch("job", { every: 100, signal: controller.signal });
  assert.equal((await changes.next()).value.type, "free");
  const next = changes.next();
  controller.abort(new Error("enough"));
  await assert.rejects(next, /enough/);
  const others = client.watch("job", { every: 100 });
  assert.equal((await others.next()).value.type, "free");
  const last = assert.rejects(others.next(), ClosedError);
  await client.close();
  await last;
});

test("a watch tells that the store is gone", async (t) => {
  const redis = await startRedis(t);
  const client = await connect(redis.url);
  const changes = client.watch("job", { every: 100 });
  assert.equal((await changes.next()).value.type, "free");
  await redis.stop();
  const { value } = await changes.next();
  assert.equal(value.type, "unreadable");
  assert.ok(value.error instanceof StoreUnavailableError);
  await client.close().catch(() => {});
});

test("bad watches are refused", async () => {
  const client = await connect("memory:");
  for (const [name, every] of [["a\n", 1_000], ["job", 10], ["job", Infinity], ["job", -1]]) {
    await assert.rejects(client.watch(name, { every }).next(), ConfigError);
  }
  await assert.rejects(client.watch(5).next(), TypeError);
  await assert.rejects(client.watch("job", { often: 5 }).next(), /there is no option often/);
  await client.close();
});

testEach("a lock that need not be fair is a lock", async (one, two) => {
  const lease = await one.acquire("job", { ...LONG, fair: false });
  assert.equal(await two.tryAcquire("job", { fair: false }), null);
  const waiting = two.acquire("job", { ...LONG, fair: false });
  await lease.release();
  await (await waiting).release();
  await assert.rejects(one.acquire("job", { fair: "no" }), /fair must be a true or false, not string/);
});
