// Results: what the first caller of a run leaves for those who come later.

import assert from "node:assert/strict";
import { test } from "node:test";

import { connect, noResult, ResultNotKeptError } from "leasehold";
import { folder, sqlite } from "./helpers/folder.mjs";
import { startRedis } from "./helpers/servers.mjs";

const TTL = 20_000;

const stores = {
  memory: async () => ["memory:results"],
  sqlite: async (t) => [sqlite(t)],
  redis: async (t) => [(await startRedis(t)).url],
  quorum: async (t) => {
    const made = folder(t);
    return [["a", "b", "c"].map((node) => `sqlite:${made}/${node}.db`), { createQuorum: true, requestTimeout: 1_000 }];
  },
};

function testEach(name, body) {
  for (const [store, make] of Object.entries(stores)) {
    test(`${name}: ${store}`, async (t) => {
      const [url, settings] = await make(t);
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

testEach("who comes later gets the result", async (one, two) => {
  const bytes = new Uint8Array(4_096).map((_, at) => at);
  const values = [null, true, 7, "é", [1, { a: null }], new Uint8Array(), bytes];
  for (const [n, value] of values.entries()) {
    const key = `later-${n}`;
    const { run } = await one.beginRun("job", { key, ttl: TTL });
    await run.finish({ result: value });
    const outcome = await two.once("job", { key }, () => assert.fail("it is done"));
    assert.deepEqual([outcome.ran, outcome.reason], [false, "done"]);
    const { done } = await two.inspectRun("job", key);
    for (const { result, began } of [outcome, done]) {
      if (value instanceof Uint8Array) assert.ok(result instanceof Uint8Array && Buffer.compare(result, value) === 0);
      else assert.deepEqual(result, value);
      assert.ok(began > 1.7e12 && began <= Date.now() + 5_000);
    }
  }
});

testEach("a run without a result has none", async (one, two) => {
  assert.deepEqual((await one.once("job", { key: "plain", ttl: TTL }, () => "value")).value, "value");
  const outcome = await two.once("job", { key: "plain" }, () => assert.fail("it is done"));
  assert.ok(outcome.result === noResult && !("began" in outcome));
});

testEach("both callers get the same value", async (one, two) => {
  const saved = { key: "saved", ttl: TTL, saveResult: true };
  const first = await one.once("job", saved, () => ({ at: new Date(0), nothing: undefined }));
  const second = await two.once("job", saved, () => assert.fail("it is done"));
  assert.deepEqual(first.value, { at: "1970-01-01T00:00:00.000Z" });
  assert.deepEqual(second.result, first.value);
  const empty = { ...saved, key: "empty" };
  assert.equal((await one.once("job", empty, () => {})).value, null);
  assert.equal((await two.once("job", empty, () => assert.fail("it is done"))).result, null);
});

testEach("a result that cannot be kept is told, and the work counts", async (one, two) => {
  const cyclic = {};
  cyclic.self = cyclic;
  const unfit = [
    [new Uint8Array(4_097), /result has 4097 bytes; at most 4096 are allowed/],
    [{ deep: [Number.NaN] }, /JSON has no number for NaN/],
    [1n, /neither bytes nor a value that JSON can hold/],
    [() => {}, /JSON cannot hold a function/],
    [cyclic, /neither bytes nor a value that JSON can hold/],
  ];
  for (const [n, [value, words]] of unfit.entries()) {
    const saved = { key: `unfit-${n}`, ttl: TTL, saveResult: true };
    await assert.rejects(one.once("job", saved, () => value), (error) => {
      assert.ok(error instanceof ResultNotKeptError && error.code === "result_not_kept" && !error.temporary);
      assert.match(error.message, words);
      return true;
    });
    const outcome = await two.once("job", saved, () => assert.fail("it is done"));
    assert.ok(outcome.reason === "done" && outcome.result === noResult);
  }
});
