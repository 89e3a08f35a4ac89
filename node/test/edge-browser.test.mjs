// `leasehold/edge` in a web worker of a browser, through a proxy that allows its origin.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { told } from "./helpers/chromium.mjs";
import { folder } from "./helpers/edge.mjs";
import { startAzure, startRedis, startWebdis } from "./helpers/servers.mjs";
import { startProxy } from "./helpers/proxy.mjs";
import { checkWork, sources } from "./helpers/worker.mjs";

test("a worker in a browser holds a lock, loses one, and is seen by native code", async (t) => {
  const redis = await startRedis(t);
  const webdis = await startWebdis(t, redis.url);
  const azure = await startAzure(t);
  Object.assign(process.env, azure.env);
  const [{ url }, behind] = await Promise.all([webdis.url, azure.url].map((url) => startProxy(t, url)));
  const stores = [{ url }, { url: behind.url, credentials: azure.credentials }];
  const seen = await told(async (path) => {
    if (path === "stores.json") return JSON.stringify(stores);
    const [place, ...rest] = path.split("/");
    if (place === "leasehold") return readFile(join(folder, "..", ...rest));
    return readFile(new URL(place === "worker" ? rest.join("/") : path, sources));
  });
  await checkWork(seen, [redis.url, azure.url], "browser");
});
