// Elections of fake clients: they behave like those of the real client.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as leasehold from "leasehold";
import * as testing from "leasehold/testing";
import { until } from "./helpers/until.mjs";

const TTL = 30_000;

function two() {
  const clock = new testing.FakeClock();
  return { clock, client: testing.connect({ clock, owner: "me" }), rival: testing.connect({ clock, owner: "rival" }) };
}

const pairs = {
  fake: async () => two(),
  real: async () => ({
    client: await leasehold.connect("memory:testing-elections", { owner: "me" }),
    rival: await leasehold.connect("memory:testing-elections", { owner: "rival" }),
  }),
};

for (const [kind, pair] of Object.entries(pairs)) {
  test(`a candidate leads until it resigns: ${kind}`, async () => {
    const { client, rival } = await pair();
    const told = [];
    const onStart = async (lease) => {
      lease.check();
      told.push(lease.resource);
    };
    const onStop = async (error) => {
      assert.equal(await rival.tryAcquire("leader"), null, "it is held until the work has stopped");
      told.push(error);
    };
    const election = await client.elect("leader", { ttl: TTL, onStart, onStop });
    await until(() => told.length === 1);
    const { token } = await rival.inspect("leader");
    assert.deepEqual([election.token, election.resource, election.lastError], [token, "leader", null]);
    const other = await rival.elect("leader");
    assert.equal(other.token, null);
    await other.resign();
    await election.resign();
    assert.deepEqual([told, election.token], [["leader", null], null]);
    await (await rival.acquire("leader", { wait: 0 })).release();
    await assert.rejects(client.elect("leader", { ttl: 0 }), leasehold.ConfigError);
    await Promise.all([client.close(), rival.close()]);
    await assert.rejects(client.elect("leader"), leasehold.ClosedError);
  });
}

test("code can be tested for a lost election", async () => {
  const { clock, client, rival } = two();
  const told = [];
  const stand = (who, name) =>
    who.elect("leader", {
      onStart: () => void told.push(`${name} leads`),
      onStop: (error) => void told.push(`${name} stops: ${error && error.code}`),
    });
  const mine = await stand(client, "I");
  const theirs = await stand(rival, "they");
  await until(() => told.length === 1);
  client.lose("leader");
  await until(() => told.length === 3);
  assert.deepEqual([told, mine.token], [["I leads", "I stops: lost", "they leads"], null]);
  client.storeDown();
  clock.advance(2 * TTL);
  await until(() => told.length === 4);
  await until(() => mine.lastError instanceof leasehold.StoreUnavailableError);
  client.storeUp();
  // An acquisition that was under way tries again within a few seconds.
  clock.advance(10_000);
  await until(() => told.length === 5);
  assert.equal(told[3], "they stops: lost");
  const [first, second] = mine.token === null ? ["they", "I"] : ["I", "they"];
  assert.equal(told[4], `${first} leads`);
  const before = clock.now();
  await (first === "I" ? mine : theirs).resign();
  await until(() => told.length === 7);
  assert.equal(clock.now(), before);
  const [, last] = first === "I" ? [client, rival] : [rival, client];
  await last.close();
  await until(() => told.length === 8);
  assert.deepEqual(told.slice(5), [`${first} stops: null`, `${second} leads`, `${second} stops: not_owned`]);
  assert.deepEqual([mine.token, theirs.token], [null, null]);
});

for (const [kind, connectTwo] of Object.entries({
  fake: async () => {
    const store = new testing.FakeItemStore();
    return [testing.connectItems({ store }), testing.connectItems({ store, tries: 2 })];
  },
  real: async () => {
    const { connect } = await import("leasehold/cas");
    return [await connect("memory:testing-items"), await connect("memory:testing-items", { tries: 2 })];
  },
})) {
  test(`items behave alike: ${kind}`, async () => {
    const [items, few] = await connectTwo();
    const oneMore = (old) => Buffer.from(String(Number(old ?? 0) + 1));
    const shown = ({ value, version }) => [String(value), version];
    assert.deepEqual([await items.read("a"), await items.update("a", () => null)], [null, null]);
    assert.deepEqual(shown(await items.update("a", oneMore)), ["1", 1]);
    const interfere = async (old) => {
      await items.update("a", oneMore);
      return oneMore(old);
    };
    await assert.rejects(few.update("a", interfere), { name: "TooManyConflictsError", tries: 2, fate: "not_written", resource: "a" });
    assert.deepEqual(shown(await few.read("a")), ["3", 3]);
    for (const bad of ["", "a\nb"]) await assert.rejects(items.update(bad, oneMore), leasehold.ConfigError);
    await assert.rejects(items.update("a", () => Buffer.alloc((380 << 10) + 1)), { name: "ConfigError", message: /at most/ });
  });
}

test("others write first as often as told", async () => {
  const store = new testing.FakeItemStore();
  const items = testing.connectItems({ store });
  const seen = [];
  store.write("a", Buffer.from("theirs"));
  store.writeFirst("a", [Buffer.from("quicker"), Buffer.from("quickest")]);
  const { version } = await items.update("a", (old) => {
    seen.push(String(old));
    return Buffer.from("mine");
  });
  assert.deepEqual([version, seen], [4, ["theirs", "quicker", "quickest"]]);
  store.down();
  await assert.rejects(items.read("a"), { name: "StoreUnavailableError", fate: "not_written" });
  store.up();
  assert.equal(String((await items.read("a")).value), "mine");
});
