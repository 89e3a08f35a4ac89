import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "leasehold";
import { run, start } from "./helpers/child.mjs";
import { sqlite } from "./helpers/folder.mjs";
import { startRedis } from "./helpers/servers.mjs";
import { COMMAND } from "./helpers/windows.mjs";

async function counted(url, program, ...extra) {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-node-"));
  try {
    const file = join(folder, "count");
    writeFileSync(file, "0");
    const ends = await program(file, ...extra);
    for (const end of ends) assert.deepEqual([end.code, end.stderr], [0, ""]);
    return Number(readFileSync(file, "utf8"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

for (const store of ["sqlite", "redis"]) {
  test(`two processes count without losing any: ${store}`, async (t) => {
    const url = store === "redis" ? (await startRedis(t)).url : sqlite(t);
    const program = (file) => Promise.all([run("count.mjs", url, file, 20), run("count.mjs", url, file, 20)]);
    assert.equal(await counted(url, program), 40);
  });
}

test("worker threads count without losing any, in one process", async (t) => {
  const url = sqlite(t);
  assert.equal(await counted(url, async (file) => [await run("workers.mjs", url, file)]), 40);
});

test("the processes of a cluster count without losing any", async (t) => {
  const url = sqlite(t);
  assert.equal(await counted(url, async (file) => [await run("cluster.mjs", url, file)]), 40);
});

for (const [way, code] of [["return", 0], ["exit", 3], ["throw", 1]]) {
  test(`a process releases its leases when it exits: ${way}`, async (t) => {
    const url = sqlite(t);
    const end = await run("hold.mjs", url, way);
    assert.equal(end.code, code, end.stderr);
    const client = await connect(url);
    assert.equal(await client.inspect("held"), null);
    await client.close();
  });
}

test("a held lease does not keep the process alive, and one that is awaited does", async (t) => {
  const url = sqlite(t);
  const rival = await connect(url);
  const lease = await rival.acquire("held", { ttl: 600_000 });
  const waiting = start("hold.mjs", url, "return");
  await lease.release();
  // It has waited; otherwise its status would be 13: unsettled top-level await.
  const end = await waiting.ended;
  assert.deepEqual([end.code, end.stdout], [0, "held\n"]);
  await rival.close();
});

test("a process exits in time although its store is gone", async (t) => {
  const redis = await startRedis(t);
  const holder = start("hold.mjs", redis.url, "wait");
  await holder.until("held");
  await redis.stop();
  holder.child.stdin.end();
  const end = await holder.ended;
  assert.deepEqual([end.code, end.stderr], [0, ""]);
});

test("terminated workers free their locks and do not affect others", async (t) => {
  const end = await run("terminate.mjs", sqlite(t));
  assert.deepEqual([end.code, end.stdout, end.stderr], [0, "free\n", ""]);
});

test("acquisitions leave nothing behind", async () => {
  const end = await run("flat.mjs");
  assert.deepEqual([end.code, end.stderr], [0, ""], end.stdout);
});

test("the command is there", COMMAND, async (t) => {
  const end = await run("command.mjs", sqlite(t));
  assert.deepEqual([end.code, end.stderr], [0, ""], end.stdout);
});
