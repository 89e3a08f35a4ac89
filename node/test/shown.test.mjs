// Objects in logs, by `console.log` and `JSON.stringify`: useful fields, and no secrets.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { connect } from "leasehold";
import Redlock from "leasehold/compat/redlock";
import { connect as connectEdge } from "leasehold/edge";
import { startRedis } from "./helpers/servers.mjs";
import { startRest } from "./helpers/rest.mjs";
import { undo } from "./helpers/undo.mjs";
import { until } from "./helpers/until.mjs";

const SLOW = { requestTimeout: 5_000, owner: "worker-1" };
const LONG = { ttl: 600_000 };

const parsed = (value) => JSON.parse(JSON.stringify(value));

/** A lease looks the same in both halves of the package. */
async function checkLease(lease, resource) {
  const { remaining, ...rest } = parsed(lease);
  assert.deepEqual(rest, { resource, owner: "worker-1", token: lease.token });
  assert.ok(remaining > 0 && remaining <= LONG.ttl);
  assert.match(inspect(lease), new RegExp(`^Lease \\{.*resource: '${resource}',.*token: ${lease.token},.*remaining: \\d+`, "s"));
  assert.match(inspect({ a: { b: { lease } } }), /lease: \[Lease\]/);
  await lease.release();
  assert.equal(parsed(lease).remaining, 0);
}

test("clients, leases, elections and results can be logged", async (t) => {
  const { url } = await startRedis(t);
  const client = await connect(url, SLOW);
  undo(t, () => client.close());
  assert.deepEqual(parsed(client), { stores: client.stores });
  assert.equal(inspect(client), `Client { stores: [ '${client.stores[0]}' ] }`);
  const lease = await client.acquire("invoice/42", LONG);
  const { resource, owner, token, foreign } = parsed(await client.inspect("invoice/42"));
  assert.deepEqual([resource, owner, token, foreign], ["invoice/42", "worker-1", lease.token, false]);
  assert.match(inspect(await client.inspect("invoice/42")), /resource: 'invoice\/42'.*owner: 'worker-1'/s);
  await checkLease(lease, "invoice/42");
  const leases = await client.lockAll(["b", "a"], LONG);
  assert.deepEqual(parsed(leases).map(({ resource }) => resource), ["a", "b"]);
  assert.match(inspect(leases), /^Leases \[\s*Lease \{.*resource: 'a'.*Lease \{.*resource: 'b'/s);
  await leases.release();
  const election = await client.elect("leader", LONG);
  await until(() => election.token !== null);
  assert.deepEqual(parsed(election), { resource: "leader", token: election.token });
  assert.match(inspect(election), /^Election \{ resource: 'leader', token: \d+/);
  await election.resign();
  assert.equal(parsed(election).token, null);
});

test("at the edge, too", async (t) => {
  const rest = await startRest(t, (await startRedis(t)).url);
  const client = await connectEdge(rest.url, SLOW);
  assert.deepEqual(parsed(client), { stores: [rest.bare] });
  const lease = await client.acquire("invoice/42", LONG);
  for (const shown of [client, lease].flatMap((value) => [inspect(value), JSON.stringify(value)])) assert.doesNotMatch(shown, /hunter2/);
  await checkLease(lease, "invoice/42");
  await client.close();
});

test("redlock locks show neither clients nor their urls", async (t) => {
  const { url } = await startRedis(t);
  const redlock = new Redlock([url.replace("://", "://:hunter2@")]);
  const plain = new Redlock([url]);
  undo(t, () => Promise.all([redlock.quit(), plain.quit()]));
  for (const shown of [inspect(redlock), JSON.stringify(redlock)]) {
    assert.match(shown, /retryCount/);
    assert.doesNotMatch(shown, /hunter2/);
  }
  const lock = await plain.acquire(["a"], LONG.ttl);
  const { expiration, ...rest } = parsed(lock);
  assert.deepEqual(rest, { resources: ["a"], value: lock.value });
  assert.ok(expiration > Date.now());
  assert.match(inspect(lock), /^Lock \{.*resources: \[ 'a' \]/s);
  assert.doesNotMatch(inspect(lock), /redis:/);
  await lock.release();
});
