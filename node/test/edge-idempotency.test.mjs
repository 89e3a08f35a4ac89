// Requests with an Idempotency-Key that are answered once by fetch handlers, on Webdis, beside the real Express on the same Redis.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { brotliCompressSync, gzipSync } from "node:zlib";
import express from "express";
import { Hono } from "hono";
import { connect as connectNative } from "leasehold";
import { connect } from "leasehold/edge";
import { idempotency, leaseOf } from "leasehold/edge/idempotency";
import * as ofExpress from "leasehold/express";
import { asking } from "./helpers/asking.mjs";
import { part } from "./helpers/edge.mjs";
import { startDynamodb, startRedis, startWebdis } from "./helpers/servers.mjs";
import { aborted } from "./helpers/signals.mjs";
import { undo } from "./helpers/undo.mjs";
import { until } from "./helpers/until.mjs";

const { read } = (await part("shared/keyed")).default;
const { requests, responses } = JSON.parse(readFileSync(join(process.env.LEASEHOLD_SOURCE, "bindings/idempotency.json"), "utf8"));

const SLOW = { requestTimeout: 5_000 };
const redis = await startRedis({ after });
const webdis = await startWebdis({ after }, redis.url);
const native = await connectNative(redis.url, SLOW);
after(() => native.close());

let users = 0;
const anybody = () => `user ${(users += 1)}`;
const user = (request) => request.headers.get("x-user");
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A request as clients of Express send it in the tests of that. */
function asked(path, { key = "k1", body = '{"eur":9}', method = "POST", headers = {}, ...more } = {}) {
  const given = new Headers({ "Content-Type": "application/json", ...headers });
  if (key !== null) for (const one of [key].flat()) given.append("Idempotency-Key", one);
  return new Request(`https://shop.example${path}`, { method, headers: given, body: method === "GET" ? undefined : body, duplex: "half", ...more });
}

/** An application that counts its work, of one user on the store. A client is connected for each request that needs one. */
function shop(options = {}, { url = webdis.url, name = anybody(), settings = SLOW } = {}) {
  const calls = [];
  const clients = [];
  const slow = { end: undefined };
  slow.waits = new Promise((resolve) => (slow.begun = resolve));
  const routes = {
    "/charge": async (request) => {
      const headers = new Headers({ "X-Charge": String(calls.length), "X-Pair": "a" });
      for (const [name, value] of [["X-Pair", "b"], ["Set-Cookie", "b=c"], ["Set-Cookie", "session=hunter2"]]) headers.append(name, value);
      return Response.json({ charge: calls.length, é: "ü", of: await request.text() }, { status: 201, statusText: "Charged", headers });
    },
    "/raises": () => { throw new RangeError("no"); },
    "/nothing": () => undefined,
    "/breaks": () => new Response(new ReadableStream({ pull: (controller) => controller.error(new RangeError("broken off")) })),
    "/long": () => new Response("x".repeat(4_096)),
    "/empty": () => new Response(null, { status: 204, headers: { "X-Empty": "yes" } }),
    "/parts": () => {
      const parts = ["do", "ne", "!"].map((part) => new TextEncoder().encode(part));
      const pull = async (controller) => (await pause(20), parts.length > 0 ? controller.enqueue(parts.shift()) : controller.close());
      return new Response(new ReadableStream({ pull }), { headers: { "Content-Length": "2" } });
    },
    "/slow": async () => {
      await new Promise((end) => {
        slow.end = end;
        slow.begun();
      });
      return new Response("slow");
    },
    "/kept": () => new Response("kept"),
    "/lease": (request) => Response.json({ token: leaseOf(request)?.token ?? null }),
  };
  const connected = async (request, env) => {
    assert.equal(env, "env");
    clients.push(await connect(url, settings));
    return clients.at(-1);
  };
  const handler = async (request, env, context) => {
    assert.deepEqual([env, context], ["env", "context"]);
    const { pathname } = new URL(request.url);
    calls.push(pathname);
    const status = /^\/status\/(\d+)$/.exec(pathname)?.[1];
    if (status === undefined) return routes[pathname](request);
    const headers = request.headers.has("x-again") ? { "Retry-After": "1" } : {};
    return Response.json({ call: calls.length }, { status: Number(status), headers });
  };
  const principal = (request, env) => (assert.equal(env, "env"), `${name}${user(request) ?? ""}`);
  const fetch = idempotency(connected, { principal, ...options })(handler);
  const ask = async (path = "/charge", how = {}) => {
    const response = await fetch(asked(path, how), "env", "context");
    return { status: response.status, headers: response.headers, text: await response.text(), response };
  };
  return { ask, fetch, calls, clients, slow, name };
}

