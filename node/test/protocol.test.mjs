// The protocol without I/O: inputs of a host are never trusted.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import * as leasehold from "leasehold";
import * as protocol from "leasehold/protocol";

const { Client, CommandRejectedError, Guard, Reader } = protocol;
const { ConfigError, StaleTokenError, StoreUnavailableError } = leasehold;

const SEED = new Uint8Array(32).map((_, at) => at);
const FRESH = new Uint8Array(16);
const NOW = { monotonicNs: 1_000_000_000n, unixMs: 1_700_000_000_000 };
const LATER = { monotonicNs: 1_010_000_000n, unixMs: 1_700_000_000_010 };

const UPSTASH = { type: "redis-http", dialect: "upstash", url: "https://example.upstash.io", access: "anonymous" };

const client = (settings) => Client.create({ nodes: [{}], ...settings }, SEED, NOW);
const wired = (store) => Client.createWired({ nodes: [{}] }, [store], SEED, NOW);

function acquire(options, { lock = 1, resource = "job", fresh = FRESH, now = NOW } = {}) {
  client().acquire(lock, resource, options, fresh, now);
}

function drained(machine, now = NOW) {
  const outputs = [];
  for (let output; (output = machine.pollOutput(now)).type !== "wake-at"; ) outputs.push(output);
  return outputs;
}

test("a custom host gets a lease", () => {
  const machine = client();
  machine.acquire(1, "job", { ttl: 6_000, wait: { type: "once" } }, Buffer.from(FRESH), NOW);
  const [{ type, id, node, ops }, ...others] = drained(machine);
  assert.deepEqual([type, node, ops[0].op.type, ops[0].op.recordTtlMs, others], ["transmit", 0, "acquire", 6_000, []]);
  assert.ok(ops[0].op.nonce instanceof Uint8Array);
  const applied = { type: "acquired", counter: 7 };
  machine.handleResponse(id, { type: "outcomes", outcomes: [{ type: "applied", applied }] }, LATER);
  const left = machine.remainingNs(1, LATER);
  assert.ok(left > 5_000_000_000n && left < 6_000_000_000n);
  const event = { type: "acquired", token: 7, deadlineNs: LATER.monotonicNs + left, recovered: false };
  assert.deepEqual(drained(machine, LATER), [{ type: "event", lock: 1, event }]);
  const { held } = machine.stats();
  assert.deepEqual([machine.state(1), held, machine.isIdle(), machine.holder(1)], ["Held", 1, false, null]);
});

test("a step does the same", () => {
  const machine = client();
  const inputs = [{ type: "acquire", lock: 1, resource: "job", options: {} }, { type: "release", lock: 2 }];
  const { outputs, wakeAtNs } = machine.step(FRESH, NOW, inputs);
  assert.deepEqual(outputs[0], { type: "rejected", lock: 2, error: { type: "unknown-lock" } });
  assert.equal(outputs[1].type, "transmit");
  assert.ok(wakeAtNs > NOW.monotonicNs);
  const response = { type: "not-sent", kind: "unreachable", detail: "nobody there" };
  assert.deepEqual(machine.step(FRESH, NOW, [{ type: "response", id: outputs[1].id, response }]).outputs, []);
});

