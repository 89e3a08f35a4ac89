// Replacing: the newest call for a run gets it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { connect, ConfigError, LeaseLostError } from "leasehold";
import * as testing from "leasehold/testing";
import { sqlite } from "./helpers/folder.mjs";
import { startRedis } from "./helpers/servers.mjs";
import { aborted } from "./helpers/signals.mjs";

/** A deployment whose runner hears soon that it is replaced. */
const DEPLOY = { key: "live", ttl: 600_000, renewEvery: 200 };

const stores = { memory: () => "memory:replace", sqlite, redis: async (t) => (await startRedis(t)).url };

for (const [store, make] of Object.entries(stores)) {
  test(`the newest call replaces the runner: ${store}`, async (t) => {
    const url = await make(t);
    const clients = await Promise.all([connect(url, { owner: "one" }), connect(url, { owner: "two" })]);
    t.after(() => Promise.all(clients.map((client) => client.close())));
    const [one, two] = clients;
    let began;
    const begun = new Promise((resolve) => (began = resolve));
    const former = one.once("deploy", DEPLOY, async (run) => {
      began();
      await aborted(run.signal);
    });
    await begun;
    const newest = two.once("deploy", { ...DEPLOY, replace: true }, ({ owner }) => owner);
    await assert.rejects(former, (error) => error instanceof LeaseLostError && error.reason === "revoked");
    assert.equal((await newest).value, "two");
    for (const client of clients) assert.equal((await client.once("deploy", { ...DEPLOY, replace: true }, () => 0)).reason, "done");
  });
}

test("an older call steps aside", async (t) => {
  const clients = await Promise.all(["one", "two", "three"].map((owner) => connect("memory:replace-older", { owner })));
  t.after(() => Promise.all(clients.map((client) => client.close())));
  const [one, two, three] = clients;
  const { run: former } = await one.beginRun("deploy", DEPLOY);
  const older = two.once("deploy", { ...DEPLOY, replace: true }, () => assert.fail("it is not the newest"));
  await aborted(former.signal);
  const newest = three.once("deploy", { ...DEPLOY, replace: true }, ({ owner }) => owner);
  assert.deepEqual(await older, { ran: false, reason: "replaced" });
  await former.release().catch(() => {});
  assert.equal((await newest).value, "three");
});

test("what contradicts a replacement is refused", async () => {
  const client = testing.connect({ clock: new testing.FakeClock() });
  for (const options of [{ maxAttempts: 2 }, { watchHolder: true }, { wait: 0 }]) {
    const asked = client.once("deploy", { ...DEPLOY, replace: true, ...options }, () => assert.fail("it must not run"));
    await assert.rejects(asked, (error) => error instanceof ConfigError && /a request that replaces the runner/.test(error.message));
  }
  await assert.rejects(client.once("deploy", { ...DEPLOY, replace: 1 }, () => 0), TypeError);
});