const answerOf = async (response) => {
  const { status, headers } = await response;
  return { status, headers, text: await (await response).text() };
};
const replayed = ({ headers }) => headers.get("idempotency-replayed");
const isProblem = ({ status, headers, text }, expected, words, retry = null) => {
  assert.deepEqual([status, headers.get("content-type"), headers.get("retry-after")], [expected, "application/problem+json", retry]);
  assert.match(JSON.parse(text).detail, words);
};

test("the second request gets the first response, also from another worker", async () => {
  const { ask, calls, clients, name } = shop();
  const [first, second] = [await ask(), await ask("/charge", { key: '"k1"' })];
  assert.deepEqual([first.status, first.response.statusText, first.text], [201, "Charged", '{"charge":1,"é":"ü","of":"{\\"eur\\":9}"}']);
  assert.deepEqual([second.status, second.text, calls.length], [201, first.text, 1]);
  for (const header of ["x-charge", "content-type", "x-pair"]) assert.equal(second.headers.get(header), first.headers.get(header), header);
  assert.deepEqual([replayed(first), replayed(second)], [null, "true"]);
  assert.deepEqual([first.headers.getSetCookie(), second.headers.getSetCookie()], [["b=c", "session=hunter2"], []]);
  const other = shop({}, { name });
  assert.deepEqual([(await other.ask()).text, other.calls], [first.text, []]);
  for await (const run of native.runs("POST /charge@")) assert.ok(!Buffer.from(run.done.result).toString().includes("hunter2"));
  assert.equal(clients.length, 2);
  for (const client of clients) await assert.rejects(client.acquire("a"), { code: "closed" });
});

test("other keys, users, paths and methods are other requests, and those without a key need no client", async () => {
  const { ask, calls, clients } = shop();
  const all = [
    ["/charge"],
    ["/charge", { key: "k2" }],
    ["/charge", { headers: { "X-User": "ann" } }],
    ["/charge", { headers: { "X-User": "bob" } }],
    ["/status/200"],
    ["/charge", { method: "PATCH" }],
  ];
  const plain = [...["GET", "PUT"].flatMap((method) => [["/charge", { method }], ["/charge", { method }]]), ["/charge", { key: null }], ["/charge", { key: null }]];
  for (const [n, how] of [...all, ...plain].entries()) assert.deepEqual([replayed(await ask(...how)), calls.length], [null, n + 1]);
  assert.equal(clients.length, all.length);
  assert.deepEqual([(await ask("/lease", { key: null })).text, (await ask("/lease", { method: "PUT" })).text], ['{"token":null}', '{"token":null}']);
  const { ask: puts } = shop({ methods: new Set(["put"]) });
  assert.deepEqual([replayed(await puts("/charge", { method: "PUT" })), replayed(await puts("/charge", { method: "PUT" }))], [null, "true"]);
});

test("another body or query under the same key is refused", async () => {
  const { ask, calls } = shop();
  await ask();
  for (const [path, how] of [["/charge", { body: '{"eur":10}' }], ["/charge?x=1", {}], ["/charge", { body: "" }]]) isProblem(await ask(path, how), 422, /another request/);
  assert.equal(calls.length, 1);
});

