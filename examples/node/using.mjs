// A function that only one caller runs at a time, and a signal that stops its work. Run: `node examples/node/using.mjs`

import { setTimeout as sleep } from "node:timers/promises";
import { connect, LockBusyError } from "leasehold";

// `sqlite:locks.db` locks between processes, `redis://host` and `dynamodb://TABLE` between machines.
const client = await connect("memory:shop");
const rival = await connect("memory:shop");

const token = await client.using("invoice/42", { ttl: 30_000, wait: 10_000 }, async (lease) => {
  await rival.acquire("invoice/42", { wait: 0 }).catch((error) => {
    if (!(error instanceof LockBusyError)) throw error;
    console.log(`the rival is refused: ${error.resource} is held`);
  });
  // The signal is aborted when the lease is lost. Pass it to whatever takes one, such as `fetch`.
  await sleep(10, undefined, { signal: lease.signal });
  lease.check(5_000); // throws LeaseLostError unless 5 s of validity are left
  console.log("invoice 42 is charged");
  return lease.token;
});

await rival.using("invoice/42", { wait: 10_000 }, async (lease) => {
  // The resource keeps the highest token that it has seen, and rejects smaller ones.
  console.log(`the next token is larger: ${lease.token > token}`);
});

await Promise.all([client.close(), rival.close()]);

// Output:
// the rival is refused: invoice/42 is held
// invoice 42 is charged
// the next token is larger: true
