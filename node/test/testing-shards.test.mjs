// Shards of fake clients: the callbacks of your own code, without waiting.

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import * as leasehold from "leasehold";
import * as testing from "leasehold/testing";

const { CallbackError, ClosedError, ConfigError, LockBusyError, StoreUnavailableError } = leasehold;

function clients(number, clock = new testing.FakeClock()) {
  return Array.from({ length: number }, () => testing.connect({ clock }));
}

async function until(condition) {
  while (!condition()) await new Promise(setImmediate);
}

/** The same while time passes: workers look every few seconds if others have come or gone. */
async function later({ clock }, condition) {
  for (; !condition(); await new Promise(setImmediate)) clock.advance(1_000);
}

const indexes = (shards) => shards.held.map(({ index }) => index);

test("workers share evenly as they come and go", async () => {
  const [one, two] = clients(2);
  const told = [];
  const work = (client, name) =>
    client.shards("mail", {
      count: 4,
      onGain: ({ index }) => void told.push(`${name} gains ${index}`),
      onLoss: async ({ index }, loss) => {
        await Promise.resolve();
        told.push(`${name} loses ${index} ${loss}`);
      },
    });
  const first = await work(one, "first");
  await until(() => first.held.length === 4);
  assert.deepEqual([indexes(first), first.members, first.name], [[0, 1, 2, 3], 1, "mail"]);
  const second = await work(two, "second");
  await later(one, () => second.held.length === 2);
  assert.deepEqual([indexes(first), indexes(second), second.members], [[0, 1], [2, 3], 2]);
  assert.ok(told.indexOf("first loses 3 null") < told.indexOf("second gains 3"));
  await assert.rejects(one.setShards("mail", 5), LockBusyError);
  await first.stop();
  assert.deepEqual([first.held, first.members], [[], 0]);
  await later(one, () => second.held.length === 4);
  await two.close();
  assert.deepEqual(second.held, []);
  await one.setShards("mail", 5);
  const third = await one.shards("mail", { count: 5 });
  await until(() => third.held.length === 5);
});

test("a worker too many stands by", async () => {
  const workers = clients(3);
  const [first] = workers;
  const all = await Promise.all(workers.map((client) => client.shards("mail", { count: 2 })));
  await later(first, () => all[0].held.length === 1 && all[1].held.length === 1);
  assert.deepEqual([all[2].held, all[2].members], [[], 0]);
  await all[0].stop();
  await later(first, () => all[2].held.length === 1);
});

test("a loss is told, and the shard is gained again", async () => {
  const [client] = clients(1);
  const losses = [];
  const shards = await client.shards("mail", {
    count: 2,
    ttl: 30_000,
    onLoss: ({ index }, loss) => void losses.push([index, loss?.code]),
  });
  await until(() => shards.held.length === 2);
  const { token } = shards.held[1];
  client.lose("mail#shard1");
  await until(() => shards.held[1]?.token > token);
  assert.deepEqual(losses, [[1, "lost"]]);
  client.storeDown();
  client.clock.advance(60_000);
  await until(() => losses.length === 3);
  await until(() => shards.lastError instanceof StoreUnavailableError);
  assert.deepEqual(shards.held, []);
  client.storeUp();
  client.clock.advance(60_000);
  await until(() => shards.held.length === 2);
  assert.equal(shards.lastError, null);
  await shards.stop();
});

test("a callback may stop or throw", async () => {
  const [client] = clients(1);
  const warned = once(process, "warning");
  const failed = await client.shards("mail", {
    count: 2,
    onGain: () => {
      throw new Error("on purpose");
    },
  });
  await warned;
  await until(() => failed.lastError instanceof CallbackError);
  assert.equal(failed.lastError.cause.message, "on purpose");
  assert.match(failed.lastError.message, /onGain has thrown Error: on purpose/);
  await until(() => failed.held.length === 0 && failed.members === 0);
  const [other] = clients(1, client.clock);
  const healthy = await other.shards("mail", { count: 2 });
  await until(() => healthy.held.length === 2);
  await healthy.stop();
  const again = once(process, "warning");
  client.clock.advance(1_000);
  await again;
  await assert.rejects(failed.stop(), { message: "on purpose" });
  const lost = [];
  const shards = await client.shards("mail", {
    count: 2,
    onLoss: async ({ index }) => {
      await shards.stop();
      lost.push(index);
    },
  });
  await until(() => shards.held.length === 2);
  client.lose("mail#shard0");
  await until(() => lost.length === 2);
  await shards.stop();
});

test("what cannot be is refused", async () => {
  const [client, other] = clients(2);
  for (const wrong of [{ count: 0 }, { count: 65 }, { lookEvery: 1 }, { ttl: 0 }]) {
    await assert.rejects(client.shards("mail", wrong), ConfigError);
  }
  const kept = await client.shards("mail", { count: 4 });
  const differs = await other.shards("mail", { count: 5 });
  await until(() => kept.held.length === 4 && differs.lastError !== null);
  assert.match(differs.lastError.message, /shards is 5 here, and 4 in the store/);
  await client.close();
  await assert.rejects(client.shards("mail"), ClosedError);
});