test("answers about the request are kept, and those that ask for another try are not", async () => {
  const { ask } = shop();
  for (const status of [200, 400, 404, 409]) {
    const [first, second] = [await ask(`/status/${status}`), await ask(`/status/${status}`)];
    assert.deepEqual([first.status, second.status, second.text, replayed(second)], [status, status, first.text, "true"]);
  }
  for (const status of [408, 425, 429, 500, 503, 409]) {
    const again = { key: "again", headers: status === 409 ? { "X-Again": "yes" } : {} };
    const [first, second] = [await ask(`/status/${status}`, again), await ask(`/status/${status}`, again)];
    assert.deepEqual([first.status, second.status, replayed(second)], [status, status, null]);
    assert.notEqual(second.text, first.text);
  }
  for (const expected of [null, "true"]) {
    const { response, headers } = await ask("/empty");
    assert.deepEqual([response.status, response.body, headers.get("x-empty"), headers.get("idempotency-replayed")], [204, null, "yes", expected]);
  }
});

test("what is thrown leaves the work to the next request, and is thrown on", async () => {
  const { ask, calls, clients } = shop();
  for (const [path, error] of [["/raises", /^RangeError: no$/], ["/breaks", /^RangeError: broken off$/], ["/nothing", /returned no Response/]]) {
    for (const _ of "ab") await assert.rejects(ask(path), error);
  }
  assert.equal(calls.length, 6);
  for (const client of clients) await assert.rejects(client.acquire("a"), { code: "closed" });
});

test("a connection that is upgraded has no end, and is passed on", async () => {
  const upgraded = { status: 101, webSocket: {}, arrayBuffer: () => assert.fail("it has no body") };
  let calls = 0;
  const handle = idempotency(native, { principal: anybody })(() => ((calls += 1), upgraded));
  assert.ok((await handle(asked("/socket"))) === upgraded && (await handle(asked("/socket"))) === upgraded);
  assert.equal(calls, 2);
});

test("a response in parts is read to its end, and held back until then", async () => {
  const { ask, calls } = shop();
  for (const expected of [null, "true"]) {
    const { status, headers, text } = await ask("/parts");
    assert.deepEqual([status, text, headers.get("idempotency-replayed"), headers.get("content-length")], [200, "done!", expected, null]);
  }
  assert.deepEqual(calls, ["/parts"]);
});

test("a response that is too long goes to the first caller, and is not kept", async () => {
  const { ask, calls } = shop();
  assert.equal((await ask("/long")).text.length, 4_096);
  isProblem(await ask("/long"), 409, /not kept/);
  isProblem(await ask("/long", { body: "other" }), 422, /another request/);
  assert.equal(calls.length, 1);
});

test("a key is one text", async () => {
  const { ask, calls, clients } = shop();
  const keys = ["", '""', "x".repeat(256), '"open', "a b", 'a"b', "ü", ["k1", "k2"], ["k1", "k1"], ['"k1"', '"k2"']];
  for (const key of keys) isProblem(await ask("/charge", { key }), 400, /one text of 1 to 255/);
  const { ask: asks } = shop({ required: true });
  isProblem(await asks("/charge", { key: null }), 400, /needs the header Idempotency-Key/);
  assert.equal((await asks("/charge", { key: null, method: "PUT" })).status, 201);
  assert.deepEqual([calls, clients], [[], []]);
  for (const key of ["x".repeat(255), '"a b"', "!"]) assert.equal((await ask("/charge", { key })).status, 201);
});

test("a body that is too long is refused, and received no further", async () => {
  const { ask, calls, clients } = shop({ maxBody: 10 });
  assert.equal((await ask("/charge", { body: "x".repeat(10) })).status, 201);
  isProblem(await ask("/charge", { body: "x".repeat(11), key: "k2" }), 413, /at most 10 bytes/);
  let [sent, isCancelled] = [0, false];
  const endless = new ReadableStream({
    pull: (controller) => ((sent += 1), controller.enqueue(new Uint8Array(4))),
    cancel: () => void (isCancelled = true),
  });
  isProblem(await ask("/charge", { body: endless, key: "k2" }), 413, /at most 10 bytes/);
  assert.ok(isCancelled && sent < 10, String(sent));
  assert.deepEqual([calls.length, clients.length], [1, 1]);
  const { ask: asks } = shop();
  assert.equal((await asks("/lease", { body: "x".repeat(1 << 20) })).status, 200);
  isProblem(await asks("/lease", { body: "x".repeat((1 << 20) + 1), key: "k2" }), 413, /at most 1048576 bytes/);
});

