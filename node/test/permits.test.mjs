// One lock of several, semaphores, and locks for readers and writers.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as leasehold from "leasehold";
import { start } from "./helpers/child.mjs";
import { sqlite } from "./helpers/folder.mjs";
import { startRedis } from "./helpers/servers.mjs";
import { until } from "./helpers/until.mjs";

const { connect, ConfigError, LeaseLostError, LockBusyError, LockTimeoutError, NotOwnedError } = leasehold;
/** For leases that must not be lost, and are released. */
const LONG = { ttl: 300_000 };
const WAITS = { ...LONG, wait: 240_000 };

let count = 0;
const stores = {
  memory: async () => `memory:permits-${(count += 1)}`,
  sqlite: async (t) => sqlite(t),
  redis: async (t) => (await startRedis(t)).url,
};

/** The same for each store, with two clients that are closed in the end. */
function testEach(name, body) {
  for (const [store, url] of Object.entries(stores)) {
    test(`${name}: ${store}`, async (t) => {
      const at = await url(t);
      const clients = [await connect(at, { requestTimeout: 5_000 }), await connect(at, { requestTimeout: 5_000 })];
      try {
        await body(...clients, t);
      } finally {
        for (const client of clients) await client.close();
      }
    });
  }
}

/** Repeats a change of a number while a refused request still holds what it gives back in the background. */
function changed(change) {
  return until(async () => {
    try {
      await change();
      return true;
    } catch (error) {
      if (error instanceof LockBusyError) return false;
      throw error;
    }
  });
}

testEach("any of several locks will do", async (one, two) => {
  const names = ["a", "b", "c"];
  const any = one.lockAny(new Set(names));
  assert.ok(any instanceof leasehold.LockAny);
  assert.deepEqual(any.names, names);
  const leases = [];
  for (const _ of names) leases.push(await any.acquire({ ...LONG, owner: "one" }));
  assert.deepEqual(leases.map(({ resource }) => resource).sort(), names);
  assert.equal(leases[0].owner, "one");
  assert.equal(await two.lockAny(names).tryAcquire(), null);
  await assert.rejects(two.lockAny(names).acquire({ wait: 50 }), (error) => {
    assert.ok(error instanceof LockTimeoutError);
    assert.equal(error.holder.owner, "one");
    return true;
  });
  const controller = new AbortController();
  const given = two.lockAny(names).acquire({ signal: controller.signal });
  controller.abort(new Error("enough"));
  await assert.rejects(given, /enough/);
  const waiting = two.lockAny(names).using(WAITS, (lease) => [lease.resource, lease.token]);
  await leases[1].release();
  const [resource, token] = await waiting;
  assert.equal(resource, leases[1].resource);
  assert.ok(token > leases[1].token);
  for (const lease of [leases[0], leases[2]]) {
    lease.check(1);
    await lease.release();
  }
  // What was given up while it was waited for is held by nobody.
  await (await two.lockAll(names, WAITS)).release();
});

testEach("a semaphore has as many holders as permits", async (one, two) => {
  let [now, most] = [0, 0];
  const work = async (client) => {
    for (let n = 0; n < 3; n += 1) {
      await client.semaphore("license", 2).using(WAITS, async (permit) => {
        assert.ok(permit instanceof leasehold.Permit && permit instanceof leasehold.Lease);
        assert.equal(permit.resource, `license#${permit.index}`);
        most = Math.max(most, (now += 1));
        await new Promise(setImmediate);
        permit.check();
        now -= 1;
      });
    }
  };
  await Promise.all([work(one), work(two), work(one), work(two)]);
  assert.ok(most >= 1 && most <= 2, String(most));
  const semaphore = one.semaphore("license", 2);
  const permits = [await semaphore.acquire({ ...WAITS, data: Buffer.from("here") }), await semaphore.acquire(WAITS)];
  assert.deepEqual(permits.map(({ index }) => index).sort(), [0, 1]);
  assert.deepEqual((await two.inspect(permits[0].resource)).data, Buffer.from("here"));
  assert.equal(permits[0].toJSON().index, permits[0].index);
  assert.equal(await two.semaphore("license", 2).tryAcquire(), null);
  for (const permit of permits) await permit.release();
  await assert.rejects(permits[0].release(), NotOwnedError);
});

testEach("all clients agree on the number of permits", async (one, two) => {
  const permit = await one.semaphore("license", 2).acquire(LONG);
  await assert.rejects(two.semaphore("license", 3).acquire(WAITS), (error) => {
    assert.ok(error instanceof ConfigError);
    assert.match(error.message, /permits is 3 here, and 2 in the store/);
    return true;
  });
  await assert.rejects(two.setPermits("license", 3), LockBusyError);
  await permit.release();
  await changed(() => two.setPermits("license", 3));
  await (await two.semaphore("license", 3).acquire(WAITS)).release();
  await assert.rejects(one.semaphore("license", 2).acquire(WAITS), /permits is 2 here, and 3 in the store/);
});

