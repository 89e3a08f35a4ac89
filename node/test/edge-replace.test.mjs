// Replacing in `leasehold/edge`: the newest call for a run gets it, also where native code runs it or asks for it.

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { inspect } from "node:util";
import { after, test } from "node:test";
import { connect as connectNative } from "leasehold";
import { connect, ClosedError, ConfigError, LeaseLostError, StoreRefusedError, StoreUnavailableError } from "leasehold/edge";
import { part } from "./helpers/edge.mjs";
import { edgeStores, startQuorum } from "./helpers/edge-stores.mjs";
import { startDynamodb, startRedis, startWebdis } from "./helpers/servers.mjs";
import { aborted } from "./helpers/signals.mjs";
import { until } from "./helpers/until.mjs";

const { Replacing } = await part("replacing");

const SLOW = { requestTimeout: 5_000 };
/** A deployment whose runner hears soon that it is replaced. A quorum allows no longer ttl. */
const DEPLOY = { key: "live", ttl: 50_000, renewEvery: 200 };
const REPLACE = { ...DEPLOY, replace: true };
const never = () => assert.fail("it must not run");
const isRevoked = (error) => error.name === "LeaseLostError" && error.reason === "revoked";

/** It takes seconds to start, and each test uses other names. It ends with the last test, so it is started before the first. */
const dynamodb = await startDynamodb({ after });
Object.assign(process.env, dynamodb.env);

/** A quorum may still have to forget attempts that were refused. */
const close = (client) => client.close().catch(({ code }) => assert.equal(code, "store_unavailable"));

/** Two clients of the edge and a native one of a store. */
async function clients(t, start) {
  const { url, native, credentials, quorumId } = await start(t);
  const settings = { ...SLOW, quorumId };
  const edge = (owner) => connect(url, { ...settings, credentials, owner });
  const made = [await edge("one"), await edge("two"), await connectNative(native, { ...settings, owner: "native" })];
  return { one: made[0], two: made[1], native: made[2], close: () => Promise.all(made.map(close)) };
}

/** A test with these clients of a Webdis. */
function testRuns(name, body) {
  test(name, async (t) => {
    const { close, ...all } = await clients(t, edgeStores(dynamodb).Webdis);
    try {
      await body(all);
    } finally {
      await close();
    }
  });
}

for (const [store, start] of Object.entries({ ...edgeStores(dynamodb), "a quorum": startQuorum })) {
  test(`the newest call replaces the runner, in either client: ${store}`, async (t) => {
    const { one, two, native, close } = await clients(t, start);
    const pairs = [[one, two], [native, one], [two, native]];
    const replaced = pairs.map(async ([runner, newest], pair) => {
      const job = `deploy-${pair}`;
      let working = 0;
      const work = async (body) => {
        assert.equal((working += 1), 1, "never two at once");
        await body?.();
        working -= 1;
        return job;
      };
      let began;
      const begun = new Promise((resolve) => (began = resolve));
      const former = runner.once(job, DEPLOY, (run) =>
        work(async () => {
          began();
          await aborted(run.signal);
          assert.ok(isRevoked(run.signal.reason), inspect(run.signal.reason));
          assert.equal((await native.beginRun(job, DEPLOY)).reason, "running", "until it lets go");
        }),
      );
      await begun;
      const taken = newest.once(job, REPLACE, () => work());
      await assert.rejects(former, isRevoked);
      const { ran, value } = await taken;
      assert.deepEqual([ran, value, working], [true, job, 0]);
      for (const client of [runner, newest]) assert.equal((await client.once(job, REPLACE, never)).reason, "done");
    });
    try {
      await Promise.all(replaced);
    } finally {
      await close();
    }
  });
}

testRuns("where nobody runs, the work is done, once for each key", async ({ one, two, native }) => {
  const { ran, value, token } = await one.once("deploy", { ...REPLACE, saveResult: true }, ({ owner }) => owner);
  assert.deepEqual([ran, value], [true, "one"]);
  const { holder, done } = await native.inspectRun("deploy", "live");
  assert.deepEqual([holder, done.owner, done.token], [null, "one", token]);
  const { reason, owner, token: former, result } = await two.once("deploy", REPLACE, never);
  assert.deepEqual([reason, owner, former, result], ["done", "one", token, "one"]);
  const again = await two.once("deploy", { ...REPLACE, evenIfDone: true }, (run) => run.token);
  assert.ok(again.ran && again.value > token);
});

