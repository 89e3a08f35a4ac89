// Fake clients: they behave like the real client.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as leasehold from "leasehold";
import * as testing from "leasehold/testing";

const { ConfigError, LeaseLostError, LockBusyError, LockTimeoutError, NotOwnedError, StoreUnavailableError } = leasehold;
const TTL = 30_000;

function two() {
  const clock = new testing.FakeClock();
  return { clock, client: testing.connect({ clock, owner: "me" }), rival: testing.connect({ clock, owner: "rival" }) };
}

const pairs = {
  fake: async () => two(),
  real: async () => ({
    client: await leasehold.connect("memory:testing", { owner: "me" }),
    rival: await leasehold.connect("memory:testing", { owner: "rival" }),
  }),
};

for (const [kind, pair] of Object.entries(pairs)) {
  test(`a client behaves alike: ${kind}`, async () => {
    const { client, rival } = await pair();
    assert.ok(client instanceof leasehold.Client);
    const lease = await client.acquire("job", { ttl: TTL, data: Buffer.from("here") });
    assert.ok(lease instanceof leasehold.Lease);
    assert.deepEqual([lease.resource, lease.owner, lease.signal.aborted], ["job", "me", false]);
    assert.ok(lease.remaining() > TTL / 2 && lease.remaining() <= TTL);
    lease.check(1_000);
    assert.throws(() => lease.check(2 * TTL), LeaseLostError);
    assert.equal(await rival.tryAcquire("job"), null);
    await assert.rejects(rival.acquire("job", { wait: 0 }), (error) => {
      assert.ok(error instanceof LockBusyError);
      assert.deepEqual([error.resource, error.holder.owner], ["job", "me"]);
      return true;
    });
    await assert.rejects(rival.acquire("job", { wait: 10 }), LockTimeoutError);
    const { owner, token, data, ttl, left } = await rival.inspect("job");
    assert.deepEqual([owner, token, String(data), ttl], ["me", lease.token, "here", TTL]);
    assert.ok(left <= TTL);
    await lease.release();
    assert.deepEqual([await rival.inspect("job"), lease.remaining(), lease.signal.aborted], [null, 0, false]);
    await assert.rejects(lease.release(), NotOwnedError);
    assert.throws(() => lease.check(), NotOwnedError);
    const other = await rival.acquire("job");
    assert.ok(other.token > lease.token);
    const leases = await client.lockAll(["b", "a"], { ttl: TTL });
    assert.deepEqual([...leases].map((lease) => lease.resource), ["a", "b"]);
    leases.check(1_000);
    await leases.release();
    await assert.rejects(client.lockAll(["a", "job"], { wait: 10 }), LockTimeoutError);
    await (await rival.tryAcquire("a")).release();
    assert.equal(await client.using("b", () => "done"), "done");
    const contradiction = { renew: false, renewEvery: 1_000 };
    for (const settings of [{ ttl: 10 }, { ttl: -1 }, contradiction, { owner: "a\nb" }, { data: new Uint8Array(5_000) }]) {
      await assert.rejects(client.acquire("c", settings), ConfigError);
    }
    await assert.rejects(client.acquire(""), ConfigError);
    await assert.rejects(client.acquire("c", { timeout: 5 }), TypeError);
    await assert.rejects(client.acquire("c", { signal: AbortSignal.abort() }), { name: "AbortError" });
    const kept = other.signal;
    await rival.close();
    assert.ok(kept.reason instanceof NotOwnedError);
    await assert.rejects(rival.acquire("c"), { name: "ClosedError", code: "closed" });
    await (await client.acquire("job")).release();
    await client.close();
  });
}

for (const [kind, pair] of Object.entries(pairs)) {
  test(`a release of a lock that is not ours is a loss: ${kind}`, async () => {
    const { client, rival } = await pair();
    // No renewal is due before.
    const long = { ttl: 3_600_000 };
    const lease = await client.acquire("taken", long);
    const { signal } = lease;
    assert.ok((await rival.releaseIf("taken", { owner: "me" })).released);
    const theirs = await rival.acquire("taken", { wait: 0 });
    lease.check();
    await assert.rejects(lease.release(), (error) => {
      assert.ok(signal.reason instanceof LeaseLostError, "told first");
      return error instanceof LeaseLostError && error.resource === "taken";
    });
    assert.throws(() => lease.check(), LeaseLostError);
    await assert.rejects(lease.release(), LeaseLostError);
    assert.equal((await rival.inspect("taken")).token, theirs.token, "it was left alone");
    await theirs.release();
    const breaks = async () => assert.ok((await rival.releaseIf("taken", { owner: "me" })).released);
    await assert.rejects(client.using("taken", long, breaks), LeaseLostError);
    const leases = await client.lockAll(["taken", "whole"], long);
    await breaks();
    await assert.rejects(leases.release(), LeaseLostError);
    assert.ok(await rival.tryAcquire("whole"), "the other was released");
    await Promise.all([client.close(), rival.close()]);
  });
}

