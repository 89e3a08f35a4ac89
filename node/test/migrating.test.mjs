// The modules of docs/migrating-node.md: code with node-redis, and what replaces it, on the same key.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { LockBusyError, connect } from "leasehold";
import { createClient } from "redis";
import { startRedis } from "./helpers/servers.mjs";
import { undo } from "./helpers/undo.mjs";

/** The modules of the page, written beside the package, which they import by name. */
async function modules(t) {
  const page = readFileSync(join(process.env.LEASEHOLD_SOURCE, "docs", "migrating-node.md"), "utf8");
  const folder = mkdtempSync(fileURLToPath(new URL("./migrating-", import.meta.url)));
  undo(t, () => rmSync(folder, { recursive: true, force: true }));
  const imported = {};
  for (const [, name, code] of page.matchAll(/^```js\n\/\/ (\S+)\n(.*?)^```$/gms)) {
    writeFileSync(join(folder, name), code);
    imported[name] = await import(join(folder, name));
  }
  return imported;
}

test("SET NX PX by node-redis and ioredis, and what replaces it, exclude each other", async (t) => {
  const { "before.mjs": before, "after.mjs": after } = await modules(t);
  const { url } = await startRedis(t);
  const redis = await createClient({ url }).connect();
  undo(t, () => redis.destroy());
  const ioredis = new Redis(url);
  undo(t, () => ioredis.disconnect());
  const locks = await connect(url);
  undo(t, () => locks.close());

  const work = async (signal, token) => {
    assert.ok(!signal.aborted && Number.isSafeInteger(token));
    await assert.rejects(before.charge(redis, 42, () => assert.fail("both")), { message: "busy" });
    assert.equal(await ioredis.set("invoice/42", "mine", "PX", 30_000, "NX"), null);
    return "ours";
  };
  assert.equal(await after.charge(locks, 42, work), "ours");
  const theirs = async () => {
    await assert.rejects(after.charge(locks, 42, () => assert.fail("both")), LockBusyError);
    assert.equal((await locks.inspect("invoice/42")).foreign, true);
    return "theirs";
  };
  assert.equal(await before.charge(redis, 42, theirs), "theirs");
  assert.equal(await after.charge(locks, 42, () => "ours again"), "ours again");
});
