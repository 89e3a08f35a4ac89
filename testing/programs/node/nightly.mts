/** A nightly job. Every machine starts it with the day, and one of them writes the report: `nightly.mjs 2026-11-24`. */

import { connect } from "leasehold";
import { Ledger } from "./ledger.mjs";

const [day = ""] = process.argv.slice(2);
const client = await connect();

// Stands by, and takes over from the dead. When the function has ended well, the day is marked as done.
const outcome = await client.once("nightly-report", { key: day, ttl: 4_000, wait: 3_600_000 }, (run) =>
  Ledger.using(run, async (ledger) => {
    for (const part of ["sales", "stock"]) await ledger.write(`${day}/${part}`);
  }),
);
if (!outcome.ran) console.log("nothing to do:", outcome.reason);
await client.close();
