// Uses a store on this thread's event loop, and ends in the middle: store, way of ending.

import { Worker, isMainThread, parentPort, threadId, workerData } from "node:worker_threads";
import { fileURLToPath } from "node:url";

const [url, way] = isMainThread ? process.argv.slice(2) : workerData;

async function use() {
  // Another runtime that loads addons, as far as the package can see.
  if (way === "elsewhere") {
    Object.defineProperty(process, "versions", { value: { ...process.versions, electron: "1.0.0" } });
  }
  const { connect } = await import("leasehold");
  const client = await connect(url);
  for (let turn = 0; turn < 20; turn++) {
    const lease = await client.acquire(`${isMainThread} ${turn}`, { ttl: 30_000 });
    await lease.release();
  }
  return client;
}

if (isMainThread && way.startsWith("worker")) {
  const workers = Array.from({ length: 2 }, () => new Worker(fileURLToPath(import.meta.url), { argv: [], workerData: [url, way] }));
  await Promise.all(workers.map((worker) => new Promise((resolve, reject) => {
    worker.once("error", reject);
    worker.once("exit", resolve);
    if (way === "worker, terminated") worker.once("message", () => worker.terminate());
  })));
  console.log("done");
} else {
  const client = await use();
  // Each thread has names of its own: two that hold some of them and wait for the rest would wait forever.
  const waiting = Array.from({ length: 100 }, (_, n) => client.acquire(`${threadId} ends ${n}`, { ttl: 1_000 }));
  parentPort?.postMessage("begun");
  console.log("done");
  if (way === "exit") process.exit(0);
  // A worker that is terminated goes no further.
  if (way === "worker, terminated") await new Promise((resolve) => setTimeout(resolve, 60_000));
  await Promise.all(waiting);
  if (!way.startsWith("worker")) console.log("connections", await connections());
  await client.close();
}

/** The connections of this process: those of the store that are not this one's own. */
async function connections() {
  const { Redis } = await import("ioredis");
  const redis = new Redis(url);
  const list = await redis.client("LIST", "TYPE", "normal");
  redis.disconnect();
  return list.trim().split("\n").length - 1;
}
