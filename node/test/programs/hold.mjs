// Takes a lock and exits in the given way, without releasing: store, way.

import { connect } from "leasehold";

const [url, way] = process.argv.slice(2);
const client = await connect(url, { requestTimeout: 10_000 });
await client.acquire("held", { ttl: 600_000 });
console.log("held");
switch (way) {
  case "return":
    break;
  case "exit":
    process.exit(3);
    break;
  case "throw":
    throw new Error("on purpose");
  case "wait":
    process.stdin.resume();
    break;
  case "wait for the lock":
    await client.acquire("held");
    break;
}
