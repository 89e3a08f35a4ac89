import assert from "node:assert/strict";
import { test } from "node:test";
import { Redis } from "ioredis";
import { connect, LeaseLostError } from "leasehold";
import { start } from "./helpers/child.mjs";
import { sqlite } from "./helpers/folder.mjs";
import { startRedis } from "./helpers/servers.mjs";
import { aborted } from "./helpers/signals.mjs";
import { undo } from "./helpers/undo.mjs";

for (const store of ["memory:of-both", "sqlite"]) {
  test(`the signal is aborted before anybody else gets the lock: ${store}`, async (t) => {
    const url = store === "sqlite" ? sqlite(t) : store;
    const [holder, rival] = await Promise.all([connect(url), connect(url)]);
    const lease = await holder.acquire("a", { ttl: 1_000, renew: false });
    const heard = aborted(lease.signal);
    const next = await rival.acquire("a", { ttl: 20_000 });
    assert.equal(lease.signal.aborted, true);
    assert.ok(next.token > lease.token);
    await heard;
    assert.ok(lease.signal.reason instanceof LeaseLostError);
    assert.equal(lease.signal.reason.resource, "a");
    assert.throws(() => lease.check(), LeaseLostError);
    await assert.rejects(lease.release(), LeaseLostError);
    await Promise.all([holder.close(), rival.close()]);
  });
}

test("a stalled server loses the lease, and all callers are answered", async (t) => {
  const redis = await startRedis(t);
  const client = await connect(redis.url);
  try {
    const lease = await client.acquire("a", { ttl: 2_000 });
    process.kill(redis.pid, "SIGSTOP");
    await aborted(lease.signal);
  } finally {
    process.kill(redis.pid, "SIGCONT");
    await client.close();
  }
});

test("using reports a loss, but the error of the body takes precedence", async () => {
  const client = await connect("memory:");
  const options = { ttl: 200, renew: false };
  await assert.rejects(client.using("a", options, (lease) => aborted(lease.signal)), LeaseLostError);
  const error = new Error("of the body");
  const thrown = client.using("b", options, async (lease) => {
    await aborted(lease.signal);
    throw error;
  });
  await assert.rejects(thrown, (thrown) => thrown === error);
  const lease = await client.acquire("c", options);
  await aborted(lease.signal);
  await assert.rejects(lease[Symbol.asyncDispose](), LeaseLostError);
  await client.close();
});

test("a loop that was blocked finds the signal aborted", async () => {
  const client = await connect("memory:");
  const lease = await client.acquire("a", { ttl: 200, renew: false });
  const { signal } = lease;
  while (lease.remaining() > 0);
  assert.equal(lease.signal.aborted, true);
  assert.equal(signal, lease.signal);
  await client.close();
});

test("the signal is aborted before a release rejects, even on a busy loop", async () => {
  const client = await connect("memory:");
  const options = { ttl: 200, maxHold: 200 };
  const leases = await client.lockAll(["c", "d"], options);
  const others = await client.lockAll(["e", "f"], options);
  const [one, other] = [await client.acquire("a", options), await client.acquire("b", options)];
  const ends = [
    [[one], () => one.release()],
    [[other], () => other[Symbol.asyncDispose]()],
    [leases, () => leases.release()],
    [others, () => others[Symbol.asyncDispose]()],
  ].map(([each, end]) => ({ signals: Array.from(each, ({ signal }) => signal), end }));
  // From here on the loop is blocked.
  for (const lease of [one, other, ...leases, ...others]) while (lease.remaining() > 0);
  for (const { signals, end } of ends) {
    await assert.rejects(end(), (error) => {
      for (const { reason } of signals) assert.ok(reason instanceof LeaseLostError, String(end));
      return error instanceof LeaseLostError;
    });
  }
  await client.close();
});

test("a release that finds the lock taken is a loss, and aborts the signal first", async (t) => {
  const { url } = await startRedis(t);
  const [client, redis] = [await connect(url, { requestTimeout: 5_000 }), new Redis(url)];
  undo(t, async () => (redis.disconnect(), await client.close()));
  const options = { ttl: 600_000 };
  const taken = (name) => redis.set(name, "another");
  const [one, other] = [await client.acquire("a", options), await client.acquire("b", options)];
  const leases = await client.lockAll(["c", "d"], options);
  for (const [lease, end] of [
    [one, () => one.release()],
    [other, () => other[Symbol.asyncDispose]()],
    [leases.get("c"), () => leases.release()],
  ]) {
    const { signal } = lease;
    await taken(lease.resource);
    await assert.rejects(end(), (error) => {
      assert.ok(error instanceof LeaseLostError && error.resource === lease.resource, String(error));
      assert.ok(signal.reason instanceof LeaseLostError, String(end));
      return true;
    });
  }
  assert.equal(leases.get("d").signal.aborted, false, "it was released");
  await assert.rejects(client.using("e", options, () => taken("e")), LeaseLostError);
});

test("a loss without listeners has no effect", async () => {
  const { code, stdout, stderr } = await start("lose.mjs").ended;
  assert.deepEqual([code, stdout, stderr], [0, "lost\n", ""]);
});
