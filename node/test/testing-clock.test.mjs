// The clock of leasehold/testing: who moves it, what happens in which order, and the faults of its store.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { setImmediate as turn, setTimeout as pause } from "node:timers/promises";
import { ConfigError, LeaseLostError, LockTimeoutError, StoreUnavailableError, observe } from "leasehold";
import * as testing from "leasehold/testing";

const TTL = 30_000;
const HOUR = 3_600_000;

function two(options) {
  const clock = new testing.FakeClock(options);
  return { clock, client: testing.connect({ clock, owner: "me" }), rival: testing.connect({ clock, owner: "rival" }) };
}

/** Many turns of the loop, in which a clock that somebody moves would go far. */
async function idle() {
  for (let n = 0; n < 200; n++) await turn();
  await pause(5);
}

async function until(condition) {
  while (!condition()) await turn();
}

test("a call that is awaited moves the clock as far as it waits", async () => {
  const { clock, client, rival } = two();
  await client.acquire("job", { ttl: TTL });
  assert.equal(clock.now(), 0, "nobody had to wait");
  await assert.rejects(rival.acquire("job", { wait: 10_000 }), LockTimeoutError);
  assert.equal(clock.now(), 10_000);
  const once = await client.acquire("once", { ttl: TTL, renew: false });
  assert.ok((await rival.acquire("once", { wait: 2 * TTL })).token > once.token);
  assert.ok(clock.now() > 10_000 + TTL - 1_000 && clock.now() < 10_000 + 2 * TTL);
});

test("each clock moves by itself, and has a store of its own", async () => {
  const worlds = [two(), two()];
  const wait = async ({ client, rival }, n) => {
    await client.acquire("job", { wait: 0 });
    await assert.rejects(rival.acquire("job", { wait: 1_000 * (n + 1) }), LockTimeoutError);
  };
  await Promise.all(worlds.map(wait));
  assert.deepEqual(worlds.map(({ clock }) => clock.now()), [1_000, 2_000]);
});

test("a held lease, its signal and a candidacy move nothing", async () => {
  const { clock, client, rival } = two();
  const lease = await client.acquire("job", { ttl: TTL });
  const lost = new Promise((resolve) => lease.signal.addEventListener("abort", () => resolve(clock.now())));
  const elections = [await client.elect("leader"), await rival.elect("leader")];
  const shards = await client.shards("mail", { count: 2 });
  await until(() => elections[0].token !== null && shards.held.length === 2);
  await idle();
  assert.deepEqual([clock.now(), elections[1].token, lease.signal.aborted], [0, null, false]);
  clock.storeDown();
  clock.advance(HOUR);
  assert.ok((await lost) <= TTL, "the listener was called at the time of the loss");
  assert.equal(clock.now(), HOUR);
});

test("no clock moves for the end of callbacks while one of them runs", async () => {
  const { clock, client } = two();
  const seen = [];
  let end;
  const onStop = async () => {
    seen.push("stops");
    await new Promise((resolve) => (end = resolve));
    await client.acquire("other", { wait: 0 });
    seen.push("stopped");
  };
  const election = await client.elect("leader", { onStop });
  await until(() => election.token !== null);
  const resigned = election.resign();
  await until(() => end !== undefined);
  await idle();
  assert.deepEqual([seen, clock.now()], [["stops"], 0]);
  end();
  await resigned;
  assert.deepEqual([seen, clock.now(), await client.inspect("leader")], [["stops", "stopped"], 0, null]);
});

test("shards go on when a callback of one of them ends", async () => {
  const { clock, client } = two();
  const [gains, losses] = [[], []];
  const into = (ends) => () => new Promise((resolve) => ends.push(resolve));
  const shards = await client.shards("mail", { count: 1, onGain: into(gains), onLoss: into(losses) });
  await until(() => gains.length > 0);
  const stopped = shards.stop();
  for (const ends of [gains, losses]) {
    await until(() => ends.length > 0);
    await idle();
    ends.pop()();
  }
  await stopped;
  assert.deepEqual([clock.now(), await client.inspect("mail#shard0")], [0, null]);
});

test("a revoked lease whose work has ended is free for a candidate", async () => {
  const { clock, client, rival } = two();
  const lease = await client.acquire("leader", { ttl: TTL });
  const election = await rival.elect("leader");
  await client.revoke("leader", lease.token);
  clock.advance(TTL / 2);
  assert.equal(lease.signal.reason.reason, "revoked");
  await idle();
  assert.equal(election.token, null);
  await assert.rejects(lease.release(), LeaseLostError);
  await until(() => election.token !== null);
});

test("a release of an election whose store is down takes its time", async () => {
  const { clock, client } = two();
  const election = await client.elect("leader");
  await until(() => election.token !== null);
  clock.storeDown();
  await election.resign();
  assert.ok(clock.now() > 0 && clock.now() <= TTL);
});

test("a callback may wait by the clock itself", async () => {
  const { clock, client, rival } = two();
  const held = await rival.acquire("part", { ttl: TTL, renew: false });
  const told = [];
  const onStart = async () => {
    told.push("starts");
    const part = await client.acquire("part", { wait: 2 * TTL });
    told.push(part.token > held.token);
  };
  const election = await client.elect("leader", { onStart });
  await until(() => told.length === 2);
  assert.deepEqual([told, election.token !== null], [["starts", true], true]);
  assert.ok(clock.now() > TTL - 1_000);
});