const cannotBe = {
  "0 nodes": () => Client.create({ nodes: [] }, SEED, NOW),
  "1 ppm": () => client({ driftPpm: 1 }),
  "config.driftPpm: 4294967296 is above": () => client({ driftPpm: 2 ** 32 }),
  "config.driftPpm: this is not a whole number": () => client({ driftPpm: 0.5 }),
  "config.limits.locks: this is not a whole number": () => client({ limits: { locks: -1 } }),
  "config.limits.locks: this bigint": () => client({ limits: { locks: -1n } }),
  "timeout is 61000 ms": () => client({ requestTimeout: 61_000 }),
  "config.requestTimeout: this is not a duration": () => client({ requestTimeout: -1 }),
  "requestTimeout: this is not a duration": () => client({ requestTimeout: NaN }),
  "this is not a duration": () => client({ requestTimeout: Infinity }),
  "quorum id has 5 bytes": () => client({ quorum: { id: Buffer.from("short") } }),
  'config.nodes[0].poll: "guess" is not one of acquire, read': () => client({ nodes: [{ poll: "guess" }] }),
  "seed has 5 bytes": () => Client.create({ nodes: [{}] }, Buffer.from("short"), NOW),
  "0 stores were given for 1 nodes": () => Client.createWired({ nodes: [{}] }, [], SEED, NOW),
  "store 0: ": () => wired({ ...UPSTASH, url: "http://example.com", access: "with-credentials" }),
  "name of the resource is empty": () => acquire({}, { resource: "" }),
  "control character": () => acquire({}, { resource: "a\nb" }),
  "ttl is 10 ms": () => acquire({ ttl: 10 }),
  "4097 bytes": () => acquire({ data: new Uint8Array(4097) }),
  'options.wait.type: "twice" is not one of once, for, forever': () => acquire({ wait: { type: "twice" } }),
  "fresh has 0 bytes": () => acquire({}, { fresh: new Uint8Array() }),
  "now.monotonicNs: this bigint": () => client().handleTimeout(FRESH, { ...NOW, monotonicNs: 2n ** 64n }),
  "store 9: ": () => client().setCredentials(9, { type: "token", token: "x" }, NOW),
  "loss has 1 bytes": () => client().nodeVotes(0, new Uint8Array(1), NOW),
  "never claimed": () => new Guard().check(1),
  "is not a token": () => new Guard().claim(2n ** 53n),
};

for (const [message, call] of Object.entries(cannotBe)) {
  test(`invalid values are refused by name: ${message}`, () => {
    assert.throws(call, (error) => error instanceof ConfigError && error.message.includes(message));
  });
}

const circle = {};
Object.assign(circle, { itself: circle, again: circle, wait: circle });
const ofWrongTypes = {
  "config: nothing is no object": () => Client.create(undefined, SEED, NOW),
  "config.nodes: a string is no array": () => Client.create({ nodes: "ab" }, SEED, NOW),
  "config.nodes: nothing is no array": () => Client.create({}, SEED, NOW),
  "there is no timeout; there are nodes": () => client({ timeout: 5 }),
  "options: there is no ttlMs": () => acquire({ ttlMs: 5 }),
  "watch: this number is no boolean": () => client({ nodes: [{ watch: 1 }] }),
  "lock: a string is no number": () => acquire({}, { lock: "1" }),
  "resource: a Uint8Array is no string": () => acquire({}, { resource: FRESH }),
  "fresh: a string is no Uint8Array": () => acquire({}, { fresh: "0".repeat(16) }),
  "fresh: a typed array of another kind": () => acquire({}, { fresh: new Uint16Array(16) }),
  "options.wait: this number is no object": () => acquire({ wait: 5 }),
  "options.owner: a function": () => acquire({ owner: () => "me" }),
  "options.owner: no plain value": () => acquire({ owner: Symbol("me") }),
  "response.outcomes[0]: this number is no object": () =>
    client().handleResponse(1, { type: "outcomes", outcomes: [3] }, NOW),
  "there are 2 of them": () =>
    client().handleResponse(1, { type: "http-response", status: 200, headers: [["a"]], body: FRESH }, NOW),
  "is made by Client.create": () => new Client(),
  "options: there is no itself": () => acquire(circle),
  "options.wait.type: nothing is no string": () => acquire({ wait: {} }),
};

for (const [message, call] of Object.entries(ofWrongTypes)) {
  test(`values of wrong types are refused by name: ${message}`, () => {
    assert.throws(call, (error) => error.message.includes(message));
  });
}

test("a getter of a value cannot call the client", () => {
  const machine = client();
  const odd = { get unixMs() { return machine.stats().locks; }, monotonicNs: 5n };
  machine.handleTimeout(FRESH, odd);
  const thrower = { get unixMs() { throw new RangeError("mine"); }, monotonicNs: 5n };
  assert.throws(() => machine.handleTimeout(FRESH, thrower), { message: "mine" });
  assert.ok(machine.isIdle());
});

