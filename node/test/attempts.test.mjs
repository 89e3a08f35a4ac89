// Attempts: work that always fails is given up.

import assert from "node:assert/strict";
import { inspect } from "node:util";
import { test } from "node:test";
import { runInNewContext } from "node:vm";

import * as leasehold from "leasehold";
import * as testing from "leasehold/testing";
import { folder, sqlite } from "./helpers/folder.mjs";
import { startRedis } from "./helpers/servers.mjs";
import { aborted } from "./helpers/signals.mjs";

const { connect, ConfigError, GivenUpError, LeaseholdError, LeaseLostError, NotOwnedError } = leasehold;
const ASYNC_DISPOSE = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");
const HOUR = 3_600_000;
/** A job that may be tried twice. */
const BILL = { key: "may", ttl: 20_000, maxAttempts: 2 };
const never = () => assert.fail("it must not run");

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
      const url = urls === "memory:" ? `memory:${name}` : urls;
      const clients = [];
      for (const owner of ["one", "two"]) clients.push(await connect(url, { requestTimeout: 5_000, owner, ...settings }));
      try {
        await body(...clients);
      } finally {
        await Promise.all(clients.map((client) => client.close()));
      }
    });
  }
}

/** Two clients of one clock, which the test moves. */
function two() {
  const clock = new testing.FakeClock();
  return ["one", "two"].map((owner) => testing.connect({ clock, owner }));
}

async function listed(client, prefix = "bill@") {
  const runs = [];
  for await (const run of client.runs(prefix)) runs.push(run);
  return runs;
}

const shown = async (client) => (await client.inspectRun("bill", "may")).attempts;

/** The attempts after which it was given up. */
async function givenUp(client, options = BILL) {
  const error = await client.once("bill", options, never).then(never, (error) => error);
  assert.ok(error instanceof GivenUpError && error instanceof LeaseholdError, inspect(error));
  assert.deepEqual([error.name, error.code, error.resource, error.temporary], ["GivenUpError", "given_up", "bill@may", false]);
  assert.ok(error.message.includes(`given up after ${error.attempts.count} attempt`), error.message);
  return error.attempts;
}

testEach("work that always fails is given up", async (one, two) => {
  assert.equal(await shown(two), null);
  const oops = new RangeError("the bank\ndoes not answer");
  const failing = one.once("bill", BILL, async (run) => {
    assert.deepEqual([run.attempts.count, run.attempts.max, run.attempts.reason], [1, 2, null]);
    assert.equal((await two.once("bill", BILL, never)).reason, "running");
    throw oops;
  });
  await assert.rejects(failing, (error) => error === oops);
  const [failed, ...others] = await listed(two);
  const { attempts, ...state } = failed;
  assert.deepEqual([state, others], [{ resource: "bill@may", name: "bill", key: "may", holder: null, done: null }, []]);
  const { since, retryAt, ...rest } = attempts;
  assert.deepEqual(rest, { count: 1, max: 2, reason: "RangeError: the bank does not answer" });
  assert.ok(Math.abs(since - Date.now()) < 600_000 && retryAt === since, `${since} ${retryAt}`);
  assert.deepEqual(await shown(one), attempts);

  const { run } = await two.beginRun("bill", BILL);
  assert.deepEqual([run.attempts.count, run.attempts.since, run.attempts.reason], [2, since, null]);
  assert.equal((await listed(one)).length, 1, "it is under way, and comes once");
  assert.equal((await shown(one)).count, 2);
  await run.fail("no money");
  for (const client of [one, two]) {
    const { retryAt: _, ...attempts } = await givenUp(client);
    assert.deepEqual(attempts, { count: 2, max: 2, since, reason: "no money" });
  }
  await assert.rejects(two.beginRun("bill", BILL), GivenUpError);
  assert.equal(await two.inspect("bill@may"), null, "nobody holds what was given up");
  const [last] = await listed(one);
  assert.deepEqual([last.attempts.count, last.attempts.reason], [2, "no money"]);
  const third = await one.once("bill", { ...BILL, maxAttempts: 3, saveResult: true }, (run) => run.attempts.count);
  assert.deepEqual([third.ran, third.value], [true, 3]);
  assert.deepEqual([(await two.once("bill", BILL, never)).result, (await listed(two)).length], [3, 1]);
});

