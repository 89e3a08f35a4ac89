// Requests with an Idempotency-Key that are answered once, on the real Fastify.

import assert from "node:assert/strict";
import { connect as connectHttp2 } from "node:http2";
import { Readable } from "node:stream";
import { test } from "node:test";
import fastify from "fastify";
import { connect } from "leasehold";
import { idempotency } from "leasehold/fastify";
import { asking } from "./helpers/asking.mjs";
import { sqlite } from "./helpers/folder.mjs";
import { undo } from "./helpers/undo.mjs";
import { until } from "./helpers/until.mjs";

const user = (request) => request.headers["x-user"] ?? "";

/** Answers of every kind that Fastify sends, all of them `done!`. */
const KINDS = {
  text: () => "done!",
  buffer: () => Buffer.from("done!"),
  stream: () => Readable.from(["do", Buffer.from("ne!")]),
  web: () => new Blob(["done!"]).stream(),
  response: () => new Response("done!", { status: 202, headers: { "X-Response": "a" } }),
  sent: (request, reply) => void reply.send("done!"),
  awaited: async (request, reply) => {
    await reply.code(201).send("done!");
    return reply;
  },
  hijacked: (request, reply) => {
    reply.hijack();
    reply.raw.writeHead(200, "Fine", { "X-Part": "a" });
    reply.raw.write("do", () => {});
    reply.raw.end("ne!");
  },
};

/** An application that counts its work, on a store. */
async function shop(t, url, options = {}, { listens = true, ...how } = {}) {
  const client = await connect(url, { requestTimeout: 5_000 });
  undo(t, () => client.close());
  const app = fastify(how);
  const calls = [];
  app.addHook("onRequest", async (request, reply) => {
    reply.header("X-Outer", "outer");
    reply.raw.setHeader("X-Raw", "raw");
  });
  app.addHook("onSend", async (request, reply, payload) => (request.url === "/wrapped" ? `<${payload}>` : payload));
  const ended = [];
  app.addHook("onResponse", async (request, reply) => ended.push(reply.statusCode));
  await app.register(idempotency(client, { principal: user, ...options }));
  app.all("/charge", async (request, reply) => {
    calls.push(request.body);
    reply.header("Set-Cookie", "session=hunter2").header("X-Charge", String(calls.length)).code(201);
    if (request.raw.httpVersionMajor === 1) reply.header("Connection", "close");
    return { charge: calls.length, é: "ü" };
  });
  app.post("/status/:status", async (request, reply) => {
    calls.push(request.params.status);
    if (request.headers["x-again"]) reply.header("Retry-After", "1");
    return reply.code(Number(request.params.status)).send({ call: calls.length });
  });
  for (const [kind, handler] of Object.entries(KINDS)) {
    app.post(`/kinds/${kind}`, (request, reply) => {
      calls.push(kind);
      return handler(request, reply);
    });
  }
  app.post("/nothing", async (request, reply) => {
    calls.push("nothing");
    return reply.code(204).send();
  });
  app.post("/wrapped", async () => {
    calls.push("wrapped");
    return "wrapped";
  });
  app.post("/raises", async () => {
    calls.push("raises");
    throw new Error("no");
  });
  app.post("/answers-and-raises", async (request, reply) => {
    calls.push("answers");
    reply.code(201).send({ order: calls.length });
    throw new Error("no");
  });
  app.post("/checked", { schema: { body: { type: "object", required: ["eur"] } } }, async () => {
    calls.push("checked");
    return "checked";
  });
  app.post("/never-ends", (request, reply) => {
    calls.push("never");
    if (calls.length > 1) reply.send("now");
    else reply.raw.write("a part");
  });
  app.post("/long", async () => {
    calls.push("long");
    return "x".repeat(4_096);
  });
  const slow = { begun: undefined, end: undefined };
  slow.waits = new Promise((resolve) => (slow.begun = resolve));
  app.post("/slow", async () => {
    calls.push("slow");
    await new Promise((end) => {
      slow.end = end;
      slow.begun();
    });
    return "slow";
  });
  undo(t, () => app.close());
  if (!listens) return { app, calls, client };
  await app.listen({ port: 0, host: "127.0.0.1" });
  return { app, calls, ended, ask: asking(app.server.address().port), client, slow };
}