test("a body that was read before cannot be compared", async () => {
  const { fetch, calls } = shop();
  const request = asked("/charge");
  await request.text();
  await assert.rejects(fetch(request, "env", "context"), /TypeError: idempotency compares the body of a request, and this one was read before/);
  assert.deepEqual(calls, []);
});

test("a request that comes meanwhile is answered 409", async () => {
  const { ask, calls, slow, name } = shop();
  const other = shop({}, { name });
  const first = ask("/slow");
  await slow.waits;
  for (const asks of [ask, other.ask]) {
    isProblem(await asks("/slow"), 409, /still at work/, "1");
    isProblem(await asks("/slow", { body: "other" }), 422, /another request/);
  }
  const patient = shop({ wait: 60_000 }, { name });
  const waits = patient.ask("/slow");
  setTimeout(slow.end, 200);
  assert.deepEqual([(await first).text, (await other.ask("/slow")).text, (await waits).text], ["slow", "slow", "slow"]);
  assert.deepEqual([replayed(await waits), calls, other.calls, patient.calls], ["true", ["/slow"], [], []]);
});

test("of requests that come at once, one does the work", async () => {
  const shops = [shop()];
  shops.push(shop({}, { name: shops[0].name }));
  const answers = await Promise.all(Array.from({ length: 10 }, (_, n) => shops[n % 2].ask()));
  assert.equal(shops[0].calls.length + shops[1].calls.length, 1);
  assert.equal(answers.filter((answer) => answer.status === 201 && replayed(answer) === null).length, 1);
  for (const answer of answers) if (answer.status !== 201) isProblem(answer, 409, /still at work/, "1");
  const [{ text }] = [await shops[0].ask()];
  const again = await Promise.all(Array.from({ length: 10 }, (_, n) => shops[n % 2].ask()));
  assert.deepEqual(new Set(again.map((answer) => `${answer.status} ${replayed(answer)} ${answer.text}`)), new Set([`201 true ${text}`]));
});

test("a lost lease is not answered with success, and its signal is aborted", async () => {
  const begun = {};
  begun.waits = new Promise((resolve) => (begun.tell = resolve));
  const handle = idempotency(() => connect(webdis.url, SLOW), { principal: anybody, ttl: 6_000 })(async (request) => {
    const { token, signal, check } = leaseOf(request);
    assert.ok(token > 0 && !signal.aborted && check !== undefined);
    begun.tell(token);
    await aborted(signal);
    return new Response("done");
  });
  const first = handle(asked("/lost"));
  const token = await begun.waits;
  for await (const { resource, holder } of native.runs("POST /lost@")) assert.ok((await native.releaseIf(resource, { token: holder.token })).released && holder.token === token);
  const response = await first;
  isProblem({ status: response.status, headers: response.headers, text: await response.text() }, 503, /not certain/, "1");
});

test("a store that does not answer is reported, and nothing is done", async () => {
  const { ask, calls } = shop({}, { url: "webdis+http://127.0.0.1:2", settings: { requestTimeout: 100 } });
  isProblem(await ask(), 503, /send the same request again/, "1");
  assert.deepEqual(calls, []);
});

test("a store that goes silent in the middle is reported, and the next request decides", async (t) => {
  const redis = await startRedis(t);
  const webdis = await startWebdis(t, redis.url);
  const store = { isDown: false };
  const fetch = (url, request) => (store.isDown ? Promise.reject(new TypeError("fetch failed")) : globalThis.fetch(url, request));
  const { ask, calls, slow } = shop({ ttl: 1_500 }, { url: webdis.url, settings: { ...SLOW, fetch } });
  const first = ask("/slow");
  await slow.waits;
  store.isDown = true;
  slow.end();
  isProblem(await first, 503, /not certain/, "1");
  store.isDown = false;
  const again = ask("/slow");
  await until(async () => calls.length === 2 || (await Promise.race([again, pause(10)])) !== undefined);
  // The record of the first one may still stand: then it is at work, as far as others can tell.
  if (calls.length === 1) isProblem(await again, 409, /still at work/, "1");
  else slow.end();
  await again;
});

