// Observes on a separate thread, and never stops.

import { parentPort } from "node:worker_threads";
import { connect, observe } from "leasehold";

observe({ event: ({ event, fields }) => fields.resource === "of-the-worker" && parentPort.postMessage(event) });
const client = await connect("memory:");
await client.acquire("of-the-worker");
