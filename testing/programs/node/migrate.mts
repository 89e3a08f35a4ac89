/** A migration guard. Every instance runs it before it serves, and one at a time migrates: `migrate.mjs 0001 0002`. */

import { connect } from "leasehold";
import { Ledger } from "./ledger.mjs";

const client = await connect();
await client.using("migrations", { ttl: 4_000 }, (lease) =>
  Ledger.using(lease, async (schema) => {
    for (const step of process.argv.slice(2)) {
      // Read after the claim, so nobody can have done it meanwhile.
      if (!schema.lines.includes(step)) await schema.write(step);
    }
  }),
);
await client.close();
console.log("the schema is up to date");
