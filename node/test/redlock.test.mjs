// The documented behaviour of redlock 5: by the library itself, by its replacement, and by both together.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createRequire } from "node:module";
import { describe, test } from "node:test";
import { Cluster, Redis } from "ioredis";
import { connect, LeaseLostError } from "leasehold";
import Redlock, { ExecutionError, ResourceLockedError } from "leasehold/compat/redlock";
import * as testing from "leasehold/testing";
import { startRedis } from "./helpers/servers.mjs";
import { faces, makers, ONCE, PATIENT } from "./helpers/redlock.mjs";
import { aborted } from "./helpers/signals.mjs";
import { undo } from "./helpers/undo.mjs";
import { ended, until } from "./helpers/until.mjs";

const LONG = 30_000;

/** The same test for both, on several numbers of servers. */
function testBoth(name, body, sizes = [1, 3]) {
  for (const library of Object.keys(makers)) {
    for (const size of sizes) {
      test(`${name}: ${library}, ${size}`, async (t) => {
        const urls = (await Promise.all(Array.from({ length: size }, () => startRedis(t)))).map(({ url }) => url);
        await body(await makers[library](t, urls, PATIENT), faces[library], urls, t, library);
      });
    }
  }
}

/** Tries until it works. On a quorum redlock itself must not: the votes of one try block its next tries. */
async function patiently(redlock, { ExecutionError }, action) {
  const tried = async () => {
    try {
      return { result: await action(redlock) };
    } catch (error) {
      if (!(error instanceof ExecutionError)) throw error;
    }
  };
  return (await until(tried)).result;
}

