// Runs: work that is done once.

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { inspect } from "node:util";
import { test } from "node:test";

import * as leasehold from "leasehold";
import * as protocol from "leasehold/protocol";
import { run as runProgram, start } from "./helpers/child.mjs";
import { folder, sqlite } from "./helpers/folder.mjs";
import { startRedis } from "./helpers/servers.mjs";
import { aborted } from "./helpers/signals.mjs";
import { undo } from "./helpers/undo.mjs";
import { until } from "./helpers/until.mjs";
import { DELETES, STOPS } from "./helpers/windows.mjs";

const { connect, observe, ConfigError, FinishUnconfirmedError, LeaseLostError, NotOwnedError } = leasehold;
const ASYNC_DISPOSE = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");
const TTL = 20_000;
const DAY = 86_400_000;
const SOON = 60_000;
const JOB = { key: "s", ttl: TTL };

const stores = {
  memory: async () => ["memory:"],
  sqlite: async (t) => [sqlite(t)],
  redis: async (t) => [(await startRedis(t)).url],
  quorum: async (t) => {
    const made = folder(t);
    return [["a", "b", "c"].map((node) => `sqlite:${made}/${node}.db`), { createQuorum: true, requestTimeout: 1_000 }];
  },
};

/** The same for each store, with two clients that are closed in the end. */
function testEach(name, body) {
  for (const [store, make] of Object.entries(stores)) {
    test(`${name}: ${store}`, async (t) => {
      const [urls, settings] = await make(t);
      // A memory store of its own for each test, for both clients.
      const url = urls === "memory:" ? `memory:${name}` : urls;
      const open = (owner) => connect(url, { requestTimeout: 5_000, owner, ...settings });
      const clients = [await open("one"), await open("two")];
      try {
        await body(...clients, open);
      } finally {
        await Promise.all(clients.map((client) => client.close()));
      }
    });
  }
}

/** One client of a store in memory. */
async function alone(t, name) {
  const client = await connect(`memory:${name}`);
  undo(t, () => client.close());
  return client;
}

/** True if nobody is at it, and no completion stands. */
async function isOpen(client, key = "s") {
  const { holder, done } = await client.inspectRun("job", key);
  return holder === null && done === null;
}

testEach("a key is done once", async (one, two) => {
  const first = await one.once("job", JOB, async (run) => {
    assert.ok(run instanceof leasehold.Run && run instanceof leasehold.Lease);
    assert.deepEqual([run.resource, run.owner, run.signal.aborted], ["job@s", "one", false]);
    run.check(1_000);
    const { holder, done, resource } = await two.inspectRun("job", "s");
    assert.deepEqual([holder.token, done, resource], [run.token, null, "job@s"]);
    const late = await two.once("job", JOB, () => assert.fail("twice at once"));
    assert.deepEqual([late.ran, late.reason, late.holder.owner], [false, "running", "one"]);
    return run;
  });
  const run = first.value;
  assert.deepEqual({ ...first, value: 0 }, { ran: true, value: 0, token: run.token });
  assert.deepEqual([run.remaining(), run.signal.aborted], [0, false]);
  const { at, left, ...done } = await two.once("job", JOB, () => assert.fail("done again"));
  assert.deepEqual(done, { ran: false, reason: "done", owner: "one", token: run.token, result: leasehold.noResult });
  assert.ok(Math.abs(at - Date.now()) < 600_000 && left > 6.9 * DAY && left <= 7 * DAY, `${at} ${left}`);
  const info = await two.inspectRun("job", "s");
  assert.deepEqual([info.holder, info.done.token], [null, run.token]);
  // The nodes of a quorum read their own clocks.
  assert.ok(Math.abs(info.done.at - at) < 60_000);
  assert.equal((await two.once("job", { ...JOB, key: "t" }, () => 7)).value, 7);
  assert.equal((await two.once("job", { keep: 604_800_000 }, () => 8)).value, 8);
  // A plain lock does not look at completions.
  await (await two.acquire("job@s", { wait: 0 })).release();
});

testEach("a body that throws leaves no completion", async (one, two) => {
  const oops = new RangeError("on purpose");
  for (const body of [() => Promise.reject(oops), () => { throw oops; }]) {
    await assert.rejects(one.once("job", JOB, body), (error) => error === oops);
    assert.ok(await isOpen(two));
  }
  assert.equal((await two.once("job", JOB, () => "done")).value, "done");
});

