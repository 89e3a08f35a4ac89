// Runs of fake clients: they behave like those of real clients.

import assert from "node:assert/strict";
import { inspect } from "node:util";
import { test } from "node:test";
import * as leasehold from "leasehold";
import * as testing from "leasehold/testing";

const { ConfigError, FinishUnconfirmedError, LeaseLostError, LockTimeoutError, NotOwnedError, StoreUnavailableError } = leasehold;
const TTL = 30_000;
const DAY = 86_400_000;
const JOB = { key: "s", ttl: TTL };

function two() {
  const clock = new testing.FakeClock();
  return { clock, client: testing.connect({ clock, owner: "me" }), rival: testing.connect({ clock, owner: "rival" }) };
}

let stores = 0;
const pairs = {
  fake: async () => two(),
  real: async () => {
    const store = `memory:testing-runs-${(stores += 1)}`;
    return {
      client: await leasehold.connect(store, { owner: "me" }),
      rival: await leasehold.connect(store, { owner: "rival" }),
    };
  },
};

for (const [kind, pair] of Object.entries(pairs)) {
  test(`a run behaves alike: ${kind}`, async () => {
    const { client, rival } = await pair();
    const first = await client.once("job", JOB, async (run) => {
      assert.ok(run instanceof leasehold.Run);
      assert.deepEqual([run.resource, run.owner], ["job@s", "me"]);
      const late = await rival.once("job", { ...JOB, wait: 10 }, () => assert.fail("twice"));
      assert.deepEqual([late.ran, late.reason, late.holder.owner], [false, "running", "me"]);
      assert.equal((await rival.beginRun("job", JOB)).holder.token, run.token);
      const info = await rival.inspectRun("job", "s");
      assert.deepEqual([info.resource, info.holder.token, info.done], ["job@s", run.token, null]);
      return run.token;
    });
    assert.deepEqual(first, { ran: true, value: first.token, token: first.value });
    const { at, left, ...done } = await rival.once("job", JOB, () => assert.fail("twice"));
    assert.deepEqual(done, { ran: false, reason: "done", owner: "me", token: first.token, result: leasehold.noResult });
    assert.ok(at > 1.7e12 && left > 6 * DAY && left <= 7 * DAY);
    const info = await client.inspectRun("job", "s");
    assert.deepEqual([info.holder, info.done.token, info.done.at], [null, first.token, at]);
    assert.ok((await rival.once("job", { ...JOB, evenIfDone: true }, () => 0)).token > first.token);
    assert.equal((await client.forgetRun("job", "s")).owner, "rival");
    assert.equal(await client.forgetRun("job", "s"), null);

    await assert.rejects(client.once("job", JOB, () => Promise.reject(new RangeError("oops"))), RangeError);
    const { run } = await rival.beginRun("job", JOB);
    await run.release();
    await assert.rejects(run.finish(), NotOwnedError);
    const again = (await client.beginRun("job", JOB)).run;
    await again.finish();
    await assert.rejects(again.finish(), NotOwnedError);
    await assert.rejects(again.release(), NotOwnedError);
    await again[Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]();
    for (const end of ["finish", "release"]) {
      assert.equal((await client.once("by itself", { key: end }, (run) => run[end]())).ran, true);
      assert.equal((await client.inspectRun("by itself", end)).done !== null, end === "finish");
    }
    const long = { key: "broken", ttl: 3_600_000 };
    const broken = client.once("job", long, async ({ token }) => void (await rival.releaseIf("job@broken", { token })));
    await assert.rejects(broken, LeaseLostError);
    assert.equal((await client.inspectRun("job", "broken")).done, null);

    const impossible = [
      { key: "" },
      { key: "x".repeat(1_024) },
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
      { every: DAY, offset: DAY },
      { key: "s", offset: 5 },
      { cooldown: DAY, keep: DAY },
      { keep: 29_999 },
      { every: DAY, keep: DAY - 1 },
      { keep: DAY * 36_501 },
      { keep: Infinity },
      { key: "s", ttl: 10 },
      { key: "s", renew: false, renewEvery: 1_000 },
    ];
    for (const options of impossible) {
      await assert.rejects(client.once("job", () => assert.fail("it ran")), { code: "config", resource: "job", message: /^say when the work may be done again: key .*, every .*, cron .*, cooldown .*, or keep / });
    await assert.rejects(client.once("job", options, () => assert.fail("it ran")), ConfigError, inspect(options));
    }
    await assert.rejects(client.once("job", { timeout: 5 }, () => 0), TypeError);
    await assert.rejects(client.inspectRun("job", ""), ConfigError);
    await assert.rejects(client.once("job", { key: "s", signal: AbortSignal.abort() }, () => 0), { name: "AbortError" });
    await assert.rejects(rival.once("closing", { key: "s" }, () => rival.close()), NotOwnedError);
    await assert.rejects(rival.beginRun("job", { key: "s" }), { code: "closed" });
    assert.equal((await client.inspectRun("closing")).done, null);
    await client.close();
  });
}

