// Requests whose sockets are on Node's own event loop.

import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "leasehold";
import { run } from "./helpers/child.mjs";
import { startRedis } from "./helpers/servers.mjs";

const PATIENT = { requestTimeout: 15_000 };

/** Runs the program, and returns its last line. */
async function ran(t, way) {
  const { url } = await startRedis(t);
  const { code, stdout, stderr } = await run("sockets.mjs", url, way);
  assert.deepEqual([code, stderr], [0, ""]);
  return stdout.trim().split("\n").at(-1);
}

test("requests of a process leave by a socket on its event loop", async (t) => {
  assert.equal(await ran(t, "return"), "connections 2", "and one in the background");
});

test("where the event loop is not Node's, requests leave in the background", async (t) => {
  assert.equal(await ran(t, "elsewhere"), "connections 1");
});

for (const way of ["exit", "worker", "worker, terminated"]) {
  test(`a thread may end with requests under way: ${way}`, async (t) => {
    assert.equal(await ran(t, way), "done");
  });
}

test("one of 10,000 requests under way is aborted alone", async (t) => {
  const { url } = await startRedis(t);
  const client = await connect(url, PATIENT);
  const controller = new AbortController();
  const acquired = Array.from({ length: 10_000 }, (_, n) => {
    const settings = n === 5_000 ? { signal: controller.signal } : undefined;
    return client.tryAcquire(`lock ${n}`, { ttl: 60_000, ...settings }).catch((error) => error);
  });
  const reason = new Error("enough");
  controller.abort(reason);
  const ends = await Promise.all(acquired);
  assert.deepEqual(ends.flatMap((end, n) => (end === reason ? [n] : [])), [5_000]);
  ends.splice(5_000, 1);
  assert.equal(new Set(ends.map(({ resource }) => resource)).size, 9_999, "each has the reply to its own request");
  // Each release is awaited for 2 s, and a loaded machine may need longer for all of them.
  while (ends.length > 0) await Promise.all(ends.splice(0, 1_000).map((lease) => lease.release()));
  await client.using("lock 5000", { ttl: 60_000, wait: 10_000 }, () => {});
  await client.close();
});

test("a request that a busy event loop has held back for too long never leaves", async (t) => {
  const { url } = await startRedis(t);
  const client = await connect(url, { requestTimeout: 500 });
  const controller = new AbortController();
  const acquired = client.tryAcquire("a", { ttl: 60_000, signal: controller.signal });
  const until = performance.now() + 800;
  while (performance.now() < until);
  controller.abort();
  await assert.rejects(acquired, { name: "AbortError" });
  // The first request is written now, if at all: behind the release that undoes the second one.
  await client.tryAcquire("b").then((lease) => lease.release());
  assert.equal(await client.inspect("a"), null);
  await client.using("a", { wait: 10_000 }, () => {});
  await client.close();
});
