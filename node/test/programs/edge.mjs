// Holds a lease and has nothing else to do; or waits for the lock with another client.

import { connect } from "leasehold/edge";

const [url, what] = process.argv.slice(2);
const client = await connect(url, { requestTimeout: 5_000 });
await client.acquire(what, { ttl: 30_000 });
if (what === "wait") {
  const error = await (await connect(url)).acquire(what, { wait: 1_500 }).catch((error) => error);
  console.log(error.code);
}
process.on("exit", () => console.log("ended"));
