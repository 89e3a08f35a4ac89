// Locks on an etcd, by its url.

import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, StoreRefusedError } from "leasehold";
import { startEtcd } from "./helpers/servers.mjs";

const SLOW = { requestTimeout: 5_000 };
const LONG = { ttl: 30_000 };

test("a lock on etcd is exclusive, waited for and done once", async (t) => {
  const { url } = await startEtcd(t);
  const [one, two] = await Promise.all([connect(url, { ...SLOW, owner: "one" }), connect(url, SLOW)]);
  const lease = await one.acquire("invoice/42", LONG);
  assert.equal(await two.tryAcquire("invoice/42"), null);
  assert.equal((await two.inspect("invoice/42")).owner, "one");
  const waiting = two.acquire("invoice/42", LONG);
  await lease.release();
  const next = await waiting;
  assert.ok(next.token > lease.token);
  await next.release();
  const job = { key: `${Date.now()}`, ttl: 30_000 };
  assert.equal((await one.once("job", job, () => 7)).value, 7);
  assert.equal((await two.once("job", job, () => assert.fail("twice"))).reason, "done");
  await Promise.all([one.close(), two.close()]);
});

test("a missing login of etcd is told", async (t) => {
  const { bare } = await startEtcd(t);
  await assert.rejects(connect(bare, SLOW), (error) => {
    assert.ok(error instanceof StoreRefusedError);
    assert.match(error.message, /write user and password into the url/);
    return true;
  });
});
