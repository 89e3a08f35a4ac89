// Runs of requests with an Idempotency-Key, and responses as they are kept, which Python shares: `bindings/idempotency.json`.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { request } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import express from "express";
import fastify from "fastify";
import { connect } from "leasehold";
import * as ofExpress from "leasehold/express";
import * as ofFastify from "leasehold/fastify";
import { sqlite } from "./helpers/folder.mjs";
import { undo } from "./helpers/undo.mjs";

const { requests, responses, none, again, never_kept: never } = JSON.parse(readFileSync(join(process.env.LEASEHOLD_SOURCE, "bindings/idempotency.json"), "utf8"));
// No public entry reads what is kept.
const require = createRequire(import.meta.url);
const { NEVER_KEPT, isAskedAgain, read } = require(fileURLToPath(new URL("../node_modules/leasehold/lib/keyed.cjs", import.meta.url)));

/** Servers that keep the bytes of a body, and answer 201; each gives its port. */
const SERVERS = {
  Express: async (t, client, principal) => {
    const app = express();
    app.use(express.text({ type: () => true, verify: (req, res, bytes) => (req.rawBody = bytes) }));
    app.use(ofExpress.idempotency(client, { principal }));
    app.use((req, res) => res.status(201).send("done"));
    const server = app.listen(0, "127.0.0.1");
    undo(t, () => server.close());
    await once(server, "listening");
    return server.address().port;
  },
  Fastify: async (t, client, principal) => {
    const app = fastify();
    undo(t, () => app.close());
    app.removeAllContentTypeParsers();
    app.addContentTypeParser("*", { parseAs: "buffer" }, async (request, bytes) => {
      request.rawBody = bytes;
      return bytes.toString();
    });
    await app.register(ofFastify.idempotency(client, { principal }));
    app.all("*", (request, reply) => reply.code(201).send("done"));
    await app.listen({ port: 0, host: "127.0.0.1" });
    return app.server.address().port;
  },
};

for (const [framework, serve] of Object.entries(SERVERS)) {
  for (const { why, method, target, principal, key, body, name, occurrence, fingerprint } of requests) {
    // Its router refuses such an address.
    if (framework === "Fastify" && /no UTF-8|cut short/.test(why)) continue;
    test(`${framework} makes the runs of requests that Python makes: ${why}`, async (t) => {
      const client = await connect(sqlite(t));
      undo(t, () => client.close());
      const port = await serve(t, client, () => principal);
      const asked = request({ port, host: "127.0.0.1", path: target, method, headers: { "Idempotency-Key": key, "Content-Type": "text/x" }, agent: false });
      const [answer] = await once(asked.end(body), "response");
      answer.resume();
      assert.equal(answer.statusCode, 201);
      const runs = [];
      for await (const run of client.runs()) runs.push(run);
      assert.deepEqual(runs.map((run) => [run.name, run.key, read(run.done.result)?.print]), [[name, occurrence, fingerprint]]);
    });
  }
}

for (const { why, kept, fingerprint: print, status, headers, body } of responses) {
  test(`responses are read as Python reads them: ${why}`, () => {
    assert.deepEqual(read(new TextEncoder().encode(kept)), { print, status, headers, body: new TextEncoder().encode(body) });
  });
}

test("what others take for no response is none", () => {
  assert.ok(none.length > 30);
  for (const text of none) assert.equal(read(new TextEncoder().encode(text)), undefined, text);
});

test("others keep the same responses, and the same headers of them", () => {
  for (const { again: is, ...head } of again) assert.equal(isAskedAgain(head), is, JSON.stringify(head));
  assert.deepEqual([...NEVER_KEPT].sort(), never);
});
