// Loads one copy of the package here, and another one on a thread beside it, which reports whether it may open this store.

import { createRequire } from "node:module";
import { isMainThread, Worker, workerData } from "node:worker_threads";

const require = createRequire(import.meta.url);

if (isMainThread) {
  const [first, second, url] = process.argv.slice(2);
  require(first);
  new Worker(new URL(import.meta.url), { workerData: { second, url } });
} else {
  const { second, url } = workerData;
  try {
    const client = await require(second).connect(url);
    await client.close();
    console.log("opened");
  } catch (error) {
    console.log(error.code, error.message);
  }
}
