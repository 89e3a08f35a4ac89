// Uses each part of the package that programs need, on any runtime that loads addons. Prints a line for each part, and ends by itself.

import assert from "node:assert/strict";
import { LockBusyError, LockTimeoutError, connect, observe } from "leasehold";

const [url] = process.argv.slice(2);
const heard = new Set();
let contended = () => {};
const stop = observe({
  level: "debug",
  event({ event }) {
    heard.add(event);
    if (event === "lock.contended") contended();
  },
});
const [a, b] = await Promise.all([connect(url), connect(url)]);

const token = await a.using("lock", async (lease) => {
  assert.equal(await b.tryAcquire("lock"), null);
  await assert.rejects(b.acquire("lock", { wait: 0 }), LockBusyError);
  await assert.rejects(b.acquire("lock", { wait: 100 }), LockTimeoutError);
  return lease.token;
});
console.log("excludes");

// Waiters are woken, and keep the process alive meanwhile.
const held = await a.acquire("lock");
const isWaiting = new Promise((resolve) => (contended = resolve));
const waits = b.acquire("lock");
await isWaiting;
await held.release();
const next = await waits;
assert.ok(next.token > token);
await next.release();
const done = await Promise.all(Array.from({ length: 50 }, (_, n) => b.using(`many/${n % 5}`, () => n)));
assert.equal(done.length, 50);
console.log("waits");

const lost = await a.acquire("lost", { ttl: 1_000, renew: false });
const alive = setInterval(() => {}, 60_000); // a lease keeps no process alive
await new Promise((resolve) => lost.signal.addEventListener("abort", resolve, { once: true }));
clearInterval(alive);
assert.equal(lost.signal.reason.code, "lost");
assert.throws(() => lost.check(), { code: "lost" });
console.log("tells of losses");

const aborted = new AbortController();
const blocker = await a.acquire("abort");
const waiting = b.acquire("abort", { signal: aborted.signal });
aborted.abort(new Error("enough"));
await assert.rejects(waiting, /enough/);
await blocker.release();
console.log("aborts");

const outcomes = await Promise.all([a, b].map((client) => client.once("job", { key: "1", wait: 10_000 }, () => "made")));
assert.deepEqual(outcomes.map(({ ran }) => ran).sort(), [false, true]);
console.log("runs once");

const started = Promise.withResolvers?.() ?? withResolvers();
const election = await a.elect("leader", { onStart: (lease) => started.resolve(lease.token) });
assert.ok(Number.isSafeInteger(await started.promise));
await election.resign();
console.log("elects");

assert.ok(heard.has("lock.acquired"), [...heard].join(" "));
stop();
await Promise.all([a.close(), b.close()]);
console.log("closes");

function withResolvers() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}
