// The adapters on the oldest versions of other libraries that are promised: Nest 10, Fastify 4 and prom-client 14.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { folderOf, installed } from "./helpers/others.mjs";

/** Runs a program beside these packages. */
function runs(t, packages, program) {
  const cwd = installed(t, { "program.mjs": program });
  for (const name of packages) {
    const link = join(cwd, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(folderOf(name), link);
  }
  return execFileSync(process.execPath, ["program.mjs"], { cwd, encoding: "utf8" });
}

test("work is done once in Nest 10", (t) => {
  const program = `
    import "reflect-metadata";
    import { createRequire } from "node:module";
    import { Injectable, Module } from "@nestjs/common";
    import { NestFactory } from "@nestjs/core";
    import { Client } from "leasehold";
    import { LeaseholdModule, Once, currentRun } from "leasehold/nestjs";

    class Jobs {
      async report() {
        return currentRun().resource;
      }
    }
    Injectable()(Jobs);
    Object.defineProperty(Jobs.prototype, "report", Once("report", { key: "1" })(Jobs.prototype, "report", Object.getOwnPropertyDescriptor(Jobs.prototype, "report")));
    class App {}
    Module({ imports: [LeaseholdModule.forRoot("memory:")], providers: [Jobs] })(App);
    const app = await NestFactory.createApplicationContext(App, { logger: false });
    const jobs = app.get(Jobs);
    const { version } = createRequire(import.meta.url)("@nestjs/common/package.json");
    console.log(version.split(".")[0], await jobs.report(), await jobs.report(), app.get(Client) instanceof Client);
    await app.close();`;
  const packages = ["@nestjs/common", "@nestjs/core", "reflect-metadata", "rxjs"];
  assert.equal(runs(t, packages, program), "10 report@1 undefined true\n");
});

test("requests are answered once in Fastify 4", (t) => {
  const program = `
    import fastify from "fastify";
    import { connect } from "leasehold";
    import { idempotency } from "leasehold/fastify";

    const client = await connect("memory:");
    const app = fastify();
    await app.register(idempotency(client, { principal: () => "ann" }));
    let calls = 0;
    app.post("/", async () => ({ calls: ++calls }));
    const ask = (body) => app.inject({ method: "POST", url: "/", headers: { "Idempotency-Key": "k" }, body });
    const [first, second, other] = [await ask({ eur: 9 }), await ask({ eur: 9 }), await ask({ eur: 1 })];
    console.log(app.version.split(".")[0], first.body, second.body, second.headers["idempotency-replayed"], other.statusCode);
    await app.close();
    await client.close();`;
  assert.equal(runs(t, ["fastify"], program), '4 {"calls":1} {"calls":1} true 422\n');
});

test("metrics are counted into a registry of prom-client 14", (t) => {
  const program = `
    import { createRequire } from "node:module";
    import prom from "prom-client";
    import { connect } from "leasehold";
    import { collect } from "leasehold/prometheus";

    const stop = collect();
    const client = await connect("memory:");
    await client.using("a", () => {});
    await client.close();
    const counted = async () => (await prom.register.metrics()).includes('leasehold_acquire_total{outcome="acquired"} 1');
    while (!(await counted())) await new Promise(setImmediate);
    stop();
    console.log(createRequire(import.meta.url)("prom-client/package.json").version.split(".")[0], await counted());`;
  assert.equal(runs(t, ["prom-client"], program), "14 false\n");
});
