// Runs count.mjs in two worker threads: store, file.

import { once } from "node:events";
import { Worker } from "node:worker_threads";

const [url, file] = process.argv.slice(2);
const count = () => new Worker(new URL("count.mjs", import.meta.url), { argv: [url, file, "20"] });
const ends = await Promise.all([once(count(), "exit"), once(count(), "exit")]);
process.exitCode = Math.max(...ends.flat());
