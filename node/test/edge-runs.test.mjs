// Runs of `leasehold/edge`: which occurrence of a job its settings mean, and attempts, which it counts together with native code.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { inspect } from "node:util";
import { join } from "node:path";
import { after, test } from "node:test";
import { connect as connectNative } from "leasehold";
import { connect, ConfigError, GivenUpError, LeaseholdError, LeaseLostError, NotOwnedError, StoreUnavailableError } from "leasehold/edge";
import { part } from "./helpers/edge.mjs";
import { edgeStores, startQuorum } from "./helpers/edge-stores.mjs";
import { startDynamodb, startRedis, startWebdis } from "./helpers/servers.mjs";
import { until } from "./helpers/until.mjs";

const { Counting, begin } = await part("attempts");
const { load } = await part("inline");
const { Run } = await part("lease");
const { refused } = await part("messages");
const { occurrence } = await part("settings");
const { zoneOffsets } = await part("zones");

const SLOW = { requestTimeout: 5_000 };
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** A job that may be tried twice. */
const BILL = { key: "may", ttl: 20_000, maxAttempts: 2 };
const never = () => assert.fail("it must not run");

/** It takes seconds to start, and each test uses other names. It ends with the last test, so it is started before the first. */
const dynamodb = await startDynamodb({ after });
Object.assign(process.env, dynamodb.env);

const { zones, plans } = JSON.parse(readFileSync(join(process.env.LEASEHOLD_SOURCE, "bindings/occurrences.json"), "utf8"));

for (const { why, zone, unix_ms, offsets } of zones) {
  test(`a zone has the offsets that it has in all hosts: ${why}`, () => {
    const found = zoneOffsets(zone, BigInt(unix_ms));
    assert.deepEqual(found.map(({ sinceUnixMs, shownMs }) => [Number(sinceUnixMs), Number(shownMs - sinceUnixMs)]), offsets);
  });
}

test("settings mean what they mean in all hosts", async () => {
  const { runs } = (await load())();
  for (const { why, unix_ms, occurrence: given, quorum = false, even_if_done = false, resource, keep, refused: words } of plans) {
    const plan = () => {
      try {
        const meant = occurrence(given, "job");
        return runs.planRun("job", meant, BigInt(unix_ms), zoneOffsets(given.tz, BigInt(unix_ms)), quorum, even_if_done);
      } catch (error) {
        throw error.payload === undefined ? error : refused(error.payload, "job");
      }
    };
    if (words === undefined) assert.deepEqual(plan(), { resource, keepMs: BigInt(keep) }, why);
    else assert.throws(plan, (error) => error instanceof ConfigError && error.message.includes(words), why);
  }
});

test("an offset is no zone, whatever the runtime takes", (t) => {
  const own = Intl.DateTimeFormat;
  t.after(() => (Intl.DateTimeFormat = own));
  Intl.DateTimeFormat = function (locale, settings) {
    return new own(locale, { ...settings, timeZone: "UTC" });
  };
  assert.equal(zoneOffsets("Mars/Olympus_Mons", 0n).length, 1);
  for (const offset of ["+02:00", "-01"]) assert.throws(() => zoneOffsets(offset, 0n), ConfigError);
});

const STORES = { ...edgeStores(dynamodb), "a quorum": startQuorum };

let jobs = 0;

/** The same for each store, with a client of each kind and a name of a job. */
function testEach(name, body) {
  for (const [store, start] of Object.entries(STORES)) {
    test(`${name}: ${store}`, async (t) => {
      const { url, native, credentials, quorumId } = await start(t);
      const client = await connect(url, { ...SLOW, owner: "edge", credentials, quorumId });
      const other = await connectNative(native, { ...SLOW, owner: "native", quorumId });
      try {
        await body(client, other, `bill-${(jobs += 1)}`);
      } finally {
        await Promise.all([client.close(), other.close()]);
      }
    });
  }
}

/** The attempts after which it was given up. */
async function givenUp(client, job, options = BILL) {
  const error = await client.once(job, options, never).then(never, (error) => error);
  assert.ok(error instanceof GivenUpError && error instanceof LeaseholdError, inspect(error));
  assert.deepEqual([error.name, error.code, error.resource, error.temporary], ["GivenUpError", "given_up", `${job}@may`, false]);
  return error;
}

