/** Calls to a provider that allows three at a time, from all machines together: `calls.mjs CALL...`. */

import { connect } from "leasehold";
import { Ledger } from "./ledger.mjs";

const client = await connect();
for (const call of process.argv.slice(2)) {
  await client
    .semaphore("provider", 3)
    .using({ ttl: 4_000 }, (permit) => Ledger.using(permit, (ledger) => ledger.write(call)));
}
await client.close();
