// Decorators for Nest, on the real framework.

import "reflect-metadata";
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Injectable, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { Cron } from "@nestjs/schedule";
import ts from "typescript";
import { Client, ConfigError, GivenUpError, LeaseLostError, ResultNotKeptError, connect, unsettled } from "leasehold";
import { LeaseholdModule, Once, currentRun } from "leasehold/nestjs";
import * as testing from "leasehold/testing";
import { start } from "./helpers/child.mjs";
import { folder, sqlite } from "./helpers/folder.mjs";
import { startRedis } from "./helpers/servers.mjs";
import { undo } from "./helpers/undo.mjs";
import { until } from "./helpers/until.mjs";

test("another process takes over from one that is killed in the middle of a job", async (t) => {
  const source = new URL("programs/nestjs.mts", import.meta.url);
  const { outputText } = ts.transpileModule(readFileSync(source, "utf8"), {
    compilerOptions: {
      module: ts.ModuleKind.ESNext,
      target: ts.ScriptTarget.ES2022,
      experimentalDecorators: true,
      emitDecoratorMetadata: true,
    },
  });
  writeFileSync(new URL("programs/nestjs.mjs", import.meta.url), outputText);
  const { url } = await startRedis(t);
  const file = join(folder(t), "record");
  writeFileSync(file, "");
  const lines = () => readFileSync(file, "utf8").split("\n").filter(Boolean).map((line) => line.split(" "));
  const of = (what, by) => lines().filter((line) => line[0] === what && (by ?? line[2]) === line[2]);
  const processes = [0, 1].map(() => start("nestjs.mjs", url, file));
  for (const { child } of processes) undo(t, () => void child.kill("SIGKILL"));
  const [, , pid, token] = await until(() => of("begun")[0]);
  const [runner, other] = processes.sort(({ child }) => (String(child.pid) === pid ? -1 : 1));
  await until(() => of("below").length > 0);
  assert.deepEqual(of("done"), []);
  runner.child.kill("SIGKILL");
  const [, which, by, higher] = await until(() => of("done")[0]);
  assert.deepEqual([which, by], ["yearly", String(other.child.pid)]);
  assert.ok(Number(higher) > Number(token));
  const seen = of("below").length;
  await until(() => of("below").length > seen + 1);
  other.child.stdin.end();
  const { code, stderr } = await other.ended;
  // On a loaded machine the scheduler says that it comes late.
  const said = stderr.split("\n").filter((line) => line !== "" && !line.startsWith("[Cron] Missed execution deadline"));
  assert.deepEqual([code, said], [0, []]);
  assert.equal(of("done").length, 1, "it is done");
  const ran = of("below");
  // The one that was killed may have done its last one, and not written the completion.
  const last = ran.findLast(([, , by]) => by === pid);
  const keys = ran.filter((line) => line !== last).map(([, resource]) => resource);
  assert.equal(new Set(keys).size, keys.length, `twice in a period: ${keys}`);
});

/** Decorates a method as TypeScript does. */
function decorate(Class, key, ...decorators) {
  const descriptor = Object.getOwnPropertyDescriptor(Class.prototype, key);
  const made = decorators.reduceRight((made, decorator) => decorator(Class.prototype, key, made) ?? made, descriptor);
  Object.defineProperty(Class.prototype, key, made);
}

class Jobs {
  calls = [];

  async report(day, part) {
    this.calls.push([day, part, currentRun().resource]);
    await undefined;
    assert.equal(currentRun().resource, `report-${day}@${part}`);
    return `${day}.${part}`;
  }

  async receipt(order) {
    this.calls.push(["receipt", order]);
    const numbers = { 1: { number: "2026-1", at: new Date(0) }, 2: undefined, 3: new Uint8Array([1, 2]), 4: "x".repeat(5_000) };
    return numbers[order];
  }

  async fails() {
    throw new RangeError("on purpose");
  }

  async declines() {
    throw new RangeError(`declined ${currentRun().attempts.count}`);
  }

  async loses(client) {
    client.lose(currentRun().resource);
  }

  async nested() {
    const outer = currentRun().resource;
    await this.report("nested", "1");
    return [outer, currentRun().resource];
  }
}
Injectable()(Jobs);
decorate(Jobs, "report", Once((day) => `report-${day}`, { key: (_, part) => part }), Cron("0 2 * * *"));
decorate(Jobs, "receipt", Once("receipt", { key: (order) => String(order), saveResult: true }));
decorate(Jobs, "fails", Cron("0 3 * * *", { name: "fails" }), Once("fails", { key: "s" }));
decorate(Jobs, "declines", Once("declines", { keep: 604_800_000, maxAttempts: 2, retryAfter: 60_000 }));
decorate(Jobs, "loses", Once("loses", { keep: 604_800_000 }));
decorate(Jobs, "nested", Once("nested", { keep: 604_800_000 }));

/** An application over a fake client. */
async function application(client) {
  const providers = [Jobs, { provide: "given", useValue: client }];
  class Config {}
  Module({ providers, exports: ["given"] })(Config);
  const imports = [LeaseholdModule.forRootAsync({ imports: [Config], inject: ["given"], useFactory: (client) => client })];
  class App {}
  Module({ imports: [...imports, Config], providers: [Jobs] })(App);
  return NestFactory.createApplicationContext(App, { logger: false });
}