testEach("an attempt counts however it ends", async (one, two) => {
  const { run: first } = await one.beginRun("bill", BILL);
  await first[ASYNC_DISPOSE]();
  const { run: lost } = await one.beginRun("bill", { ...BILL, ttl: 3_000, renewEvery: 100 });
  assert.equal(lost.attempts.count, 2);
  assert.ok((await two.releaseIf("bill@may", { token: lost.token })).released);
  await aborted(lost.signal);
  assert.equal((await givenUp(two)).reason, null);
  await assert.rejects(lost.fail("too late"), LeaseLostError);
  assert.equal((await givenUp(two)).reason, null, "what comes from a run that was lost is not kept");
  const { maxAttempts: _, ...uncounted } = BILL;
  const { run: plain } = await two.beginRun("bill", uncounted);
  assert.equal(plain.attempts, null);
  await plain.fail("it is not counted");
  assert.equal((await givenUp(two)).reason, null);
  assert.equal((await two.once("bill", uncounted, () => 1)).ran, true);
  assert.equal((await one.once("bill", BILL, never)).reason, "done");
});

testEach("an attempt waits for its pause", async (one, two) => {
  const patient = { ...BILL, retryAfter: HOUR };
  await assert.rejects(one.once("bill", patient, () => Promise.reject(new TypeError("not now"))), TypeError);
  const later = await two.once("bill", patient, never);
  const { since, retryAt, ...rest } = later.attempts;
  assert.deepEqual({ ...later, attempts: rest }, {
    ran: false,
    reason: "later",
    attempts: { count: 1, max: 2, reason: "TypeError: not now" },
  });
  assert.equal(retryAt - since, HOUR);
  assert.deepEqual(await two.beginRun("bill", patient), { run: null, ...later });
  await assert.rejects(two.once("bill", BILL, () => Promise.reject(new TypeError("nor now"))), TypeError);
  assert.equal((await givenUp(one, patient)).count, 2);
});

testEach("forgetting a run begins anew", async (one, two) => {
  const once = { ...BILL, maxAttempts: 1 };
  await assert.rejects(one.once("bill", once, () => { throw new Error("broken"); }), /^Error: broken$/);
  assert.equal((await givenUp(two, once)).reason, "Error: broken");
  assert.equal(await two.forgetRun("bill", "may"), null, "it was never done");
  assert.deepEqual([await shown(one), await listed(two)], [null, []]);
  assert.equal((await one.once("bill", once, (run) => run.attempts.count)).value, 1);
  assert.notEqual(await two.forgetRun("bill", "may"), null);
  assert.equal((await two.once("bill", once, (run) => run.attempts.count)).value, 1);
});

test("a pause and a limit hold by the clock of a test", async () => {
  const [one, other] = two();
  const patient = { ...BILL, retryAfter: HOUR };
  await assert.rejects(one.once("bill", patient, () => Promise.reject(new Error("no"))), /^Error: no$/);
  assert.equal((await other.once("bill", patient, never)).reason, "later");
  one.clock.advance(HOUR);
  const second = other.once("bill", patient, (run) => Promise.reject(new Error(`no ${run.attempts.count}`)));
  await assert.rejects(second, /^Error: no 2$/);
  assert.equal((await givenUp(one, patient)).reason, "Error: no 2");
});

/** The reason that the store shows after the end of a run. */
async function reasonAfter(ends) {
  const [client, other] = two();
  const options = { ...BILL, maxAttempts: 1 };
  await ends(client, options);
  const { reason } = await givenUp(other, options);
  return reason;
}

test("whatever a function throws is the reason", async () => {
  class CardDeclined extends Error {
    name = "CardDeclined";
  }
  const silent = { toString: () => { throw new Error("no text"); } };
  const thrown = [
    [new CardDeclined("42"), "CardDeclined: 42"],
    [new Error(""), "Error"],
    [new AggregateError([], "both"), "AggregateError: both"],
    [new DOMException("stop", "AbortError"), "AbortError: stop"],
    [runInNewContext("new RangeError('elsewhere')"), "RangeError: elsewhere"],
    ["text", "text"],
    [7, "7"],
    [undefined, "undefined"],
    [Object.create(null), null],
    [silent, null],
  ];
  for (const [value, words] of thrown) {
    const reason = await reasonAfter(async (client, options) => {
      const outcome = await client.once("bill", options, () => { throw value; }).then(never, (error) => [error]);
      assert.ok(outcome[0] === value, "it is thrown as it is");
    });
    assert.equal(reason, words);
  }
});

