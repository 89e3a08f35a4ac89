// Sessions: the leases of one client, listed and revoked together.

import assert from "node:assert/strict";
import { test } from "node:test";

import { connect, ConfigError, LeaseLostError } from "leasehold";
import { startRedis } from "./helpers/servers.mjs";
import { aborted } from "./helpers/signals.mjs";

/** For leases that must not be lost by themselves. */
const LONG = { ttl: 300_000, renewEvery: 100 };

const stores = {
  memory: async () => "memory:sessions",
  redis: async (t) => (await startRedis(t)).url,
};

/** The same for each store, with two clients that are closed in the end. */
function testEach(name, body) {
  for (const [store, url] of Object.entries(stores)) {
    test(`${name}: ${store}`, async (t) => {
      const at = await url(t);
      const worker = await connect(at, { session: "worker-7", requestTimeout: 5_000 });
      const other = await connect(at, { requestTimeout: 5_000 });
      try {
        await body(worker, other);
      } finally {
        for (const client of [worker, other]) await client.close();
      }
    });
  }
}

testEach("a session is listed with its locks and revoked as a whole", async (worker, other) => {
  const leases = [await worker.acquire("one", LONG), await worker.acquire("two", LONG)];
  const apart = await other.acquire("three", LONG);
  const [session, ...more] = await other.sessions();
  assert.deepEqual([session.label, session.revoked, more.length], ["worker-7", false, 0]);
  assert.deepEqual(
    session.locks.map(({ resource, session }) => [resource, session]),
    [
      ["one", "worker-7"],
      ["two", "worker-7"],
    ],
  );
  const lost = leases.map(({ signal }) => aborted(signal));
  assert.deepEqual(
    (await other.revokeSession("worker-*")).map(({ label, revoked }) => [label, revoked]),
    [["worker-7", true]],
  );
  await Promise.all(lost);
  for (const lease of leases) assert.throws(() => lease.check(), LeaseLostError);
  apart.check();
  assert.deepEqual(await other.revokeSession("nobody"), []);
});

test("names of sessions are checked", async () => {
  for (const session of ["", "two words", "x".repeat(65)]) {
    await assert.rejects(connect("memory:", { session }), ConfigError);
  }
  const client = await connect("memory:");
  await assert.rejects(client.revokeSession(""), ConfigError);
  await client.close();
});