test("a command that is not accepted says why", () => {
  const machine = client({ limits: { locks: 1 } });
  machine.acquire(1, "job", {}, FRESH, NOW);
  const calls = [
    [() => machine.acquire(1, "job", {}, FRESH, NOW), { type: "duplicate-lock" }],
    [() => machine.acquire(2, "job", {}, FRESH, NOW), { type: "too-many-locks", limit: 1 }],
    [() => machine.release(9, NOW), { type: "unknown-lock" }],
  ];
  for (const [call, reason] of calls) {
    assert.throws(call, (error) => {
      assert.ok(error instanceof CommandRejectedError && error instanceof leasehold.LeaseholdError);
      assert.deepEqual([error.code, error.reason], ["rejected", reason]);
      return true;
    });
  }
});

test("replies of servers are not trusted", () => {
  const bodies = ["{", "\xff", "", "x".repeat(2_000_000), '{"result":["granted"]}'];
  for (const body of bodies) {
    const machine = wired(UPSTASH);
    machine.acquire(1, "job", { wait: { type: "once" } }, FRESH, NOW);
    const [{ id, headers }] = drained(machine);
    assert.ok(new Headers(headers).has("content-type"));
    const response = { type: "http-response", status: 200, headers: [], body: Buffer.from(body, "latin1") };
    machine.handleResponse(id, response, NOW);
    assert.notEqual(machine.state(1), "Held");
  }
});

test("random values throw errors and never panic", () => {
  const values = [
    undefined, null, true, 0, -1, 1.5, NaN, Infinity, 2 ** 53, 5n, -5n, 2n ** 70n, "", "x".repeat(2_000), [], [[]], {},
    new Uint8Array(3), new ArrayBuffer(3), { type: "acquire" }, { nodes: [{}] }, () => 1, Symbol("s"), new Date(), circle,
  ];
  // Any other error, above all the end of the process, fails the test.
  for (const value of values) {
    for (const call of [
      () => Client.create(value, value, value),
      () => client({ nodes: value, driftPpm: value, requestTimeout: value, limits: value, quorum: value }),
      () => wired(value),
      () => client().acquire(value, value, value, value, value),
      () => acquire({ ttl: value, wait: value, lockDelay: value, maxHold: value, renewal: value }),
      () => acquire({ owner: value, data: value }),
      () => client().handleResponse(value, value, value),
      () => client().step(value, value, value),
      () => new Guard(value).claim(value),
      () => new Reader(value).push(value),
      () => new Reader().take(value),
      () => protocol.encode(value),
      () => protocol.channel(value),
      () => protocol.releasedBy(value, value),
    ]) {
      try {
        call();
      } catch (error) {
        assert.ok(error instanceof TypeError || error instanceof ConfigError, `${typeof value}: ${error}`);
      }
    }
  }
});

test("a reader splits replies", () => {
  const reader = new Reader();
  reader.push(Buffer.from("+OK\r\n:4"));
  assert.equal(reader.take(2), null);
  reader.push(Buffer.from("2\r\nrest"));
  assert.equal(Buffer.from(reader.take(2)).toString(), "+OK\r\n:42\r\n");
  reader.push(Buffer.from("\r\n"));
  assert.throws(() => reader.take(1), StoreUnavailableError);
  assert.equal(Buffer.from(protocol.encode([[Buffer.from("PING")]])).toString(), "*1\r\n$4\r\nPING\r\n");
  assert.equal(protocol.releasedBy(Buffer.from("other"), Buffer.from("")), null);
  assert.ok(protocol.channel("job").length > 3);
});

test("a guard restores its mark", () => {
  let guard = new Guard();
  assert.equal(guard.highWater, null);
  guard.claim(33);
  guard.check(33, 2);
  assert.throws(() => guard.check(33, 1), StaleTokenError);
  guard = new Guard(guard.highWater);
  guard.claim(34);
  assert.throws(() => guard.check(33), StaleTokenError);
});

test("the clocks of this machine, and both kinds of modules", () => {
  const [before, after] = [protocol.now(), protocol.now()];
  assert.ok(after.monotonicNs >= before.monotonicNs && Math.abs(before.unixMs - Date.now()) < 60_000);
  assert.equal(createRequire(import.meta.url)("leasehold/protocol").Client, Client);
  assert.equal(leasehold.CommandRejectedError, undefined);
});
