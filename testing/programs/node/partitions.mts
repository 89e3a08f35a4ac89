/** A queue in eight partitions, shared by all machines that start it. Each partition is worked on in order, by one of them. */

import { setTimeout as sleep } from "node:timers/promises";
import { LeaseLostError, connect, type Shard } from "leasehold";
import { Ledger, StaleError } from "./ledger.mjs";

const consumers = new Map<number, { stop: () => void; done: Promise<void> }>();

/** After a failed check: renewals may only be late, so the shard may stay ours. */
async function patiently(error: unknown): Promise<void> {
  if (!(error instanceof LeaseLostError)) throw error;
  await sleep(500);
}

function consume(shard: Shard): void {
  let isStopping = false;
  const work = Ledger.using(shard, async (ledger) => {
    while (!isStopping && !shard.signal.aborted) {
      await ledger.write(`${shard.index}/${ledger.lines.length}`).catch(patiently);
    }
  });
  const done = work.catch((error: unknown) => {
    if (!(error instanceof StaleError)) throw error;
    console.log("another one has partition", shard.index, error.message);
  });
  consumers.set(shard.index, { stop: () => (isStopping = true), done });
}

const client = await connect();
const shards = await client.shards("mail", {
  count: 8,
  ttl: 4_000,
  lookEvery: 1_000,
  onGain: consume,
  onLoss: async ({ index }) => {
    const consumer = consumers.get(index);
    consumers.delete(index);
    consumer?.stop();
    await consumer?.done; // the shard is let go when the piece in hand is done
  },
});

process.once("SIGTERM", () => void shards.stop().then(() => client.close()));