testEach("local times are those of native code", async (client, other, job) => {
  for (const options of [
    { cron: "0 2 * * 1-5", tz: "America/New_York" },
    { every: DAY, at: "02:30", tz: "Europe/Berlin" },
    { every: 6 * DAY, offset: DAY },
    { cooldown: HOUR },
  ]) {
    const name = `${job}-${Object.keys(options)}`;
    const first = await client.once(name, options, ({ resource }) => resource);
    const { reason, owner, left } = await other.once(name, options, never);
    assert.deepEqual([first.ran, reason, owner], [true, "done", "edge"]);
    const [, key] = first.value.split("@");
    const { done } = await other.inspectRun(name, key === "" ? null : key.replaceAll("%25", "%"));
    assert.equal(done.owner, "edge", first.value);
    assert.ok(Math.abs(left - done.left) < 600_000);
  }
});

testEach("work that always fails is given up, in either client", async (client, other, job) => {
  const shown = async () => (await other.inspectRun(job, "may")).attempts;
  const oops = new RangeError("the bank\ndoes not answer");
  const failing = client.once(job, BILL, async (run) => {
    assert.deepEqual([run.attempts.count, run.attempts.max, run.attempts.reason], [1, 2, null]);
    assert.equal((await other.once(job, BILL, never)).reason, "running");
    throw oops;
  });
  await assert.rejects(failing, (error) => error === oops);
  const { since, retryAt, ...rest } = await shown();
  assert.deepEqual(rest, { count: 1, max: 2, reason: "RangeError: the bank does not answer" });
  assert.ok(Math.abs(since - Date.now()) < 600_000 && retryAt === since, `${since} ${retryAt}`);
  const { run } = await other.beginRun(job, BILL);
  assert.deepEqual([run.attempts.count, run.attempts.since], [2, since]);
  await run.fail("no money");
  const error = await givenUp(client, job);
  assert.deepEqual(error.attempts, { ...(await shown()), count: 2, max: 2, since, reason: "no money" });
  const theirs = await other.once(job, BILL, never).then(never, (error) => error);
  assert.equal(error.message, theirs.message);
  const third = await client.once(job, { ...BILL, maxAttempts: 3 }, (run) => run.attempts.count);
  assert.deepEqual([third.ran, third.value], [true, 3]);
  assert.equal((await client.once(job, BILL, never)).reason, "done");
});

testEach("an attempt waits for its pause", async (client, other, job) => {
  const patient = { ...BILL, retryAfter: HOUR };
  await assert.rejects(client.once(job, patient, () => Promise.reject(new TypeError("not now"))), TypeError);
  const later = await client.once(job, patient, never);
  const { since, retryAt, ...rest } = later.attempts;
  assert.deepEqual({ ...later, attempts: rest }, { ran: false, reason: "later", attempts: { count: 1, max: 2, reason: "TypeError: not now" } });
  assert.equal(retryAt - since, HOUR);
  assert.deepEqual(await client.beginRun(job, patient), { run: null, ...later });
  assert.deepEqual(await other.once(job, patient, never), later);
});

testEach("work that is done again has its attempts forgotten", async (client, other, job) => {
  const once = { ...BILL, maxAttempts: 1 };
  await assert.rejects(client.once(job, once, () => Promise.reject(new Error("no"))), /^Error: no$/);
  assert.equal((await givenUp(client, job, once)).attempts.reason, "Error: no");
  const { maxAttempts: _, ...again } = { ...once, evenIfDone: true };
  await assert.rejects(client.once(job, again, () => Promise.reject(new Error("again"))), /^Error: again$/);
  assert.equal((await other.inspectRun(job, "may")).attempts.count, 1, "only a finish forgets them");
  assert.equal((await client.once(job, again, () => 1)).ran, true);
  assert.equal((await other.inspectRun(job, "may")).attempts, null);
});

