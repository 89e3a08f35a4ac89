// Acquires 20,000 times, with signals and losses among them, and counts leftovers; `cargo xtask prove long` has 100,000.

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { connect } from "leasehold";
import { left } from "../helpers/inside.mjs";

setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc");
const ROUND = process.env.LEASEHOLD_LONG ? 25_000 : 5_000;

const client = await connect("memory:");
const { signal } = new AbortController();
let alive = 0;
const collected = new FinalizationRegistry(() => alive--);

async function round() {
  for (let n = 0; n < ROUND; n += 2) {
    const lease = await client.acquire("a", { signal });
    collected.register(lease, undefined);
    alive++;
    if (n % 100 === 0) assert.equal(lease.signal.aborted, false);
    const waiting = client.acquire("a", { signal });
    await lease.release();
    await (await waiting).release();
  }
  // Finalizers run between turns of the loop.
  for (let turn = 0; turn < 100 && alive > 10; turn++) {
    gc();
    await new Promise(setImmediate);
  }
  return process.memoryUsage().rss;
}

await (await client.lockAll(["x", "y"])).release();
const sizes = [];
for (let n = 0; n < 4; n++) sizes.push(await round());
assert.ok(alive <= 10, `${alive} leases are left`);
assert.deepEqual(left(), { settlers: 0, running: 0 });
assert.equal(getEventListeners(signal, "abort").length, 0);
// A leaked lease takes more than 500 bytes in each round; the heap itself grows now and then.
const grown = sizes.slice(1).map((size, n) => size - sizes[n]);
console.log(grown.join(" "), "bytes");
assert.ok(Math.min(...grown) < ROUND * 300, `grown by ${grown} bytes`);

// Only its own watch refers to this one.
await client.acquire("kept", { ttl: 600_000 });
for (let turn = 0; turn < 10; turn++) {
  gc();
  await new Promise(setImmediate);
}
assert.notEqual(await client.inspect("kept"), null);
await client.close();

for (let n = 0; n < 50; n++) await (await connect("memory:")).close();
assert.ok(process.listenerCount("exit") <= 1);