test("each call of a method is a run", async () => {
  const client = testing.connect();
  const rival = testing.connect({ clock: client.clock });
  const app = await application(client);
  const jobs = app.get(Jobs);
  assert.equal(app.get(Client), client);
  assert.equal(currentRun(), null);
  assert.equal(await jobs.report("mon", "1"), "mon.1");
  assert.equal(await jobs.report("mon", "1"), undefined, "it is done");
  assert.equal(await jobs.report("mon", "2"), "mon.2");
  assert.equal(await jobs.report("tue", "1"), "tue.1");
  assert.deepEqual(jobs.calls.map((call) => call[2]), ["report-mon@1", "report-mon@2", "report-tue@1"]);
  assert.deepEqual(await jobs.nested(), ["nested@", "nested@"]);
  const { run } = await rival.beginRun("report-wed", { key: "1" });
  assert.equal(await jobs.report("wed", "1"), undefined, "somebody else is at it");
  await run.release();
  assert.equal(await jobs.report("wed", "1"), "wed.1");
  await assert.rejects(jobs.fails(), RangeError);
  assert.deepEqual(await rival.inspectRun("fails", "s"), { resource: "fails@s", name: "fails", key: "s", holder: null, done: null, attempts: null });
  await assert.rejects(jobs.loses(client), LeaseLostError);
  await app.close();
  await assert.rejects(jobs.fails(), { code: "closed" }, "the client is closed with the application");
});

test("a method whose work is done gives the result that the first call has left", async (t) => {
  const url = sqlite(t);
  const apps = [];
  for (let n = 0; n < 2; n++) {
    const app = await application(await connect(url, { requestTimeout: 5_000 }));
    undo(t, () => app.close());
    apps.push(app);
  }
  const [first, second] = apps.map((app) => app.get(Jobs));
  const number = { number: "2026-1", at: "1970-01-01T00:00:00.000Z" };
  assert.deepEqual([await first.receipt(1), await second.receipt(1), await first.receipt(1)], [number, number, number]);
  assert.deepEqual([await first.receipt(2), await second.receipt(2)], [null, null]);
  for (const jobs of [first, second]) assert.deepEqual([...(await jobs.receipt(3))], [1, 2]);
  await assert.rejects(first.receipt(4), ResultNotKeptError);
  assert.equal(await second.receipt(4), undefined, "the work is done, and its result was too long");
  assert.deepEqual([first.calls.length, second.calls.length], [4, 0]);
  assert.equal(await first.report("mon", "1"), "mon.1");
  assert.equal(await second.report("mon", "1"), undefined, "without saveResult");
});

test("a method whose result a quorum has not settled gives none", async () => {
  const jobs = new Jobs();
  jobs[Symbol.for("leasehold.nestjs.client")] = { once: async () => ({ ran: false, reason: "done", result: unsettled }) };
  assert.equal(await jobs.receipt(1), undefined);
});

test("a method that always fails is given up, and says why", async () => {
  const client = testing.connect();
  const app = await application(client);
  const jobs = app.get(Jobs);
  await assert.rejects(jobs.declines(), { name: "RangeError", message: "declined 1" });
  assert.equal(await jobs.declines(), undefined, "the pause is not over");
  client.clock.advance(60_000);
  await assert.rejects(jobs.declines(), { name: "RangeError", message: "declined 2" });
  await assert.rejects(jobs.declines(), (error) => error instanceof GivenUpError && error.attempts.reason === "RangeError: declined 2");
  await app.close();
});

test("other decorators find what they have said", () => {
  for (const [key, expression] of [["report", "0 2 * * *"], ["fails", "0 3 * * *"]]) {
    const method = Jobs.prototype[key];
    assert.equal(method.name, key);
    const said = Reflect.getMetadataKeys(method).map((about) => Reflect.getMetadata(about, method));
    assert.ok(said.some((value) => value?.cronTime === expression), `${key}: ${JSON.stringify(said)}`);
  }
});

test("a client belongs to its module", async () => {
  const app = await NestFactory.createApplicationContext(LeaseholdModule.forRoot("memory:"), { logger: false });
  assert.deepEqual(app.get(Client).stores, ["memory:"]);
  const client = app.get(Client);
  await app.close();
  await assert.rejects(client.acquire("a"), { code: "closed" });
  await assert.rejects(new Jobs().fails(), ConfigError, "an instance that Nest has not made");
  await assert.rejects(NestFactory.createApplicationContext(LeaseholdModule.forRoot("nonsense"), { logger: false, abortOnError: false }), ConfigError);
});

test("CommonJS has the same decorators", () => {
  const required = createRequire(import.meta.url)("leasehold/nestjs");
  assert.deepEqual(Object.keys(required).sort(), ["LeaseholdModule", "Once", "currentRun"]);
});

test("impossible decorations are refused", () => {
  for (const wrong of [
    () => Once(),
    () => Once("job", { key: 5 }),
    () => Once("job", { timeout: 5 }),
    () => Once("job", { key: "s", saveResult: 1 }),
    () => Once("job", { key: "s", signal: AbortSignal.abort() }),
    () => Once("job", { key: "s" })(Jobs.prototype, "calls", undefined),
    () => Once("job", { key: "s" })(Jobs, "report", Object.getOwnPropertyDescriptor(Jobs.prototype, "report")),
  ]) {
    assert.throws(wrong, TypeError);
  }
  for (const wrong of [() => Once("job"), () => Once("job", { wait: 5_000 })]) {
    assert.throws(wrong, { code: "config", message: /^@Once: say when the work may be done again: key .*, cron .*, or keep / });
  }
});
