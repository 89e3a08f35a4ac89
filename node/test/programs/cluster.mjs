// Runs count.mjs in two processes of a cluster: store, file.

import cluster from "node:cluster";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const [url, file] = process.argv.slice(2);
cluster.setupPrimary({ exec: fileURLToPath(new URL("member.mjs", import.meta.url)), args: [url, file, "20"] });
const ends = await Promise.all([once(cluster.fork(), "exit"), once(cluster.fork(), "exit")]);
process.exitCode = Math.max(...ends.map(([code]) => code ?? 1));
