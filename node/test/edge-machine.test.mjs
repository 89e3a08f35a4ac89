// The loop of `leasehold/edge` over a fake component, with a clock that the test sets.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { LeaseLostError, NotOwnedError } from "leasehold/edge";
import { part } from "./helpers/edge.mjs";
import { until } from "./helpers/until.mjs";

const { Client } = await part("client");
const { Machine } = await part("machine");
const { Lease } = await part("lease");

const at = (ms) => BigInt(ms) * 1_000_000n;
const event = (tag, val, lock = 1n) => ({ tag: "event", val: { lock, event: { tag, val } } });
const acquired = (deadline) => event("acquired", { token: 7n, deadlineNs: at(deadline) });
const renewed = (deadline) => event("renewed", { deadlineNs: at(deadline) });
const lost = event("lost", { reason: { tag: "taken-over" } });
/** The handles that keep the process alive. */
const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
const released = event("released", { confirmed: true });

/** A lease of a machine; `told` lists the calls of its component, and `say` sets the outputs. */
function stage(source, nodes = 1) {
  const scene = { ms: 0, told: [], isIdle: true, wakeAtNs: undefined };
  const outputs = [];
  const hear = (name) => () => void scene.told.push(name);
  const client = Object.fromEntries(
    ["setCredentials", "acquire", "release", "declareLost", "close"].map((name) => [name, hear(name)]),
  );
  const reads = [];
  client.read = () => BigInt(reads.push(undefined));
  client.takeRead = (id) => reads[Number(id) - 1];
  [client.revoke, client.takeRevoke] = [client.read, client.takeRead];
  client.handleTimeout = () => (scene.wakeAtNs = undefined);
  client.isIdle = () => scene.isIdle;
  client.pollOutput = () => outputs.shift() ?? { tag: "wake-at", val: { atNs: scene.wakeAtNs } };
  const machine = new Machine({ Client: { createWired: () => client } }, {}, Array(nodes).fill({ source }));
  machine.now = () => ({ monotonicNs: at(scene.ms), unixMs: 0n });
  const slot = machine.acquire("a", "me", {});
  /** Any command makes the machine poll for outputs. */
  const say = (...said) => {
    outputs.push(...said);
    machine.acquire("another", "me", {});
  };
  /** The answers of the nodes to the latest read, and the outcome of the latest revocation. */
  const tell = (taken) => {
    reads[reads.length - 1] = taken;
    say();
  };
  const answer = (...outcomes) => tell({ outcomes });
  return Object.assign(scene, { machine, slot, lease: new Lease(machine, slot), say, answer, tell });
}

test("a renewal in time moves the deadline, one at the deadline or later brings nothing back", () => {
  const scene = stage();
  scene.say(acquired(100));
  scene.ms = 99;
  scene.say(renewed(300));
  scene.ms = 200;
  assert.equal(scene.lease.remaining(), 100);
  for (const late of [300, 350]) {
    scene.ms = late;
    scene.say(renewed(900));
    assert.equal(scene.slot.signal.aborted, true, "though nobody has looked");
    assert.equal(scene.lease.remaining(), 0);
    assert.deepEqual(scene.told.filter((name) => name === "declareLost"), ["declareLost"], "nobody renews it any more");
    assert.ok(scene.lease.signal.reason instanceof LeaseLostError);
    assert.throws(() => scene.lease.check(), LeaseLostError);
  }
});

test("a renewal does not revoke a loss that a check has reported", () => {
  const scene = stage();
  const { signal } = scene.slot;
  scene.say(acquired(100));
  scene.ms = 100;
  assert.equal(scene.lease.remaining(), 0);
  assert.equal(signal.aborted, true);
  // The clock of a runtime may stand still, or even go back.
  scene.ms = 50;
  scene.say(renewed(900));
  assert.equal(scene.lease.remaining(), 0);
});

test("the signal of a loss is aborted before waiting calls reject", async () => {
  for (const [tell, error] of [[(scene) => scene.say(lost), LeaseLostError], [({ machine }) => machine.close(), NotOwnedError]]) {
    const scene = stage();
    scene.say(acquired(100));
    const { signal } = scene.lease;
    scene.isIdle = false;
    const heard = [];
    signal.addEventListener("abort", () => heard.push("signal"));
    tell(scene);
    await assert.rejects(scene.lease.release().finally(() => heard.push("rejection")), error);
    assert.deepEqual(heard, ["signal", "rejection"]);
    assert.ok(signal.reason instanceof error);
  }
});

test("an abort that comes after the grant does not take it back", async () => {
  const { machine, say, told } = stage();
  const controller = new AbortController();
  const acquiring = new Client(machine, [], "me").acquire("b", { signal: controller.signal });
  say(event("acquired", { token: 7n, deadlineNs: at(100) }, 2n));
  // Before the waiting caller has seen it.
  controller.abort();
  const lease = await acquiring;
  assert.equal(lease.remaining(), 100);
  assert.ok(!told.includes("release"));
});

test("a release that finds the lock lost rejects, after the signal", async () => {
  for (const end of ["release", Symbol.asyncDispose]) {
    const scene = stage();
    scene.say(acquired(100));
    const heard = [];
    const { signal } = scene.lease;
    signal.addEventListener("abort", () => heard.push("signal"));
    const ending = scene.lease[end]().finally(() => heard.push("rejection"));
    scene.say(lost);
    await assert.rejects(ending, LeaseLostError);
    assert.deepEqual(heard, ["signal", "rejection"]);
    assert.ok(signal.reason instanceof LeaseLostError);
    assert.throws(() => scene.lease.check(), LeaseLostError);
    await assert.rejects(scene.lease.release(), LeaseLostError);
  }
});

