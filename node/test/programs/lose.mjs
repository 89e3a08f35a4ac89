// Loses leases without reading them.

import { connect } from "leasehold";

const client = await connect("memory:");
const lease = await client.acquire("a", { ttl: 1_000, renew: false });
await client.acquire("b", { ttl: 1_000, renew: false });
await client.acquire("a");
await client.acquire("b");
if (lease.remaining() === 0) console.log("lost");
await client.close();
