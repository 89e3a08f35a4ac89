// Measures one library: library, milliseconds, stores. Prints as JSON the time of a pair of acquire and release, and on a
// single store also of many at a time.

import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const [library, length, ...urls] = process.argv.slice(2);
const TTL = 30_000;
const TASKS = 64;

function ioredis() {
  return urls.map((url) => new (require("ioredis").Redis)(url));
}

/** For libraries with a single store. */
function onlyRedis() {
  const [redis] = ioredis();
  return redis;
}

/** Each returns functions to acquire and release a name once, and to close. */
const libraries = {
  // The floor: only the two commands.
  "ioredis, SET and DEL": async () => {
    const nodes = ioredis();
    const pair = async (name) => {
      await Promise.all(nodes.map((redis) => redis.set(name, "1", "PX", TTL, "NX")));
      await Promise.all(nodes.map((redis) => redis.del(name)));
    };
    return { pair, end: () => nodes.forEach((redis) => redis.disconnect()) };
  },
  redlock: async () => {
    const nodes = ioredis();
    const redlock = new (require("redlock").default)(nodes);
    const end = () => nodes.forEach((redis) => redis.disconnect());
    return { pair: async (name) => (await redlock.acquire([name], TTL)).release(), end };
  },
  "redis-semaphore": async () => {
    const redis = onlyRedis();
    const { Mutex } = require("redis-semaphore");
    const pair = async (name) => {
      const mutex = new Mutex(redis, name, { lockTimeout: TTL });
      await mutex.acquire();
      await mutex.release();
    };
    return { pair, end: () => redis.disconnect() };
  },
  "redlock-universal": async () => {
    const redis = onlyRedis();
    const { createLock, IoredisAdapter } = await import("redlock-universal");
    const adapter = new IoredisAdapter(redis);
    const pair = async (key) => {
      const lock = createLock({ adapter, key, ttl: TTL });
      await lock.release(await lock.acquire());
    };
    return { pair, end: () => redis.disconnect() };
  },
  leasehold: async () => {
    const { connect } = require("leasehold");
    const client = await (urls.length > 1 ? connect(urls, { createQuorum: true }) : connect(urls[0]));
    return { pair: async (name) => (await client.acquire(name, { ttl: TTL })).release(), end: () => client.close() };
  },
  "leasehold/compat/redlock": async () => {
    const redlock = new (require("leasehold/compat/redlock").default)(urls);
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
const many = urls.length === 1 ? await run(pair, TASKS) : undefined;
await end();
console.log(JSON.stringify({ one, many }));
