// Metrics in registries of the real prom-client.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "leasehold";
import { collect } from "leasehold/prometheus";
import prom from "prom-client";
import { start } from "./helpers/child.mjs";
import { freePort } from "./helpers/server.mjs";
import { aborted } from "./helpers/signals.mjs";
import { until } from "./helpers/until.mjs";

/** The metrics that all languages have. */
function documented() {
  const page = readFileSync(join(process.env.LEASEHOLD_SOURCE, "docs/reliability.md"), "utf8");
  return Array.from(page.matchAll(/^\| `(leasehold_\w+)` \|/gm), ([, name]) => name).sort();
}

/** The value of a series. */
async function value(register, metric, labels = {}, name = metric) {
  const { values } = await register.getSingleMetric(metric).get();
  const fits = (value) => Object.entries(labels).every(([label, wanted]) => value.labels[label] === wanted);
  return values.find((value) => (value.metricName ?? metric) === name && fits(value))?.value ?? 0;
}

test("the metrics are those of all languages", async () => {
  const register = new prom.Registry();
  const stop = collect({ register });
  const metrics = await register.getMetricsAsJSON();
  assert.deepEqual(metrics.map(({ name }) => name).sort(), documented());
  assert.equal(await value(register, "leasehold_lost_total", { reason: "expired" }), 0);
  assert.match(await register.metrics(), /^leasehold_lost_total\{reason="expired"\} 0$/m);
  stop();
  assert.deepEqual(await register.getMetricsAsJSON(), []);
  stop();
});

test("what happens is counted", async (t) => {
  const register = new prom.Registry();
  t.after(collect({ register }));
  const client = await connect("memory:");
  const lease = await client.acquire("counted", { ttl: 60_000, renewEvery: 100 });
  assert.equal(await client.tryAcquire("counted"), null);
  const left = "leasehold_validity_left_seconds";
  await until(async () => (await value(register, left, {}, `${left}_count`)) > 0);
  await lease.release();
  // On a machine that stalls, it may be acquired again before the caller has it.
  const short = await client.acquire("counted", { ttl: 1_000, renew: false });
  await aborted(short.signal);
  await until(async () => (await value(register, "leasehold_lost_total", { reason: "expired" })) >= 1);
  await until(async () => (await value(register, "leasehold_acquire_total", { outcome: "acquired" })) >= 2);
  await until(async () => (await value(register, "leasehold_release_total", { outcome: "confirmed" })) === 1);
  const hold = "leasehold_hold_seconds";
  await until(async () => (await value(register, hold, {}, `${hold}_count`)) >= 2);
  assert.equal(await value(register, "leasehold_acquire_total", { outcome: "busy" }), 1);
  assert.ok((await value(register, "leasehold_renew_total", { outcome: "renewed" })) > 0);
  assert.ok(!(await register.metrics()).includes("counted"), "no label names a resource");
  await client.close();
});

test("a registry takes one collection, and buckets can be chosen", async () => {
  const register = new prom.Registry();
  const stop = collect({ register, buckets: { leasehold_wait_seconds: [1, 2] } });
  const text = await register.metrics();
  assert.match(text, /^leasehold_wait_seconds_bucket\{le="2"\} 0$/m);
  assert.doesNotMatch(text, /^leasehold_wait_seconds_bucket\{le="30"\}/m);
  assert.throws(() => collect({ register }), /one collection at a time/);
  stop();
  collect({ register })();
  assert.throws(() => collect({ register, buckets: { leasehold_wait: [1] } }), /there is no histogram leasehold_wait/);
  assert.throws(() => collect({ registry: register }), /there is no option registry/);
});

test("the example of the guide serves metrics", async (t) => {
  const page = readFileSync(join(process.env.LEASEHOLD_SOURCE, "docs/monitoring/README.md"), "utf8");
  const [[, example]] = page.matchAll(/^```js\n(.*?)^```$/gms);
  const port = await freePort();
  const folder = new URL("../recipes/", import.meta.url);
  mkdirSync(folder, { recursive: true });
  const program = `${example.replace("9464", port).replace("redis://locks", "memory:")}\nawait client.using("job", () => {});\n`;
  writeFileSync(new URL("monitoring.mjs", folder), `${program}console.log("ready");\n`);
  const server = start("../../recipes/monitoring.mjs");
  t.after(() => server.child.kill("SIGKILL"));
  await server.until("ready");
  const text = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  await until(async () => /^leasehold_release_total\{outcome="confirmed"\} 1$/m.test(await text()));
});
