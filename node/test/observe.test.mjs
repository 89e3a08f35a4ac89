// Events and metrics: their contents, their observers, and that they delay nothing.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";

import { connect, observe } from "leasehold";
import { run } from "./helpers/child.mjs";
import { aborted } from "./helpers/signals.mjs";
import { until } from "./helpers/until.mjs";

/** Observes everything, and returns a function that waits for an event of a resource. */
function listen(t, observer) {
  const heard = { events: [], samples: [] };
  const stop = observe({ event: (event) => heard.events.push(event), sample: (sample) => heard.samples.push(sample), ...observer });
  t.after(stop);
  const of = (name, resource) => heard.events.find(({ event, fields }) => event === name && fields.resource === resource);
  return { ...heard, of, told: (name, resource) => until(() => of(name, resource)), stop };
}

test("events have names and fields", async (t) => {
  const { events, told } = listen(t, { level: "debug" });
  const before = Date.now();
  const [client, other] = await Promise.all([connect("memory:told"), connect("memory:told")]);
  const lease = await client.acquire("a", { owner: "worker-1", ttl: 60_000 });
  const granted = await told("lock.acquired", "a");
  assert.deepEqual([granted.level, granted.fields.owner, granted.fields.token], ["info", "worker-1", lease.token]);
  assert.ok(granted.time >= before - 1_000 && granted.time <= Date.now() + 1_000, String(granted.time));
  assert.equal(typeof granted.fields.wait_s, "number");
  assert.notEqual(granted.message, "");
  assert.equal(await other.tryAcquire("a"), null);
  const busy = await told("lock.contended", "a");
  assert.deepEqual([busy.level, busy.fields.holder], ["debug", "worker-1"]);
  await lease.release();
  assert.equal((await told("lock.released", "a")).fields.token, lease.token);
  const short = await client.acquire("short", { ttl: 3_000, renew: false });
  await aborted(short.signal);
  await told("lock.expiring", "short");
  const lost = await told("lock.lost", "short");
  assert.deepEqual([lost.level, lost.fields.reason, lost.fields.token], ["error", "expired", short.token]);
  assert.ok(!JSON.stringify(events).toLowerCase().includes("nonce"));
  await Promise.all([client.close(), other.close()]);
});

test("metrics are samples without names of resources", async (t) => {
  const { samples } = listen(t, {});
  const client = await connect("memory:");
  const lease = await client.acquire("measured", { ttl: 3_000, renewEvery: 100 });
  const of = (name) => samples.find((sample) => sample.name === name);
  await until(() => of("leasehold_validity_left_seconds"));
  await lease.release();
  const released = await until(() => of("leasehold_release_total"));
  assert.deepEqual(released, { name: "leasehold_release_total", kind: "counter", value: 1, labels: { outcome: "confirmed" } });
  const hold = await until(() => of("leasehold_hold_seconds"));
  assert.ok(hold.kind === "histogram" && hold.value > 0 && hold.value < 60, JSON.stringify(hold));
  assert.ok(!JSON.stringify(samples).includes("measured"));
  await client.close();
});

test("each observer gets what it asked for, until it is stopped", async (t) => {
  const all = listen(t, { level: "debug" });
  const grave = listen(t, { level: "error", sample: undefined });
  const client = await connect("memory:");
  const lease = await client.acquire("first", { ttl: 200, renew: false });
  await aborted(lease.signal);
  await Promise.all([grave.told("lock.lost", "first"), all.told("lock.lost", "first")]);
  assert.ok(all.of("lock.acquired", "first"));
  assert.deepEqual(new Set(grave.events.map(({ level }) => level)), new Set(["error"]));
  assert.equal(grave.samples.length, 0);
  all.stop();
  all.stop();
  const second = await client.acquire("second", { ttl: 200, renew: false });
  await aborted(second.signal);
  await grave.told("lock.lost", "second");
  assert.equal(all.of("lock.lost", "second"), undefined);
  await client.close();
});

test("an observer gets no earlier items, and all items before it stops", async (t) => {
  const { told } = listen(t, {});
  const client = await connect("memory:");
  await (await client.acquire("before")).release();
  const heard = [];
  const stop = observe({ event: ({ event }) => heard.push(event) });
  await (await client.acquire("a")).release();
  stop();
  assert.deepEqual(heard, ["lock.acquired", "lock.released"]);
  const once = [];
  const stopAtOnce = observe({
    event: ({ event }) => {
      once.push(event);
      stopAtOnce();
    },
  });
  await (await client.acquire("b")).release();
  await told("lock.released", "b");
  assert.deepEqual(once, ["lock.acquired"]);
  await client.close();
});

test("an observer that throws is reported and does not affect others", async (t) => {
  const warned = once(process, "warning");
  listen(t, {
    event: ({ event }) => {
      if (event === "lock.acquired") throw new Error("of this observer");
      return Promise.reject(Object.create(null));
    },
  });
  const { told } = listen(t, {});
  const client = await connect("memory:");
  await (await client.acquire("a")).release();
  await told("lock.released", "a");
  const [warning] = await warned;
  assert.match(warning.message, /an observer has thrown: Error: of this observer\n/);
  assert.equal(warning.name, "LeaseholdWarning");
  await client.close();
});

