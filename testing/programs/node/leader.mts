/** A leader: of all machines that start it one does the work, until it ends and another one goes on. */

import { setTimeout as sleep } from "node:timers/promises";
import { LeaseLostError, connect, type Lease } from "leasehold";
import { Ledger, StaleError } from "./ledger.mjs";

let isEnded = false;
let work = Promise.resolve();

/** After a failed check: renewals may only be late, so the term may go on. */
async function patiently(error: unknown): Promise<void> {
  if (!(error instanceof LeaseLostError)) throw error;
  await sleep(500);
}

async function lead(lease: Lease): Promise<void> {
  try {
    await Ledger.using(lease, async (ledger) => {
      while (!isEnded && !lease.signal.aborted) {
        await ledger.write(`tick-${ledger.lines.length}`).catch(patiently);
      }
    });
  } catch (error) {
    if (!(error instanceof StaleError)) throw error;
    console.log("another one leads:", error.message);
  }
}

const client = await connect();
const election = await client.elect("leader", {
  ttl: 4_000,
  onStart: (lease) => void (work = lead(lease)), // starts the work, and returns
  onStop: () => work, // the lock is released when the work has stopped
});

process.once("SIGTERM", () => {
  isEnded = true;
  void election.resign().then(() => client.close());
});