/** A client of Webdis and one of its Redis. `slow` makes each request about a count take so long. */
async function two(t, settings = SLOW) {
  const redis = await startRedis(t);
  const webdis = await startWebdis(t, redis.url);
  const scene = { slowMs: 0, isDown: false };
  const fetch = async (url, request) => {
    const isOfCount = `${url}${request.body === undefined ? "" : Buffer.from(request.body)}`.includes("attempts");
    if (isOfCount && scene.isDown) {
      scene.refuses?.();
      throw new TypeError("fetch failed");
    }
    if (isOfCount && scene.slowMs > 0) await new Promise((resolve) => setTimeout(resolve, scene.slowMs));
    return globalThis.fetch(url, request);
  };
  const [client, other] = [await connect(webdis.url, { ...settings, fetch }), await connectNative(redis.url, SLOW)];
  t.after(() => Promise.all([client.close().catch(() => {}), other.close()]));
  return Object.assign(scene, { client, other });
}

test("an attempt counts however it ends", async (t) => {
  const { client, other } = await two(t);
  const options = { ...BILL, maxAttempts: 3 };
  await (await client.beginRun("bill", options)).run[Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]();
  const { run: lost } = await client.beginRun("bill", options);
  assert.deepEqual([lost.attempts.count, lost.attempts.reason], [2, null]);
  assert.ok((await other.releaseIf("bill@may", { token: lost.token })).released);
  // It does not know that it is lost, and the count is that of another one by now.
  await assert.rejects(other.once("bill", options, () => Promise.reject(new Error("of the third"))), /^Error: of the third$/);
  await assert.rejects(lost.fail("of the second"), LeaseLostError);
  assert.equal((await givenUp(client, "bill", options)).attempts.reason, "Error: of the third");
});

test("a run fails once, and only for a reason", async (t) => {
  const { client, other } = await two(t);
  const reason = async () => (await other.inspectRun("bill", "may")).attempts.reason;
  const options = { ...BILL, maxAttempts: 9 };
  const { run } = await client.beginRun("bill", options);
  for (const reason of [undefined, null, 7, {}, { message: "no error" }]) await assert.rejects(run.fail(reason), TypeError, inspect(reason));
  run.check();
  await run.fail(` no\ndisk\u001b[31m\0 `);
  assert.equal(await reason(), "no disk [31m");
  for (const call of [() => run.fail("again"), () => run.finish(), () => run.release()]) await assert.rejects(call, NotOwnedError);
  const silent = { toString: () => { throw new Error("no text"); } };
  for (const [thrown, words] of [[new Error("x".repeat(300)), `Error: ${"x".repeat(249)}`], ["\ud800", "\ufffd"], [undefined, "undefined"], [silent, null]]) {
    const ended = await client.once("bill", options, () => { throw thrown; }).then(never, (error) => [error]);
    assert.ok(ended[0] === thrown, "it is thrown as it is");
    assert.equal(await reason(), words);
  }
  const oops = new Error("late");
  await assert.rejects(client.once("bill", options, async (run) => (await run.fail("early"), Promise.reject(oops))), oops);
  assert.equal(await reason(), "early", "what it throws after that changes nothing");
  const { maxAttempts: _, ...uncounted } = BILL;
  const { run: plain } = await client.beginRun("bill", uncounted);
  assert.equal(plain.attempts, null);
  await plain.fail("it is not counted");
  assert.equal(await reason(), "early");
});

test("no more attempts begin than allowed", async (t) => {
  const { client, other } = await two(t);
  const options = { ...BILL, maxAttempts: 4, wait: 60_000 };
  let begun = 0;
  const fails = () => { begun += 1; throw new Error("no"); };
  const worker = async (client) => {
    for (;;) {
      const error = await client.once("bill", options, fails).catch((error) => error);
      if (error.code === "given_up") return;
    }
  };
  await Promise.all([client, other, client, other].map(worker));
  assert.equal(begun, 4);
});

test("the nodes are asked again where too few of them show the holder of the count", async () => {
  /** The times of asking, with these decisions about the next attempt. */
  const asked = async (...tags) => {
    const scene = { reads: 0, written: 0 };
    const ended = () => ({ remaining: () => 1_000, until: async () => "released", isFree: true, isMarked: true });
    const machine = {
      read: async () => void (scene.reads += 1),
      finish: () => void (scene.written += 1),
      release: () => {},
      nonce: () => new Uint8Array(16),
      now: () => ({ unixMs: 0n }),
      within: (ms, promise) => promise,
    };
    const runs = { countAttempt: () => ({ tag: tags.shift() ?? "unsure", val: { count: 1 } }), keepAttempts: () => ({ bytes: new Uint8Array(24) }) };
    const counting = new Counting(machine, runs, async () => ended(), { record: "a@1@attempts", owner: "me", keepMs: BigInt(DAY) });
    const run = new Run(machine, ended(), { counting });
    const begun = await begin(run, counting, {}, undefined).catch((error) => error);
    return { ...scene, begun };
  };
  const later = await asked("unsure", "unsure", "begin");
  assert.deepEqual([later.reads, later.written, later.begun.run.attempts.count], [3, 1, 1]);
  const never = await asked();
  assert.deepEqual([never.reads, never.written, never.begun.code], [5, 0, "store_unavailable"]);
});