test("items that a busy loop cannot take are dropped, and that is reported", async (t) => {
  const client = await connect("memory:");
  const { told, events } = listen(t, { level: "info", sample: undefined });
  // Both events of a pair are recorded; promises that are ready at once do not let the loop deliver.
  for (let pair = 0; pair < 6_000; pair += 1) await (await client.acquire(`pair-${pair}`)).release();
  const dropped = await told("lock.events_dropped", undefined);
  assert.ok(dropped.level === "warn" && dropped.fields.dropped > 0, JSON.stringify(dropped));
  const kept = events.filter(({ fields }) => fields.resource?.startsWith("pair-"));
  assert.equal(kept.length + dropped.fields.dropped, 12_000);
  await client.close();
});

test("a thread observes clients of another thread, and may end", async (t) => {
  const { told } = listen(t, {});
  const worker = new Worker(new URL("./programs/observer.mjs", import.meta.url));
  const [heard] = await once(worker, "message");
  assert.equal(heard, "lock.acquired");
  await told("lock.acquired", "of-the-worker");
  await worker.terminate();
  const client = await connect("memory:");
  await (await client.acquire("afterwards")).release();
  await told("lock.released", "afterwards");
  await client.close();
});

test("an observer may end the process, and its last events are delivered", async () => {
  const { code, stdout } = await run("observes.mjs", "after", "lock.released");
  assert.equal(code, 3);
  assert.deepEqual(stdout.trim().split("\n"), ["lock.acquired", "lock.acquired", "lock.released", "lock.released"]);
});

test("the exit of the process is not delayed, and its last events are delivered", async () => {
  for (const when of ["before", "after", "closed"]) {
    const { code, stdout, stderr } = await run("observes.mjs", when);
    assert.deepEqual([code, stderr], [0, ""], when);
    assert.deepEqual(stdout.trim().split("\n"), ["lock.acquired", "lock.released"], when);
  }
});

test("an invalid observer is refused with advice", () => {
  const event = () => {};
  for (const [given, says] of [
    [undefined, /must be an object/],
    [event, /an object/],
    [{}, /needs event, sample or both/],
    [{ level: "warn" }, /needs event, sample or both/],
    [{ event, level: "notice" }, /trace, debug, info, warn, error, not notice/],
    [{ event: "lock.lost" }, /event must be a function/],
    [{ event, samples: event }, /but not samples/],
  ]) {
    assert.throws(() => observe(given), (error) => error instanceof TypeError && says.test(error.message));
  }
});

test("a program is warned of its stores once, unless it observes", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-node-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const said = (before, store, stores = "") => {
    const twice = `for (let i = 0; i < 2; i++) await (await connect(${stores})).close();`;
    const program = `import { connect, observe } from "leasehold"; ${before}; ${twice}`;
    const env = { ...process.env, XDG_STATE_HOME: folder, LEASEHOLD_STORE: store };
    if (store === undefined) delete env.LEASEHOLD_STORE;
    const cwd = fileURLToPath(new URL(".", import.meta.url)); // beside the package, which it imports by name
    const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { cwd, env, encoding: "utf8" });
    assert.equal(status, 0, stderr);
    return stderr;
  };
  const count = (text, part) => text.split(part).length - 1;
  const quorum = JSON.stringify(["a", "b"].map((name) => `sqlite:${join(folder, name)}`));
  for (const [stores, says] of [
    ["", "no store is named, so locks are kept in sqlite:"],
    [`${quorum}, { createQuorum: true }`, "a quorum of 2 nodes survives no failure"],
  ]) {
    assert.equal(count(said("", undefined, stores), `LeaseholdWarning: ${says}`), 1);
    assert.equal(said("observe({ event: () => {} })", undefined, stores), "");
  }
  assert.equal(said("", "memory:"), "");
});

test("a long wait is reported on stderr, unless the program observes", () => {
  const waits = (before) => {
    const program = `import { connect, observe } from "leasehold"; ${before};
      const [holder, waiter] = [await connect("memory:cells"), await connect("memory:cells")];
      await holder.acquire("cell");
      await waiter.acquire("cell", { wait: 6_000 }).catch((error) => { if (error.code !== "timed_out") throw error; });
      await Promise.all([holder.close(), waiter.close()]);`;
    const cwd = fileURLToPath(new URL(".", import.meta.url));
    const { status, stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { cwd, encoding: "utf8" });
    assert.equal(status, 0, stderr);
    return { stdout, stderr };
  };
  assert.match(waits("").stderr, /^leasehold: lock\.waiting: "cell" for 5 s so far: another lease of this process holds it \(held by /);
  const observed = waits("observe({ level: 'warn', event: ({ event, fields }) => console.log(event, fields.is_own) })");
  assert.deepEqual([observed.stdout, observed.stderr], ["lock.waiting true\n", ""]);
});
