import assert from "node:assert/strict";
import { getEventListeners, once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { Worker } from "node:worker_threads";

import * as leasehold from "leasehold";
import { startRedis } from "./helpers/servers.mjs";
import { sqlite } from "./helpers/folder.mjs";
import { aborted } from "./helpers/signals.mjs";

const { connect, ConfigError, LeaseLostError, LockBusyError, LockTimeoutError, NotOwnedError, StaleTokenError } = leasehold;
const OPTIONS = { ttl: 20_000 };

const stores = {
  memory: async () => "memory:",
  sqlite: async (t) => sqlite(t),
  redis: async (t) => (await startRedis(t)).url,
};

/** The same for each store, with a client that is closed in the end. */
function testEach(name, body) {
  for (const [store, url] of Object.entries(stores)) {
    test(`${name}: ${store}`, async (t) => {
      const client = await connect(await url(t), { requestTimeout: 5_000 });
      try {
        await body(client, t);
      } finally {
        await client.close();
      }
    });
  }
}

test("a lease is labelled with the host, the process and the thread", async () => {
  // Windows has several spellings of its name.
  const expectLabel = (owner, thread) => assert.equal(owner.toLowerCase(), `${hostname()}:${process.pid}:${thread}`.toLowerCase());
  const client = await connect("memory:");
  expectLabel((await client.acquire("a")).owner, "main");
  await client.close();
  const worker = new Worker(new URL("./programs/label.mjs", import.meta.url));
  const number = worker.threadId;
  const [[owner]] = await Promise.all([once(worker, "message"), once(worker, "exit")]);
  expectLabel(owner, `worker-${number}`);
});

testEach("a lease shows its properties, and is over after its release", async (client) => {
  const lease = await client.acquire("invoice/42", { ...OPTIONS, owner: "the test" });
  assert.equal(lease.resource, "invoice/42");
  assert.equal(lease.owner, "the test");
  assert.ok(Number.isSafeInteger(lease.token));
  assert.ok(lease.remaining() > 0 && lease.remaining() <= 20_000);
  lease.check();
  assert.throws(() => lease.check(20_000), LeaseLostError);
  const { signal } = lease;
  assert.equal(signal, lease.signal);
  await lease.release();
  assert.equal(lease.remaining(), 0);
  assert.equal(signal.aborted, false, "a release is no loss");
  assert.throws(() => lease.check(), NotOwnedError);
  await assert.rejects(lease.release(), { name: "NotOwnedError", code: "not_owned", resource: "invoice/42" });
});

testEach("tokens grow", async (client) => {
  let last = 0;
  for (let n = 0; n < 5; n++) {
    await client.using("counter", OPTIONS, (lease) => {
      assert.ok(lease.token > last);
      last = lease.token;
    });
  }
});

testEach("busy, timed out and free locks are distinguished", async (client) => {
  const lease = await client.acquire("report", { ...OPTIONS, owner: "first", data: Buffer.from("on it") });
  assert.equal(await client.tryAcquire("report"), null);
  await assert.rejects(client.acquire("report", { wait: 0 }), (error) => {
    assert.ok(error instanceof LockBusyError && error instanceof leasehold.LeaseholdError && error instanceof Error);
    assert.equal(error.code, "busy");
    assert.equal(error.temporary, true);
    assert.equal(error.resource, "report");
    assert.equal(error.holder.owner, "first");
    assert.equal(error.holder.token, lease.token);
    return true;
  });
  await assert.rejects(client.acquire("report", { wait: 50 }), LockTimeoutError);
  const info = await client.inspect("report");
  assert.equal(info.token, lease.token);
  assert.ok(info.left > 0 && info.left <= 20_000);
  assert.deepEqual(info.data, Buffer.from("on it"));
  assert.equal(info.foreign, false);
  await lease.release();
  assert.equal(await client.inspect("report"), null);
  const next = await client.acquire("report", OPTIONS);
  assert.ok(next.token > lease.token);
});

testEach("releaseIf releases only the named holder", async (client) => {
  assert.deepEqual(await client.releaseIf("job", { token: 1 }), { released: false, holder: null });
  const lease = await client.acquire("job", { ...OPTIONS, owner: "worker-7:1234:main" });
  const { token } = lease;
  for (const other of [{ token: token - 1 }, { owner: "worker-7:123:*" }, { token, owner: "main" }]) {
    const { released, holder } = await client.releaseIf("job", other);
    assert.deepEqual([released, holder.token], [false, token]);
  }
  lease.check();
  for (const nothing of [{}, undefined, { owner: "" }, { token: -1 }, { token: 1.5 }]) {
    await assert.rejects(client.releaseIf("job", nothing), ConfigError);
  }
  await assert.rejects(client.releaseIf("job", { token: "7" }), TypeError);
  const { released, holder } = await client.releaseIf("job", { token, owner: "worker-7:1234:*" });
  assert.deepEqual([released, holder.owner], [true, "worker-7:1234:main"]);
  assert.equal(await client.inspect("job"), null);
});

testEach("revoke tells the named holder and keeps others out", async (client) => {
  assert.deepEqual(await client.revoke("job", 1), { revoked: false, holder: null });
  const lease = await client.acquire("job", { ttl: 600_000, renewEvery: 200, owner: "worker-7:1234:main" });
  const { token } = lease;
  for (const [other, holder] of [[token - 1], [token, { owner: "main" }]]) {
    const outcome = await client.revoke("job", other, holder);
    assert.deepEqual([outcome.revoked, outcome.holder.token, outcome.holder.revoked], [false, token, false]);
  }
  lease.check();
  await assert.rejects(client.revoke("job", "7"), TypeError);
  const { revoked, holder } = await client.revoke("job", token, { owner: "worker-7:*" });
  assert.deepEqual([revoked, holder.revoked], [true, true]);
  await aborted(lease.signal);
  assert.ok(lease.signal.reason instanceof LeaseLostError);
  assert.equal(lease.signal.reason.reason, "revoked");
  assert.equal((await client.inspect("job")).revoked, true, "its work may still run");
  assert.equal(await client.tryAcquire("job", OPTIONS), null);
  await assert.rejects(lease.release(), LeaseLostError);
  assert.ok((await client.acquire("job", { ...OPTIONS, wait: 60_000 })).token > token);
});

testEach("a waiter gets the lock when it is free", async (client) => {
  const lease = await client.acquire("queue", OPTIONS);
  const waiting = client.acquire("queue", { ...OPTIONS, wait: Infinity });
  await lease.release();
  assert.ok((await waiting).token > lease.token);
});

testEach("extending a lease names the renewal", async (client) => {
  const lease = await client.acquire("job", OPTIONS);
  assert.throws(() => lease.extend(1_000), { name: "ConfigError", resource: "job", message: /renewed in the background.*nothing to extend/ });
  await lease.release();
});

testEach("an abort ends a wait with its reason and leaves no record", async (client) => {
  const lease = await client.acquire("slow", OPTIONS);
  const controller = new AbortController();
  const waiting = client.acquire("slow", { ...OPTIONS, signal: controller.signal });
  assert.equal(getEventListeners(controller.signal, "abort").length, 1);
  const reason = new Error("the user has gone");
  controller.abort(reason);
  await assert.rejects(waiting, (error) => error === reason);
  assert.equal(getEventListeners(controller.signal, "abort").length, 0);
  await assert.rejects(client.acquire("other", { signal: controller.signal }), (error) => error === reason);
  assert.equal(await client.inspect("other"), null);
  // The cancelled one would get it first.
  await lease.release();
  const next = await client.acquire("slow", { ...OPTIONS, wait: 10_000 });
  await next.release();
});

test("a signal that is never aborted has no listener afterwards", async () => {
  const client = await connect("memory:");
  const { signal } = new AbortController();
  const lease = await client.acquire("a", { signal });
  const waiting = client.acquire("a", { signal });
  await lease.release();
  await (await waiting).release();
  await assert.rejects(client.acquire("a", { signal, ttl: 1 }), ConfigError);
  assert.equal(getEventListeners(signal, "abort").length, 0);
  await client.close();
});

testEach("using releases whatever happens, and passes results and errors on", async (client) => {
  assert.equal(await client.using("body", OPTIONS, async () => 42), 42);
  assert.equal(await client.using("body", () => "without options"), "without options");
  const error = new Error("of the body");
  await assert.rejects(client.using("body", OPTIONS, () => Promise.reject(error)), (thrown) => thrown === error);
  await client.using("body", OPTIONS, (lease) => lease.release());
  assert.equal(await client.inspect("body"), null);
});

testEach("several locks are taken in order, all or none", async (client) => {
  const leases = await client.lockAll(["c", "a", "b", "a"], OPTIONS);
  assert.deepEqual(Array.from(leases, (lease) => lease.resource), ["a", "b", "c"]);
  assert.equal(leases.size, 3);
  assert.equal(leases.get("b").resource, "b");
  assert.equal(leases.get("z"), undefined);
  leases.check(1);
  await assert.rejects(client.lockAll(["0", "b"], { wait: 0 }), { code: "busy", resource: "b" });
  assert.equal(await client.inspect("0"), null);
  await leases.release();
  assert.throws(() => leases.check(), NotOwnedError);
  await client.acquire("b", OPTIONS);
});

test("leases and clients can be disposed of", async () => {
  const client = await connect("memory:");
  const lease = await client.acquire("a");
  await lease[Symbol.asyncDispose]();
  assert.equal(await client.inspect("a"), null);
  await lease[Symbol.asyncDispose]();
  const leases = await client.lockAll(["a", "b"]);
  await leases[Symbol.asyncDispose]();
  assert.equal(await client.inspect("a"), null);
  await client[Symbol.asyncDispose]();
  await assert.rejects(client.acquire("a"), { name: "ClosedError", code: "closed" });
});

test("clients share one listener for the end of the process, which goes with the last of them", async () => {
  const before = process.listenerCount("exit");
  const clients = [await connect("memory:"), await connect("memory:")];
  assert.ok(process.listenerCount("exit") <= before + 1);
  for (const client of clients) await client.close();
  assert.ok(process.listenerCount("exit") <= before);
});

test("closing a client ends its leases and waiters", async () => {
  const client = await connect("memory:");
  const lease = await client.acquire("a");
  const { signal } = lease;
  const waiting = assert.rejects(client.acquire("a"), { name: "ClosedError", code: "closed", message: /closed during the call/ });
  const body = client.using("b", ({ signal }) => aborted(signal));
  const told = assert.rejects(body, NotOwnedError);
  await client.close();
  await waiting;
  await told;
  await aborted(signal);
  assert.throws(() => lease.check(), NotOwnedError);
});

test("invalid values are refused by name", async () => {
  const client = await connect("memory:");
  const refused = (options, error) => assert.rejects(client.acquire("a", options), error);
  await refused({ timeout: 5 }, { name: "TypeError", message: /no option timeout.*ttl/ });
  await refused({ ttl: "30s" }, { name: "TypeError", message: "ttl must be a number of milliseconds, not string" });
  await refused({ signal: {} }, { name: "TypeError", message: /AbortSignal/ });
  await refused({ ttl: 50 }, { code: "config", message: /ttl: 50 is below the smallest, 100: .* for 50 s write 50_000$/ });
  await refused({ ttl: 30_000, lockDelay: -1 }, { code: "config", message: /-1 is not a duration/ });
  await refused({ ttl: Infinity }, { code: "config", message: "ttl cannot be infinite" });
  await refused({ ttl: NaN }, { code: "config", message: /NaN is not a duration/ });
  await refused({ wait: -1 }, { code: "config", message: /-1 is not a duration/ });
  await refused({ renew: false, renewEvery: 1_000 }, { code: "config", message: /contradict/ });
  await refused({ owner: "a\nb" }, ConfigError);
  await assert.rejects(client.tryAcquire("a", { wait: 5 }), { name: "TypeError", message: /no option wait/ });
  await assert.rejects(client.acquire(7), { name: "TypeError", message: "name must be a string, not number" });
  await assert.rejects(client.acquire(""), ConfigError);
  await assert.rejects(client.lockAll("abc"), TypeError);
  await assert.rejects(client.using("a", {}), TypeError);
  await client.close();
  await assert.rejects(connect("nowhere://x"), ConfigError);
  await assert.rejects(connect([]), ConfigError);
  await assert.rejects(connect(5), TypeError);
  await assert.rejects(connect("memory:", { driftPpm: 0.5 }), ConfigError);
  await assert.rejects(connect("memory:", { maxTtl: 1_000 }), { code: "config", message: /quorum/ });
});

test("each setting reaches the client, in its unit", async () => {
  const client = await connect("memory:");
  const refused = (call, message) => assert.rejects(call, { code: "config", message });
  await refused(client.acquire("a", { maxHold: 10_000 }), /10 s, but must be at least 30 s/);
  await refused(client.acquire("a", { lockDelay: 86_401_000 }), /86401 s .*but must be at most 86400 s/);
  await refused(client.acquire("a", { renewEvery: 20_000 }), /20 s, but must be at most 15 s/);
  await refused(client.lockAll(["a"], { maxHold: 10_000 }), /10 s, but must be at least 30 s/);
  await refused(client.lockAll(["a"], { owner: "a\nb" }), /owner/);
  await refused(client.lockAll(["a"], { wait: -1 }), /wait: -1/);
  await refused(client.elect("a", { owner: "a\nb" }), /owner/);
  await refused(connect("memory:", { owner: "a\nb" }), /owner/);
  await refused(connect("memory:", { requestTimeout: 1 }), /1 ms, but must be at least 10 ms/);
  await refused(connect("memory:", { driftPpm: 1 }), /1 ppm is outside 100 to 100000 ppm/);
  const three = ["x", "y", "z"].map((name) => `memory:settings-${name}`);
  const quorum = await connect(three, { createQuorum: true, quorumId: "of the test", maxTtl: 20_000 });
  await refused(quorum.acquire("a", { ttl: 20_001 }), /20/);
  await refused(connect(three), /belongs to the quorum/);
  await quorum.close();

  const lease = await client.acquire("a", { ttl: 200, renew: false, lockDelay: 600_000 });
  await aborted(lease.signal);
  assert.equal(await client.tryAcquire("a"), null, "it stays closed");
  const { since, ttl, votes } = await client.inspect("a");
  assert.ok(Math.abs(since - Date.now()) < 300_000, String(since));
  assert.deepEqual([ttl, votes], [600_200, 1]);
  await assert.rejects(client.lockAll(["a", "b"], { wait: 50 }), LockTimeoutError);
  await client.close();
});

test("an absent store is reported as unavailable", async (t) => {
  await assert.rejects(connect("sqlite:/nowhere/at/all/locks.db"), leasehold.LeaseholdError);
  const redis = await startRedis(t);
  const client = await connect(redis.url);
  await redis.stop();
  await assert.rejects(client.acquire("a", { wait: 100 }), { name: "StoreUnavailableError", code: "store_unavailable" });
  // A request that was written after the server's end may have been heard.
  await client.close().catch((error) => assert.equal(error.code, "store_unavailable"));
});

test("three stores are a quorum", async (t) => {
  const nodes = await Promise.all([startRedis(t), startRedis(t), startRedis(t)]);
  const client = await connect(nodes.map((node) => node.url), { createQuorum: true, requestTimeout: 5_000 });
  assert.equal(client.stores.length, 3);
  await nodes[0].stop();
  await client.using("a", OPTIONS, async () => assert.equal((await client.inspect("a")).nodes, 3));
  // The release on the absent node is not confirmed.
  await client.close().catch((error) => assert.equal(error.code, "store_unavailable"));
});

test("import and require give the same classes, and all that is declared", async () => {
  const required = createRequire(import.meta.url)("leasehold");
  assert.deepEqual(Object.keys(required).sort(), Object.keys(leasehold).filter((name) => name !== "default").sort());
  for (const name of Object.keys(required)) assert.equal(required[name], leasehold[name], name);
  const folder = dirname(createRequire(import.meta.url).resolve("leasehold"));
  const index = readFileSync(join(folder, "index.d.ts"), "utf8");
  const parts = [...index.matchAll(/^export (?:\*|\{.+\}) from "(.+)\.js";$/gm)].map(([, part]) => readFileSync(join(folder, `${part}.d.ts`), "utf8"));
  const types = [index, ...parts].join("");
  for (const name of Object.keys(required)) {
    assert.match(types, new RegExp(`export (class|function|const) ${name}\\b`));
    const members = Object.getOwnPropertyNames(required[name].prototype ?? {}).filter((member) => member !== "constructor");
    for (const member of members) assert.match(types, new RegExp(`\\b${member}\\b`), `${name}.${member}`);
  }
  const error = new StaleTokenError("late");
  assert.deepEqual([error.name, error.code, error.message, error.temporary], ["StaleTokenError", "stale_token", "late", false]);
});
