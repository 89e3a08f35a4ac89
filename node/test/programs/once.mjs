// Begins a run, says its token, and stays in the middle of its work, or ends in the given way: store, way.

import { once } from "node:events";
import { connect } from "leasehold";

const [url, way] = process.argv.slice(2);
const client = await connect(url, { requestTimeout: 10_000 });
const ttl = ["stay", "listen"].includes(way) ? 1_000 : 600_000;
await client.once("job", { key: "s", ttl }, async ({ token }) => {
  console.log(token);
  if (way === "exit") process.exit();
  if (way === "listen") await once(process.stdin.resume(), "end");
  if (way === "stay") await new Promise(() => setInterval(() => {}, 60_000));
});