test("a completion stands for as long as it is kept, and each period has a key", async () => {
  const { clock, client, rival } = two();
  await client.once("sync", { cooldown: 60_000 }, () => 0);
  clock.advance(58_000);
  assert.equal((await rival.once("sync", { cooldown: 60_000 }, () => 0)).reason, "done");
  clock.advance(5_000);
  assert.equal((await rival.once("sync", { cooldown: 60_000 }, () => 0)).ran, true);
  for (let day = 0; day < 3; day++) {
    const daily = () => client.once("daily", { every: DAY }, ({ resource }) => assert.match(resource, /T00:00:00Z$/));
    assert.deepEqual([(await daily()).ran, (await daily()).ran], [true, false]);
    clock.advance(DAY);
  }
});

for (const [days, kept] of [[1, 7], [7, 14], [30, 60], [36_500, 36_500]]) {
  test(`the completion of a period of ${days} days outlasts it`, async () => {
    const { client } = two();
    const { value } = await client.once("job", { every: days * DAY }, ({ resource }) => resource);
    assert.equal((await client.inspectRun("job", value.split("@")[1])).done.left, kept * DAY);
  });
}

test("a stand-by takes over, or gives up after its wait", async () => {
  const { clock, client, rival } = two();
  const { run } = await client.beginRun("job", JOB);
  const before = clock.now();
  assert.equal((await rival.once("job", { ...JOB, wait: 10_000 }, () => 0)).reason, "running");
  assert.ok(Math.abs(clock.now() - before - 10_000) < 100);
  client.lose("job@s");
  assert.ok(run.signal.reason instanceof LeaseLostError);
  const next = await rival.once("job", { ...JOB, wait: 10_000 }, () => 0);
  assert.ok(next.token > run.token);
  await assert.rejects(run.finish(), LeaseLostError);
  assert.equal((await client.inspectRun("job", "s")).done.token, next.token);
});

test("a store that is down leaves a finish unconfirmed", async () => {
  const { client } = two();
  await assert.rejects(client.once("job", JOB, () => client.storeDown()), (error) => {
    return error instanceof FinishUnconfirmedError && error.resource === "job@s" && !error.temporary;
  });
  await assert.rejects(client.once("job", { ...JOB, wait: 1_000 }, () => 0), StoreUnavailableError);
  await assert.rejects(client.inspectRun("job", "s"), StoreUnavailableError);
  client.storeUp();
  assert.equal((await client.once("job", JOB, () => 7)).value, 7);
});

test("a run that goes on is not forgotten", async () => {
  const { client, rival } = two();
  await client.once("job", JOB, () => 0);
  await client.once("job", { ...JOB, evenIfDone: true }, async (run) => {
    await assert.rejects(rival.forgetRun("job", "s"), LockTimeoutError);
    run.check();
  });
  assert.notEqual(await rival.forgetRun("job", "s"), null);
});
