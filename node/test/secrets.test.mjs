// The texts of clients, leases and errors contain no password.

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as open } from "node:net";
import { test } from "node:test";
import { inspect } from "node:util";

import { connect } from "leasehold";
import { startRedis } from "./helpers/servers.mjs";

const PASSWORD = "hunter2-of-this-test";

/** All texts that a program might log. */
function shown(value) {
  const { message, stack, cause } = value ?? {};
  const whole = inspect(value, { depth: 9, showHidden: true, getters: true });
  return [whole, JSON.stringify(value), String(value), message, stack, String(cause)].join("\n");
}

async function command(url, words) {
  const socket = open(Number(new URL(url).port), "127.0.0.1");
  socket.end(`${words}\r\n`);
  const [answer] = await once(socket, "data");
  assert.equal(String(answer), "+OK\r\n");
}

test("a password is shown nowhere", async (t) => {
  const { url, stop } = await startRedis(t);
  await command(url, `CONFIG SET requirepass ${PASSWORD}`);
  const whole = url.replace("://", `://:${PASSWORD}@`);
  const client = await connect(whole, { requestTimeout: 5_000 });
  const lease = await client.acquire("job", { ttl: 8_000, renewEvery: 100 });
  const things = [client, client.stores, lease, await client.inspect("job")];
  const failures = [
    connect(whole.replace(PASSWORD, "hunter2-guess")),
    connect(whole.replace("redis:", "redis2:")),
    connect(`${whole}?nope=1`),
    connect(`redis://:hunter2/of/this@127.0.0.1`),
    client.acquire("job", { wait: 0 }),
  ];
  for (const failure of await Promise.allSettled(failures)) {
    assert.equal(failure.status, "rejected");
    things.push(failure.reason);
  }
  await stop();
  const [gone] = await Promise.allSettled([client.acquire("other", { wait: 0 })]);
  things.push(gone.reason, lease.signal.reason);
  await client.close().catch((error) => things.push(error));
  for (const thing of things) assert.ok(!shown(thing).includes("hunter2"), shown(thing));
});
