// Requests with an Idempotency-Key that are answered once, on the real Express.

import assert from "node:assert/strict";
import { test } from "node:test";
import express from "express";
import { connect } from "leasehold";
import { idempotency } from "leasehold/express";
import { asking } from "./helpers/asking.mjs";
import { sqlite } from "./helpers/folder.mjs";
import { undo } from "./helpers/undo.mjs";
import { until } from "./helpers/until.mjs";

const user = (req) => req.headers["x-user"] ?? "";

/** An application that counts its work, on a store. */
async function shop(t, url, options = {}) {
  const client = await connect(url, { requestTimeout: 5_000 });
  undo(t, () => client.close());
  const app = express();
  const calls = [];
  app.use(express.json(), express.text());
  app.use((req, res, next) => (res.set("X-Outer", "outer"), next()));
  app.use(idempotency(client, { principal: user, ...options }));
  app.all("/charge", (req, res) => {
    calls.push(req.body);
    res.cookie("session", "hunter2").set("X-Charge", String(calls.length)).status(201).json({ charge: calls.length, é: "ü" });
  });
  app.post("/status/:status", (req, res) => {
    calls.push(req.params.status);
    if (req.get("X-Again")) res.set("Retry-After", "1");
    res.status(Number(req.params.status)).json({ call: calls.length });
  });
  app.post("/parts", (req, res) => {
    calls.push("parts");
    res.writeHead(200, "Fine", { "X-Part": "a" });
    res.write("do", () => {});
    res.write(Buffer.from("ne"));
    res.end("!", () => calls.push("told"));
  });
  app.post("/raises", () => {
    calls.push("raises");
    throw new Error("no");
  });
  app.post("/begins-and-raises", (req, res) => {
    calls.push("begins");
    res.write("HTTP/1.1 200 another answer");
    throw new Error("no");
  });
  app.post("/answers-and-raises", (req, res) => {
    calls.push("answers");
    res.status(201).json({ order: calls.length });
    throw new Error("no");
  });
  app.post("/never-ends", (req, res) => {
    calls.push("never");
    if (calls.length > 1) res.send("now");
    else res.write("a part");
  });
  app.post("/pairs", (req, res) => {
    res.writeHead(200, ["X-Pair", "a", "X-Pair", "b", "X-Outer", "within"]).end();
  });
  app.post("/long", (req, res) => {
    calls.push("long");
    res.type("text").send("x".repeat(4_096));
  });
  const slow = { begun: undefined, end: undefined };
  slow.waits = new Promise((resolve) => (slow.begun = resolve));
  app.post("/slow", async (req, res) => {
    calls.push("slow");
    await new Promise((end) => {
      slow.end = end;
      slow.begun();
    });
    res.send("slow");
  });
  // A failure is the test's.
  app.use((error, req, res, next) => (res.headersSent ? next(error) : res.status(500).send(error.message)));
  const server = app.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  undo(t, () => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address();
  const ask = asking(port);
  return { calls, ask, client, slow };
}

test("the second request gets the first response, also in another process", async (t) => {
  const url = sqlite(t);
  const { ask, calls, client } = await shop(t, url);
  const [first, second] = [await ask(), await ask("/charge", { key: '"k1"' })];
  assert.deepEqual([first.status, second.status, second.text], [201, 201, first.text]);
  assert.deepEqual([first.text, calls.length], ['{"charge":1,"é":"ü"}', 1]);
  for (const name of ["x-charge", "content-type", "etag", "content-length"]) assert.equal(second.headers[name], first.headers[name], name);
  assert.deepEqual([first.headers["idempotency-replayed"], second.headers["idempotency-replayed"]], [undefined, "true"]);
  assert.ok(first.headers["set-cookie"] && !second.headers["set-cookie"]);
  const other = await shop(t, url);
  assert.deepEqual([(await other.ask()).text, other.calls], [first.text, []]);
  for await (const run of client.runs("POST /charge@")) assert.ok(!Buffer.from(run.done.result).toString().includes("hunter2"));
});

test("other keys, users, paths and methods are other requests", async (t) => {
  const { ask, calls } = await shop(t, sqlite(t));
  const asked = [
    ["/charge"],
    ["/charge", { key: "k2" }],
    ["/charge", { headers: { "X-User": "ann" } }],
    ["/charge", { headers: { "X-User": "bob" } }],
    ["/status/200"],
    ...["GET", "PUT"].flatMap((method) => [["/charge", { method }], ["/charge", { method }]]),
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
    assert.deepEqual([status, headers["content-type"]], [422, "application/problem+json"]);
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

/** An application of one route behind these, and behind the middleware twice. */
async function small(t, ...outside) {
  const client = await connect(sqlite(t), { requestTimeout: 5_000 });
  undo(t, () => client.close());
  const calls = [];
  const app = express();
  for (const one of outside) app.use(one);
  const once = idempotency(client, { principal: () => "ann", fingerprint: () => "" });
  app.use(once, once);
  app.post("/charge", (req, res) => res.set("X-Own", "1").json({ charge: calls.push("charge") }));
  const server = app.listen(0, "127.0.0.1");
  undo(t, () => server.close());
  await new Promise((listening) => server.once("listening", listening));
  return { ask: asking(server.address().port), calls };
}

test("headers that were set outside are those of each request, and middleware that stands twice does the work once", async (t) => {
  let requests = 0;
  const { ask, calls } = await small(t, (req, res, next) => (res.set("X-Request-Id", String((requests += 1))), next()));
  for (const id of ["1", "2"]) {
    const { status, headers, text } = await ask();
    assert.deepEqual([status, headers["x-request-id"], headers["x-own"], text, calls.length], [200, id, "1", '{"charge":1}', 1]);
  }
});

test("nothing is done for a request that was answered meanwhile, and its key is free", async (t) => {
  let isLate = true;
  const { ask, calls } = await small(t, (req, res, next) => {
    next();
    if (isLate) res.status(503).send("late");
  });
  assert.deepEqual([(await ask()).text, calls], ["late", []]);
  isLate = false;
  await until(async () => (await ask()).status === 200);
  assert.equal(calls.length, 1);
});

test("nothing is done for a client that has gone meanwhile, and its key is free", async (t) => {
  let isGone = true;
  const { ask, calls } = await small(t, (req, res, next) => {
    next();
    if (isGone) req.socket.destroy();
  });
  await assert.rejects(ask(), { code: "ECONNRESET" });
  isGone = false;
  const first = await until(async () => {
    const answer = await ask();
    return answer.status === 200 && answer;
  });
  assert.deepEqual([first.headers["idempotency-replayed"], calls.length], [undefined, 1]);
});

test("an exception leaves the work to the next request", async (t) => {
  const { ask, calls } = await shop(t, sqlite(t));
  for (const count of [1, 2]) assert.deepEqual([(await ask("/raises")).status, calls.length], [500, count]);
});

test("a response in parts is one, and its callback is called", async (t) => {
  const { ask, calls } = await shop(t, sqlite(t));
  for (const replayed of [undefined, "true"]) {
    const { status, headers, text } = await ask("/parts");
    assert.deepEqual([status, text, headers["x-part"], headers["idempotency-replayed"]], [200, "done!", "a", replayed]);
  }
  assert.deepEqual(calls, ["parts", "told"]);
});

test("an error after the response has begun adds nothing to it", async (t) => {
  const { ask, calls } = await shop(t, "memory:express-errors");
  for (const count of [1, 2]) {
    await assert.rejects(ask("/begins-and-raises", { key: `k${count}` }), { code: "ECONNRESET" });
    assert.equal(calls.length, count);
  }
  // Express breaks the connection off, unless the answer is out before.
  const first = await ask("/answers-and-raises").catch((error) => error);
  assert.ok(first.code === "ECONNRESET" || (first.status === 201 && first.text === '{"order":3}'), first.text);
  const again = await ask("/answers-and-raises");
  assert.deepEqual([again.status, again.text, calls.length], [201, '{"order":3}', 3], "what was recorded is what is answered");
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

test("a replay has each header once, and repeated ones as often as they were", async (t) => {
  const { ask } = await shop(t, sqlite(t));
  const names = ({ raw }) => raw.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase());
  const kept = (name) => !["date", "connection", "keep-alive", "idempotency-replayed", "set-cookie"].includes(name);
  for (const path of ["/charge", "/pairs"]) {
    const [first, second] = [await ask(path), await ask(path)];
    assert.equal(second.headers["idempotency-replayed"], "true");
    assert.deepEqual(names(second).filter(kept).sort(), names(first).filter(kept).sort(), path);
  }
  assert.deepEqual([(await ask("/pairs")).headers["x-pair"], (await ask("/pairs")).headers["x-outer"]], ["a, b", "within"]);
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

test("a request that comes meanwhile is told so", async (t) => {
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

test("requests that come at once after it was done all get the response", async (t) => {
  const url = sqlite(t);
  const [one, two] = [await shop(t, url), await shop(t, url)];
  await one.ask();
  for (const { ask } of [one, two]) {
    const answers = await Promise.all([...Array.from({ length: 20 }, () => ask()), ask("/charge", { body: { eur: 10 } })]);
    assert.deepEqual(answers.map(({ status }) => status), [...Array(20).fill(201), 422]);
  }
});

test("a lost lease is not answered with success", async (t) => {
  const { ask, client, slow } = await shop(t, sqlite(t));
  const first = ask("/slow");
  await slow.waits;
  for await (const { resource, holder } of client.runs()) await client.releaseIf(resource, { token: holder.token });
  slow.end();
  const { status, headers, text } = await first;
  assert.deepEqual([status, headers["retry-after"]], [503, "1"]);
  assert.match(text, /not certain/);
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
});