test("a refusal of the store is an error", async () => {
  const fetch = async () => new Response("no", { status: 403 });
  const { ask, calls } = shop({}, { settings: { ...SLOW, fetch } });
  await assert.rejects(ask(), { code: "store_refused" });
  assert.deepEqual(calls, []);
});

test("what others have written to the store is never taken for a response", async () => {
  const { ask, calls } = shop();
  await ask("/kept");
  // No other test has this path.
  let found;
  for await (const run of native.runs("POST /kept@")) found = run;
  const { print } = read(found.done.result);
  const stored = async (result) => {
    const outcome = await native.once(found.name, { key: found.key, keep: 60_000, evenIfDone: true }, (run) => run.finish({ result }));
    assert.equal(outcome.ran, true);
    return ask("/kept");
  };
  const bytes = (kept, body = "body") => new TextEncoder().encode(`${typeof kept === "string" ? kept : JSON.stringify(kept)}\n${body}`);
  const good = { fingerprint: print, status: 200, headers: [["x-good", "1"]] };
  for (const result of [
    { json: 1 },
    "text",
    new Uint8Array(),
    new Uint8Array([0xff, 0xfe, 10]),
    new TextEncoder().encode(JSON.stringify(good)),
    bytes("null"),
    bytes("[1]"),
    bytes(`\ufeff${JSON.stringify(good)}`),
    ...[101, 199, 500, 503, "200", 200.5, undefined].map((status) => bytes({ ...good, status })),
    ...[7, null, undefined].map((fingerprint) => bytes({ ...good, fingerprint })),
    ...["x: 1", [["x"]], [["x", 1]], [["x", "a\r\nset-cookie: b"]], [["x y", "1"]], [["", "1"]], [["x", "\u0100"]], [["x", "\0"]], null].map((headers) => bytes({ ...good, headers })),
  ]) {
    isProblem(await stored(result), 409, /not kept/);
  }
  isProblem(await stored(bytes({ ...good, fingerprint: "other" })), 422, /another request/);
  const smuggled = [["content-length", "1"], ["Transfer-Encoding", "chunked"], ["set-cookie", "a=b"], ["x-good", "1"]];
  const clean = await stored(bytes({ ...good, headers: smuggled }));
  assert.deepEqual([clean.status, clean.text, [...clean.headers]], [200, "body", [["idempotency-replayed", "true"], ["x-good", "1"]]]);
  const empty = await stored(bytes({ ...good, status: 204 }));
  assert.deepEqual([empty.status, empty.text, empty.headers.get("x-good")], [204, "", "1"]);
  assert.equal(calls.length, 1);
});

test("results that are not settled are asked for again, of a client of either half", async () => {
  for (const { unsettled, noResult } of [await import("leasehold"), await import("leasehold/edge")]) {
    for (const [result, words, retry] of [[unsettled, /not settled yet/, "1"], [noResult, /not kept/, null]]) {
      const client = { beginRun: async () => ({ run: null, ran: false, reason: "done", result }) };
      const response = await idempotency(client, { principal: anybody })(() => assert.fail("it was done"))(asked("/charge"));
      isProblem({ status: response.status, headers: response.headers, text: await response.text() }, 409, words, retry);
    }
  }
});

test("nothing is done for a client that has gone before, and what it has begun is done", async () => {
  const { ask, calls, slow } = shop();
  const gone = new Error("gone");
  const early = new AbortController();
  const request = ask("/charge", { signal: early.signal });
  early.abort(gone);
  await assert.rejects(request, gone);
  assert.deepEqual(calls, []);
  assert.equal(replayed(await ask()), null, "the key is free");
  const late = new AbortController();
  const first = ask("/slow", { signal: late.signal });
  await slow.waits;
  late.abort(gone);
  slow.end();
  assert.equal((await first).text, "slow");
  assert.deepEqual([replayed(await ask("/slow")), calls], ["true", ["/charge", "/slow"]]);
});

