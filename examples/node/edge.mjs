// A worker at the edge: no native code, and a store over HTTP. With Redis and Webdis running:
// `LEASEHOLD_STORE=webdis+http://127.0.0.1:7379 node examples/node/edge.mjs`

import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "leasehold/edge";

let running = 0;

// The form of a worker for Cloudflare, which would be the module's default export.
const worker = {
  async fetch(_request, env) {
    // A client for each request: its timers belong to the request that made it.
    const client = await connect(env.LEASEHOLD_STORE);
    try {
      return await client.using("example/report", { ttl: 30_000, wait: 20_000 }, async (lease) => {
        running += 1;
        await sleep(10, undefined, { signal: lease.signal });
        const alone = running === 1;
        running -= 1;
        return new Response(alone ? "alone" : "not alone");
      });
    } finally {
      await client.close();
    }
  },
};

const requests = [1, 2, 3].map((id) => worker.fetch(new Request(`https://worker/report/${id}`), process.env));
for (const response of await Promise.all(requests)) console.log(response.status, await response.text());

// Output:
// 200 alone
// 200 alone
// 200 alone