test("a reason is one line of 256 bytes at most", async () => {
  const fails = (reason) => reasonAfter(async (client, options) => (await client.beginRun("bill", options)).run.fail(reason));
  assert.equal(await fails(` no\ndisk\u001b[31m\0 `), "no disk [31m");
  assert.equal(await fails(new RangeError("a\r\nb")), "RangeError: a  b");
  assert.equal(await fails("x".repeat(300)), "x".repeat(256));
  assert.equal(await fails(`${"x".repeat(255)}é`), "x".repeat(255), "no half character");
  assert.equal(await fails("é".repeat(150)), "é".repeat(128));
  assert.equal(await fails("\ud800"), "\ufffd");
  assert.equal(await fails(""), null);
});

test("a run fails once, and only for a reason", async () => {
  const [client] = two();
  const { run } = await client.beginRun("bill", BILL);
  for (const reason of [undefined, null, 7, {}, { message: "no error" }]) {
    await assert.rejects(run.fail(reason), TypeError, inspect(reason));
  }
  run.check();
  await run.fail(new Error("no"));
  assert.deepEqual([run.remaining(), run.signal.aborted, run.attempts.count, run.attempts.reason], [0, false, 1, null]);
  for (const call of [() => run.fail("again"), () => run.finish(), () => run.release()]) await assert.rejects(call, NotOwnedError);
  await run[ASYNC_DISPOSE]();
  assert.equal((await client.inspectRun("bill", "may")).attempts.reason, "Error: no");
  // What a function throws after it has finished or failed the run itself changes nothing.
  const oops = new Error("late");
  await assert.rejects(client.once("bill", BILL, async (run) => (await run.fail("early"), Promise.reject(oops))), oops);
  assert.equal((await givenUp(client)).reason, "early");
  await assert.rejects(client.once("other", BILL, async (run) => (await run.finish(), Promise.reject(oops))), oops);
  assert.notEqual((await client.inspectRun("other", "may")).done, null);
});

test("a store that is away does not hide the error of the function", async () => {
  const [client] = two();
  const oops = new Error("oops");
  const failing = client.once("bill", BILL, () => (client.storeDown(), Promise.reject(oops)));
  await assert.rejects(failing, (error) => error === oops);
  client.storeUp();
});

test("impossible settings are refused, and nothing is counted", async () => {
  const [client] = two();
  const impossible = [
    { maxAttempts: 0 },
    { maxAttempts: -1 },
    { maxAttempts: 1.5 },
    { maxAttempts: NaN },
    { maxAttempts: Infinity },
    { maxAttempts: 2, evenIfDone: true },
    { maxAttempts: 2, retryAfter: -1 },
    { maxAttempts: 2, retryAfter: NaN },
    { maxAttempts: 2, retryAfter: Infinity },
    { maxAttempts: 2, retryAfter: 7 * 24 * HOUR },
    { retryAfter: 1 },
  ];
  for (const options of impossible) {
    const job = { key: "may", ...options };
    await assert.rejects(client.once("bill", job, never), { name: "ConfigError", code: "config" }, inspect(options));
    await assert.rejects(client.beginRun("bill", job), ConfigError);
  }
  await assert.rejects(client.once("b".repeat(1_014), BILL, never), /at most 1015 are allowed/);
  for (const options of [{ maxAttempts: "2" }, { maxAttempts: 2n }, { maxAttempts: true }, { maxAttempts: 2, retryAfter: "1m" }]) {
    await assert.rejects(client.once("bill", { key: "may", ...options }, never), TypeError, inspect(options));
  }
  assert.equal(await shown(client), null);
  const { value } = await client.once("bill", { ...BILL, maxAttempts: 2 ** 40 }, ({ attempts }) => attempts.max);
  assert.equal(value, 2 ** 32 - 1, "a larger number is not reached either");
});