test("what happens has an order, and the same seed has the same course", async () => {
  const story = async (seed) => {
    const { clock, client, rival } = two({ seed });
    const told = [];
    const tell = (what) => void told.push(`${Math.round(clock.now())}: ${what}`);
    const stand = (who, name) => who.elect("leader", { onStart: () => tell(`${name} leads`), onStop: () => tell(`${name} stops`) });
    const lease = await client.acquire("job", { ttl: TTL, renew: false });
    lease.signal.addEventListener("abort", () => tell("the lease is lost"));
    await stand(client, "one");
    await until(() => told.length === 1);
    await stand(rival, "two");
    client.lose("leader");
    tell("the test goes on");
    await until(() => told.length === 4);
    clock.advance(TTL);
    await client.acquire("contended", { ttl: TTL, renew: false });
    const { token } = await rival.acquire("contended");
    return [told, token, clock.now()];
  };
  const [told, token, now] = await story(1);
  assert.deepEqual(told.slice(0, 4), ["0: one leads", "0: the test goes on", "0: one stops", "0: two leads"]);
  assert.match(told[4], /^29\d+: the lease is lost$/);
  assert.deepEqual([told, token, now], await story(1));
  assert.notDeepEqual([told, token, now], await story(2));
});

test("one step after the other", async () => {
  const { clock, client } = two();
  assert.equal(clock.step(), false, "nothing is ever due");
  const lease = await client.acquire("job", { ttl: TTL });
  clock.settle();
  const times = [];
  for (let n = 0; n < 5; n++) {
    assert.equal(clock.step(), true);
    times.push(clock.now());
  }
  assert.ok(times[0] > 0 && times[0] < TTL && times[4] > TTL, String(times));
  assert.ok(!lease.signal.aborted);
});

test("a wait that nothing ends is an error, as long as nobody else's may end", async () => {
  const { clock, client, rival } = two();
  await client.acquire("job");
  const endless = rival.acquire("job");
  await assert.rejects(rival.acquire("job", { wait: 2 * HOUR }), LockTimeoutError);
  assert.ok(clock.now() >= 2 * HOUR);
  await assert.rejects(endless, (error) => error instanceof ConfigError && /^this wait never ends/.test(error.message));
  const changes = client.watch("job");
  await changes.next();
  await assert.rejects(changes.next(), /never ends/);
  assert.ok((await client.inspect("job")).owner === "me" && clock.now() < 4 * HOUR);
});

test("a request that was served counts, though its answer is lost", async () => {
  const { clock, client, rival } = two();
  clock.loseReply();
  const lease = await client.acquire("job", { wait: 5_000 });
  assert.equal((await rival.inspect("job")).token, lease.token);
  clock.loseReply();
  await lease.release();
  assert.equal(await rival.inspect("job"), null);
});

test("a slow store costs time, and one that is too slow is unavailable", async () => {
  const { clock, client, rival } = two();
  clock.late(100);
  const [one, other] = await Promise.all([client.acquire("a", { ttl: TTL }), rival.acquire("b", { ttl: TTL })]);
  assert.equal(clock.now(), 100, "both were under way at once");
  await Promise.all([one.release(), other.release()]);
  clock.late(60_000);
  await assert.rejects(client.acquire("a", { wait: 5_000 }), StoreUnavailableError);
  clock.late(0);
  await client.acquire("c", { wait: 0 });
  assert.throws(() => clock.late(-1), ConfigError);
  assert.throws(() => clock.late("1"), TypeError);
});

test("a lost lease is free before its holder hears of it", async () => {
  const { client, rival } = two();
  const lease = await client.acquire("job");
  const taking = new Promise((resolve) => lease.signal.addEventListener("abort", () => resolve(rival.tryAcquire("job"))));
  client.lose("job");
  assert.ok((await taking).token > lease.token);
  assert.throws(() => lease.check(), LeaseLostError);
  assert.throws(() => client.lose(""), ConfigError);
});

test("settings are those of a real client", async () => {
  const clock = new testing.FakeClock();
  const client = testing.connect({ clock, session: "worker-7" });
  await client.acquire("job");
  assert.deepEqual([(await client.inspect("job")).owner, client.stores], ["fake", ["test:"]]);
  assert.deepEqual((await client.sessions()).map(({ label }) => label), ["worker-7"]);
  for (const wrong of [{ quorumId: "a" }, { createQuorum: true }, { driftPpm: 1 }, { owner: "a\nb" }]) {
    assert.throws(() => testing.connect({ clock, ...wrong }), ConfigError);
  }
  assert.throws(() => testing.connect({ clock, url: "memory:" }), TypeError);
  assert.throws(() => new testing.FakeClock({ seed: 0.5 }), ConfigError);
  assert.throws(() => new testing.FakeClock({ seed: "a" }), TypeError);
});

test("observers hear of it", async () => {
  const heard = [];
  const stop = observe({ level: "trace", event: ({ event }) => void heard.push(event) });
  const { client } = two();
  await (await client.acquire("observed")).release();
  stop();
  assert.ok(heard.length > 0);
});

test("the process of a test ends though a candidate stands", () => {
  const program = `
    import * as testing from "leasehold/testing";
    const client = testing.connect();
    const election = await client.elect("leader", { onStart: () => console.log("leads") });
    await client.shards("mail");
    await client.acquire("job", { wait: 0 });
  `;
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8", timeout: 60_000 });
  assert.deepEqual([status, stdout, stderr], [0, "leads\n", ""]);
});
