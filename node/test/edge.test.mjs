// `leasehold/edge` against real servers, sharing its locks with the native package.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { connect as connectNative } from "leasehold";
import {
  connect,
  ConfigError,
  FinishUnconfirmedError,
  Lease,
  LeaseholdError,
  LockBusyError,
  LockTimeoutError,
  NotOwnedError,
  Run,
  StoreRefusedError,
} from "leasehold/edge";
import { edgeStores } from "./helpers/edge-stores.mjs";
import { startDynamodb, startEtcd, startRedis, startWebdis } from "./helpers/servers.mjs";
import { startRest } from "./helpers/rest.mjs";
import { aborted } from "./helpers/signals.mjs";
import { until } from "./helpers/until.mjs";

/** For leases that must not be lost on a busy machine. */
const SLOW = { requestTimeout: 5_000 };
const LONG = { ttl: 30_000 };
const DAY = 86_400_000;

/** It takes seconds to start, and each test uses other names. */
const dynamodb = await startDynamodb({ after });
Object.assign(process.env, dynamodb.env);

const STORES = edgeStores(dynamodb);

for (const [name, start] of Object.entries(STORES)) {
  test(`a lock on ${name} is shared with native code`, async (t) => {
    const { url, native, credentials } = await start(t);
    const client = await connect(url, { ...SLOW, owner: "edge", credentials });
    const other = await connectNative(native, { ...SLOW, owner: "native" });

    const lease = await client.acquire("invoice/42", { ...LONG, data: new Uint8Array([7]) });
    assert.ok(lease.token > 0 && Number.isSafeInteger(lease.token));
    assert.deepEqual([lease.resource, lease.owner, lease.signal.aborted], ["invoice/42", "edge", false]);
    assert.ok(lease.remaining() > 0 && lease.remaining() < LONG.ttl);
    lease.check();
    lease.check(1_000);
    assert.throws(() => lease.check(LONG.ttl), { code: "lost" });
    assert.equal(await other.tryAcquire("invoice/42"), null);
    const info = await other.inspect("invoice/42");
    assert.deepEqual([info.owner, info.token, info.data], ["edge", lease.token, Buffer.from([7])]);
    // Redis shows no ttl. The lock stays closed longer, by the time that the clock here may miss.
    if (info.ttl !== undefined) assert.equal(info.ttl, LONG.ttl + 500);
    await lease.release();
    await assert.rejects(lease.release(), NotOwnedError);
    assert.throws(() => lease.check(), NotOwnedError);
    assert.deepEqual([lease.remaining(), lease.signal.aborted], [0, false]);

    const theirs = await other.acquire("invoice/42", LONG);
    assert.ok(theirs.token > lease.token);
    assert.equal(await client.tryAcquire("invoice/42"), null);
    await assert.rejects(client.acquire("invoice/42", { wait: 0 }), (error) => {
      assert.ok(error instanceof LockBusyError && error instanceof LeaseholdError);
      assert.deepEqual([error.code, error.resource, error.temporary], ["busy", "invoice/42", true]);
      assert.deepEqual([error.holder.owner, error.holder.token], ["native", theirs.token]);
      return true;
    });
    await assert.rejects(client.acquire("invoice/42", { wait: 300 }), LockTimeoutError);
    const waiting = client.acquire("invoice/42", LONG);
    await theirs.release();
    const next = await waiting;
    assert.ok(next.token > theirs.token);
    await client.close();
    assert.equal(next.signal.reason.code, "not_owned");
    await assert.rejects(next[Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")](), NotOwnedError);
    assert.notEqual(await other.tryAcquire("invoice/42"), null);
    await other.close();
  });
}

for (const [name, start] of Object.entries(STORES)) {
  test(`a run on ${name} is done once, here and in native code`, async (t) => {
    const { url, native, credentials } = await start(t);
    const client = await connect(url, { ...SLOW, owner: "edge", credentials });
    const other = await connectNative(native, { ...SLOW, owner: "native" });
    const job = { key: `${Date.now()}`, ttl: 30_000 };
    const first = await client.once("job", job, async (run) => {
      assert.ok(run instanceof Run && run instanceof Lease);
      assert.deepEqual([run.resource, run.owner], [`job@${job.key}`, "edge"]);
      assert.equal((await other.once("job", job, () => assert.fail("twice"))).holder.token, run.token);
      assert.equal((await client.once("job", { ...job, wait: 50 }, () => assert.fail("twice"))).reason, "running");
      return "done";
    });
    assert.deepEqual([first.ran, first.value], [true, "done"]);
    const seen = [other, client].map((each) => each.once("job", job, () => assert.fail("again")));
    for (const { ran, reason, token, owner, at, left } of await Promise.all(seen)) {
      assert.deepEqual([ran, reason, token, owner], [false, "done", first.token, "edge"]);
      assert.ok(Math.abs(Date.now() - at) < 600_000 && left > 6 * DAY && left < 7.1 * DAY);
    }
    assert.ok((await client.once("job", { ...job, evenIfDone: true }, () => 0)).token > first.token);

    const theirs = (await other.beginRun("job", { ...job, key: "theirs" })).run;
    const standBy = client.once("job", { ...job, key: "theirs", wait: 60_000 }, () => assert.fail("it is done"));
    await theirs.finish();
    assert.deepEqual([(await standBy).reason, (await standBy).token], ["done", theirs.token]);

    const { every, offset } = { every: 20_000 * DAY, offset: DAY };
    const { value } = await other.once("job", { every, offset }, ({ resource }) => resource);
    assert.equal((await client.once("job", { every, offset }, () => assert.fail(value))).reason, "done");
    await Promise.all([client.close(), other.close()]);
  });
}

test("a run without a finish leaves no completion, and one that is lost cannot be finished", async (t) => {
  const redis = await startRedis(t);
  const webdis = await startWebdis(t, redis.url);
  const [client, other] = [await connect(webdis.url, SLOW), await connectNative(redis.url, SLOW)];
  const job = { key: "s", ...LONG };
  const isOpen = async () => {
    const { holder, done } = await other.inspectRun("job", "s");
    return holder === null && done === null;
  };
  await assert.rejects(client.once("job", job, () => Promise.reject(new RangeError("oops"))), RangeError);
  assert.ok(await isOpen());
  const { run } = await client.beginRun("job", job);
  await run[Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]();
  assert.ok(await isOpen());
  await assert.rejects(run.finish(), NotOwnedError);
  await client.once("job", job, (run) => run.release());
  assert.ok(await isOpen());
  const breaks = async ({ resource, token }) => void (await other.releaseIf(resource, { token }));
  await assert.rejects(client.once("job", job, breaks), { code: "lost", resource: "job@s" });
  const broken = (await client.beginRun("job", job)).run;
  await breaks(broken);
  const next = (await other.beginRun("job", job)).run;
  await assert.rejects(broken.finish(), { code: "lost" });
  assert.equal(broken.signal.reason.code, "lost");
  await next.finish();
  assert.equal((await other.inspectRun("job", "s")).done.token, next.token);
  await client.once("job", { key: "finished" }, async (run) => {
    await run.finish();
    await assert.rejects(run.finish(), NotOwnedError);
  });
  const left = (await client.beginRun("job", { key: "left" })).run;
  await client.close();
  await assert.rejects(left.finish(), NotOwnedError);
  await assert.rejects(client.beginRun("job", job), { code: "closed" });
  await other.close();
});

test("a finish without an answer is unconfirmed", async (t) => {
  const redis = await startRedis(t);
  const webdis = await startWebdis(t, redis.url);
  let isDown = false;
  const fetch = (...given) => (isDown ? Promise.reject(new TypeError("fetch failed")) : globalThis.fetch(...given));
  const client = await connect(webdis.url, { requestTimeout: 200, fetch });
  const finish = client.once("job", { key: "s", ttl: 1_500 }, () => void (isDown = true));
  await assert.rejects(finish, (error) => error instanceof FinishUnconfirmedError && error.resource === "job@s" && !error.temporary);
  await client.close().catch(() => {});
});

test("impossible settings of runs are refused", async () => {
  const client = await connect("webdis+http://127.0.0.1:1");
  for (const options of [
    { key: "" },
    { key: "x".repeat(1_024) },
    { key: "s", cooldown: DAY },
    { key: "s", every: DAY },
    { every: 0 },
    { every: DAY, offset: DAY },
    { every: DAY, keep: DAY - 1 },
    { key: "s", offset: 5 },
    { cooldown: DAY, keep: DAY },
    { keep: 29_999 },
    { keep: DAY * 36_501 },
    { keep: Infinity },
  ]) {
    await assert.rejects(client.once("job", () => assert.fail("it ran")), { code: "config", resource: "job", message: /^say when the work may be done again: key [^,]*, such as a date\), every [^,]*, cron .*, cooldown [^,]*, or keep / });
    await assert.rejects(client.once("job", options, () => assert.fail("it ran")), ConfigError, JSON.stringify(options));
  }
  for (const call of [() => client.once("job"), () => client.once("job", { key: 5 }, () => 0), () => client.beginRun(7)]) {
    await assert.rejects(call, TypeError);
  }
  await client.close();
});

test("a lease is renewed for as long as it is held, and lost by the clock when it is not", async (t) => {
  const redis = await startRedis(t);
  const webdis = await startWebdis(t, redis.url);
  const client = await connect(webdis.url);
  const rival = await connectNative(redis.url);
  const lease = await client.acquire("a", { ttl: 6_000 });
  assert.throws(() => lease.extend(1_000), { name: "ConfigError", message: /nothing to extend/ });
  // Only a renewal increases the validity.
  let left = lease.remaining();
  await until(() => {
    assert.equal(lease.signal.aborted, false);
    const before = left;
    left = lease.remaining();
    return left > before;
  });
  await lease.release();

  const short = await client.acquire("a", { ttl: 2_000, renew: false });
  const heard = aborted(short.signal);
  const next = await rival.acquire("a", LONG);
  assert.equal(short.signal.aborted, true, "the signal comes before anybody else has the lock");
  assert.ok(next.token > short.token);
  await heard;
  assert.equal(short.signal.reason.code, "lost");
  await assert.rejects(short.release(), { code: "lost", resource: "a" });
  await Promise.all([client.close(), rival.close()]);
});

test("a release that finds the lock broken or taken is a loss", async (t) => {
  const redis = await startRedis(t);
  const webdis = await startWebdis(t, redis.url);
  const [client, rival] = [await connect(webdis.url), await connectNative(redis.url)];
  const broken = await client.acquire("a", LONG);
  assert.ok((await rival.releaseIf("a", { token: broken.token })).released);
  await assert.rejects(broken.release(), { code: "lost", resource: "a" });
  assert.equal(broken.signal.reason.code, "lost");
  let next;
  const used = client.using("a", LONG, async (lease) => {
    assert.ok((await rival.releaseIf("a", { token: lease.token })).released);
    next = await rival.acquire("a", LONG);
  });
  await assert.rejects(used, { code: "lost", message: /somebody else holds the lock now/ });
  assert.equal((await rival.inspect("a")).token, next.token, "it was left alone");
  await Promise.all([client.close(), rival.close()]);
});

test("a rejected token is a refusal, and a function is called for a new one", async (t) => {
  const redis = await startRedis(t);
  const rest = await startRest(t, redis.url);
  const wrong = await connect(rest.bare, { ...SLOW, credentials: { token: "hunter2-another" } });
  await assert.rejects(wrong.acquire("a", { wait: 0 }), StoreRefusedError);
  await wrong.close();

  let asked = 0;
  const credentials = async (store) => {
    assert.equal(store, rest.bare);
    asked += 1;
    return { token: asked === 1 ? "hunter2-another" : "hunter2-token" };
  };
  const client = await connect(rest.bare, { ...SLOW, credentials });
  await client.acquire("a", { wait: 0 }).catch((error) => assert.ok(error instanceof StoreRefusedError));
  const lease = await client.acquire("a", LONG);
  assert.equal(asked, 2);
  await lease.release();
  await client.close();
});

test("keys of AWS may come late, and errors have the reason for missing ones", async () => {
  const trouble = new Error("no keys today");
  let has = false;
  const credentials = async () => {
    if (!has) throw trouble;
    return { ...dynamodb.credentials, sessionToken: null, expiration: new Date(Date.now() + 3_600_000) };
  };
  const client = await connect(dynamodb.url, { ...SLOW, requestTimeout: 500, credentials });
  await assert.rejects(client.acquire("late", { wait: 0 }), (error) => {
    assert.deepEqual([error.code, error.cause], ["store_unavailable", trouble]);
    return true;
  });
  has = true;
  const lease = await client.acquire("late", LONG);
  await lease.release();
  await client.close();
});

test("a quorum of three is shared with native code", async (t) => {
  const quorumId = "00112233445566778899aabbccddeeff";
  const servers = await Promise.all(
    [0, 1, 2].map(async () => {
      const redis = await startRedis(t);
      return { redis, webdis: await startWebdis(t, redis.url) };
    }),
  );
  const other = await connectNative(servers.map(({ redis }) => redis.url), { ...SLOW, quorumId, createQuorum: true });
  const urls = servers.map(({ webdis }) => webdis.url);
  await assert.rejects(connect(urls), { code: "config" });
  await assert.rejects(connect([urls[0], urls[0]], { quorumId }), { code: "config" });
  const client = await connect(urls, { ...SLOW, quorumId });
  const lease = await client.acquire("a", LONG);
  assert.equal(await other.tryAcquire("a"), null);
  await lease.release();
  const theirs = await other.acquire("a", LONG);
  assert.equal(await client.tryAcquire("a"), null);
  await servers[0].redis.stop();
  await theirs.release();
  const next = await client.acquire("a", LONG);
  assert.ok(next.token > theirs.token);
  await next.release();
  // The absent node confirms no release.
  await Promise.allSettled([client.close(), other.close()]);
});

test("a login for etcd may be an option, and a wrong one is told", async (t) => {
  const etcd = await startEtcd(t);
  const client = await connect(etcd.bare, { ...SLOW, owner: "edge", credentials: etcd.credentials });
  const lease = await client.acquire("job", LONG);
  const native = await connectNative(etcd.url, { ...SLOW, owner: "native" });
  assert.equal(await native.tryAcquire("job"), null);
  await lease.release();
  await client.close();
  const wrong = await connect(etcd.bare, { ...SLOW, credentials: { ...etcd.credentials, password: "hunter3" } });
  await assert.rejects(wrong.acquire("job", { wait: 500 }), (error) => {
    assert.match(error.cause.message, /login was refused/);
    assert.doesNotMatch(`${error.message} ${error.cause.message}`, /hunter/);
    return true;
  });
  await wrong.close();
  await native.close();
});
