// From the end of a lease to its signal, over and over: times. Prints as JSON how long the lease still had, in ms, at the
// moment that the signal was aborted: the end is that of the record, as the store counts. A machine that stands still
// signals nothing, so a separate thread detects that.

import { Worker, isMainThread, parentPort } from "node:worker_threads";

const TTL = 2_000;
const AT_ONCE = 100;
/** The interval between two checks of the thread, and the limit of a late one, in ms. */
const LOOK = 2;
const STALL = 5;

const now = () => Number(process.hrtime.bigint()) / 1e6;

if (isMainThread) await main();
else witness();

async function main() {
  const { connect } = await import("leasehold");
  const times = Number(process.argv[2]);
  const thread = new Worker(new URL(import.meta.url));
  const client = await connect(process.argv[3]);
  const losses = [];

  async function lose(name) {
    const asked = now();
    const lease = await client.acquire(name, { ttl: TTL, renew: false });
    const alive = setInterval(() => {}, 60_000);
    await new Promise((resolve) => lease.signal.addEventListener("abort", resolve, { once: true }));
    // The store counts from when the request arrives, which is not before it was made: later, where it was made again.
    losses.push({ end: asked + TTL, told: now() });
    clearInterval(alive);
  }

  for (let round = 0; round * AT_ONCE < times; round++) {
    await Promise.all(Array.from({ length: AT_ONCE }, (_, n) => lose(`loss ${round} ${n}`)));
  }
  await client.close();
  thread.postMessage("enough");
  const stalls = await new Promise((resolve) => thread.once("message", resolve));
  // A signal is due before the end, by the drift of clocks.
  const stood = ({ end, told }) =>
    stalls.reduce((sum, [from, to]) => sum + Math.max(0, Math.min(to, told) - Math.max(from, end - 0.02 * TTL)), 0);
  const late = losses.filter(({ end, told }) => told >= end);
  const left = losses.map(({ end, told }) => end - told).sort((a, b) => a - b);
  console.log(
    JSON.stringify({
      trials: left.length,
      late: late.filter((loss) => loss.told - stood(loss) >= loss.end).length,
      excused: late.filter((loss) => loss.told - stood(loss) < loss.end).length,
      least: left[0],
      median: left[left.length >> 1],
    }),
  );
}

function witness() {
  const stalls = [];
  let isEnough = false;
  parentPort.once("message", () => (isEnough = true));
  let last = now();
  const look = () => {
    const at = now();
    if (at - last > LOOK + STALL) stalls.push([last, at]);
    last = at;
    if (isEnough) parentPort.postMessage(stalls);
    else setTimeout(look, LOOK);
  };
  look();
}