// They mostly wait, so they run together.
describe("redlock 5 and its replacement", { concurrency: 4 }, () => {
  testBoth("a lock shuts others out until its release", async (redlock, { ExecutionError, ResourceLockedError, Lock }, urls) => {
    const said = [];
    redlock.on("error", (error) => said.push(error));
    const before = Date.now();
    const lock = await redlock.acquire(["a", "b"], LONG);
    assert.ok(lock instanceof Lock);
    assert.deepEqual(lock.resources, ["a", "b"]);
    assert.match(lock.value, /^[0-9a-f]{32}$/);
    assert.ok(lock.expiration > before + LONG / 2 && lock.expiration <= Date.now() + LONG, String(lock.expiration - before));
    await assert.rejects(redlock.acquire(["b"], LONG, ONCE), (error) => {
      assert.ok(error instanceof ExecutionError);
      assert.equal(error.name, "ExecutionError");
      assert.equal(error.message, "The operation was unable to achieve a quorum during its retry window.");
      return true;
    });
    const error = await redlock.acquire(["b"], LONG, ONCE).catch((error) => error);
    const { membershipSize, quorumSize, votesFor, votesAgainst } = await error.attempts[0];
    const majority = Math.floor(membershipSize / 2) + 1;
    assert.deepEqual([quorumSize, votesFor.size], [majority, 0]);
    assert.ok(votesAgainst.size > 0);
    for (const vote of votesAgainst.values()) assert.equal(vote.name, "ResourceLockedError");
    assert.ok(said.length > 0 && said.every((error) => error instanceof ResourceLockedError));
    const [attempt] = (await lock.release()).attempts;
    assert.ok((await attempt).votesFor.size >= majority);
    assert.equal(lock.expiration, 0);
    const next = await redlock.acquire(["b"], LONG);
    await next.release();
    await assert.rejects(redlock.release(next, ONCE), ExecutionError);
    const redis = new Redis(urls[0]);
    assert.deepEqual([await redis.exists("a"), await redis.exists("b")], [0, 0]);
    redis.disconnect();
  });

  testBoth("a waiter gets the lock when it is released", async (redlock) => {
    const lock = await redlock.acquire(["a"], LONG);
    const waiting = redlock.acquire(["a"], LONG);
    await lock.release();
    await (await waiting).release();
  }, [1]);

  testBoth("a lock ends by itself, and then nothing can be done with it", async (redlock, { ExecutionError }) => {
    const lock = await redlock.acquire(["a"], 1_000);
    const next = await redlock.acquire(["a"], LONG);
    assert.ok(lock.expiration < Date.now());
    await assert.rejects(lock.extend(LONG), { name: "ExecutionError", message: "Cannot extend an already-expired lock." });
    await assert.rejects(redlock.release(lock, ONCE), ExecutionError);
    await next.release();
  }, [1]);

  testBoth("an extension moves the end, and takes the place of the lock", async (redlock, { ExecutionError }) => {
    const short = await redlock.acquire(["a"], 6_000);
    const past = ended(6_000);
    const lock = await short.extend(LONG);
    assert.deepEqual([lock.value, lock.resources, short.expiration], [short.value, ["a"], 0]);
    await assert.rejects(short.extend(LONG), ExecutionError);
    // It is held past its first end, and released at an earlier one.
    await past;
    assert.ok(lock.expiration > Date.now());
    await assert.rejects(redlock.acquire(["a"], LONG, ONCE), ExecutionError);
    await lock.extend(500);
    await (await redlock.acquire(["a"], LONG)).release();
  }, [1]);

  testBoth("the release of a lock that was extended frees what its extension holds", async (redlock, { ExecutionError }) => {
    const first = await redlock.acquire(["a"], LONG);
    const extended = await first.extend(LONG);
    await first.release();
    await (await redlock.acquire(["a"], LONG, ONCE)).release();
    for (const lock of [first, extended]) await assert.rejects(redlock.release(lock, ONCE), ExecutionError);
  }, [1]);

  for (const [what, change] of [
    ["deleted", (redis) => redis.del("a")],
    ["replaced", (redis) => redis.set("a", "another")],
  ]) {
    testBoth(`what others have ${what} is no release`, async (_, { ExecutionError }, urls, t, library) => {
      const servers = urls.map((url) => new Redis(url));
      undo(t, () => servers.forEach((redis) => redis.disconnect()));
      const changed = () => Promise.all(servers.map(change));
      const clear = () => Promise.all(servers.map((redis) => redis.del("a")));
      // redlock tries such a release again.
      const redlock = await makers[library](t, urls, ONCE);
      const taken = () => patiently(redlock, { ExecutionError }, (redlock) => redlock.acquire(["a"], LONG));
      const lock = await taken();
      await changed();
      await assert.rejects(lock.release(), ExecutionError);
      assert.equal(lock.expiration, 0);
      await clear();
      await (await taken()).release();
      const used = redlock.using(["a"], LONG, async () => void (await changed()));
      await assert.rejects(used, ExecutionError);
    });
  }

  testBoth("using holds on for longer than its duration", async (redlock, { ExecutionError }) => {
    const result = await redlock.using(["a"], 4_000, async (signal) => {
      await ended(4_000);
      assert.equal(signal.aborted, false);
      await assert.rejects(redlock.acquire(["a"], LONG, ONCE), ExecutionError);
      return 42;
    });
    assert.equal(result, 42);
    const error = new Error("of the routine");
    await assert.rejects(redlock.using(["a"], LONG, ONCE, () => Promise.reject(error)), (thrown) => thrown === error);
    await (await redlock.acquire(["a"], LONG, ONCE)).release();
    await assert.rejects(redlock.using(["a"], LONG), { message: "INVARIANT: routine is not a function." });
  }, [1]);

  testBoth("a duration is a whole number", async (redlock) => {
    for (const action of [(at) => redlock.acquire(["a"], at), (at) => redlock.using(["a"], at, async () => {})]) {
      await assert.rejects(action(1.5), { message: "Duration must be an integer value in milliseconds." });
    }
  }, [1]);

  testBoth("a lock that would be over before it is held is refused", async (redlock, { ExecutionError }) => {
    for (const duration of [0, -5]) await assert.rejects(redlock.acquire(["a"], duration, ONCE), ExecutionError);
    await (await redlock.acquire(["a"], LONG, ONCE)).release();
  }, [1]);

  testBoth("settings that are no numbers mean one try", async (redlock, { ExecutionError }) => {
    const lock = await redlock.acquire(["a"], LONG);
    for (const retryCount of [undefined, NaN, -2]) {
      await assert.rejects(redlock.acquire(["a"], LONG, { retryCount }), ExecutionError);
    }
    for (const retryDelay of [undefined, NaN, Infinity]) {
      await assert.rejects(redlock.acquire(["a"], LONG, { ...ONCE, retryDelay }), ExecutionError);
    }
    await assert.rejects(redlock.acquire(["a"], LONG, { retryCount: 2, retryDelay: NaN, retryJitter: 0 }), ExecutionError);
    await lock.release();
  }, [1]);

  for (const [first, second] of [["redlock", "leasehold"], ["leasehold", "redlock"], ["leasehold", "leasehold"]]) {
    for (const size of [1, 3]) {
      test(`${first} excludes ${second}, on ${size}`, async (t) => {
        const urls = (await Promise.all(Array.from({ length: size }, () => startRedis(t)))).map(({ url }) => url);
        // Ours first: its nodes are marked then.
        const ours = await makers.leasehold(t, urls, PATIENT);
        await (await ours.acquire(["warm"], LONG)).release();
        const [holder, rival] = [await makers[first](t, urls, PATIENT), await makers[second](t, urls, PATIENT)];
        const { ExecutionError } = faces[second];
        const lock = await holder.acquire(["a", "b"], LONG);
        for (const name of ["a", "b"]) await assert.rejects(rival.acquire([name], LONG, ONCE), ExecutionError);
        const extended = await lock.extend(LONG);
        await assert.rejects(rival.acquire(["b", "c"], LONG, ONCE), ExecutionError);
        await assert.rejects(rival.using(["a"], LONG, ONCE, async () => assert.fail("it is held")), ExecutionError);
        const waiting = patiently(rival, faces[second], (rival) => rival.acquire(["b"], LONG, ONCE));
        await extended.release();
        const won = await waiting;
        await assert.rejects(holder.acquire(["b"], LONG, ONCE), faces[first].ExecutionError);
        await won.release();
        // Never two holders at once.
        let inside = 0;
        const enter = (redlock, face) =>
          patiently(redlock, face, (redlock) =>
            redlock.using(["a"], LONG, ONCE, async () => {
              assert.equal(++inside, 1);
              await new Promise(setImmediate);
              inside--;
            }),
          );
        const sides = [[holder, faces[first]], [rival, faces[second]]];
        await Promise.all(Array.from({ length: 10 }, (_, n) => enter(...sides[n % 2])));
      });
    }
  }

  test("a loss is reported before anybody else has the lock, and using rejects", async (t) => {
    const server = await startRedis(t);
    const redlock = new Redlock([server.url], PATIENT);
    let isTold = false;
    const body = redlock.using(["a", "b"], 2_000, async (signal) => {
      process.kill(server.pid, "SIGSTOP");
      try {
        await aborted(signal);
      } finally {
        process.kill(server.pid, "SIGCONT");
      }
      assert.ok(signal.error instanceof LeaseLostError && signal.reason === signal.error);
      isTold = true;
    });
    await assert.rejects(body, (error) => error instanceof ExecutionError && error.cause instanceof LeaseLostError);
    assert.ok(isTold);
    await redlock.quit();
  });

  test("a lock shows its tokens and its expiration", async (t) => {
    const server = await startRedis(t);
    const client = await connect(server.url);
    const redlock = new Redlock([client]);
    const lock = await redlock.acquire(["b", "a"], 2_000);
    const tokens = Array.from(lock.leases, (lease) => [lease.resource, lease.token]);
    assert.deepEqual(tokens.map(([name]) => name), ["a", "b"]);
    assert.ok(tokens.every(([, token]) => Number.isSafeInteger(token)));
    // An extension promises no more than renewals that were confirmed.
    const extended = await lock.extend(LONG);
    assert.ok(extended.expiration <= Date.now() + 2_000);
    assert.equal(lock.leases, undefined);
    process.kill(server.pid, "SIGSTOP");
    try {
      for (const lease of extended.leases) await aborted(lease.signal);
      assert.equal(extended.expiration, 0);
      await assert.rejects(extended.extend(LONG), ExecutionError);
    } finally {
      process.kill(server.pid, "SIGCONT");
    }
    await redlock.quit();
  });

  test("a record is identified by its token, where redlock has its value", async (t) => {
    const { url } = await startRedis(t);
    const theirs = await (await makers.redlock(t, [url])).acquire(["theirs"], LONG);
    const redlock = await makers.leasehold(t, [url]);
    const lock = await redlock.acquire(["ours"], LONG);
    const [redis, client] = [new Redis(url), await connect(url)];
    undo(t, async () => (redis.disconnect(), await client.close()));
    assert.equal(await redis.get("theirs"), theirs.value);
    const isHeldBy = async (lock, name) => (await client.inspect(name))?.token === lock.leases?.get(name)?.token;
    assert.equal(await isHeldBy(lock, "ours"), true);
    await redis.set("ours", "another");
    assert.equal(await isHeldBy(lock, "ours"), false);
  });

  test("a server that comes up later is waited for, and an absent one is reported", async (t) => {
    const server = await startRedis(t);
    await server.stop();
    const redlock = new Redlock([server.url], { retryCount: 2, retryDelay: 10 });
    const heard = once(redlock, "error");
    await assert.rejects(redlock.acquire(["a"], LONG), (error) => {
      assert.ok(error instanceof ExecutionError);
      assert.equal(error.cause.code, "store_unavailable");
      return true;
    });
    const [error] = await heard;
    assert.equal(error.code, "store_unavailable");
    const waiting = new Redlock([server.url], PATIENT);
    const lock = waiting.acquire(["a"], LONG);
    const again = await server.restart();
    assert.equal(again.url, server.url);
    await (await lock).release();
    await waiting.quit();
    await assert.rejects(waiting.acquire(["a"], LONG), { code: "config", message: /quit/ });
  });

  test("the settings of clients are used or refused", async (t) => {
    const server = await startRedis(t);
    const port = Number(new URL(server.url).port);
    const redis = new Redis({ port, host: "127.0.0.1", db: 3, keyPrefix: "app:" });
    undo(t, () => redis.disconnect());
    const redlock = new Redlock([redis], ONCE);
    const lock = await redlock.acquire(["a"], LONG);
    assert.equal(await redis.exists("a"), 1);
    await lock.release();
    const refused = (client, what) => assert.throws(() => new Redlock([].concat(client)), what);
    const lazy = (options) => new Redis({ ...options, lazyConnect: true });
    refused([redis, lazy({ port, keyPrefix: "other:" })], /prefix/);
    refused(lazy({ host: "a", tls: { ca: "PEM" } }), /tls.ca .*rediss:/);
    refused(lazy({ host: "a", tls: { rejectUnauthorized: false } }), /tls.rejectUnauthorized/);
    refused(lazy({ sentinels: [{ host: "a" }], name: "m", role: "slave" }), /master/);
    const cluster = (port) => new Cluster([{ host: "a", port }], { lazyConnect: true });
    new Redlock([cluster(1)]);
    refused([cluster(1), cluster(2), cluster(3)], /Redis Cluster cannot be a node of a quorum/);
    refused(["redis://a", "redis+cluster://b"], /Redis Cluster cannot be a node of a quorum/);
    refused([], /at least one redis client/);
    refused([5], TypeError);
    assert.throws(() => new Redlock([redis], {}, { acquireScript: "" }), /scripts/);
    await redlock.quit();
    await until(() => redis.status === "end");
  });
});