test("while a handler is at work, its key is not free, although its client has gone", async () => {
  const { ask, calls, slow } = shop();
  const patience = new AbortController();
  const first = ask("/slow", { signal: patience.signal });
  await slow.waits;
  patience.abort();
  isProblem(await ask("/slow"), 409, /still at work/, "1");
  slow.end();
  await first;
  assert.deepEqual([replayed(await ask("/slow")), calls.length], ["true", 1]);
});

test("of a response without end, no more is read once its client has gone", async () => {
  const name = anybody();
  const patience = new AbortController();
  let [parts, isStopped] = [0, false];
  const pull = (controller) => {
    if ((parts += 1) === 10) patience.abort();
    controller.enqueue(new Uint8Array(1_024));
  };
  const stream = () => new ReadableStream({ pull, cancel: () => void (isStopped = true) });
  const fetch = idempotency(native, { principal: () => name })(() => new Response(stream()));
  await fetch(asked("/endless", { signal: patience.signal }));
  assert.ok(isStopped && parts < 20, `${parts} parts`);
  isProblem(await answerOf(fetch(asked("/endless"))), 409, /not kept/);
});

test("a worker is kept until the response is written down", async () => {
  const waited = [];
  const waitUntil = (promise) => waited.push(promise);
  const once = (handler) => idempotency(native, { principal: anybody })(handler);
  const throwing = { get executionCtx() { throw new Error("This context has no ExecutionContext"); } };
  for (const context of [{ waitUntil }, { executionCtx: { waitUntil } }, throwing]) {
    assert.equal(await (await once(() => new Response("done"))(asked("/waits"), undefined, context)).text(), "done");
  }
  await assert.rejects(once(() => { throw new RangeError("no"); })(asked("/waits"), {}, { waitUntil }), RangeError);
  assert.deepEqual((await Promise.allSettled(waited)).map(({ status }) => status), ["fulfilled", "fulfilled", "fulfilled"]);
});

test("a wrapper that stands twice does the work once", async () => {
  const name = anybody();
  let calls = 0;
  const once = idempotency(native, { principal: () => name });
  const fetch = once(once(() => new Response(String((calls += 1)))));
  for (const expected of [null, "true"]) {
    const answer = await answerOf(fetch(asked("/twice")));
    assert.deepEqual([answer.text, replayed(answer), calls], ["1", expected, 1]);
  }
});

test("an encoding is kept where the body has it", async () => {
  const name = anybody();
  const plain = new TextEncoder().encode("plain");
  const [packed, other] = [gzipSync(plain), brotliCompressSync(plain)];
  for (const [path, encoding, body, kept] of [["/a", "gzip", packed, "gzip"], ["/b", "gzip", plain, null], ["/c", "br", other, undefined]]) {
    const headers = { "Content-Encoding": encoding, "X-Odd": "a\u0001" };
    const fetch = idempotency(native, { principal: () => name })(() => new Response(body, { headers }));
    assert.equal((await fetch(asked(path))).headers.get("content-encoding"), encoding);
    const again = await fetch(asked(path));
    if (kept === undefined) isProblem(await answerOf(Promise.resolve(again)), 409, /not kept/);
    else assert.deepEqual([again.headers.get("content-encoding"), Buffer.from(await again.arrayBuffer()), again.headers.get("x-odd")], [kept, Buffer.from(body), null]);
  }
});

test("a worker that has died is followed on a store that only shows its record", async (t) => {
  const { url, credentials } = await startDynamodb(t);
  const store = { isDead: false };
  const fetch = (url, request) => (store.isDead ? new Promise(() => {}) : globalThis.fetch(url, request));
  const made = (options, settings) => shop(options, { url, name: "ann", settings: { ...SLOW, credentials, ...settings } });
  const dies = made({ ttl: 2_000 }, { fetch });
  const first = dies.ask("/slow");
  await dies.slow.waits;
  store.isDead = true;
  const patient = made({ wait: 120_000 });
  const second = patient.ask("/slow");
  await patient.slow.waits;
  patient.slow.end();
  assert.deepEqual([(await second).text, patient.calls.length], ["slow", 1]);
  dies.slow.end();
  isProblem(await first, 503, /not certain/, "1");
});