test("the second request gets the first response, also in another process", async (t) => {
  const url = sqlite(t);
  const { ask, calls, client } = await shop(t, url);
  const [first, second] = [await ask(), await ask("/charge", { key: '"k1"' })];
  assert.deepEqual([first.status, second.status, second.text], [201, 201, first.text]);
  assert.deepEqual([first.text, calls.length], ['{"charge":1,"é":"ü"}', 1]);
  for (const name of ["x-charge", "x-outer", "x-raw", "content-type", "content-length"]) {
    assert.ok(first.headers[name], name);
    assert.equal(second.headers[name], first.headers[name], name);
  }
  assert.deepEqual([first.headers["idempotency-replayed"], second.headers["idempotency-replayed"]], [undefined, "true"]);
  assert.ok(first.headers["set-cookie"] && !second.headers["set-cookie"]);
  const other = await shop(t, url);
  assert.deepEqual([(await other.ask()).text, other.calls], [first.text, []]);
  for await (const run of client.runs("POST /charge@")) {
    assert.doesNotMatch(Buffer.from(run.done.result).toString(), /hunter2|set-cookie|connection/i);
  }
});

test("other keys, users, paths and methods are other requests", async (t) => {
  const { ask, calls } = await shop(t, sqlite(t));
  const asked = [
    ["/charge"],
    ["/charge", { key: "k2" }],
    ["/charge", { headers: { "X-User": "ann" } }],
    ["/charge", { headers: { "X-User": "bob" } }],
    ["/status/200"],
    ["/charge", { method: "PUT" }],
    ["/charge", { method: "PUT" }],
    ["/charge", { key: null }],
    ["/charge", { key: null }],
  ];
  for (const [n, how] of asked.entries()) {
    const { headers } = await ask(...how);
    assert.deepEqual([headers["idempotency-replayed"], calls.length], [undefined, n + 1]);
  }
});

test("another body under the same key is refused", async (t) => {
  const { ask, calls } = await shop(t, sqlite(t));
  await ask();
  for (const [path, how] of [["/charge", { body: { eur: 10 } }], ["/charge?x=1", {}], ["/charge", { body: "9" }]]) {
    const { status, headers, text } = await ask(path, how);
    assert.deepEqual([status, headers["content-type"], headers["x-outer"]], [422, "application/problem+json", "outer"]);
    assert.match(text, /another request/);
  }
  assert.equal(calls.length, 1);
});

test("answers about the request are kept, and those that ask for another try are not", async (t) => {
  const { ask } = await shop(t, sqlite(t));
  for (const status of [200, 400, 404, 409]) {
    const [first, second] = [await ask(`/status/${status}`), await ask(`/status/${status}`)];
    assert.deepEqual([first.status, second.status, second.text], [status, status, first.text]);
  }
  for (const status of [408, 425, 429, 500, 503, 409]) {
    const again = { key: "again", headers: status === 409 ? { "X-Again": "yes" } : {} };
    const [first, second] = [await ask(`/status/${status}`, again), await ask(`/status/${status}`, again)];
    assert.deepEqual([first.status, second.status], [status, status]);
    assert.notEqual(second.text, first.text);
  }
});

test("nothing is done for a client that has gone meanwhile, and its key is free", async (t) => {
  let isGone = true;
  const principal = (request) => {
    if (isGone) request.raw.socket.destroy();
    return "ann";
  };
  const { ask, calls } = await shop(t, sqlite(t), { principal });
  await assert.rejects(ask("/charge"), { code: "ECONNRESET" });
  isGone = false;
  const first = await until(async () => {
    const answer = await ask("/charge");
    return answer.status === 201 && answer;
  });
  assert.deepEqual([first.headers["idempotency-replayed"], calls.length], [undefined, 1]);
});

test("an exception leaves the work to the next request", async (t) => {
  const { ask, calls, client } = await shop(t, sqlite(t));
  for (const count of [1, 2]) assert.deepEqual([(await ask("/raises")).status, calls.length], [500, count]);
  for await (const run of client.runs("POST /raises@")) assert.equal(run.done, null);
});

