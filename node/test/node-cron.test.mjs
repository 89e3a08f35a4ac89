// The RunCoordinator, on the real node-cron.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import cron from "node-cron";
import { connect, GivenUpError, LeaseLostError } from "leasehold";
import { RunCoordinator } from "leasehold/node-cron";
import * as testing from "leasehold/testing";
import { start } from "./helpers/child.mjs";
import { folder } from "./helpers/folder.mjs";
import { startRedis } from "./helpers/servers.mjs";
import { undo } from "./helpers/undo.mjs";
import { until } from "./helpers/until.mjs";

const KEY = "nightly:report:2026-11-24T02:00:00.000Z";
const TTL = 30_000;
const silent = { info() {}, warn() {}, error() {}, debug() {} };

/** Each line is [what, time, process, token]. */
function record(t) {
  const file = join(folder(t), "record");
  writeFileSync(file, "");
  const lines = () => readFileSync(file, "utf8").split("\n").filter(Boolean).map((line) => line.split(" "));
  return { file, lines, of: (what, time) => lines().filter((line) => line[0] === what && (time ?? line[1]) === line[1]) };
}

test("another process takes over from one that is killed in the middle of a task", async (t) => {
  const { url } = await startRedis(t);
  const { file, lines, of } = record(t);
  const processes = [0, 1].map(() => start("node-cron.mjs", url, file));
  const [, time, pid, token] = await until(() => of("begun")[0]);
  const runner = processes.find(({ child }) => String(child.pid) === pid);
  const other = processes.find((one) => one !== runner);
  undo(t, () => void other.child.kill("SIGKILL"));
  // Its later times go on in either process.
  await until(() => lines().some(([what, later]) => what === "done" && later > time));
  assert.deepEqual(of("done", time), []);
  runner.child.kill("SIGKILL");
  const [[, , by, higher]] = await until(() => of("done", time).length > 0 && of("done", time));
  assert.equal(by, String(other.child.pid));
  assert.ok(Number(higher) > Number(token));
  other.child.stdin.end();
  assert.equal((await other.ended).code, 0);
  const ran = of("done");
  // The one that was killed may have done its last task, and not written the completion.
  const last = ran.findLast(([, , by]) => by === pid);
  const done = ran.filter((line) => line !== last).map(([, time]) => time);
  assert.equal(new Set(done).size, done.length, `twice at a time: ${done}`);
});

function two() {
  const clock = new testing.FakeClock();
  const clients = ["one", "two"].map((owner) => testing.connect({ clock, owner }));
  return { clock, clients, coordinators: clients.map((client) => new RunCoordinator(client, { wait: 5_000 })) };
}

test("one coordinator of several runs a task at each time", async () => {
  const { clients, coordinators: [one, two_] } = two();
  assert.equal(await one.shouldRun(KEY, TTL), true);
  assert.equal(await two_.shouldRun(KEY, TTL), false, "it waited, and it still runs");
  const { holder, resource } = await clients[1].inspectRun("node-cron/nightly:report", "2026-11-24T02:00:00.000Z");
  assert.deepEqual([holder.owner, holder.ttl, resource], ["one", TTL, "node-cron/nightly:report@2026-11-24T02:00:00.000Z"]);
  await one.onComplete(KEY);
  await one.onComplete(KEY);
  for (const coordinator of [one, two_]) assert.equal(await coordinator.shouldRun(KEY, TTL), false, "it is done");
  assert.equal(await two_.shouldRun(KEY.replace("24T", "25T"), TTL), true, "another time");
  assert.equal(await two_.shouldRun("a key of another form", TTL), true);
});

test("what is lost is not marked, and is reported", async () => {
  const { clients, coordinators: [one, two_] } = two();
  assert.ok(await one.shouldRun(KEY, TTL));
  clients[0].lose("node-cron/nightly:report@2026-11-24T02:00:00.000Z");
  assert.equal(await two_.shouldRun(KEY, TTL), true);
  await assert.rejects(one.onComplete(KEY), LeaseLostError);
  await two_.onComplete(KEY);
});

