// A client that is closed leaves no connection and no thread behind, even while it is kept.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { ClosedError, connect } from "leasehold";
import { startRedis } from "./helpers/servers.mjs";
import { until } from "./helpers/until.mjs";

const open = () => ["fd", "task"].map((of) => readdirSync(`/proc/self/${of}`).length);

test("closing ends connections and threads", { skip: process.platform !== "linux" }, async (t) => {
  const { url } = await startRedis(t);
  const used = async () => {
    const client = await connect(url);
    await client.using("a", () => {});
    return client;
  };
  await (await used()).close();
  const before = open();
  const clients = [];
  for (let count = 0; count < 5; count++) clients.push(await used());
  assert.ok(open()[1] > before[1]);
  await Promise.all(clients.map((client) => client.close()));
  await until(() => open().every((now, at) => now <= before[at]));
  await assert.rejects(clients[0].inspect("a"), ClosedError);
});
