// Faults of `leasehold/edge`.

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { describe, test } from "node:test";
import { connect as connectNative } from "leasehold";
import { connect, ClosedError, LeaseLostError, NotOwnedError, StoreUnavailableError } from "leasehold/edge";
import { start } from "./helpers/child.mjs";
import { FAULT_NAMES, startProxy } from "./helpers/proxy.mjs";
import { startRedis, startWebdis } from "./helpers/servers.mjs";
import { aborted } from "./helpers/signals.mjs";
import { until } from "./helpers/until.mjs";

// Every server listens for the end of the process.
process.setMaxListeners(50);

/** Longer than the delays of a loaded machine: each request that times out makes the client retry, and the machine slower. */
const SLOW = { requestTimeout: 10_000 };
/** Requests under these faults end by their timeout. */
const ENDLESS = ["hang", "half"];
/** Longer than any test. */
const LONG = { ttl: 600_000 };
/** Enough for a machine that misses some request timeouts. */
const PATIENT = { ...LONG, wait: 180_000 };

/** A store behind a proxy, and a native client of the same store. */
async function stage(t, settings = SLOW) {
  let rival;
  // Before its server ends.
  t.after(() => rival?.close());
  const redis = await startRedis(t);
  const webdis = await startWebdis(t, redis.url);
  const proxy = await startProxy(t, webdis.url);
  rival = await connectNative(redis.url, SLOW);
  return { client: await connect(proxy.url, settings), rival, proxy };
}

/** After a cancelled request whose grant may still arrive, its release continues, and closing reports that. */
async function close(client) {
  await client.close().catch((error) => assert.ok(error instanceof StoreUnavailableError));
}

/** Each fault with its own proxy and client, some at once: requests of more of them would delay each other. */
async function underEach(t, test) {
  const redis = await startRedis(t);
  const webdis = await startWebdis(t, redis.url);
  const rival = await connectNative(redis.url, SLOW);
  // From now on the server knows the scripts, so that the first broken request is a real operation.
  await release(await rival.acquire("known", LONG));
  const next = FAULT_NAMES.values();
  const inTurn = async () => {
    for (const fault of next) {
      const proxy = await startProxy(t, webdis.url);
      const client = await connect(proxy.url, ENDLESS.includes(fault) ? { requestTimeout: 3_000 } : SLOW);
      await test({ client, rival, proxy, fault, name: `under ${fault}` });
    }
  };
  await Promise.all(Array.from({ length: 3 }, inTurn));
  await rival.close();
}

/** On a loaded machine a release may not be confirmed in time, which is told. */
async function release(lease) {
  await lease.release().catch(({ code }) => assert.equal(code, "store_unavailable"));
}

