// Ends while it holds locks of all kinds for ten minutes: store.

import { connect } from "leasehold";
import Redlock from "leasehold/compat/redlock";

const client = await connect(process.argv[2], { requestTimeout: 10_000 });
await client.acquire("a", { ttl: 600_000, maxHold: 700_000, renewEvery: 10_000 });
await client.acquire("b", { ttl: 600_000, renew: false });
await client.lockAll(["c", "d"], { ttl: 600_000 });
const redlock = new Redlock([process.argv[2]]);
await (await redlock.acquire(["of redlock"], 500_000)).extend(600_000);
console.log("held");