test("code can be tested for a lost lock", async () => {
  const { client, rival } = two();
  const told = [];
  const body = client.using("job", async (lease) => {
    lease.signal.addEventListener("abort", () => told.push(lease.signal.reason));
    client.lose("job");
    assert.ok(lease.signal.aborted && lease.remaining() === 0);
    assert.throws(() => lease.check(), LeaseLostError);
    assert.ok((await rival.acquire("job", { wait: 0 })).token > lease.token);
  });
  await assert.rejects(body, LeaseLostError);
  assert.deepEqual(told.map((error) => error.resource), ["job"]);
  assert.throws(() => client.lose("job"), NotOwnedError);
});

test("releaseIf releases only the named holder", async () => {
  const { clock, client, rival } = two();
  const lease = await client.acquire("job", { ttl: TTL, owner: "worker-7:1234:main" });
  assert.equal((await rival.releaseIf("job", { token: lease.token + 1 })).released, false);
  await assert.rejects(rival.releaseIf("job", {}), ConfigError);
  const { released, holder } = await rival.releaseIf("job", { token: lease.token, owner: "worker-7:*" });
  assert.deepEqual([released, holder.token], [true, lease.token]);
  assert.deepEqual(await rival.releaseIf("job", { owner: "*" }), { released: false, holder: null });
  clock.advance(TTL);
  assert.ok(lease.signal.reason instanceof LeaseLostError);
});

test("revoke tells the named holder and keeps others out", async () => {
  const { clock, client, rival } = two();
  const lease = await client.acquire("job", { ttl: TTL });
  assert.equal((await rival.revoke("job", lease.token + 1)).revoked, false);
  const { revoked, holder } = await rival.revoke("job", lease.token);
  assert.deepEqual([revoked, holder.revoked], [true, true]);
  clock.advance(TTL / 2);
  assert.equal(lease.signal.reason.reason, "revoked");
  assert.equal(await rival.tryAcquire("job"), null);
  await assert.rejects(lease.release(), LeaseLostError);
  assert.ok((await rival.tryAcquire("job")).token > lease.token);
});

test("code can be tested for a store that is down", async () => {
  const { clock, client, rival } = two();
  const lease = await client.acquire("job", { ttl: TTL });
  await client.using("other", () => client.storeDown());
  await assert.rejects(client.acquire("third", { wait: 3_000 }), StoreUnavailableError);
  await assert.rejects(client.inspect("job"), StoreUnavailableError);
  assert.ok(!lease.signal.aborted);
  clock.advance(lease.remaining());
  assert.ok(lease.signal.reason instanceof LeaseLostError);
  client.storeUp();
  const next = await rival.acquire("job", { wait: TTL });
  assert.ok(next.token > lease.token);
  client.storeDown();
  await assert.rejects(next.release(), StoreUnavailableError);
});

test("a holder runs before a waiter moves the clock", async () => {
  const { clock, client, rival } = two();
  const before = clock.now();
  const seen = [];
  const work = (client, name) =>
    client.using("job", { wait: 1_000 }, async () => {
      for (let n = 0; n < 5; n++) await undefined;
      seen.push(name);
    });
  await Promise.all([work(client, "a"), work(rival, "b"), work(client, "c")]);
  assert.equal(seen.length, 3);
  // Polling continues for a while, but no waiter was lost.
  assert.ok(clock.now() - before < 3_000);
});

test("a wait ends when its signal is aborted", async () => {
  const { client, rival } = two();
  const lease = await client.acquire("job");
  const stop = new AbortController();
  const waiting = rival.acquire("job", { signal: stop.signal });
  stop.abort(new RangeError("mine"));
  await assert.rejects(waiting, { message: "mine" });
  await lease.release();
  assert.notEqual(await client.tryAcquire("job"), null);
});

test("a lease can be over before its owner has it", async () => {
  const { client } = two();
  const acquiring = client.acquire("job");
  client.lose("job");
  const lease = await acquiring;
  assert.ok(lease.signal.reason instanceof LeaseLostError);
});

test("time passes when the test says so, or somebody waits", async () => {
  const { clock, client, rival } = two();
  const lease = await client.acquire("job", { ttl: TTL });
  const once = await client.acquire("once", { ttl: TTL, renew: false });
  const before = clock.now();
  clock.advance(3_600_000);
  assert.equal(clock.now() - before, 3_600_000);
  assert.ok(lease.remaining() > TTL / 3 && once.signal.aborted);
  await assert.rejects(rival.acquire("job"), { message: /never ends/ });
  await lease.release();
  const short = await client.acquire("job", { ttl: TTL, renew: false });
  const from = clock.now();
  assert.ok((await rival.acquire("job", { wait: 2 * TTL })).token > short.token);
  assert.ok(clock.now() - from > TTL - 1_000 && clock.now() - from < 2 * TTL);
  assert.throws(() => clock.advance(-1), ConfigError);
  assert.throws(() => clock.advance("1"), TypeError);
});