test("an extension by 0 does not change the lock", async (t) => {
  const { url } = await startRedis(t);
  const redlock = new Redlock([url], PATIENT);
  undo(t, () => redlock.quit());
  const lock = await redlock.acquire(["a"], LONG);
  for (const duration of [0, -1]) await assert.rejects(lock.extend(duration), ExecutionError);
  assert.ok(lock.expiration > Date.now());
  await lock.release();
  await assert.rejects(redlock.using(["a"], 0, async () => assert.fail("it is over")), ExecutionError);
});

test("an invalid driftFactor is refused by name", () => {
  const refused = { code: "config", message: /^driftFactor is/ };
  for (const driftFactor of [0, 0.5, -1, NaN]) assert.throws(() => new Redlock(["memory:"], { driftFactor }), refused);
});

test("a release that was not confirmed can be repeated, and ends when it is", async (t) => {
  const server = await startRedis(t);
  const client = await connect(server.url, { requestTimeout: 500 });
  undo(t, () => client.close());
  const redlock = new Redlock([client], { retryCount: 1_000, retryDelay: 20 });
  const lock = await redlock.acquire(["a", "b"], LONG);
  process.kill(server.pid, "SIGSTOP");
  try {
    await assert.rejects(lock.release(), (error) => error instanceof ExecutionError && error.cause.code === "store_unavailable");
    assert.equal(lock.expiration, 0);
    // Nothing has changed yet.
    const impatient = new Redlock([client], ONCE);
    await assert.rejects(impatient.release(lock), (error) => error.cause.code === "store_unavailable");
  } finally {
    process.kill(server.pid, "SIGCONT");
  }
  const { attempts } = await lock.release();
  assert.equal((await attempts[0]).votesFor.size, 1);
  const redis = new Redis(server.url);
  assert.deepEqual([await redis.exists("a"), await redis.exists("b")], [0, 0]);
  redis.disconnect();
  await assert.rejects(lock.release(), ({ cause }) => cause instanceof ResourceLockedError);
});