test("an exception after the answer changes nothing of it", async (t) => {
  const { ask, calls } = await shop(t, sqlite(t));
  for (const replayed of [undefined, "true"]) {
    const { status, headers, text } = await ask("/answers-and-raises");
    assert.deepEqual([status, headers["idempotency-replayed"], text, calls.length], [201, replayed, '{"order":1}', 1]);
  }
});

for (const kind of Object.keys(KINDS)) {
  test(`a response is kept that is sent as: ${kind}`, async (t) => {
    const { ask, calls } = await shop(t, sqlite(t));
    const [first, second] = [await ask(`/kinds/${kind}`), await ask(`/kinds/${kind}`)];
    assert.deepEqual([first.text, second.text, second.headers["idempotency-replayed"]], ["done!", "done!", "true"]);
    const kept = ({ status, headers }) => [status, ...["x-response", "x-part", "content-type"].map((name) => headers[name])];
    assert.deepEqual([kept(second), calls], [kept(first), [kind]]);
  });
}

test("an answer without a body is kept", async (t) => {
  const { ask, calls } = await shop(t, sqlite(t));
  for (const replayed of [undefined, "true"]) {
    const { status, headers, text } = await ask("/nothing");
    assert.deepEqual([status, text, headers["idempotency-replayed"], calls.length], [204, "", replayed, 1]);
  }
});

test("a hook that changes payloads changes them once, and one that counts responses counts all", async (t) => {
  const { ask, calls, ended } = await shop(t, sqlite(t));
  assert.deepEqual([(await ask("/wrapped")).text, (await ask("/wrapped")).text, calls.length], ["<wrapped>", "<wrapped>", 1]);
  await until(() => ended.length === 2);
});

test("a request that its schema refuses uses up no key", async (t) => {
  const { ask, calls } = await shop(t, sqlite(t));
  assert.equal((await ask("/checked", { body: {} })).status, 400);
  assert.deepEqual([(await ask("/checked")).text, calls.length], ["checked", 1]);
});

