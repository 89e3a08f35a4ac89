// Workers that share the partitions of a queue. Run: `node examples/node/shards.mjs`

import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "leasehold";

const PARTITIONS = 4;
// Each partition is read by one worker at a time, so its items are done in order.
const partitions = Array.from({ length: PARTITIONS }, () => []);
const done = Array.from({ length: PARTITIONS }, () => []);

async function consume(shard, stop) {
  while (!stop.aborted && !shard.signal.aborted) {
    const item = partitions[shard.index].shift();
    // The store that the work writes to should refuse tokens older than `shard.token`.
    if (item !== undefined) done[shard.index].push(item);
    await sleep(1);
  }
}

function work(client) {
  const working = new Map();
  return client.shards("mail", {
    count: PARTITIONS,
    ttl: 10_000,
    lookEvery: 100,
    onGain(shard) {
      const stop = new AbortController();
      working.set(shard.index, { stop, consumer: consume(shard, stop.signal) });
    },
    async onLoss(shard) {
      // The shard is kept until this promise is fulfilled: the piece in hand is finished.
      const { stop, consumer } = working.get(shard.index);
      stop.abort();
      await consumer;
    },
  });
}

async function until(condition) {
  while (!condition()) await sleep(5);
}

const client = await connect("memory:");
const first = await work(client);
const second = await work(client);
await until(() => first.held.length === 2 && second.held.length === 2);
console.log("two workers have 2 shards each");

for (let number = 0; number < 20; number++) partitions[number % PARTITIONS].push(`mail ${number}`);
await first.stop();
await until(() => second.held.length === PARTITIONS);
console.log("one has stopped, and the other one has all 4");

await until(() => done.flat().length === 20);
await second.stop();
console.log(`partition 0: ${done[0].join(", ")}`);
await client.close();

// Output:
// two workers have 2 shards each
// one has stopped, and the other one has all 4
// partition 0: mail 0, mail 4, mail 8, mail 12, mail 16
