// Tells on a separate thread how a lease without an owner is labelled.

import { parentPort } from "node:worker_threads";
import { connect } from "leasehold";

const client = await connect("memory:");
parentPort.postMessage((await client.acquire("a")).owner);
await client.close();
