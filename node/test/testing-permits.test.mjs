// Permits, readers, writers, lists and watches of fake clients: they behave like the real ones.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as leasehold from "leasehold";
import * as testing from "leasehold/testing";

const { ClosedError, ConfigError, LeaseLostError, LockBusyError, LockTimeoutError, StoreUnavailableError } = leasehold;
const LONG = { ttl: 30_000 };

function two() {
  const clock = new testing.FakeClock();
  return { clock, client: testing.connect({ clock, owner: "me" }), rival: testing.connect({ clock, owner: "rival" }) };
}

let count = 0;
const pairs = {
  fake: async () => two(),
  real: async () => {
    const store = `memory:testing-permits-${(count += 1)}`;
    return { client: await leasehold.connect(store, { owner: "me" }), rival: await leasehold.connect(store, { owner: "rival" }) };
  },
};

function testBoth(name, body) {
  for (const [kind, pair] of Object.entries(pairs)) {
    test(`${name}: ${kind}`, async () => {
      const { client, rival } = await pair();
      await body(client, rival);
      await Promise.all([client.close(), rival.close()]);
    });
  }
}

async function listed(client, prefix) {
  const names = [];
  for await (const { resource } of client.list(prefix)) names.push(resource);
  return names.sort();
}

testBoth("any of several locks", async (client, rival) => {
  const any = client.lockAny(["a", "b"]);
  const [first, second] = [await any.acquire(LONG), await any.acquire(LONG)];
  assert.deepEqual([first.resource, second.resource].sort(), ["a", "b"]);
  assert.equal(await rival.lockAny(["a", "b"]).tryAcquire(), null);
  await assert.rejects(rival.lockAny(["a", "b"]).acquire({ wait: 50 }), (error) => {
    assert.ok(error instanceof LockTimeoutError);
    assert.equal(error.holder.owner, "me");
    return true;
  });
  const waiting = rival.lockAny(["a", "b"]).acquire({ ...LONG, wait: 60_000 });
  await first.release();
  const third = await waiting;
  assert.equal(third.resource, first.resource);
  assert.ok(third.token > first.token);
  for (const wrong of [[], Array.from({ length: 65 }, String)]) {
    await assert.rejects(client.lockAny(wrong).acquire(), /name at least one, and at most 64/);
  }
});

testBoth("permits", async (client, rival) => {
  const permits = [await client.semaphore("license", 2).acquire(LONG), await rival.semaphore("license", 2).acquire(LONG)];
  assert.deepEqual(permits.map(({ index }) => index).sort(), [0, 1]);
  assert.ok(permits.every((permit) => permit instanceof leasehold.Permit && permit.resource === `license#${permit.index}`));
  assert.equal(await client.semaphore("license", 2).tryAcquire(), null);
  await assert.rejects(client.semaphore("license", 1).acquire({ wait: 50 }), leasehold.LeaseholdError);
  await permits[0].release();
  await assert.rejects(client.semaphore("license", 3).acquire(), /permits is 3 here, and 2 in the store/);
  await assert.rejects(rival.setPermits("license", 3), LockBusyError);
  for (const permits of [0, 65]) {
    await assert.rejects(client.semaphore("license", permits).acquire(), /it can be 1 to 64/);
    await assert.rejects(client.setReaders("license", permits), /it can be 1 to 64/);
  }
});

testBoth("readers and writers", async (client, rival) => {
  const [ours, theirs] = [client, rival].map((client) => client.rwLock("catalog", { readers: 2 }));
  const [first, second] = [await ours.read(LONG), await theirs.read(LONG)];
  assert.equal(await ours.tryWrite(), null);
  await first.release();
  await second.release();
  const token = await ours.writing(LONG, async (lease) => {
    lease.check(1);
    assert.equal(await theirs.tryRead(), null);
    assert.deepEqual(await listed(rival, "catalog#"), ["catalog#gate", "catalog#reader0", "catalog#reader1"]);
    await assert.rejects(rival.setReaders("catalog", 3), LockBusyError);
    return lease.token;
  });
  assert.ok(token > Math.max(first.token, second.token));
  assert.ok((await theirs.reading(({ token }) => token)) > token);
  assert.deepEqual(await listed(client, "catalog#"), []);
});

testBoth("lists and watches", async (client, rival) => {
  const changes = rival.watch("job/1", { every: 100 });
  assert.deepEqual((await changes.next()).value, { type: "free" });
  const leases = [await client.acquire("job/1", { ...LONG, fair: false }), await client.acquire("job/2", LONG)];
  assert.deepEqual(await listed(rival, "job/"), ["job/1", "job/2"]);
  const { value } = await changes.next();
  assert.deepEqual([value.type, value.holder.owner], ["held", "me"]);
  for (const lease of leases) await lease.release();
  assert.deepEqual((await changes.next()).value, { type: "free" });
  await assert.rejects(listed(client, "a\n"), ConfigError);
  await assert.rejects(client.watch("a\n").next(), ConfigError);
  await assert.rejects(client.watch("a", { every: 10 }).next(), ConfigError);
});

test("a number can be changed while nobody holds any", async () => {
  const { client, rival } = two();
  await client.semaphore("license", 2).using(() => {});
  await rival.setPermits("license", 3);
  await assert.rejects(rival.semaphore("license", 2).acquire(), /permits is 2 here, and 3/);
});

test("the permit of a dead holder comes back", async () => {
  const { client, rival } = two();
  const permit = await client.semaphore("license", 1).acquire({ ...LONG, maxHold: 30_000 });
  const next = await rival.semaphore("license", 1).acquire({ wait: 90_000 });
  assert.ok(permit.signal.aborted && next.token > permit.token);
});

test("a write is lost with any of its locks", async () => {
  const { client, rival } = two();
  const writing = await client.rwLock("catalog", { readers: 2 }).write(LONG);
  client.lose("catalog#reader1");
  assert.ok(writing.signal.aborted);
  assert.equal(writing.remaining(), 0);
  await assert.rejects(writing.release(), LeaseLostError);
  await rival.rwLock("catalog", { readers: 2 }).writing({ wait: 60_000 }, () => {});
});

test("a store that is down is told, and a watch ends with its signal and its client", async () => {
  const { client } = two();
  const changes = client.watch("job");
  assert.equal((await changes.next()).value.type, "free");
  client.storeDown();
  const { value } = await changes.next();
  assert.ok(value.type === "unreadable" && value.error instanceof StoreUnavailableError);
  await assert.rejects(client.semaphore("license", 2).acquire({ wait: 0 }), StoreUnavailableError);
  client.storeUp();
  assert.equal((await changes.next()).value.type, "free");
  await assert.rejects(client.watch("job", { signal: AbortSignal.abort(new Error("enough")) }).next(), /enough/);
  await client.close();
  await assert.rejects(changes.next(), ClosedError);
});