test("a task that always fails is given up, and says why", async () => {
  const { clients } = two();
  const [one, other] = clients.map((client) => new RunCoordinator(client, { wait: 5_000, maxAttempts: 2 }));
  const context = { task: { name: "nightly:report" }, date: new Date("2026-11-24T02:00:00.000Z") };
  for (const [coordinator, count] of [[one, 1], [other, 2]]) {
    assert.equal(await coordinator.shouldRun(KEY, TTL), true);
    const task = coordinator.job((_, run) => Promise.reject(new RangeError(`no ${run.attempts.count}`)));
    await assert.rejects(task(context), { name: "RangeError", message: `no ${count}` });
    await coordinator.onComplete(KEY);
  }
  await assert.rejects(one.shouldRun(KEY, TTL), (error) => error instanceof GivenUpError && error.attempts.reason === "RangeError: no 2");
  assert.equal(await one.shouldRun(KEY.replace("24T", "25T"), TTL), true, "another time is another run");
});

test("node-cron leaves out what it cannot decide", async (t) => {
  const client = await connect("memory:");
  const runCoordinator = new RunCoordinator(client);
  const reasons = [];
  const task = cron.schedule("* * * * * *", () => assert.fail("it ran"), {
    name: "refused",
    distributed: true,
    distributedLease: 5,
    runCoordinator,
    logger: silent,
  });
  t.after(() => task.destroy());
  task.on("execution:skipped", ({ reason }) => reasons.push(reason));
  await until(() => reasons.length > 0);
  assert.equal(reasons[0], "coordinator-error", "a ttl of 5 ms cannot be");
  task.stop();
  await client.close();
});

test("a task that fails leaves no completion, and one that is called by hand is no run", async (t) => {
  const client = await connect("memory:");
  const [failing, standingBy] = [new RunCoordinator(client), new RunCoordinator(client)];
  const seen = [];
  const schedule = (runCoordinator, work) => {
    const task = cron.schedule("* * * * * *", runCoordinator.job(work), {
      name: "fails",
      distributed: true,
      runCoordinator,
      logger: silent,
    });
    t.after(() => task.destroy());
    return task;
  };
  const first = schedule(failing, async ({ date }, run) => {
    seen.push(["failed", run?.resource, date.getTime()]);
    throw new RangeError("on purpose");
  });
  await until(() => seen.length > 0);
  const second = schedule(standingBy, async ({ date }, run) => void seen.push(["done", run?.resource, date.getTime()]));
  const hasFailed = (time) => seen.some(([what, , at]) => what === "failed" && at === time);
  const [, , time] = await until(() => seen.find(([what, , time]) => what === "done" && hasFailed(time)));
  first.stop();
  second.stop();
  assert.ok(seen.every(([, resource, time]) => resource === `node-cron/fails@${new Date(time).toISOString()}`));
  assert.notEqual((await client.inspectRun("node-cron/fails", new Date(time).toISOString())).done, null);
  seen.length = 0;
  await second.execute();
  assert.deepEqual(seen.map(([what, resource]) => [what, resource]), [["done", undefined]]);
  await client.close();
});

test("a coordinator that is closed stands by no longer", async () => {
  const client = await connect("memory:");
  const [one, two] = [new RunCoordinator(client), new RunCoordinator(client)];
  assert.ok(await one.shouldRun(KEY, TTL));
  const waiting = two.shouldRun(KEY, TTL);
  two.close();
  assert.deepEqual([await waiting, await two.shouldRun("other", TTL)], [false, false]);
  await one.onComplete(KEY);
  await client.close();
});

test("impossible coordinators are refused", () => {
  const [client] = two().clients;
  for (const make of [
    () => new RunCoordinator(),
    () => new RunCoordinator("redis://127.0.0.1"),
    () => new RunCoordinator(client, { key: "s" }),
    () => new RunCoordinator(client, { ttl: 5 }),
    () => new RunCoordinator(client, { maxAttempts: 2, retryAfter: 5 }),
    () => new RunCoordinator(client).job(),
  ]) {
    assert.throws(make, TypeError);
  }
});