test("work does not begin if its lease ends while it is counted", async (t) => {
  const scene = await two(t);
  // The server gets to know the scripts.
  await scene.client.once("warm", BILL, () => {});
  scene.slowMs = 1_200;
  const options = { ...BILL, ttl: 2_000, renew: false };
  assert.deepEqual(await scene.client.once("bill", options, never), { ran: false, reason: "running", holder: null });
});

/** A lease that is not over by itself within a test. */
const LONG_BILL = { ...BILL, ttl: 3_600_000 };

test("work does not begin if it cannot be counted, and its lease is free again", async (t) => {
  const scene = await two(t, { requestTimeout: 200 });
  scene.isDown = true;
  await assert.rejects(scene.client.once("bill", LONG_BILL, never), StoreUnavailableError);
  const controller = new AbortController();
  const reason = new Error("enough");
  scene.refuses = () => controller.abort(reason);
  const aborted = scene.client.once("bill", { ...LONG_BILL, signal: controller.signal }, never);
  await assert.rejects(aborted, (error) => error === reason);
  await until(async () => (await scene.other.inspectRun("bill", "may")).holder === null);
  scene.isDown = false;
  assert.equal((await scene.client.once("bill", { ...LONG_BILL, wait: SLOW.requestTimeout }, (run) => run.attempts.count)).value, 1);
});

test("a reason that cannot be kept does not hide the error", async (t) => {
  const scene = await two(t, { requestTimeout: 200 });
  const oops = new Error("oops");
  const failing = scene.client.once("bill", LONG_BILL, () => { scene.isDown = true; throw oops; });
  await assert.rejects(failing, (error) => error === oops);
  await until(async () => (await scene.other.inspectRun("bill", "may")).holder === null);
});

test("impossible settings of runs and attempts are refused, and nothing is counted", async (t) => {
  const { client, other } = await two(t);
  for (const options of [
    { maxAttempts: 0 },
    { maxAttempts: -1 },
    { maxAttempts: 1.5 },
    { maxAttempts: NaN },
    { maxAttempts: Infinity },
    { maxAttempts: 2, evenIfDone: true },
    { maxAttempts: 2, retryAfter: -1 },
    { maxAttempts: 2, retryAfter: Infinity },
    { maxAttempts: 2, retryAfter: 7 * DAY },
    { retryAfter: 1 },
    { tz: "UTC" },
    { at: "02:00" },
    { cron: "0 2 * * *", tz: "UTC" },
  ]) {
    const job = { key: "may", ...options };
    const [ours, theirs] = await Promise.all([client, other].map((each) => each.once("bill", job, never).then(never, (error) => error)));
    assert.deepEqual([ours.name, ours.code, theirs.name], ["ConfigError", "config", "ConfigError"], inspect(options));
    // Native code has another word for this number.
    if (Object.values(options).includes(Infinity)) continue;
    assert.equal(ours.message, theirs.message.replace(/^"bill": /, ""));
  }
  await assert.rejects(client.once("b".repeat(1_014), BILL, never), /at most 1015 are allowed/);
  for (const options of [{ maxAttempts: "2" }, { maxAttempts: 2n }, { maxAttempts: 2, retryAfter: "1m" }, { tz: 1 }, { cron: [] }]) {
    await assert.rejects(client.once("bill", { key: "may", ...options }, never), TypeError, inspect(options));
  }
  assert.equal((await other.inspectRun("bill", "may")).attempts, null);
  const { value } = await client.once("bill", { ...BILL, maxAttempts: 2 ** 40 }, ({ attempts }) => attempts.max);
  assert.equal(value, 2 ** 32 - 1, "a larger number is not reached either");
});