testRuns("the newest of several runs, and the older ones step aside", async ({ one, two, native }) => {
  const { run } = await native.beginRun("deploy", DEPLOY);
  const first = one.once("deploy", REPLACE, never);
  await aborted(run.signal);
  const second = two.beginRun("deploy", REPLACE);
  assert.deepEqual(await first, { ran: false, reason: "replaced" });
  const newest = one.once("deploy", REPLACE, ({ owner }) => owner);
  assert.deepEqual(await second, { run: null, ran: false, reason: "replaced" });
  await assert.rejects(run.release(), isRevoked);
  assert.equal((await newest).value, "one");
});

testRuns("a runner that does not let go is waited for as long as asked", async ({ one, two, native }) => {
  const { run } = await native.beginRun("deploy", DEPLOY);
  const { holder, ...answer } = await one.beginRun("deploy", { ...REPLACE, wait: 1 });
  assert.deepEqual([answer, holder.owner, holder.token], [{ run: null, ran: false, reason: "running" }, "native", run.token]);
  await aborted(run.signal);
  assert.ok(isRevoked(run.signal.reason), "it was asked to end");
  assert.equal((await two.once("deploy", { ...REPLACE, wait: 2_000 }, never)).reason, "running");
  await assert.rejects(run.release(), isRevoked);
  assert.equal((await two.once("deploy", { ...REPLACE, wait: 60_000 }, () => 1)).value, 1);
});

testRuns("what a runner finishes in its last moments is older work", async ({ one, two, native }) => {
  const { run } = await native.beginRun("deploy", { ...DEPLOY, renewEvery: 25_000 });
  const newest = one.once("deploy", REPLACE, ({ token }) => token);
  await until(async () => (await native.inspect("deploy@live")).revoked);
  // It has not heard of that, so the store takes its completion.
  await run.finish();
  assert.ok((await newest).value > run.token);
  assert.equal((await two.once("deploy", REPLACE, never)).owner, "one");
});

testRuns("a runner of the same client is replaced as well", async ({ one }) => {
  const { run } = await one.beginRun("deploy", DEPLOY);
  const newest = one.once("deploy", REPLACE, ({ token }) => token);
  await aborted(run.signal);
  await assert.rejects(run.finish(), isRevoked);
  assert.ok((await newest).value > run.token);
});

testRuns("what contradicts a replacement is refused, as native code does", async ({ one, native }) => {
  for (const options of [{ maxAttempts: 2 }, { wait: 0 }]) {
    const asked = [one, native].map((client) => client.once("deploy", { ...REPLACE, ...options }, never).then(never, (error) => error));
    const [ours, theirs] = await Promise.all(asked);
    assert.ok(ours instanceof ConfigError && /a request that replaces the runner/.test(ours.message), inspect(ours));
    assert.equal(ours.message, theirs.message.replace(/^"deploy": /, ""));
  }
  await assert.rejects(one.once("d".repeat(1_013), REPLACE, never), /at most 1017 are allowed/);
  await assert.rejects(one.once("deploy", { ...DEPLOY, replace: 1 }, never), TypeError);
  // Without it they mean what they always do.
  assert.equal((await one.once("deploy", { ...DEPLOY, replace: false, maxAttempts: 2, wait: 0 }, () => 1)).value, 1);
});

/** A client of Webdis whose requests are told to `scene.hear`, which may answer them, and a native one of its Redis. */
async function heard(t) {
  const redis = await startRedis(t);
  const webdis = await startWebdis(t, redis.url);
  const scene = { hear: () => {} };
  const fetch = async (url, request) => {
    const text = `${url}${request.body === undefined ? "" : Buffer.from(request.body)}`;
    return (await scene.hear(text, request)) ?? globalThis.fetch(url, request);
  };
  const client = await connect(webdis.url, { ...SLOW, fetch, owner: "edge" });
  const native = await connectNative(redis.url, { ...SLOW, owner: "native" });
  t.after(() => Promise.all([client, native].map(close)));
  return Object.assign(scene, { client, native });
}

