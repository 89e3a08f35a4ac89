// Runs whose completion is a part of the user's transaction, with `pg` on a real server.

import assert from "node:assert/strict";
import { test } from "node:test";

import { connect, ConfigError, LeaseLostError, NotOwnedError } from "leasehold";
import * as testing from "leasehold/testing";
import pg from "pg";
import { start } from "./helpers/child.mjs";
import { lockTable, startPostgres } from "./helpers/servers.mjs";
import { undo } from "./helpers/undo.mjs";
import { until } from "./helpers/until.mjs";

const JOB = { key: "2026-11", ttl: 20_000 };

async function shop(t) {
  const server = await startPostgres(t);
  const url = await lockTable(server);
  const locks = await connect(url, { requestTimeout: 5_000 });
  undo(t, () => locks.close());
  const db = new pg.Client(server);
  await db.connect();
  undo(t, () => db.end());
  await db.query("CREATE TABLE bills (month text)");
  const bills = async () => (await db.query("SELECT count(*)::int FROM bills")).rows[0].count;
  const work = async () => {
    await db.query("BEGIN");
    await db.query("INSERT INTO bills VALUES ('2026-11')");
  };
  return { bills, db, locks, server, url, work };
}

test("work and completion are committed together", async (t) => {
  const { bills, db, locks, work } = await shop(t);
  let marked;
  const outcome = await locks.once("bill", JOB, async (run) => {
    await work();
    const statement = run.completionIn();
    assert.deepEqual(Object.keys(statement), ["text", "values"]);
    await db.query(statement);
    assert.equal((await locks.inspectRun("bill", JOB.key)).done, null, "it is not committed");
    await db.query("COMMIT");
    // A process that is killed here sends no finish.
    assert.equal((await locks.inspectRun("bill", JOB.key)).done.token, run.token);
    marked = run;
  });
  assert.equal(outcome.ran, true);
  assert.throws(() => marked.completionIn(), NotOwnedError);
  assert.equal((await locks.once("bill", JOB, () => assert.fail("it is done"))).reason, "done");
  assert.equal(await bills(), 1);
});

test("a transaction that is rolled back leaves no completion", async (t) => {
  const { bills, db, locks, work } = await shop(t);
  const failed = locks.once("bill", JOB, async (run) => {
    await work();
    await db.query(run.completionIn());
    await db.query("ROLLBACK");
    throw new RangeError("the work failed");
  });
  await assert.rejects(failed, RangeError);
  assert.equal(await bills(), 0);
  assert.equal((await locks.once("bill", JOB, () => {})).ran, true);
});

test("a lost lease fails the transaction", async (t) => {
  const { bills, db, locks, work } = await shop(t);
  const { run } = await locks.beginRun("bill", { ...JOB, renewEvery: 100 });
  const late = run.completionIn();
  assert.equal((await locks.releaseIf("bill@2026-11", { token: run.token })).released, true);
  await work();
  await assert.rejects(db.query(late), /the lease of this run is lost.*roll back/);
  await db.query("COMMIT"); // which rolls back
  assert.equal(await bills(), 0);
  await until(() => run.signal.aborted);
  await assert.rejects(run.finish(), LeaseLostError);
  assert.throws(() => run.completionIn(), LeaseLostError);
});

test("a transaction that outlasts the lease decides if the work is done", async (t) => {
  const { bills, db, locks, work } = await shop(t);
  const billing = (end) =>
    locks.once("bill", { key: end, ttl: 1_000 }, async (run) => {
      await work();
      await db.query(run.completionIn());
      await until(() => run.signal.aborted);
      await db.query(end);
    });
  await assert.rejects(billing("ROLLBACK"), LeaseLostError);
  assert.equal((await billing("COMMIT")).ran, true);
  assert.equal(await bills(), 1);
});

test("only PostgreSQL can mark in a transaction", async (t) => {
  const locks = await connect("memory:mark-in");
  undo(t, () => locks.close());
  const { run } = await locks.beginRun("bill", JOB);
  assert.throws(() => run.completionIn(), (error) => error instanceof ConfigError && /database of the work/.test(error.message));
  const fake = testing.connect();
  await assert.rejects(fake.once("bill", JOB, (run) => run.completionIn()), ConfigError);
});

for (const stop of ["at work", "marked", "committed"]) {
  test(`the work of processes that are killed exists exactly once: ${stop}`, async (t) => {
    const { bills, server, url } = await shop(t);
    const first = start("biller.mjs", url, JSON.stringify(server), stop);
    await first.until(stop);
    first.child.kill("SIGKILL");
    await first.ended;
    const second = await start("biller.mjs", url, JSON.stringify(server), "nowhere").ended;
    assert.deepEqual([second.code, second.stderr], [0, ""]);
    assert.equal(second.stdout.trim(), stop === "committed" ? "done before" : "done");
    assert.equal(await bills(), 1);
  });
}