for (const whose of ["its own", "a given"]) {
  test(`quit releases all locks and refuses new ones, over ${whose} client`, async (t) => {
    const { url } = await startRedis(t);
    const client = await connect(url);
    undo(t, () => client.close());
    const redlock = new Redlock([whose === "a given" ? client : url], PATIENT);
    const said = [];
    redlock.on("error", (error) => said.push(error));
    const lock = await redlock.acquire(["a"], 1_000);
    const past = ended(1_000);
    const waiting = redlock.acquire(["a"], LONG, { retryCount: -1 });
    const refused = assert.rejects(waiting, { code: "config", message: /quit/ });
    let hasBegun = false;
    const running = redlock.using(["b"], LONG, async (signal) => {
      hasBegun = true;
      await aborted(signal);
      assert.ok(signal.error instanceof LeaseLostError);
    });
    const lost = assert.rejects(running, (error) => error instanceof ExecutionError && error.cause instanceof LeaseLostError);
    await until(() => hasBegun);
    await redlock.quit();
    await Promise.all([refused, lost]);
    for (const name of ["a", "b"]) assert.equal(await client.inspect(name), null);
    assert.equal(lock.expiration, 0);
    await assert.rejects(redlock.acquire(["c"], LONG), { code: "config", message: /quit/ });
    await redlock.quit();
    // Past the end of the lock: its timer, which would have fired before this check, reports nothing.
    await past;
    assert.deepEqual(said.map(({ name }) => name), ["LeaseLostError"]);
  });
}

