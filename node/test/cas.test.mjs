// Compare-and-set: updates of items without a lock.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { ConfigError, StoreUnavailableError, TooManyConflictsError } from "leasehold";
import * as cas from "leasehold/cas";
import { sqlite } from "./helpers/folder.mjs";
import { startProxy } from "./helpers/proxy.mjs";
import { startRedis, startWebdis } from "./helpers/servers.mjs";

const { connect } = cas;
const PATIENT = { tries: 1_000 };
const oneMore = (old) => Buffer.from(String(Number(old ?? 0) + 1));
const shown = (item) => item && [item.value.toString(), item.version];

test("import and require give the same", () => {
  const required = createRequire(import.meta.url)("leasehold/cas");
  for (const name of Object.keys(required)) assert.equal(required[name], cas[name], name);
});

for (const store of ["memory", "sqlite", "redis"]) {
  test(`${store}: an item is made, changed, left and read`, async (t) => {
    const url = store === "memory" ? "memory:node-items" : store === "sqlite" ? sqlite(t) : (await startRedis(t)).url;
    const [items, others] = await Promise.all([connect(url, PATIENT), connect(url, { tries: 2 })]);
    assert.equal(await items.read("a"), null);
    assert.equal(await items.update("a", () => null), null);
    assert.equal(await items.read("a"), null);
    const first = await items.update("a", (old) => (old === null ? new Uint8Array([0, 255]) : null));
    assert.deepEqual([[...first.value], first.version], [[0, 255], 1]);
    assert.deepEqual(await others.read("a"), first);
    await Promise.all(Array.from({ length: 5 }, () => items.update("counter", async (old) => oneMore(old))));
    assert.deepEqual(shown(await items.read("counter")), ["5", 5]);

    const interfere = async (old) => {
      await items.update("counter", oneMore);
      return oneMore(old);
    };
    await assert.rejects(others.update("counter", interfere), (error) => {
      assert.ok(error instanceof TooManyConflictsError);
      assert.deepEqual([error.code, error.tries, error.fate], ["too_many_conflicts", 2, "not_written"]);
      assert.deepEqual([error.resource, error.temporary], ["counter", true]);
      return true;
    });
    assert.deepEqual(shown(await items.read("counter")), ["7", 7]);
  });
}

test("what a function throws passes as it is, and nothing is written", async () => {
  const items = await connect("memory:");
  const reason = new RangeError("mine");
  const isReason = (error) => error === reason;
  await assert.rejects(items.update("a", () => { throw reason; }), isReason);
  await assert.rejects(items.update("a", () => Promise.reject(reason)), isReason);
  await assert.rejects(items.update("a", () => "text"), TypeError);
  await assert.rejects(items.update("a"), TypeError);
  for (const bad of ["", "a\nb"]) await assert.rejects(items.update(bad, oneMore), ConfigError);
  const tooLarge = { name: "ConfigError", fate: "not_written", tries: 1 };
  await assert.rejects(items.update("a", () => new Uint8Array((380 << 10) + 1)), tooLarge);
  assert.equal(await items.read("a"), null);
  const odd = await connect("memory:", { tries: 0.5 });
  await assert.rejects(odd.update("a", oneMore), ConfigError);
  await assert.rejects(connect("memory:", { trys: 1 }), TypeError);
  await assert.rejects(connect(["memory:"]), TypeError);
  await assert.rejects(connect("redis://a redis://b"), ConfigError);
  await assert.rejects(connect("redis://127.0.0.1:1"), StoreUnavailableError);
});

test("a write whose answer is lost is applied once", async (t) => {
  const redis = await startRedis(t);
  const { url } = await startWebdis(t, redis.url);
  const proxy = await startProxy(t, url);
  const [items, direct] = await Promise.all([connect(proxy.url), connect(url)]);
  await items.update("counter", oneMore);
  let asked = 0;
  const lose = (old) => {
    asked += 1;
    proxy.fault = "answer lost";
    setImmediate(function mend() {
      if (proxy.broken === 0) return setTimeout(mend, 1);
      proxy.fault = undefined;
    });
    return oneMore(old);
  };
  assert.deepEqual(shown(await items.update("counter", lose)), ["2", 2]);
  assert.deepEqual(shown(await direct.read("counter")), ["2", 2]);
  assert.equal(asked, 1);
});

const COUNTER = `
  import { connect } from "leasehold/cas";
  const items = await connect(process.argv[1], { tries: 1000 });
  for (;;) {
    await items.update("counter", (old) => Buffer.from(String(Number(old ?? 0) + 1)));
    console.log("counted");
  }
`;

test("a process that is killed stops nobody and loses nothing", async (t) => {
  const { url } = await startRedis(t);
  const items = await connect(url, PATIENT);
  const other = spawn(process.execPath, ["--input-type=module", "-e", COUNTER, url], { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(other, "exit");
  t.after(() => other.kill("SIGKILL"));
  let said = 0;
  for await (const line of createInterface({ input: other.stdout })) {
    assert.equal(line, "counted");
    await items.update("counter", oneMore);
    if (++said === 5) break;
  }
  other.kill("SIGKILL");
  await exited;
  const last = await items.update("counter", oneMore);
  assert.equal(Number(last.value), last.version);
  assert.ok(last.version >= 11, String(last.version));
});
