// Counts up in a file, under a lock: store, file, times.

import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "leasehold";

const [url, file, times] = process.argv.slice(2);
const client = await connect(url, { requestTimeout: 10_000 });
for (let n = 0; n < Number(times); n++) {
  await client.using("counter", { ttl: 60_000 }, async () => {
    const count = Number(readFileSync(file, "utf8"));
    await new Promise(setImmediate);
    writeFileSync(file, String(count + 1));
  });
}
await client.close();