test("quit does not fail without a connection", async (t) => {
  const server = await startRedis(t);
  await server.stop();
  // It ends the pause before the next try, too.
  const redlock = new Redlock([server.url], { retryCount: -1, retryDelay: 2 ** 30 });
  const waiting = assert.rejects(redlock.acquire(["a"], LONG), { code: "config", message: /quit/ });
  await redlock.quit();
  await waiting;
});

test("quit ignores locks that are over", async (t) => {
  const { url } = await startRedis(t);
  const client = await connect(url);
  undo(t, () => client.close());
  const redlock = new Redlock([client], PATIENT);
  const said = [];
  redlock.on("error", (error) => said.push(error));
  const signal = await redlock.using(["a"], LONG, async (signal) => signal);
  await (await redlock.acquire(["b"], LONG)).release();
  await (await (await redlock.acquire(["c"], LONG)).extend(200)).release();
  // Nor has its timer.
  await ended(400);
  await redlock.quit();
  assert.equal(signal.aborted, false);
  assert.deepEqual(said, []);
});

test("using with a lock lost before the routine starts passes an aborted signal", async () => {
  const client = testing.connect();
  const lockAll = client.lockAll.bind(client);
  client.lockAll = async (...given) => {
    const leases = await lockAll(...given);
    client.lose("a");
    return leases;
  };
  const redlock = new Redlock([client]);
  const used = redlock.using(["a"], LONG, async (signal) => {
    assert.ok(signal.aborted && signal.error instanceof LeaseLostError);
  });
  await assert.rejects(used, ({ cause }) => cause instanceof LeaseLostError);
});

test("a lock that is granted during quit is released", async () => {
  const client = await connect("memory:");
  const redlock = new Redlock([client], PATIENT);
  const lockAll = client.lockAll.bind(client);
  let quitting;
  client.lockAll = async (...given) => {
    const leases = await lockAll(...given);
    quitting = redlock.quit();
    return leases;
  };
  await assert.rejects(redlock.acquire(["a"], LONG), { code: "config", message: /quit/ });
  await quitting;
  assert.equal(await client.inspect("a"), null);
  await client.close();
});

test("durations may exceed those of leases", async (t) => {
  const warned = [];
  const warn = ({ name }) => warned.push(name);
  process.on("warning", warn);
  undo(t, () => process.off("warning", warn));
  const names = ["x", "y", "z"].map((name) => `memory:durations-${name}`);
  for (const client of [await connect("memory:"), await connect(names, { createQuorum: true })]) {
    const redlock = new Redlock([client], PATIENT);
    await redlock.using(["a"], 1, async () => {});
    const lock = await redlock.acquire(["a"], 2 ** 40);
    // Longer than any timer.
    await until(() => new Promise((resolve) => setTimeout(resolve, 50, true)));
    assert.ok(lock.expiration > Date.now());
    await lock.release();
    await client.close();
  }
  assert.deepEqual(warned, []);
});

