// From the end of a lease to its signal, over and over: times. Prints as JSON how long the lease still had, in ms, at the
// moment that the signal was aborted: the end is that of the record, as the store counts.

import { connect } from "leasehold";

const TTL = 2_000;
const AT_ONCE = 100;
const times = Number(process.argv[2]);
const client = await connect(process.argv[3]);
const left = [];

async function lose(name) {
  const asked = performance.now();
  const lease = await client.acquire(name, { ttl: TTL, renew: false });
  const alive = setInterval(() => {}, 60_000);
  await new Promise((resolve) => lease.signal.addEventListener("abort", resolve, { once: true }));
  // The store counts from when the request arrives, which is not before it was made: later, where it was made again.
  left.push(asked + TTL - performance.now());
  clearInterval(alive);
}

for (let round = 0; round * AT_ONCE < times; round++) {
  await Promise.all(Array.from({ length: AT_ONCE }, (_, n) => lose(`loss ${round} ${n}`)));
}
await client.close();
left.sort((a, b) => a - b);
console.log(JSON.stringify({ trials: left.length, late: left.filter((ms) => ms <= 0).length, least: left[0], median: left[left.length >> 1] }));
