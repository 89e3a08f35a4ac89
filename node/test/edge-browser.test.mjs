// `leasehold/edge` in a web worker of a browser, through a proxy that lets its pages in.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "leasehold";
import { told } from "./helpers/chromium.mjs";
import { folder } from "./helpers/edge.mjs";
import { startProxy } from "./helpers/proxy.mjs";
import { startRedis } from "./helpers/redis.mjs";
import { startWebdis } from "./helpers/webdis.mjs";

test("a worker in a browser holds a lock, loses one, and is seen by native code", async (t) => {
  const redis = await startRedis(t);
  const webdis = await startWebdis(t, redis.url);
  const proxy = await startProxy(t, webdis.url);
  const { failed, ...seen } = await told(async (path) => {
    if (path === "store.json") return JSON.stringify({ url: proxy.url });
    const [place, ...rest] = path.split("/");
    if (place === "leasehold") return readFile(join(folder, "..", ...rest));
    return readFile(new URL(place === "browser" ? path : `browser/${path}`, import.meta.url));
  });
  assert.equal(failed, undefined);
  assert.ok(seen.token > 0 && seen.again > seen.token);
  assert.ok(seen.remaining > 0);
  assert.deepEqual([seen.tried, seen.lost], [null, true]);
  const client = await connect(redis.url);
  assert.equal((await client.inspect("held")).owner, "browser");
  await client.close();
});
