// Workers that want one lock of redlock or redis-semaphore: a line for each, with the instants of its turns in nanoseconds.
// The arguments: the url, the library, the workers, and in milliseconds how long to work, to hold the lock and to pause.

import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const require = createRequire(`${process.cwd()}/`);
const { Redis } = require("ioredis");
const [url, library, workers, ...times] = process.argv.slice(2);
const [duration, hold, pause] = times.map(Number);
const TTL = 10_000;
const redis = new Redis(url);
const now = () => process.hrtime.bigint();
const end = Date.now() + duration;
const isOver = () => Date.now() >= end;
const rest = (ms) => (ms ? sleep(ms) : undefined);

// Each answers how to release.
const acquire = {
  redlock: async () => {
    const { default: Redlock } = require("redlock");
    const redlock = new Redlock([redis]);
    while (!isOver()) {
      try {
        const lock = await redlock.acquire(["contended"], TTL);
        return () => lock.release();
      } catch {
        // It has tried as often as it does by default.
      }
    }
  },
  "redis-semaphore": async () => {
    const { Mutex } = require("redis-semaphore");
    const mutex = new Mutex(redis, "contended", { lockTimeout: TTL, acquireTimeout: duration + 30_000 });
    await mutex.acquire();
    return () => mutex.release();
  },
}[library];

async function work() {
  const instants = [];
  while (!isOver()) {
    const wanted = now();
    const release = await acquire();
    if (!release) break;
    const granted = now();
    await rest(hold);
    const released = now();
    await release();
    instants.push(wanted, granted, released);
    await rest(pause);
  }
  return instants;
}

for (const instants of await Promise.all(Array.from({ length: Number(workers) }, work))) {
  console.log(instants.join(" "));
}
redis.disconnect();
