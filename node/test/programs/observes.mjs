// Holds a lock when it ends.

import { connect, observe } from "leasehold";

observe({ event: ({ event }) => console.log(event) });
const client = await connect("memory:");
await client.acquire("a");
