// node redlock by itself: takes and frees one lock for so many milliseconds, on the servers that are named, and prints
// what each pair took in nanoseconds. The working folder is where its packages are installed.

import { createRequire } from "node:module";

const require = createRequire(`${process.cwd()}/`);
const { Redis } = require("ioredis");
const { default: Redlock } = require("redlock");

const [millis, ...urls] = process.argv.slice(2);
const nodes = urls.map((url) => new Redis(url));
const redlock = new Redlock(nodes);

const pair = async () => {
  const lock = await redlock.acquire(["redlock"], 30_000);
  await lock.release();
};
for (let warm = 0; warm < 500; warm++) await pair();

const times = [];
const end = process.hrtime.bigint() + BigInt(millis) * 1_000_000n;
while (process.hrtime.bigint() < end) {
  const start = process.hrtime.bigint();
  await pair();
  times.push(process.hrtime.bigint() - start);
}
nodes.forEach((node) => node.disconnect());
console.log(times.join(" "));