test("a client that is given stays open, also one of native code", async (t) => {
  const edge = await connect(webdis.url, SLOW);
  undo(t, () => edge.close());
  for (const client of [edge, native]) {
    let calls = 0;
    const handle = idempotency(client, { principal: async (request) => `${calls > 9}${user(request)}${client === edge}` })(() => Response.json((calls += 1)));
    const route = async (body) => (await handle(asked("/shared", { body }), { params: {} })).status;
    assert.deepEqual([await route("a"), await route("a"), await route("b"), calls], [200, 200, 422, 1]);
    const failing = idempotency(client, { principal: () => String(client === edge) })(() => {
      calls += 1;
      throw new RangeError("no");
    });
    for (const count of [2, 3]) assert.deepEqual([await failing(asked("/failing")).catch(({ name }) => name), calls], ["RangeError", count]);
    const [begun, end] = [{}, {}];
    const waits = new Promise((resolve) => (begun.tell = resolve));
    const slow = idempotency(client, { principal: () => String(client === edge) })(async () => {
      await new Promise((resolve) => begun.tell((end.now = resolve)));
      return new Response("slow");
    });
    const first = slow(asked("/own"));
    await waits;
    const meanwhile = [await slow(asked("/own")), await slow(asked("/own", { body: "other" }))];
    end.now();
    await first;
    // It is no reader of its own runs.
    assert.deepEqual(meanwhile.map(({ status }) => status), [409, client === edge ? 409 : 422]);
    await (await client.acquire("open")).release();
  }
});

test("what cannot be is refused", async () => {
  const principal = anybody;
  assert.throws(() => idempotency({}, { principal }), /needs a client, or a function that connects one/);
  assert.throws(() => idempotency(native, {}), /principal/);
  assert.throws(() => idempotency(native, { principal })({}), /needs the handler/);
  for (const option of [{ principle: principal }, { maxAttempts: 3 }, { fingerprint: () => "" }, { methods: "POST" }, { maxBody: "1" }, { maxBody: -1 }, { maxBody: NaN }, { wait: "1" }]) {
    assert.throws(() => idempotency(native, { principal, ...option }), TypeError, JSON.stringify(option));
  }
  const answer = (client, principal) => idempotency(client, { principal })(() => assert.fail("it must not run"))(asked("/charge"));
  await assert.rejects(answer(native, () => 7), /principal must return a string that says who asks, not number/);
  await assert.rejects(answer(native, async () => undefined), /principal must return a string/);
  await assert.rejects(answer(native, () => { throw new RangeError("a request without a user"); }), RangeError);
  await assert.rejects(answer(() => undefined, principal), /must return a client/);
});

for (const { why, method, target, principal, key, body, name, occurrence, fingerprint } of requests) {
  test(`fetch handlers make the runs of requests that Python makes: ${why}`, async () => {
    await native.forgetRun(name, occurrence);
    const handle = idempotency(() => connect(webdis.url, SLOW), { principal: () => principal })(() => new Response("done", { status: 201 }));
    assert.equal((await handle(asked(target, { method, key, body }))).status, 201);
    assert.equal(read((await native.inspectRun(name, occurrence)).done.result).print, fingerprint);
  });
}

for (const { why, kept, fingerprint: print, status, headers, body } of responses) {
  test(`fetch handlers read responses as Python reads them: ${why}`, () => {
    assert.deepEqual(read(new TextEncoder().encode(kept)), { print, status, headers, body: new TextEncoder().encode(body) });
  });
}

/** An Express on the same Redis, with the same work for the same user. */
async function expressOf(t, name) {
  const app = express();
  const calls = [];
  app.use(express.text({ type: () => true, verify: (req, res, bytes) => Object.assign(req, { rawBody: bytes }) }));
  app.use(ofExpress.idempotency(native, { principal: () => name }));
  app.post("/charge", (req, res) => {
    calls.push(req.body);
    res.cookie("a", "b").set("X-Charge", "of Express").status(201).json({ é: "ü" });
  });
  app.post("/long", (req, res) => (calls.push("long"), res.send("x".repeat(4_096))));
  app.post("/slow", (req, res) => (calls.push("slow"), res.send("slow")));
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  undo(t, () => server.close());
  return { ask: asking(server.address().port), calls };
}