test("impossible numbers and names are refused", async () => {
  const client = await connect("memory:impossible");
  for (const number of [0, 65]) {
    for (const call of [
      () => client.semaphore("license", number).acquire(),
      () => client.setPermits("license", number),
      () => client.rwLock("license", { readers: number }).read(),
      () => client.rwLock("license", { readers: number }).write(),
      () => client.setReaders("license", number),
    ]) {
      await assert.rejects(call(), (error) => {
        assert.ok(error instanceof ConfigError);
        assert.ok(error.message.includes(`is ${number}; it can be 1 to 64`), error.message);
        return true;
      });
    }
  }
  for (const number of [-1, 1.5, NaN, 2 ** 70]) await assert.rejects(client.semaphore("license", number).acquire(), ConfigError);
  for (const names of [[], Array.from({ length: 65 }, String)]) {
    await assert.rejects(client.lockAny(names).acquire(), /name at least one, and at most 64/);
  }
  assert.throws(() => client.semaphore("license", "5"), TypeError);
  assert.throws(() => client.semaphore(5, 5), TypeError);
  assert.throws(() => client.lockAny("abc"), TypeError);
  assert.throws(() => client.lockAny(["a", 5]), TypeError);
  assert.throws(() => client.rwLock("catalog", { readers: "5" }), /readers must be a number, not string/);
  await assert.rejects(client.setPermits("license", "5"), TypeError);
  await assert.rejects(client.semaphore("license", 5).acquire({ lockDelay: 5 }), /there is no option lockDelay/);
  await assert.rejects(client.rwLock("catalog").read({ data: Buffer.from("") }), /there is no option data/);
  await assert.rejects(client.rwLock("catalog").tryWrite({ wait: 5 }), /there is no option wait/);
  await assert.rejects(client.rwLock("catalog").reading({}), /reading needs a function/);
  await client.close();
});

for (const store of ["sqlite", "redis"]) {
  test(`the permit of a killed holder comes back: ${store}`, async (t) => {
    const url = await stores[store](t);
    const holder = start("permit.mjs", url);
    await holder.until("held");
    holder.child.kill("SIGKILL");
    const { stdout } = await holder.ended;
    const client = await connect(url, { requestTimeout: 5_000 });
    const permit = await client.semaphore("license", 1).acquire(WAITS);
    assert.equal(permit.index, 0);
    assert.ok(permit.token > Number(stdout.split(" ")[1]));
    await client.close();
  });
}

testEach("readers share and writers are alone", async (one, two) => {
  const [ours, theirs] = [one, two].map((client) => client.rwLock("catalog", { readers: 2 }));
  const [first, second] = [await ours.read(WAITS), await theirs.read(WAITS)];
  await assert.rejects(ours.write({ wait: 0 }), LockBusyError);
  assert.equal(await ours.tryWrite(), null);
  let isWritten = false;
  const writing = theirs.writing(WAITS, async (lease) => {
    isWritten = true;
    lease.check(1);
    assert.equal(await ours.tryRead(), null);
    await assert.rejects(ours.read({ wait: 50 }), LockTimeoutError);
    assert.equal(await ours.tryWrite(), null);
    return lease.token;
  });
  await until(() => one.inspect("catalog#gate"));
  await assert.rejects(ours.read({ wait: 0 }), LockBusyError, "readers who come after a writer wait for it");
  assert.equal(isWritten, false);
  await first.release();
  await second.release();
  const token = await writing;
  assert.ok(token > Math.max(first.token, second.token));
  const after = await ours.reading(WAITS, async (lease) => {
    await assert.rejects(two.rwLock("catalog", { readers: 3 }).read(WAITS), /readers is 3 here, and 2 in the store/);
    await assert.rejects(two.setReaders("catalog", 3), LockBusyError);
    return lease.token;
  });
  assert.ok(after > token);
  await changed(() => two.setReaders("catalog", 3));
});

testEach("readers that come and go do not keep a writer out", async (one, two) => {
  let [isWritten, reads] = [false, 0];
  const read = async (client) => {
    while (!isWritten) {
      await client.rwLock("catalog", { readers: 4 }).reading(WAITS, () => (reads += 1));
      // Promises that are ready at once do not let the loop turn.
      await new Promise(setImmediate);
    }
  };
  const readers = [read(one), read(two), read(one)];
  try {
    await until(() => reads > 0);
    await two.rwLock("catalog", { readers: 4 }).writing(WAITS, (lease) => lease.check(1));
  } finally {
    isWritten = true;
  }
  await Promise.all(readers);
});

test("a reader that wants to write as well waits in vain, as long as it says", async () => {
  const client = await connect("memory:upgrade");
  const lock = client.rwLock("catalog");
  await lock.reading(async () => {
    assert.equal(await lock.tryWrite(), null);
    await assert.rejects(lock.write({ wait: 50 }), LockTimeoutError);
  });
  let held = 0;
  await lock.writing(async () => {
    for await (const _ of client.list("catalog#")) held += 1;
  });
  assert.equal(held, 17);
  await client.close();
});

test("a write is lost with any of its locks", async () => {
  const client = await connect("memory:lost");
  const lock = client.rwLock("catalog", { readers: 2 });
  await assert.rejects(
    lock.writing({ ttl: 8_000 }, async (lease) => {
      assert.ok((await client.releaseIf("catalog#reader1", { owner: "*" })).released);
      await until(() => lease.signal.aborted);
      assert.throws(() => lease.check(), LeaseLostError);
    }),
    LeaseLostError,
  );
  await client.close();
});
