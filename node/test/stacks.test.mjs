// Stacks of errors name the code that awaits a call, although other code finds out what is wrong.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as native from "leasehold";
import * as edge from "leasehold/edge";
import { startRedis, startWebdis } from "./helpers/servers.mjs";
import { aborted } from "./helpers/signals.mjs";

const LONG = { ttl: 600_000 };
/** Long enough for a busy machine. */
const PATIENT = { requestTimeout: 10_000 };

/** The call rejects or throws with an error of this class, whose stack names the function that made the call. */
async function namesItsCaller(name, call) {
  async function theCaller() {
    await call();
  }
  await assert.rejects(theCaller(), (error) => {
    assert.equal(error.name, name, error.stack);
    assert.match(error.stack, /^ +at (async )?theCaller \(.*stacks\.test\.mjs:\d+:\d+\)$/m);
    return true;
  });
}

/** The same for both packages. */
async function testLocks(client) {
  const lease = await client.acquire("a", LONG);
  await namesItsCaller("LockBusyError", () => client.acquire("a", { wait: 0 }));
  await namesItsCaller("LockTimeoutError", () => client.acquire("a", { wait: 1 }));
  await namesItsCaller("LockBusyError", () => client.using("a", { wait: 0 }, () => {}));
  await lease.release();
  await namesItsCaller("NotOwnedError", () => lease.release());
  await namesItsCaller("ConfigError", () => client.acquire("", LONG));
}

test("errors of native code", async () => {
  const client = await native.connect("memory:");
  await testLocks(client);
  const permits = client.semaphore("permits", 1);
  await permits.using(LONG, async () => {
    await namesItsCaller("LockBusyError", () => permits.acquire({ wait: 0 }));
    await namesItsCaller("LockBusyError", () => permits.using({ wait: 0 }, () => {}));
  });
  await client.using("b", LONG, () => namesItsCaller("LockBusyError", () => client.lockAll(["a", "b"], { wait: 0 })));
  await client.close();
  await namesItsCaller("ClosedError", () => client.beginRun("a", { key: "s" }));
  await namesItsCaller("StoreUnavailableError", () => native.connect("redis://127.0.0.1:1"));
});

test("a loss names the code that hears of it first", async () => {
  const client = await native.connect("memory:");
  const lease = await client.acquire("a", { ttl: 300, renew: false });
  await aborted(lease.signal);
  await namesItsCaller("LeaseLostError", () => lease.check());
  const { reason } = lease.signal;
  const { stack } = reason;
  await assert.rejects(lease.release(), (error) => error === reason && error.stack === stack);
  await namesItsCaller("LeaseLostError", () => client.using("a", { ttl: 300, renew: false }, (lease) => aborted(lease.signal)));
  await client.close();
});

test("errors at the edge", async (t) => {
  const redis = await startRedis(t);
  const { url } = await startWebdis(t, redis.url);
  const client = await edge.connect(url, PATIENT);
  await testLocks(client);
  const [lease, run] = [await client.acquire("a", LONG), (await client.beginRun("job", { ...LONG, key: "today" })).run];
  await client.close();
  await namesItsCaller("NotOwnedError", () => lease.check());
  await namesItsCaller("NotOwnedError", () => run.finish());
  await namesItsCaller("ClosedError", () => client.acquire("a"));
  const unreachable = await edge.connect("webdis+http://127.0.0.1:1");
  await namesItsCaller("StoreUnavailableError", () => unreachable.acquire("a", { wait: 0 }));
  await namesItsCaller("StoreUnavailableError", () => unreachable.once("a", { key: "s", wait: 0 }, () => {}));
});