test("a release resolves when the store has confirmed it", async () => {
  const scene = stage();
  scene.say(acquired(100));
  let isReleased = false;
  const before = timers();
  const releasing = scene.lease.release().then(() => (isReleased = true));
  await new Promise(setImmediate);
  assert.equal(isReleased, false);
  assert.equal(scene.lease.remaining(), 0, "here it is over at once");
  assert.equal(timers(), before + 1, "it is awaited");
  scene.say(released);
  await releasing;
  assert.equal(timers(), before, "nothing keeps the process alive any more");
});

test("a release whose answer was lost is done once the lock is free", async () => {
  const scene = stage();
  scene.say(acquired(100));
  const releasing = scene.lease.release();
  scene.say(event("released", { confirmed: false }));
  await releasing;
});

test("a read resolves with the answers of the nodes, each with its own", async () => {
  const scene = stage();
  const first = scene.machine.read("a");
  const second = scene.machine.read("b");
  scene.answer("of the second");
  assert.deepEqual(await second, ["of the second"]);
  assert.equal(await Promise.race([first, "not yet"]), "not yet");
});

test("a revocation resolves with what has become of it", async () => {
  for (const isRevoked of [true, false]) {
    const scene = stage();
    const revoking = scene.machine.revoke("a", new Uint8Array(16));
    scene.tell({ isRevoked, troubles: [] });
    assert.equal(await revoking, isRevoked);
  }
  const refused = (refusal) => ({ tag: "not-applied", val: { refusal } });
  const fault = { kind: "server", detail: "boom" };
  const detail = { detail: "no permission" };
  for (const [nodes, troubles, code, words] of [
    [1, [{ tag: "unknown", val: fault }], "store_unavailable", /^"a": the store cannot be used now \(store failure: boom\)$/],
    [1, [refused({ tag: "throttled", val: fault })], "store_unavailable", /^"a": the store throttles requests/],
    [1, [refused({ tag: "needs-credentials", val: fault })], "store_unavailable", /^"a": the store cannot be used now/],
    [1, [refused({ tag: "denied", val: detail })], "store_refused", /^"a": the store refuses: no permission$/],
    // Others of its nodes may be back soon.
    [3, [refused({ tag: "denied", val: detail })], "store_unavailable", /too few of 3 nodes have revoked the lease.*no permission; try again$/],
    [3, [], "store_unavailable", /its holder may keep it; try again$/],
  ]) {
    const scene = stage(undefined, nodes);
    const revoking = scene.machine.revoke("a", new Uint8Array(16));
    scene.tell({ isRevoked: undefined, troubles });
    await assert.rejects(revoking, (error) => error.code === code && words.test(error.message), String(words));
  }
});

test("a read of a client that is closed, or whose machine fails, rejects", async () => {
  const scene = stage();
  const reading = scene.machine.read("a");
  assert.throws(() => scene.say({ tag: "unheard-of", val: {} }), /unsupported output/);
  await assert.rejects(reading, /unsupported output/);
  await assert.rejects(scene.machine.read("a"), /unsupported output/);
  const closed = stage();
  closed.machine.close();
  await assert.rejects(closed.machine.read("a"), { code: "closed" });
});

test("credentials are requested once at a time, and again whenever they are needed", async () => {
  const pending = [];
  const scene = stage(() => new Promise((resolve) => pending.push(resolve)));
  const need = { tag: "need-credentials", val: { node: 0 } };
  for (let round = 1; round <= 2; round++) {
    scene.say(need, need);
    assert.equal(pending.length, round);
    pending.at(-1)({ tag: "token", val: {} });
    await until(() => scene.told.filter((name) => name === "setCredentials").length === round);
    // Until it is ready for the next round.
    await new Promise(setImmediate);
  }
});

test("missing credentials are requested again, and errors have the reason meanwhile", async () => {
  const trouble = new Error("no keys today");
  let asked = 0;
  const scene = stage(async () => {
    if ((asked += 1) < 3) throw trouble;
    return { tag: "token", val: {} };
  });
  scene.isIdle = false;
  scene.say({ tag: "need-credentials", val: { node: 0 } });
  await until(() => scene.machine.trouble === trouble);
  // By itself, since a caller waits for a lock.
  await until(() => asked === 2);
  scene.isIdle = true;
  // And for the next caller.
  await until(() => (scene.say(), asked === 3));
  await until(() => scene.told.includes("setCredentials"));
  assert.equal(scene.machine.trouble, undefined);
});

test("suspended time is detected soon", async () => {
  const scene = stage();
  scene.wakeAtNs = at(3_600_000);
  scene.say();
  scene.ms = 3_600_000;
  await until(() => scene.wakeAtNs === undefined);
});

test("a lock that is over is forgotten", async () => {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc");
  const scene = stage();
  const over = { failed: { failure: { tag: "cancelled" } }, lost: { reason: { tag: "expired" } }, released: { confirmed: true } };
  const slots = Object.entries(over).map(([tag, val]) => {
    const slot = scene.machine.acquire("a", "me", {});
    scene.say(event(tag, val, slot.lock));
    return new WeakRef(slot);
  });
  await until(() => (gc(), slots.every((slot) => slot.deref() === undefined)));
});

test("closing waits until nothing is left to do", async () => {
  const scene = stage();
  scene.isIdle = false;
  scene.machine.close();
  const idle = scene.machine.isIdleWithin(60_000);
  scene.isIdle = true;
  // Any call makes it check.
  scene.machine.release(scene.slot);
  assert.equal(await idle, true);
  scene.isIdle = false;
  assert.equal(await scene.machine.isIdleWithin(1), false);
});