testEach("the explicit form finishes or releases", async (one, two) => {
  const { run } = await one.beginRun("job", JOB);
  const late = await two.beginRun("job", JOB);
  assert.deepEqual([late.run, late.ran, late.reason, late.holder.token], [null, false, "running", run.token]);
  assert.match(inspect(run), /^Run \{\s+resource: 'job@s',\s+owner: 'one',\s+token: \d+,\s+remaining: /);
  await run.finish();
  const done = await two.beginRun("job", JOB);
  assert.deepEqual([done.run, done.reason, done.token], [null, "done", run.token]);
  for (const call of [() => run.finish(), () => run.release()]) {
    await assert.rejects(call, { name: "NotOwnedError", code: "not_owned", resource: "job@s" });
  }
  await run[ASYNC_DISPOSE]();
  assert.equal((await two.inspectRun("job", "s")).done.token, run.token, "the end of a block takes no completion away");

  const other = { ...JOB, key: "released" };
  const released = (await one.beginRun("job", other)).run;
  await released.release();
  await assert.rejects(released.finish(), NotOwnedError);
  const left = (await two.beginRun("job", other)).run;
  assert.ok(left.token > released.token);
  await left[ASYNC_DISPOSE]();
  assert.ok(await isOpen(one, "released"), "a block without a finish leaves no completion");
});

testEach("a stand-by learns that the work is done, or gives up", async (one, two) => {
  const { run } = await one.beginRun("job", JOB);
  const early = await two.once("job", { ...JOB, wait: 100 }, () => assert.fail("it runs"));
  assert.deepEqual([early.reason, early.holder.token], ["running", run.token]);
  const patient = [two, one].map((client) => client.once("job", { ...JOB, wait: Infinity }, () => assert.fail("twice")));
  await run.finish();
  for (const outcome of await Promise.all(patient)) assert.deepEqual([outcome.reason, outcome.token], ["done", run.token]);
});

testEach("a lost run writes no completion", async (one, two) => {
  const long = { ...JOB, ttl: 30_000, renewEvery: 15_000 };
  const breaks = async ({ token }) => assert.ok((await two.releaseIf("job@s", { token })).released);
  let signal;
  const broken = one.once("job", long, async (run) => {
    await breaks(run);
    signal = run.signal;
  });
  await assert.rejects(broken, (error) => {
    assert.equal(signal.reason, error);
    return error instanceof LeaseLostError && error.resource === "job@s";
  });
  assert.ok(await isOpen(two));

  const { run } = await one.beginRun("job", long);
  await breaks(run);
  const next = (await two.beginRun("job", long)).run;
  assert.ok(next.token > run.token);
  await assert.rejects(run.finish(), LeaseLostError);
  await assert.rejects(run.finish(), LeaseLostError, "lost is final");
  await next.finish();
  assert.equal((await one.inspectRun("job", "s")).done.token, next.token);

  // The loss is known before the body ends, which is told by its signal.
  const expires = { key: "expires", ttl: 300, renew: false };
  const lost = one.once("job", expires, async ({ signal }) => {
    await aborted(signal);
    throw signal.reason;
  });
  await assert.rejects(lost, LeaseLostError);
  await assert.rejects(one.once("job", { ...expires, wait: SOON }, ({ signal }) => aborted(signal)), LeaseLostError);
  assert.equal((await two.inspectRun("job", "expires")).done, null);
});

testEach("a run of a closed client writes no completion", async (one, two, open) => {
  const client = await open("closing");
  const { run } = await client.beginRun("job", JOB);
  await assert.rejects(client.once("job", { ...JOB, key: "body" }, () => client.close()), NotOwnedError);
  await assert.rejects(run.finish(), NotOwnedError);
  await assert.rejects(client.once("job", JOB, () => assert.fail("closed")), { name: "ClosedError", code: "closed" });
  for (const key of ["s", "body"]) await until(() => isOpen(one, key));
  assert.equal((await two.once("job", JOB, () => 1)).ran, true);
});

testEach("people can look, forget, and run again", async (one, two) => {
  assert.equal(await two.forgetRun("job", "s"), null);
  const first = await one.once("job", JOB, () => 1);
  const again = await two.once("job", { ...JOB, evenIfDone: true }, () => 2);
  assert.ok(again.ran && again.token > first.token);
  const completion = await one.forgetRun("job", "s");
  assert.deepEqual([completion.token, completion.owner], [again.token, "two"]);
  // Redis keeps a key for a millisecond at least.
  await until(() => isOpen(two));
  assert.equal((await one.once("job", { ...JOB, trustQuorum: true }, () => 3)).value, 3);
  for (const call of ["inspectRun", "forgetRun"]) {
    await assert.rejects(one[call]("job", ""), ConfigError);
    await assert.rejects(one[call](7), TypeError);
    await assert.rejects(one[call]("job", 7), TypeError);
  }
});

test("a quorum that may have lost completions runs nothing, unless somebody vouches for it", DELETES, async (t) => {
  const made = folder(t);
  const nodes = ["a", "b", "c"].map((node) => join(made, `${node}.db`));
  const open = (settings) => connect(nodes.map((node) => `sqlite:${node}`), { maxTtl: 1_000, ...settings });
  const before = await open({ createQuorum: true });
  await before.close();
  for (const lost of nodes.slice(1)) for (const end of ["", "-wal", "-shm"]) rmSync(`${lost}${end}`, { force: true });
  const client = await open();
  undo(t, () => client.close());
  // Nodes that lost their data do not vote for locks either, but only for as long as a lease may last.
  await until(() => client.tryAcquire("job@s", { ttl: 500 }).then((lease) => lease?.release().then(() => true), () => false));
  const job = { key: "s", ttl: 500 };
  await assert.rejects(client.once("job", job, () => assert.fail("completions may be lost")), (error) => {
    return error.code === "store_unavailable" && error.temporary && /have lost their data within 7 days/.test(error.message);
  });
  // The attempt that was refused may still be cleaned up.
  assert.equal((await client.once("job", { ...job, wait: SOON, trustQuorum: true }, () => 1)).ran, true);
});

for (const store of ["sqlite", "redis"]) {
  test(`a stand-by takes over from a killed runner: ${store}`, async (t) => {
    const url = store === "redis" ? (await startRedis(t)).url : sqlite(t);
    const runner = start("once.mjs", url, "stay");
    await runner.until("\n");
    const client = await connect(url);
    undo(t, () => client.close());
    const { holder } = await client.inspectRun("job", "s");
    const standBy = client.once("job", { ...JOB, wait: SOON }, (run) => run.token);
    runner.child.kill("SIGKILL");
    const { ran, value } = await standBy;
    assert.ok(ran && value > holder.token);
    assert.equal((await client.inspectRun("job", "s")).done.token, value);
  });
}

test("a runner that was stopped past its lease is told that it has lost, and marks nothing", STOPS, async (t) => {
  const { url } = await startRedis(t);
  const runner = start("once.mjs", url, "listen");
  await runner.until("\n");
  runner.child.kill("SIGSTOP");
  const client = await connect(url);
  undo(t, () => client.close());
  const next = await client.once("job", { ...JOB, wait: SOON }, () => "done instead");
  assert.equal(next.value, "done instead");
  runner.child.stdin.end();
  runner.child.kill("SIGCONT");
  const { code, stdout, stderr } = await runner.ended;
  assert.deepEqual([code, Number(stdout) < next.token], [1, true]);
  assert.match(stderr, /LeaseLostError/);
  assert.equal((await client.inspectRun("job", "s")).done.token, next.token);
});

test("a process that exits in its body leaves no completion, and one that ends by itself does", async (t) => {
  const url = sqlite(t);
  const client = await connect(url);
  undo(t, () => client.close());
  for (const [way, isDone] of [["exit", false], ["return", true]]) {
    const { code, stderr } = await runProgram("once.mjs", url, way);
    assert.deepEqual([code, stderr], [0, ""]);
    const { holder, done } = await client.inspectRun("job", "s");
    assert.deepEqual([holder, done !== null], [null, isDone], way);
  }
});

test("a body may finish or release by itself", async (t) => {
  const client = await alone(t, "by itself");
  const finished = await client.once("job", JOB, async (run) => {
    await run.finish();
    await assert.rejects(run.finish(), NotOwnedError);
  });
  assert.ok(finished.ran && !(await isOpen(client)));
  await client.once("job", { key: "released" }, (run) => run.release());
  assert.ok(await isOpen(client, "released"));
  const late = client.once("job", { key: "late" }, async (run) => {
    await run.finish();
    throw new RangeError("after the completion");
  });
  await assert.rejects(late, RangeError);
  assert.notEqual((await client.inspectRun("job", "late")).done, null);
});

test("an abort ends the wait of a stand-by, and no run", async (t) => {
  const client = await alone(t, "abort");
  const { run } = await client.beginRun("job", JOB);
  const stop = new AbortController();
  const waiting = client.once("job", { ...JOB, wait: Infinity, signal: stop.signal }, () => assert.fail("it runs"));
  stop.abort(new RangeError("mine"));
  await assert.rejects(waiting, { message: "mine" });
  assert.equal(getEventListeners(stop.signal, "abort").length, 0);
  await run.release();
  await assert.rejects(client.once("job", { ...JOB, signal: stop.signal }, () => 0), { message: "mine" });
  const later = new AbortController();
  const outcome = await client.once("job", { ...JOB, signal: later.signal }, async (run) => {
    later.abort();
    run.check();
    return "done";
  });
  assert.equal(outcome.value, "done");
  assert.deepEqual(process.getActiveResourcesInfo().filter((name) => name.includes("Timeout")), []);
});

test("a store that does not answer leaves a finish unconfirmed", STOPS, async (t) => {
  const { url, pid, stop } = await startRedis(t);
  const client = await connect(url, { requestTimeout: 200 });
  const finish = client.once("job", { key: "s", ttl: 1_000 }, () => void process.kill(pid, "SIGSTOP"));
  await assert.rejects(finish, (error) => {
    assert.ok(error instanceof FinishUnconfirmedError && error instanceof leasehold.LeaseholdError);
    assert.deepEqual([error.name, error.code, error.temporary], ["FinishUnconfirmedError", "finish_unconfirmed", false]);
    return error.resource === "job@s";
  });
  await stop();
  await client.close().catch(() => {});
});

test("a completion stands for as long as it is kept", async (t) => {
  const client = await alone(t, "kept");
  const job = { cooldown: 600, ttl: 200 };
  const first = await client.once("job", job, () => 1);
  const { reason, left } = await client.once("job", job, () => assert.fail("too early"));
  assert.ok(reason === "done" && left <= 600);
  const next = await until(async () => {
    const outcome = await client.once("job", job, () => 2);
    return outcome.ran && outcome;
  });
  assert.ok(next.token > first.token);
});

test("each period has a key", async (t) => {
  const client = await alone(t, "periods");
  const before = protocol.periodKey(Date.now(), DAY * 20_000);
  const { value } = await client.once("job", { every: DAY * 20_000 }, ({ resource }) => resource);
  assert.equal(value, protocol.runResource("job", before));
  assert.equal((await client.once("job", { every: DAY * 20_000 }, () => 0)).reason, "done");
  const moved = await client.once("job", { every: DAY * 20_000, offset: DAY }, ({ resource }) => resource);
  assert.equal(moved.value, protocol.runResource("job", protocol.periodKey(Date.now(), DAY * 20_000, DAY)));
});

test("times of a zone have a key each", async (t) => {
  const client = await alone(t, "times");
  const times = [
    [{ every: DAY * 20_000, at: "02:30", tz: "Europe/Berlin" }, /^job@(1970-01-01|2024-10-04)T02:30\[Europe\/Berlin\]$/],
    // No test runs at the border of such a time, but once in four years.
    [{ cron: "30 2 29 feb *", tz: "Asia/Tokyo" }, /^job@20\d\d-02-29T02:30\[Asia\/Tokyo\]$/],
  ];
  for (const [options, key] of times) {
    const { value } = await client.once("job", options, ({ resource }) => resource);
    assert.match(value, key);
    assert.equal((await client.once("job", options, () => assert.fail(value))).reason, "done");
  }
});

test("impossible settings are refused, and nothing runs", async (t) => {
  const client = await alone(t, "refused");
  const never = () => assert.fail("it must not run");
  const impossible = [
    { key: "" },
    { key: "x".repeat(1_024) },
    { key: "a\nb" },
    { key: "s", cooldown: DAY },
    { key: "s", every: DAY },
    { key: "s", cron: "0 2 * * *", tz: "UTC" },
    { every: DAY, cron: "0 2 * * *", tz: "UTC" },
    { cron: "0 2 * * *" },
    { cron: "0 0 30 2 *", tz: "UTC" },
    { cron: "0 0 2 * * *", tz: "UTC" },
    { every: DAY, at: "02:00" },
    { every: DAY, at: "2am", tz: "UTC" },
    { every: DAY, tz: "Europe/Berln" },
    { key: "s", at: "02:00", tz: "UTC" },
    { key: "s", tz: "UTC" },
    { every: DAY, cooldown: DAY },
    { every: 0 },
    { every: 500 },
    { every: DAY * 36_501 },
    { every: DAY, offset: DAY },
    { key: "s", offset: 5 },
    { cooldown: DAY, keep: DAY },
    { cooldown: 0 },
    { keep: 29_999 },
    { keep: 0 },
    { keep: -1 },
    { keep: NaN },
    { keep: Infinity },
    { every: DAY, keep: DAY - 1 },
    { keep: DAY * 36_501 },
    { key: "s", ttl: 10 },
    { key: "s", wait: -1 },
    { key: "s", renew: false, renewEvery: 1_000 },
  ];
  for (const options of impossible) {
    await assert.rejects(client.once("job", options, never), { name: "ConfigError", code: "config" }, inspect(options));
    await assert.rejects(client.beginRun("job", options), ConfigError);
  }
  for (const options of [undefined, {}, { ttl: 30_000, wait: 5_000 }, { evenIfDone: true }]) {
    await assert.rejects(client.once("job", options, never), { code: "config", resource: "job", message: /^say when the work may be done again: key .*, every .*, cron .*, cooldown .*, or keep / });
  }
  await assert.rejects(client.once("job", never), { code: "config", resource: "job" });
  await assert.rejects(client.once("", JOB, never), ConfigError);
  for (const call of [
    () => client.once(7, never),
    () => client.once("job"),
    () => client.once("job", JOB),
    () => client.once("job", { timeout: 5 }, never),
    () => client.once("job", { key: 20261124 }, never),
    () => client.once("job", { key: new Date() }, never),
    () => client.once("job", { keep: "7d" }, never),
    () => client.once("job", { evenIfDone: 1 }, never),
  ]) {
    await assert.rejects(call, TypeError);
  }
  assert.ok(await isOpen(client));
});

test("odd keys are told apart", async (t) => {
  const client = await alone(t, "odd");
  const pairs = [["job", "b@c"], ["job@b", "c"], ["job%40b", "c"], ["job", "b%40c"], ["job", " "], ["job", "ü/💡"], ["job@", undefined]];
  for (const [name, key] of pairs) assert.ok((await client.once(name, { key, keep: DAY }, () => 0)).ran, `${name} ${key}`);
  const longest = "s".repeat(1_020);
  assert.equal((await client.once("job", { key: longest }, ({ resource }) => resource)).value, `job@${longest}`);
});

test("many callers of one process do it once", async (t) => {
  const client = await connect(sqlite(t));
  undo(t, () => client.close());
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => client.once("job", { ...JOB, wait: SOON }, () => 1)));
  assert.deepEqual(outcomes.map(({ ran }) => ran).sort().slice(-2), [false, true]);
  const [{ token }] = outcomes.filter(({ ran }) => ran);
  assert.ok(outcomes.every((outcome) => outcome.token === token));
});

