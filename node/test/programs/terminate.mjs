// Terminates workers in the middle of their work: store.

import { once } from "node:events";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";
import { connect } from "leasehold";

if (isMainThread) {
  const url = process.argv[2];
  const client = await connect(url, { requestTimeout: 10_000 });
  for (let n = 0; n < 3; n++) {
    const worker = new Worker(new URL(import.meta.url), { workerData: url });
    await once(worker, "message");
    await worker.terminate();
  }
  await (await client.acquire("held", { ttl: 600_000 })).release();
  await (await client.acquire("election", { ttl: 600_000 })).release();
  console.log("free");
  await client.close();
} else {
  const client = await connect(workerData, { requestTimeout: 10_000 });
  const lease = await client.acquire("held", { ttl: 600_000 });
  const leads = new Promise((resolve) => {
    const onStart = (term) => new Promise(() => resolve(term));
    void client.elect("election", { onStart, ttl: 600_000 });
  });
  void client.acquire("held");
  parentPort.postMessage(`${lease.token} ${(await leads).token}`);
  setInterval(() => {}, 1_000);
}
