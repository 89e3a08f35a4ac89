// The loop of `leasehold/edge` over a component that says what the test wants, under a clock that the test sets.

import assert from "node:assert/strict";
import { test } from "node:test";
import { LeaseLostError, NotOwnedError } from "leasehold/edge";
import { part } from "./helpers/edge.mjs";
import { until } from "./helpers/until.mjs";

const { Machine } = await part("machine");
const { Lease } = await part("lease");

const at = (ms) => BigInt(ms) * 1_000_000n;
const event = (tag, val) => ({ tag: "event", val: { lock: 1n, event: { tag, val } } });
const acquired = (deadline) => event("acquired", { token: 7n, deadlineNs: at(deadline) });
const renewed = (deadline) => event("renewed", { deadlineNs: at(deadline) });
const lost = event("lost", { reason: { tag: "taken-over" } });
const released = event("released", { confirmed: true });

/** A lease of a machine, whose component was `told` what is named there, and does what the test `say`s. */
function stage(source) {
  const scene = { ms: 0, told: [], isIdle: true };
  const outputs = [];
  const hear = (name) => () => void scene.told.push(name);
  const client = Object.fromEntries(
    ["setCredentials", "acquire", "release", "declareLost", "close", "handleTimeout"].map((name) => [name, hear(name)]),
  );
  client.isIdle = () => scene.isIdle;
  client.pollOutput = () => outputs.shift() ?? { tag: "wake-at", val: {} };
  const machine = new Machine({ Client: { createWired: () => client } }, {}, [{ source }]);
  machine.now = () => ({ monotonicNs: at(scene.ms), unixMs: 0n });
  const slot = machine.acquire("a", "me", {});
  /** Any command makes the machine ask for more. */
  const say = (...said) => {
    outputs.push(...said);
    machine.acquire("another", "me", {});
  };
  return Object.assign(scene, { machine, slot, lease: new Lease(machine, slot), say });
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
    assert.equal(scene.lease.remaining(), 0);
    assert.deepEqual(scene.told.filter((name) => name === "declareLost"), ["declareLost"], "nobody renews it any more");
    assert.ok(scene.lease.signal.reason instanceof LeaseLostError);
    assert.throws(() => scene.lease.check(), LeaseLostError);
  }
});

test("who has seen the deadline pass is not told otherwise by a renewal", () => {
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

test("the signal of a loss is aborted before anybody who waits hears of it", async () => {
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

test("a release is awaited until the store has confirmed it", async () => {
  const scene = stage();
  scene.say(acquired(100));
  let isReleased = false;
  const releasing = scene.lease.release().then(() => (isReleased = true));
  await new Promise(setImmediate);
  assert.equal(isReleased, false);
  assert.equal(scene.lease.remaining(), 0, "here it is over at once");
  scene.say(released);
  await releasing;
});

test("credentials are asked for once at a time, and again whenever they are needed", async () => {
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

test("closing waits until nothing is left to do", async () => {
  const scene = stage();
  scene.isIdle = false;
  scene.machine.close();
  const idle = scene.machine.isIdleWithin(60_000);
  scene.isIdle = true;
  // Whatever it hears makes it look.
  scene.machine.release(scene.slot);
  assert.equal(await idle, true);
  scene.isIdle = false;
  assert.equal(await scene.machine.isIdleWithin(1), false);
});