test("a response that is never ended frees its key a ttl after its client has gone", async (t) => {
  const { ask, calls, client } = await shop(t, sqlite(t), { ttl: 1_000 });
  const patience = new AbortController();
  const first = ask("/never-ends", { patience: patience.signal });
  while (calls.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  patience.abort();
  await assert.rejects(first);
  const isHeld = async () => {
    for await (const run of client.runs("POST /never-ends@")) if (run.holder !== null) return true;
    return false;
  };
  while (await isHeld()) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal((await ask("/never-ends")).text, "now");
});

test("a response that is too long is not kept", async (t) => {
  const { ask, calls } = await shop(t, sqlite(t));
  assert.equal((await ask("/long")).text.length, 4_096);
  const again = await ask("/long");
  assert.equal(again.status, 409);
  assert.match(again.text, /not kept/);
  assert.equal((await ask("/long", { body: { other: 1 } })).status, 422);
  assert.equal(calls.length, 1);
});

test("a request that comes meanwhile is refused", async (t) => {
  const url = sqlite(t);
  const { ask, calls, slow } = await shop(t, url);
  const other = await shop(t, url);
  const first = ask("/slow");
  await slow.waits;
  for (const asks of [ask, other.ask]) {
    const { status, headers } = await asks("/slow");
    assert.deepEqual([status, headers["retry-after"]], [409, "1"]);
    assert.equal((await asks("/slow", { body: { eur: 10 } })).status, 422);
  }
  slow.end();
  assert.deepEqual([(await first).text, (await other.ask("/slow")).text, calls.length + other.calls.length], ["slow", "slow", 1]);
});

test("a lost lease is not answered with success", async (t) => {
  const { ask, client, slow } = await shop(t, sqlite(t));
  const first = ask("/slow");
  await slow.waits;
  for await (const { resource, holder } of client.runs()) await client.releaseIf(resource, { token: holder.token });
  slow.end();
  const { status, headers, text } = await first;
  assert.deepEqual([status, headers["retry-after"], headers["x-outer"]], [503, "1", "outer"]);
  assert.match(text, /not certain/);
});

test("a plugin in a scope counts for that scope", async (t) => {
  const client = await connect("memory:fastify-scope");
  undo(t, () => client.close());
  const app = fastify();
  undo(t, () => app.close());
  const calls = [];
  const count = async () => String(calls.push("call"));
  await app.register(async (scope) => {
    await scope.register(idempotency(client, { principal: user }));
    scope.post("/within", count);
  });
  app.post("/outside", count);
  const ask = async (url) => (await app.inject({ method: "POST", url, headers: { "Idempotency-Key": "k" } })).body;
  assert.deepEqual([await ask("/within"), await ask("/within"), await ask("/outside"), await ask("/outside")], ["1", "1", "2", "3"]);
});

test("it works without a socket, as tests of applications ask", async (t) => {
  const { app, calls } = await shop(t, "memory:fastify-inject", {}, { listens: false });
  const asked = { method: "POST", url: "/kinds/stream", headers: { "Idempotency-Key": "k" }, body: { eur: 9 } };
  const [first, second, other] = [await app.inject(asked), await app.inject(asked), await app.inject({ ...asked, body: { eur: 1 } })];
  assert.deepEqual([first.body, second.body, second.headers["idempotency-replayed"], calls.length], ["done!", "done!", "true", 1]);
  assert.equal(other.statusCode, 422);
});

test("it works over HTTP/2", async (t) => {
  const warned = [];
  const warn = (warning) => warned.push(warning.message);
  process.on("warning", warn);
  undo(t, () => process.off("warning", warn));
  const { app, calls } = await shop(t, "memory:fastify-http2", {}, { http2: true });
  const session = connectHttp2(`http://127.0.0.1:${app.server.address().port}`);
  undo(t, () => session.destroy());
  const ask = (path) =>
    new Promise((resolve, reject) => {
      const asked = session.request({ ":method": "POST", ":path": path, "idempotency-key": "k" });
      const chunks = [];
      let headers;
      asked.on("response", (given) => (headers = given));
      asked.on("data", (chunk) => chunks.push(chunk));
      asked.on("end", () => resolve({ status: headers[":status"], headers, text: Buffer.concat(chunks).toString() }));
      asked.on("error", reject);
      asked.end();
    });
  for (const path of ["/charge", "/kinds/stream", "/kinds/awaited"]) {
    const [first, second] = [await ask(path), await ask(path)];
    assert.deepEqual([second.status, second.text, second.headers["idempotency-replayed"]], [first.status, first.text, "true"], path);
    assert.ok(!second.headers["set-cookie"] && first.headers["x-outer"] && second.headers["x-outer"], path);
  }
  assert.deepEqual([calls.length, warned], [3, []]);
});

test("what cannot be is refused", async (t) => {
  const { ask, calls, client } = await shop(t, sqlite(t), { required: true });
  for (const key of [null, "", '""', "x".repeat(256), '"open', "a b"]) assert.equal((await ask("/charge", { key })).status, 400, key);
  assert.deepEqual(calls, []);
  assert.throws(() => idempotency(client, {}), /principal/);
  assert.throws(() => idempotency({}, { principal: user }), /needs a client/);
  for (const option of [{ principle: user }, { maxAttempts: 3 }]) assert.throws(() => idempotency(client, { principal: user, ...option }), TypeError);
  const { ask: asks } = await shop(t, sqlite(t), { principal: () => 7 });
  assert.match((await asks()).text, /principal must return a string/);
  const unread = fastify();
  undo(t, () => unread.close());
  unread.addContentTypeParser("application/octet-stream", async (request, payload) => payload);
  await unread.register(idempotency(client, { principal: user }));
  unread.post("/", async () => "done");
  const asked = { method: "POST", url: "/", headers: { "Idempotency-Key": "k", "Content-Type": "application/octet-stream" }, body: "x" };
  const { statusCode, body } = await unread.inject(asked);
  assert.equal(statusCode, 500);
  assert.match(body, /no body to compare: .*parser.*, or give fingerprint/);
});
