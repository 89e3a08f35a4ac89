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

const { Client } = await part("client");

const SLOW = { requestTimeout: 5_000 };
/** A deployment whose runner hears soon that it is replaced. A quorum allows no longer ttl. */
const DEPLOY = { key: "live", ttl: 50_000, renewEvery: 200 };
const REPLACE = { ...DEPLOY, replace: true };
const never = () => assert.fail("it must not run");
const isRevoked = (error) => error.name === "LeaseLostError" && error.reason === "revoked";

/** It takes seconds to start, and each test uses other names. It ends with the last test, so it is started before the first. */
const dynamodb = await startDynamodb({ after });
Object.assign(process.env, dynamodb.env);

/** Two clients of the edge and a native one of a store. */
async function clients(t, start) {
  const { url, native, credentials, quorumId } = await start(t);
  const settings = { ...SLOW, quorumId };
  const edge = (owner) => connect(url, { ...settings, credentials, owner });
  const made = [await edge("one"), await edge("two"), await connectNative(native, { ...settings, owner: "native" })];
  return { one: made[0], two: made[1], native: made[2], close: () => Promise.all(made.map((client) => client.close())) };
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
  const { holder, ...answer } = await one.beginRun("deploy", { ...REPLACE, wait: 0.5 });
  assert.deepEqual([answer, holder.owner, holder.token], [{ run: null, ran: false, reason: "running" }, "native", run.token]);
  await aborted(run.signal);
  assert.ok(isRevoked(run.signal.reason), "it was asked to end");
  assert.equal((await two.once("deploy", { ...REPLACE, wait: 2_000 }, never)).reason, "running");
  await assert.rejects(run.release(), isRevoked);
  assert.equal((await two.once("deploy", { ...REPLACE, wait: 60_000 }, () => 1)).value, 1);
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

/** A client of Webdis whose requests are told to `scene.hear`, by their number and text, and a native one of its Redis. */
async function heard(t, settings = SLOW) {
  const redis = await startRedis(t);
  const webdis = await startWebdis(t, redis.url);
  const scene = { hear: () => {} };
  const fetch = async (url, request) => {
    scene.hear(`${url}${request.body === undefined ? "" : Buffer.from(request.body)}`);
    return globalThis.fetch(url, request);
  };
  const client = await connect(webdis.url, { ...settings, fetch, owner: "edge" });
  const native = await connectNative(redis.url, { ...SLOW, owner: "native" });
  t.after(() => Promise.all([client.close().catch(() => {}), native.close()]));
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
      scene.hear = () => void ((requests += 1) === last && controller.abort(reason));
      const asked = await client.beginRun(job, { ...REPLACE, wait: 1, signal: controller.signal }).catch((error) => error);
      scene.hear = () => {};
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
  assert.equal((await native.once("deploy", DEPLOY, () => 1)).value, 1, "nobody waits for it");
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
});

test("work does not begin where the record of the newest request fails", async (t) => {
  const scene = await heard(t, { requestTimeout: 200 });
  const { client, native } = scene;
  const down = (text) => {
    if (text.includes("newest")) throw new TypeError("fetch failed");
  };
  scene.hear = down;
  const unwritten = await client.once("deploy", { ...REPLACE, wait: 1 }, never).then(never, (error) => error);
  assert.ok(unwritten instanceof StoreUnavailableError && unwritten.temporary, inspect(unwritten));
  assert.match(unwritten.message, /^"deploy@live": the work is not begun: that this is the newest request cannot be written down: /);
  // Once it asks for the run, it has its number.
  let hasNumber = false;
  scene.hear = (text) => {
    if (hasNumber && !text.includes("newest")) scene.hear = down;
    hasNumber ||= text.includes("newest");
  };
  const unread = await client.once("deploy", { ...REPLACE, wait: 1 }, never).then(never, (error) => error);
  assert.ok(unread instanceof StoreUnavailableError, inspect(unread));
  assert.match(unread.message, /^"deploy@live": the work is not begun: which request is the newest cannot be read: /);
  assert.equal((await native.inspectRun("deploy", "live")).holder, null);
  scene.hear = () => {};
  assert.equal((await client.once("deploy", REPLACE, () => 1)).value, 1);
});