test("a signal that is aborted at any request leaves nothing locked", async (t) => {
  const scene = await heard(t);
  const { client, native } = scene;
  // The server gets to know the scripts.
  await client.once("warm", REPLACE, () => {});
  const reason = new Error("enough");
  for (const isRun of [false, true]) {
    let isAnswered = false;
    for (let last = 1; !isAnswered; last += 1) {
      const job = `deploy-${isRun}-${last}`;
      const { run: former } = isRun ? await native.beginRun(job, DEPLOY) : { run: undefined };
      const controller = new AbortController();
      let requests = 0;
      let goOn;
      let silent;
      scene.hear = (_, request) => {
        if ((requests += 1) !== last) return undefined;
        silent = request.signal;
        controller.abort(reason);
        return new Promise((resolve) => (goOn = resolve));
      };
      const asked = await client.beginRun(job, { ...REPLACE, wait: 1, signal: controller.signal }).catch((error) => error);
      assert.notEqual(silent?.aborted, true, "it does not wait for the answer");
      scene.hear = () => {};
      goOn?.();
      assert.equal(getEventListeners(controller.signal, "abort").length, 0);
      if (controller.signal.aborted && asked === reason) {
        await until(async () => (await native.inspect(`${job}@live@newest`)) === null);
        await former?.release().catch(() => {});
        await until(async () => (await native.inspect(`${job}@live`)) === null);
        continue;
      }
      isAnswered = true;
      assert.ok(last > 5, `${last} requests`);
      if (isRun) assert.equal(asked.reason, "running");
      else await asked.run.finish();
      await former?.release().catch(() => {});
    }
  }
});

test("a signal ends the wait for the runner, and keeps a call from its start", async (t) => {
  const { client, native } = await heard(t);
  const { run } = await native.beginRun("deploy", DEPLOY);
  const reason = new Error("enough");
  const isReason = (error) => error === reason;
  await assert.rejects(client.beginRun("deploy", { ...REPLACE, signal: AbortSignal.abort(reason) }), isReason);
  assert.deepEqual(await native.inspect("deploy@live@newest"), null);
  assert.equal((await native.inspectRun("deploy@live", "newest")).done, null, "it has no number");
  const controller = new AbortController();
  const asked = client.beginRun("deploy", { ...REPLACE, signal: controller.signal });
  await aborted(run.signal);
  controller.abort(reason);
  await assert.rejects(asked, isReason);
  await assert.rejects(run.release(), isRevoked);
  // An attempt that was under way may still be granted, and is let go then.
  assert.equal((await native.once("deploy", { ...DEPLOY, wait: 60_000 }, () => 1)).value, 1, "nobody waits for it");
});

test("a closed client begins nothing", async (t) => {
  const { client, native } = await heard(t);
  const { run } = await native.beginRun("deploy", DEPLOY);
  const asked = client.beginRun("deploy", REPLACE);
  const refused = assert.rejects(asked, ClosedError);
  await aborted(run.signal);
  await client.close();
  await refused;
  await assert.rejects(client.beginRun("deploy", REPLACE), ClosedError);
  await assert.rejects(run.release(), isRevoked);
});

test("work does not begin where the record of the newest request fails", async (t) => {
  const scene = await heard(t);
  const { client, native } = scene;
  const refuses = (text) => (text.includes("newest") ? new Response("no", { status: 403 }) : undefined);
  scene.hear = refuses;
  const isError = (words) => (error) => {
    assert.ok(error instanceof StoreRefusedError && !error.temporary && error.resource === "deploy@live", inspect(error));
    assert.ok(error.message.startsWith(`"deploy@live": the work is not begun: ${words}: `), error.message);
    return true;
  };
  await assert.rejects(client.once("deploy", REPLACE, never), isError("that this is the newest request cannot be written down"));
  // Once it asks for the run, it has its number.
  let hasNumber = false;
  scene.hear = (text) => {
    if (hasNumber && !text.includes("newest")) scene.hear = refuses;
    hasNumber ||= text.includes("newest");
  };
  await assert.rejects(client.once("deploy", REPLACE, never), isError("which request is the newest cannot be read"));
  assert.equal((await native.inspectRun("deploy", "live")).holder, null, "it is released");
  scene.hear = () => {};
  assert.equal((await client.once("deploy", REPLACE, () => 1)).value, 1);
});

/** The end of a request that takes these steps, with its answers and the slots that it has released. */
async function walked(steps, { slots = [], machine = {} } = {}) {
  const scene = { answers: [], released: [], disposed: 0 };
  const replacement = {
    next: (answer) => (scene.answers.push(answer), steps.shift()),
    [Symbol.dispose ?? Symbol.for("dispose")]: () => void (scene.disposed += 1),
  };
  const runs = { Replacement: { create: () => replacement }, readRun: () => ({ done: "it is done" }) };
  const fake = {
    now: () => ({}),
    read: async () => [],
    release: (slot) => void scene.released.push(slot),
    within: (ms, promise) => promise,
    ...machine,
  };
  const acquire = async () => {
    const slot = slots.shift();
    if (slot.isTooLate) replacing.giveUp();
    return slot;
  };
  const asked = { resource: "a@1", owner: "me", locked: { run: {}, wait: { tag: "forever" } }, signal: undefined };
  const replacing = new Replacing(fake, runs, { acquire, take: acquire }, "a@1@newest", asked);
  const ended = await replacing.ended();
  return { ...scene, ended };
}

