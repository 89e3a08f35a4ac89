// `leasehold/edge` in a web worker of a browser, through a proxy that allows its origin.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { told } from "./helpers/chromium.mjs";
import { folder } from "./helpers/edge.mjs";
import { startProxy } from "./helpers/proxy.mjs";
import { startRedis } from "./helpers/redis.mjs";
import { startWebdis } from "./helpers/webdis.mjs";
import { checkWork, sources } from "./helpers/worker.mjs";

test("a worker in a browser holds a lock, loses one, and is seen by native code", async (t) => {
  const redis = await startRedis(t);
  const webdis = await startWebdis(t, redis.url);
  const proxy = await startProxy(t, webdis.url);
  const seen = await told(async (path) => {
    if (path === "store.json") return JSON.stringify({ url: proxy.url });
    const [place, ...rest] = path.split("/");
    if (place === "leasehold") return readFile(join(folder, "..", ...rest));
    return readFile(new URL(place === "worker" ? rest.join("/") : path, sources));
  });
  await checkWork(seen, redis.url, "browser");
});