// Most of it is waiting.
describe("leasehold/edge", { concurrency: 2 }, () => {
  test("an absent server fails the acquisition, and connecting sends no request", async () => {
    // A port that no server gets, unlike one that was free a moment ago.
    const client = await connect("webdis+http://127.0.0.1:2", { requestTimeout: 30_000 });
    await assert.rejects(client.acquire("a", { wait: 0 }), (error) => {
      assert.ok(error instanceof StoreUnavailableError && error.temporary);
      assert.match(error.message, /"a": the store cannot be used now \(not reachable: ECONNREFUSED\)/);
      return true;
    });
    await client.close();
  });

  test("an acquisition that breaks holds nothing and leaves no record", (t) =>
    underEach(t, async ({ client, rival, proxy, fault, name }) => {
      proxy.fault = fault;
      await assert.rejects(client.acquire(name, { ...LONG, wait: 0 }), ({ code }) => {
        assert.ok(["store_unavailable", "store_refused"].includes(code), `${fault}: ${code}`);
        return true;
      });
      proxy.fault = undefined;
      // Sooner than the record of the attempt would expire.
      const theirs = await rival.acquire(name, PATIENT);
      await release(theirs);
      const lease = await client.acquire(name, PATIENT);
      assert.ok(lease.token > theirs.token);
      await close(client);
    }));

  test("failed renewals lose the lease, and its signal has the reason", (t) =>
    underEach(t, async ({ client, rival, proxy, fault, name }) => {
      const lease = await client.acquire(name, { ttl: 9_000 });
      proxy.fault = fault;
      await aborted(lease.signal);
      assert.ok(lease.signal.reason instanceof LeaseLostError);
      assert.match(lease.signal.reason.message, /no renewal was confirmed in time \(.+\)/);
      assert.throws(() => lease.check(), lease.signal.reason);
      proxy.fault = undefined;
      await release(await rival.acquire(name, LONG));
      await close(client);
    }));

  test("a single failed renewal does not lose the lease", async (t) => {
    const { client, proxy } = await stage(t);
    const lease = await client.acquire("a", { ttl: 60_000, renewEvery: 1_000 });
    proxy.fault = "500";
    await until(() => proxy.broken > 0);
    proxy.fault = undefined;
    const left = lease.remaining();
    await until(() => lease.remaining() > left);
    lease.check();
    await release(lease);
    await close(client);
  });

  test("an unconfirmed release rejects release, but not using", async (t) => {
    const { client, proxy } = await stage(t, { requestTimeout: 5_000 });
    const lease = await client.acquire("a", LONG);
    const error = new Error("of the body");
    let begun = 0;
    const hang = async () => {
      begun += 1;
      await until(() => begun === 2);
      proxy.fault = "hang";
      return "done";
    };
    const thrown = client.using("c", LONG, async () => {
      await hang();
      throw error;
    });
    const [result] = await Promise.all([
      client.using("b", LONG, hang),
      assert.rejects(thrown, (thrown) => thrown === error),
    ]);
    assert.equal(result, "done");
    await assert.rejects(lease.release(), StoreUnavailableError);
    await assert.rejects(lease.release(), NotOwnedError);
    await assert.rejects(client.close(), StoreUnavailableError);
  });

  test("a fetch that misbehaves gives an unknown outcome", async (t) => {
    const redis = await startRedis(t);
    const webdis = await startWebdis(t, redis.url);
    const rival = await connectNative(redis.url, SLOW);
    const misbehaving = {
      "throws at once": () => {
        throw new TypeError("no such thing");
      },
      rejects: () => Promise.reject(undefined),
      "never settles": () => new Promise(() => {}),
      "answers nonsense": async () => ({ status: "fine" }),
      "answers nothing": async () => undefined,
    };
    const checks = Object.entries(misbehaving).map(async ([name, wrong]) => {
      let isWrong = true;
      const client = await connect(webdis.url, {
        requestTimeout: 3_000,
        fetch: (...request) => (isWrong ? wrong() : fetch(...request)),
      });
      await assert.rejects(client.acquire(name, { ...LONG, wait: 0 }), StoreUnavailableError, name);
      isWrong = false;
      const lease = await client.acquire(name, PATIENT);
      assert.equal(await rival.tryAcquire(name), null, name);
      await release(lease);
      await close(client);
    });
    await Promise.all(checks);
    await rival.close();
  });

  test("a silent fetch is aborted at its deadline, and not before", async (t) => {
    const begun = [];
    const fetch = (_, { signal }) => {
      const request = { signal };
      begun.push(request);
      signal.addEventListener("abort", () => (request.endedAt = performance.now()));
      return new Promise(() => {});
    };
    const client = await connect("webdis+http://127.0.0.1:2", { requestTimeout: 3_000, fetch });
    const start = performance.now();
    await assert.rejects(client.acquire("a", { ...LONG, wait: 0 }), StoreUnavailableError);
    assert.ok(begun.length > 0);
    await until(() => begun.every(({ signal }) => signal.aborted));
    // Timers are exact to a millisecond.
    assert.ok(begun[0].endedAt - start > 2_990, `${begun[0].endedAt - start} ms`);
    await close(client);
  });

  test("an abort ends the wait with its reason, and does not end a lease", async (t) => {
    const { client, rival, proxy } = await stage(t);
    const reason = new Error("enough");
    const isReason = (error) => error === reason;
    await assert.rejects(client.acquire("a", { signal: AbortSignal.abort(reason) }), isReason);
    const held = await rival.tryAcquire("a", LONG);
    assert.notEqual(held, null, "nothing was begun");

    const waiting = new AbortController();
    const given = client.acquire("a", { ...LONG, signal: waiting.signal });
    setImmediate(() => waiting.abort(reason));
    await assert.rejects(given, isReason);
    assert.equal(getEventListeners(waiting.signal, "abort").length, 0);
    // Waiters of one client are served in order: one that had not been cancelled would get the lock first, and keep it.
    await release(held);
    await release(await client.acquire("a", PATIENT));

    // While the request is pending, whose grant is no longer needed.
    const inFlight = new AbortController();
    proxy.fault = "hang";
    const begun = client.acquire("b", { ...LONG, signal: inFlight.signal });
    inFlight.abort(reason);
    await assert.rejects(begun, isReason);
    proxy.fault = undefined;
    const theirs = await rival.acquire("b", PATIENT);
    await release(theirs);

    const late = new AbortController();
    const lease = await client.acquire("c", { ...LONG, signal: late.signal });
    assert.equal(getEventListeners(late.signal, "abort").length, 0);
    late.abort(reason);
    lease.check();
    assert.equal(lease.signal.aborted, false);
    await release(lease);
    await close(client);
  });

  test("a closed client refuses calls and rejects pending ones", async (t) => {
    const { client, rival } = await stage(t);
    await rival.acquire("a", LONG);
    const waiting = client.acquire("a", LONG);
    const refused = assert.rejects(waiting, { name: "ClosedError", code: "closed", message: /closed during the call.*connect again/ });
    await close(client);
    await refused;
    await assert.rejects(client.acquire("b"), ClosedError);
    await close(client);
  });

  test("awaited calls keep the process alive, and a held lease does not", async (t) => {
    const redis = await startRedis(t);
    const webdis = await startWebdis(t, redis.url);
    const client = await connectNative(redis.url);
    const ended = ["hold", "wait"].map(async (what) => {
      const { code, stdout, stderr } = await start("edge.mjs", webdis.url, what).ended;
      assert.deepEqual([code, stdout, stderr], [0, what === "wait" ? "timed_out\nended\n" : "ended\n", ""]);
      // Nobody has released it.
      assert.notEqual(await client.inspect(what), null);
    });
    await Promise.all(ended);
    await client.close();
  });
});

test("a loop that was blocked for longer than the ttl finds the lease lost", async (t) => {
  const { client } = await stage(t);
  const lease = await client.acquire("a", { ttl: 2_000 });
  const { signal } = lease;
  for (const until = performance.now() + 2_500; performance.now() < until; );
  assert.throws(() => lease.check(), LeaseLostError);
  assert.equal(lease.remaining(), 0);
  assert.equal(signal.aborted, true);
  assert.equal(lease.signal, signal);
  await assert.rejects(lease[Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")](), LeaseLostError);
  await client.close();
});