test("events tell of runs", STOPS, async (t) => {
  const [heard, samples] = [[], []];
  const stop = observe({ event: (item) => heard.push(item), sample: (sample) => samples.push(sample) });
  t.after(stop);
  const { url, pid, stop: end } = await startRedis(t);
  const [one, two] = [await connect(url, { requestTimeout: 500 }), await connect(url, { requestTimeout: 500 })];
  const told = (name) => until(() => heard.find((item) => item.event === name));
  const { run } = await one.beginRun("job", { key: "s", ttl: 600, renew: false });
  const next = await two.once("job", { ...JOB, wait: SOON }, () => 1);
  const taken = await told("run.taken_over");
  assert.deepEqual([taken.level, taken.fields.resource, taken.fields.token > run.token], ["info", "job@s", true]);
  assert.equal((await told("run.finished")).fields.token, next.token);
  await one.once("job", JOB, () => assert.fail("done"));
  assert.equal((await told("run.skipped")).fields.done_token, next.token);
  await assert.rejects(two.once("late", { key: "s", ttl: 1_000 }, () => void process.kill(pid, "SIGSTOP")), FinishUnconfirmedError);
  assert.equal((await told("run.finish_unconfirmed")).level, "warn");
  const outcomes = () => samples.filter(({ name }) => name === "leasehold_run_total").map(({ labels }) => labels.outcome);
  await until(() => outcomes().length >= 4);
  assert.deepEqual(outcomes(), ["taken_over", "finished", "skipped", "finish_unconfirmed"]);
  await end();
  await Promise.all([one, two].map((client) => client.close().catch(() => {})));
});

test("the names of the protocol", () => {
  assert.equal(protocol.runResource("a@b", "c%"), "a%40b@c%25");
  assert.deepEqual([protocol.runResource("job"), protocol.runResource("job", null)], ["job@", "job@"]);
  assert.equal(protocol.periodKey(1_795_478_400_000, DAY), "2026-11-24T00:00:00Z");
  assert.equal(protocol.periodKey(1_795_478_400_000, DAY, 3_600_000), "2026-11-23T01:00:00Z");
  assert.throws(() => protocol.runResource("job", ""), ConfigError);
  for (const [every, offset] of [[0, 0], [DAY, DAY], [Infinity, 0], [1_000.5, 0]]) {
    assert.throws(() => protocol.periodKey(0, every, offset), ConfigError);
  }
  assert.throws(() => protocol.periodKey(0, "1d"), TypeError);
});