const ASK = { tag: "ask", val: { evenIfDone: false, waitMs: 0n } };
const RECORD = { ttlMs: 10_000n, waitMs: 20_000n };
const held = (left) => ({ phase: "held", token: 7, remaining: () => left, until: async () => "released", isFree: true });
const mayPass = ({ tag, val }) => (tag === "failed" ? val.mayPass : tag);

test("a request that is wrong, or is not shown the run, takes nobody's place", async (t) => {
  const scene = await heard(t);
  const asked = [];
  scene.hear = (text) => (asked.push(text), new Response("no", { status: 403 }));
  await assert.rejects(scene.client.once("deploy", { ...REPLACE, ttl: 1 }, never), ConfigError);
  assert.deepEqual(asked, []);
  await assert.rejects(scene.client.once("deploy", REPLACE, never), StoreRefusedError);
  assert.ok(asked.length > 0 && !asked.some((text) => text.includes("newest")), inspect(asked));
});

test("the component decides, and its memory is freed", async () => {
  const granted = held(1_000);
  const begun = await walked([ASK, { tag: "begin" }], { slots: [granted] });
  assert.ok(begun.ended.slot === granted && begun.released.length === 0);
  const replaced = await walked([ASK, { tag: "replaced" }], { slots: [held(1_000)] });
  assert.deepEqual([replaced.ended, replaced.released.length], [{ isReplaced: true }, 1]);
  const unsettled = await walked([{ tag: "unsettled" }]);
  assert.match(unsettled.ended.failure.message, /^"a@1": too few nodes show which request is the newest$/);
  const failed = await walked([{ tag: "fail" }]);
  assert.match(failed.ended.failure.message, /^"a@1": the runner cannot be replaced$/);
  const done = await walked([{ tag: "done" }]);
  assert.deepEqual(done.ended, { completion: "it is done" });
  for (const { disposed } of [begun, replaced, unsettled, failed, done]) assert.equal(disposed, 1);
});

test("a lease that is lost before the work begins is let go, and the run asked for again", async () => {
  const failure = new LeaseLostError("late");
  const again = held(1_000);
  const lost = { ...held(0), failure };
  const { answers, ended } = await walked([ASK, { tag: "begin" }, ASK, { tag: "begin" }], { slots: [lost, again] });
  assert.deepEqual(answers.map(mayPass), ["looked", "granted", true, "granted"]);
  assert.equal(ended.slot, again);
});

test("the newest request is counted while its record is locked", async () => {
  const read = [{ tag: "applied" }, { tag: "unknown" }, { tag: "applied" }];
  const machine = { nonce: () => "the lock's", read: async () => read };
  const { answers, released } = await walked([{ tag: "count-newest", val: RECORD }, { tag: "replaced" }], { slots: [held(1_000)], machine });
  assert.deepEqual([answers.at(-1), released.length], [{ tag: "counted", val: { read, holder: "the lock's" } }, 1]);
});

test("a number that may be written is one", async () => {
  const finish = () => {
    throw new StoreUnavailableError("away");
  };
  const { answers, ended } = await walked([{ tag: "take-number", val: RECORD }, { tag: "fail" }], { slots: [held(1_000)], machine: { finish } });
  assert.deepEqual(answers.at(-1), { tag: "unconfirmed", val: { token: 7n } });
  assert.match(ended.failure.message, /cannot be written down: away/);
});

test("a lock that is granted just when nobody waits any more is let go", async () => {
  for (const step of [ASK, ...["take-number", "read-newest", "count-newest"].map((tag) => ({ tag, val: RECORD }))]) {
    const late = { ...held(1_000), isTooLate: true };
    const { released, disposed } = await walked([step], { slots: [late] });
    assert.deepEqual([released.length, released[0] === late, disposed], [1, true, 1], step.tag);
  }
});

test("what may pass is told from what does not", async () => {
  for (const [error, passes] of [
    [new StoreUnavailableError("away"), true],
    [new StoreRefusedError("no"), false],
    [new ClosedError("over"), false],
    [new TypeError("broken"), false],
  ]) {
    const revoke = () => Promise.reject(error);
    const { answers, ended } = await walked([{ tag: "end", val: { holder: "nonce" } }, { tag: "fail" }], { machine: { revoke } });
    assert.deepEqual(answers.map(mayPass), ["looked", passes], error.name);
    assert.equal(ended.failure, error);
  }
});
