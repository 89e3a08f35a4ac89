// Measures one library: library, store, milliseconds. Prints as JSON the time of a pair of acquire and release.

import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const [library, url, length] = process.argv.slice(2);
const TTL = 30_000;
const TASKS = 64;

function ioredis() {
  return new (require("ioredis").Redis)(url);
}

/** Each returns functions to acquire and release a name once, and to close. */
const libraries = {
  // The floor: only the two commands.
  "ioredis, SET and DEL": async () => {
    const redis = ioredis();
    const pair = async (name) => {
      await redis.set(name, "1", "PX", TTL, "NX");
      await redis.del(name);
    };
    return { pair, end: () => redis.disconnect() };
  },
  redlock: async () => {
    const redis = ioredis();
    const redlock = new (require("redlock").default)([redis]);
    return { pair: async (name) => (await redlock.acquire([name], TTL)).release(), end: () => redis.disconnect() };
  },
  "redis-semaphore": async () => {
    const redis = ioredis();
    const { Mutex } = require("redis-semaphore");
    const pair = async (name) => {
      const mutex = new Mutex(redis, name, { lockTimeout: TTL });
      await mutex.acquire();
      await mutex.release();
    };
    return { pair, end: () => redis.disconnect() };
  },
  "redlock-universal": async () => {
    const redis = ioredis();
    const { createLock, IoredisAdapter } = await import("redlock-universal");
    const adapter = new IoredisAdapter(redis);
    const pair = async (key) => {
      const lock = createLock({ adapter, key, ttl: TTL });
      await lock.release(await lock.acquire());
    };
    return { pair, end: () => redis.disconnect() };
  },
  leasehold: async () => {
    const client = await require("leasehold").connect(url);
    return { pair: async (name) => (await client.acquire(name, { ttl: TTL })).release(), end: () => client.close() };
  },
  "leasehold/compat/redlock": async () => {
    const redlock = new (require("leasehold/compat/redlock").default)([url]);
    return { pair: async (name) => (await redlock.acquire([name], TTL)).release(), end: () => redlock.quit() };
  },
};

/** Runs pairs for the given time; returns their durations in microseconds, and the CPU time of one. */
async function run(pair, tasks) {
  const lengths = [];
  const cpu = process.cpuUsage();
  const end = performance.now() + Number(length);
  const task = async (name) => {
    for (let now = performance.now(); now < end; ) {
      await pair(name);
      const before = now;
      now = performance.now();
      lengths.push((now - before) * 1_000);
    }
  };
  await Promise.all(Array.from({ length: tasks }, (_, n) => task(`${library} ${n}`)));
  const { user, system } = process.cpuUsage(cpu);
  lengths.sort((a, b) => a - b);
  const each = (user + system) / lengths.length;
  return { p50: lengths[lengths.length >> 1], each, rate: (lengths.length * 1_000) / Number(length) };
}

const { pair, end } = await libraries[library]();
for (let warm = 0; warm < 500; warm++) await pair("warm");
const one = await run(pair, 1);
const many = await run(pair, TASKS);
await end();
console.log(JSON.stringify({ one, many }));
