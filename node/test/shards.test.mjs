import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { CallbackError, ClosedError, ConfigError, LockBusyError, connect } from "leasehold";
import { sqlite } from "./helpers/folder.mjs";

const COUNT = 4;
const OPTIONS = { count: COUNT, ttl: 20_000, lookEvery: 200 };

const pause = () => new Promise((resolve) => setTimeout(resolve, 5));

async function until(condition) {
  while (!(await condition())) await pause();
}

async function isFree(client, name) {
  for await (const _ of client.list(`${name}#`)) return false;
  return true;
}

test("workers share, and the callbacks say so", async (t) => {
  const url = sqlite(t);
  const clients = await Promise.all([connect(url), connect(url)]);
  const working = new Map();
  const callbacks = {
    onGain: async (shard) => {
      await Promise.resolve();
      assert.equal(shard.resource, `mail#shard${shard.index}`);
      assert.ok(!(working.get(shard.index) >= shard.token));
      working.set(shard.index, shard.token);
    },
    onLoss: async (shard, loss) => {
      await new Promise(setImmediate);
      assert.equal(loss, null);
      assert.equal(working.get(shard.index), shard.token);
      working.delete(shard.index);
    },
  };
  const first = await clients[0].shards("mail", { ...OPTIONS, ...callbacks });
  await until(() => first.held.length === COUNT && first.members === 1);
  const held = first.held;
  assert.deepEqual(held.map(({ index }) => index), [0, 1, 2, 3]);
  assert.deepEqual(JSON.parse(JSON.stringify(first)), { name: "mail", held: [0, 1, 2, 3], members: 1 });
  assert.equal(JSON.parse(JSON.stringify(held[2])).index, 2);
  const second = await clients[1].shards("mail", { ...OPTIONS, ...callbacks });
  await until(() => first.held.length === 2 && second.held.length === 2);
  await assert.rejects(clients[0].setShards("mail", 5), LockBusyError);
  await first.stop();
  assert.deepEqual([first.held, first.members, first.lastError], [[], 0, null]);
  await until(() => second.held.length === COUNT && working.size === COUNT);
  await second[Symbol.asyncDispose]();
  await second.stop();
  assert.equal(working.size, 0);
  await clients[0].setShards("mail", 5);
  await Promise.all(clients.map((client) => client.close()));
});

test("a slow callback delays no other shard and no loss", async () => {
  const client = await connect("memory:");
  const lost = [];
  let mayReturn;
  const slow = new Promise((resolve) => (mayReturn = resolve));
  const shards = await client.shards("mail", {
    ...OPTIONS,
    onGain: (shard) => (shard.index === 0 ? slow : undefined),
    onLoss: (shard, loss) => lost.push(`${shard.index} ${loss?.reason}`),
  });
  await until(() => shards.held.length === COUNT);
  const [first, other] = shards.held;
  await client.revoke(first.resource, first.token);
  await client.revoke(other.resource, other.token);
  await until(() => lost.includes("1 revoked"));
  // Its own callback waits, and the lease tells the loss all the same.
  await until(() => first.signal.aborted);
  assert.equal(first.signal.reason.reason, "revoked");
  assert.ok(!lost.includes("0 revoked"));
  mayReturn();
  await until(() => lost.includes("0 revoked"));
  await until(() => shards.held.length === COUNT);
  await shards.stop();
  await client.close();
});

test("a callback may stop, and waits for nothing", async () => {
  const client = await connect("memory:");
  let stands;
  const made = new Promise((resolve) => (stands = resolve));
  const stop = async () => (await made).stop();
  const shards = await client.shards("mail", { ...OPTIONS, onGain: stop, onLoss: stop });
  stands(shards);
  await until(() => shards.held.length === 0);
  await shards.stop();
  await until(() => isFree(client, "mail"));
  await client.close();
});

test("a shard whose callback throws is let go and tried again, and all of that is reported", async () => {
  const client = await connect("memory:");
  let well = false;
  const warned = once(process, "warning");
  const shards = await client.shards("mail", {
    ...OPTIONS,
    onGain: ({ index }) => {
      if (index === 1 && !well) throw new Error("on purpose");
    },
  });
  const [warning] = await warned;
  assert.equal(warning.name, "LeaseholdWarning");
  assert.match(warning.message, /onGain of the shards mail has thrown: Error: on purpose/);
  await until(() => shards.lastError instanceof CallbackError && shards.held.length === COUNT - 1);
  assert.equal(shards.lastError.cause.message, "on purpose");
  assert.match(shards.lastError.message, /onGain has thrown Error: on purpose/);
  well = true;
  await until(() => shards.held.length === COUNT && shards.lastError === null);
  await shards.stop();
  await until(() => isFree(client, "mail"));
  await client.close();
});

test("closing the client ends its workers", async () => {
  const client = await connect("memory:");
  const lost = new Set();
  const shards = await client.shards("mail", { ...OPTIONS, onLoss: ({ index }) => void lost.add(index) });
  await until(() => shards.held.length === COUNT);
  await client.close();
  await shards.stop();
  assert.equal(lost.size, COUNT);
  await assert.rejects(client.shards("mail", OPTIONS), ClosedError);
});

test("invalid settings are refused", async () => {
  const client = await connect("memory:");
  for (const wrong of [{ count: 0 }, { count: 65 }, { count: 1.5 }, { lookEvery: 1 }, { ttl: 1 }]) {
    await assert.rejects(client.shards("mail", wrong), ConfigError);
  }
  await assert.rejects(client.shards("mail", { ongain: () => {} }), { name: "TypeError", message: /no option ongain/ });
  await client.close();
});

test("a process exits while callbacks are slow, and its shards are free", async (t) => {
  const url = sqlite(t);
  const program = `
    import { connect } from "leasehold";
    const client = await connect(${JSON.stringify(url)});
    let gained = 0;
    const never = () => new Promise(() => {});
    await client.shards("mail", {
      count: 2, ttl: 60_000, onGain: () => (++gained === 2 ? never() : undefined), onLoss: never,
    });
    while (gained < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    process.exit(0);`;
  const ended = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
  assert.deepEqual([ended.status, ended.stderr], [0, ""]);
  const client = await connect(url);
  await until(() => isFree(client, "mail"));
  await client.close();
});