test("a lock that cannot be released at its end emits an error event", async (t) => {
  const server = await startRedis(t);
  const client = await connect(server.url, { requestTimeout: 500 });
  undo(t, () => client.close().catch(() => {}));
  const redlock = new Redlock([client], PATIENT);
  const said = [];
  redlock.on("error", (error) => said.push(error.code));
  await redlock.acquire(["a"], 1_000);
  await server.stop();
  // Its timers keep no process alive, and this does.
  await until(() => said.length > 0);
  assert.ok(["lost", "store_unavailable"].includes(said[0]), said[0]);
});

test("clients become equivalent urls", () => {
  const { storeOf } = createRequire(import.meta.url)(`${import.meta.dirname}/../node_modules/leasehold/lib/ioredis.cjs`);
  const url = (options, more) => storeOf({ options, ...more }).url;
  assert.equal(url({ host: "h", port: 7 }), "redis://h:7/0");
  assert.equal(url({ host: "::1", username: "u", password: "p@:/", db: 2 }), "redis://u:p%40%3A%2F@[::1]:6379/2");
  assert.equal(url({ host: "h", tls: { servername: "h", ca: undefined } }), "rediss://h:6379/0");
  assert.equal(url({ path: "/run/a b.sock", password: "p", db: 1 }), "redis+unix://:p@/run/a%20b.sock?db=1");
  const sentinels = { sentinels: [{ host: "s1", port: 1 }, { host: "s2" }], name: "m", sentinelPassword: "q?", role: "master" };
  assert.equal(url(sentinels), "redis+sentinel://s1:1,s2:26379/m/0?sentinel_password=q%3F");
  const cluster = { isCluster: true, startupNodes: [7, "h:8", "redis://x:9", { host: "y" }] };
  const redisOptions = { password: "p" };
  assert.equal(url({ redisOptions }, cluster), "redis+cluster://:p@localhost:7,h:8,x:9,y:6379");
  assert.equal(url({ redisOptions: { tls: {} } }, cluster), "rediss+cluster://localhost:7,h:8,x:9,y:6379");
  const tls = { enableTLSForSentinelMode: true, tls: {}, sentinelTLS: {} };
  assert.equal(url({ sentinels: [{ host: "s" }], name: "m", ...tls }), "rediss+sentinel://s:26379/m/0");
  assert.equal(storeOf({ options: { host: "h", keyPrefix: Buffer.from("é:") } }).prefix, "é:");

  const refused = (what, options, more) => assert.throws(() => url(options, more), { code: "config", message: what });
  // Clients of node-redis, whose options would be read as this machine.
  refused(/not a client of ioredis.*store url/, { url: "redis://prod:6379", socket: { host: "prod" } });
  refused(/not a client of ioredis.*store url/, { socket: { host: "prod", port: 1 }, database: 1 });
  refused(/not a client of ioredis.*store url/, {});
  refused(/Connector/, { host: "localhost", port: 6379, Connector: class {} });
  refused(/not a cluster of ioredis/, {}, { isCluster: true });
  const isCluster = { isCluster: true, startupNodes: [{ host: "a" }, { host: "b", password: "x" }] };
  refused(/different logins/, {}, isCluster);
  refused(/different logins/, { redisOptions: { password: "y" } }, isCluster);
  refused(/TLS for some/, {}, { isCluster: true, startupNodes: ["a:1", "rediss://b:1"] });
  for (const half of [{ sentinelTLS: {} }, { enableTLSForSentinelMode: true, tls: {} }]) {
    refused(/Sentinels alone/, { sentinels: [{ host: "s" }], name: "m", ...half });
  }
  refused(/tls.ca/, { sentinels: [{ host: "s" }], name: "m", ...tls, sentinelTLS: { ca: "PEM" } });
  refused(/name of the master/, { sentinels: [{ host: "s" }], name: null });
  for (const keyPrefix of [Buffer.from([255]), 5]) refused(/keyPrefix/, { host: "h", keyPrefix });
});

test("import and require give the same", () => {
  const required = createRequire(import.meta.url)("leasehold/compat/redlock");
  assert.equal(required.default, Redlock);
  assert.equal(required.ExecutionError, ExecutionError);
});