test("Express and fetch handlers read each other's responses", async (t) => {
  const { ask, calls, slow, name } = shop();
  const other = await expressOf(t, name);
  const [ours, theirs] = [await ask("/charge?x=1", { key: "e1" }), await other.ask("/charge?x=1", { key: "e1" })];
  assert.deepEqual([theirs.status, theirs.text, theirs.headers["x-charge"], theirs.headers["x-pair"]], [201, ours.text, "1", "a, b"]);
  assert.deepEqual([theirs.headers["idempotency-replayed"], theirs.headers["set-cookie"], theirs.headers["content-type"]], ["true", undefined, ours.headers.get("content-type")]);
  const [first, second] = [await other.ask("/charge", { key: "x1" }), await ask("/charge", { key: "x1" })];
  assert.deepEqual([second.status, second.text, replayed(second), second.headers.get("x-charge")], [201, first.text, "true", "of Express"]);
  assert.deepEqual([second.headers.get("etag"), second.headers.get("content-type")], [first.headers.etag, first.headers["content-type"]]);
  isProblem(await ask("/charge", { key: "x1", body: "9" }), 422, /another request/);
  assert.equal((await other.ask("/charge?x=1", { key: "e1", body: "9" })).status, 422);
  assert.deepEqual([calls.length, other.calls.length], [1, 1]);
  await ask("/long", { key: "e2" });
  await other.ask("/long", { key: "x2" });
  assert.match((await other.ask("/long", { key: "e2" })).text, /not kept/);
  isProblem(await ask("/long", { key: "x2" }), 409, /not kept/);
  const begun = ask("/slow", { key: "e3" });
  await slow.waits;
  assert.deepEqual([(await other.ask("/slow", { key: "e3" })).status, (await other.ask("/slow", { key: "e3", body: "9" })).status], [409, 422]);
  slow.end();
  await begun;
  assert.deepEqual([(await other.ask("/slow", { key: "e3" })).text, other.calls], ["slow", ['{"eur":9}', "long"]]);
});

test("Hono takes it as middleware", async () => {
  const name = anybody();
  const env = { STORE: webdis.url };
  const calls = [];
  const app = new Hono();
  app.onError((error, c) => c.text(error.message, 500));
  const answered = idempotency((request, env) => connect(env.STORE, SLOW), { principal: (request, env, c) => c.get("user") });
  app.use(async (c, next) => {
    c.set("user", name);
    await next();
  });
  app.use(async (c, next) => {
    const handle = answered(async () => {
      await next();
      return c.res;
    });
    const response = await handle(c.req.raw, c.env, c);
    c.res = undefined; // or its headers are added
    c.res = response;
  });
  app.post("/charge", async (c) => {
    calls.push(await c.req.json());
    c.header("Set-Cookie", "a=b");
    c.header("X-Token", String(leaseOf(c.req.raw)?.token));
    return c.json({ charge: calls.length }, 201);
  });
  app.post("/raises", () => {
    calls.push("raises");
    throw new Error("no");
  });
  app.get("/charge", (c) => c.text("all"));
  const [first, second] = [await app.request(asked("/charge"), {}, env), await app.request(asked("/charge"), {}, env)];
  assert.deepEqual([first.status, second.status, await second.text()], [201, 201, await first.text()]);
  assert.deepEqual([replayed(first), replayed(second), first.headers.get("set-cookie"), second.headers.get("set-cookie")], [null, "true", "a=b", null]);
  assert.ok(Number(first.headers.get("x-token")) > 0);
  assert.equal((await app.request(asked("/charge", { body: '{"eur":10}' }), {}, env)).status, 422);
  for (const _ of "ab") assert.equal((await app.request(asked("/raises"), {}, env)).status, 500);
  assert.equal(await (await app.request(asked("/charge", { method: "GET" }), {}, env)).text(), "all");
  assert.deepEqual(calls, [{ eur: 9 }, "raises", "raises"]);
});
