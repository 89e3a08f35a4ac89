// `leasehold/edge` without any store: its settings, its clock, and an instance that fails.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { connect, ConfigError } from "leasehold/edge";
import { folder, part } from "./helpers/edge.mjs";

const { clock } = await part("clock");
const { connector } = await part("client");
const { perform } = await part("http");
const { load } = await part("inline");
const { lockOptions } = await part("settings");
const { shown } = await part("parameters");
const { parsed } = await part("urls");

const STORE = "webdis+http://127.0.0.1:1";
const KEYS = { accessKeyId: "a", secretAccessKey: "b" };

test("it uses no API of Node", () => {
  const modules = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".mjs"));
  assert.ok(modules.length > 10);
  for (const name of modules) {
    const text = readFileSync(join(folder, name), "utf8");
    const imported = [...text.matchAll(/^(?:import|export)[^"';]*? from "([^"]+)"/gm)].map(([, from]) => from);
    assert.deepEqual(imported.filter((from) => !from.startsWith("./") && !from.startsWith("../shared")), [], name);
    assert.doesNotMatch(text, /\b(require|process|Buffer)\b[.(]/, name);
  }
});

test("urls are read as the native package reads them", () => {
  const read = (url) => {
    const { name, store, credentials } = parsed(url);
    return [name, store("with-credentials").val.url, credentials];
  };
  assert.deepEqual(read("upstash+https://:AX%3D_-%2F@EU1-calm-1.upstash.io"), [
    "upstash+https://eu1-calm-1.upstash.io",
    "https://eu1-calm-1.upstash.io",
    { token: "AX=_-/" },
  ]);
  assert.deepEqual(read("webdis+https://us%65r:p%40ss%2Fword@[::1]:7000/some/way/"), [
    "webdis+https://[::1]:7000/some/way",
    "https://[::1]:7000/some/way",
    { user: "user", password: "p@ss/word" },
  ]);
  assert.deepEqual(read("webdis+https://user:100%%zz%41%@cache")[2], { user: "user", password: "100%%zzA%" });
  for (const [url, base] of [
    ["upstash+https://:12345@host", "https://host"],
    ["upstash+https://:12345@host:8443", "https://host:8443"],
    ["webdis+https://user:1%@[::1]", "https://[::1]"],
    ["webdis+https://user:1@[::1]:2", "https://[::1]:2"],
    ["webdis+http://cache", "http://cache:7379"],
    ["webdis+http://cache:80", "http://cache:80"],
    ["webdis+https://cache:443", "https://cache:443"],
    ["webdis+http://cache:0080", "http://cache:80"],
    ["webdis+https://cache", "https://cache"],
    ["dynamodb://locks/?region=eu-west-1", "https://dynamodb.eu-west-1.amazonaws.com"],
    ["dynamodb://locks?region=eu-west-1", "https://dynamodb.eu-west-1.amazonaws.com"],
    ["dynamodb://locks?region=cn-north-1", "https://dynamodb.cn-north-1.amazonaws.com.cn"],
    ["dynamodb://locks?region=eu-west-1&endpoint=http://127.0.0.1:8000/", "http://127.0.0.1:8000"],
  ]) {
    assert.equal(read(url)[1], base, url);
  }
});

test("only the scheme and a certain host of a url are shown", () => {
  for (const [url, expected] of [
    ["upstash+https://:hunter2@Host:8443/way?durable=yes", "upstash+https://Host:8443"],
    ["webdis+https://u:x@hunter2@[::1]:80", "webdis+https://[::1]:80"],
    ["dynamodb://locks?region=eu-west-1", "dynamodb://locks"],
    ["Upstash+https://:hunter2@host", "Upstash+https://host"],
    ["upstash+https://:hunter2", "upstash+https://..."],
    ["Upstash+https://:hunter2", "Upstash+https://..."],
    ["redis2://:hunter2", "redis2://..."],
    ["redis2://user:hunter2", "redis2://..."],
    ["upstash+https://default:12/hunter2@host", "upstash+https://..."],
    ["upstash+https://default:12\\hunter2@host", "upstash+https://..."],
    ["upstash+https://default:12?hunter2&x@host", "upstash+https://..."],
    ["upstash+https://:12#hunter2@host", "upstash+https://..."],
    ["upstash+https://\nhunter2@h\\ost", "upstash+https://h"],
    ["upstash+https:hunter2@host", "..."],
    ["upstash+https:/:hunter2@host", "..."],
    ["hunter2", "..."],
    ["hunter2:hunter2", "..."],
  ]) {
    assert.equal(shown(url), JSON.stringify(expected), url);
  }
});

test("invalid settings are refused before any request, and show no secrets", async () => {
  const fetch = () => assert.fail("a request was made");
  for (const [url, words, options] of [
    ["redis://:hunter2@host", "other stores need native code"],
    ["hunter2", "other stores need native code"],
    ["Upstash+https://:hunter2@host", "other stores need native code"],
    ["redis2://:hunter2", "other stores need native code"],
    ["upstash+https://default:12/hunter2@host", "%2F"],
    ["upstash+https://default:12\\hunter2@host", "%2F"],
    ["upstash+https://u:12?hunter2&x@host", "%3F"],
    ["webdis+https://u:12?hunter2", "unknown parameter"],
    ["webdis+http://cache:\t7000", "control characters"],
    ["webdis+http://cache\\hunter2", "backslash"],
    ["webdis+http://ca\nche", "control characters"],
    ["upstash+https://:hunter2@host?plaintext=allow", "for http only"],
    ["dynamodb://locks?region=eu-west-1&plaintext=allow", "for http only", { credentials: KEYS }],
    ["dynamodb://locks?region=eu-west-1#hunter2", "# is written %23", { credentials: KEYS }],
    ["dynamodb://AK:hunter2?region=eu-west-1", "a table's name", { credentials: KEYS }],
    ["upstash+https://host", "credentials are missing"],
    ["upstash+https://hunter2@host", "follow a colon"],
    ["upstash+https://:secr#et@host", "%23"],
    ["upstash+https://:hunter2@host?db=1", "unknown parameter; there are durable, plaintext"],
    ["upstash+https://:hunter2@host?plaintext=yes", "plaintext=allow"],
    ["upstash+http://:hunter2@host", "plaintext"],
    ["webdis+http://hunter2@host", "belong together"],
    ["webdis+http://user:hunter2@host", "plaintext"],
    ["webdis+http://", "7379"],
    ["etcd://user@host", "belong together"],
    ["etcd://user:hunter2@host", "plaintext"],
    ["etcd://one,two", "a load balancer"],
    ["etcd://host/path", "etcd://host:2379"],
    ["etcd://host?cert=hunter2", "unknown parameter"],
    ["dynamodb://locks?region=eu-west-1", "credentials are missing"],
    ["dynamodb://locks", "the region is missing", { credentials: KEYS }],
    ["dynamodb://?region=eu-west-1", "the table is missing", { credentials: KEYS }],
    ["dynamodb://key:hunter2@locks?region=eu-west-1", "do not belong into the url", { credentials: KEYS }],
    ["dynamodb://locks?region=us-iso-east-1", "endpoint", { credentials: KEYS }],
    ["dynamodb://locks?region=eu-west-1&key=a&key=b", "twice", { credentials: KEYS }],
    ["dynamodb://locks?region=eu-west-1&endpoint=nowhere", "endpoint", { credentials: KEYS }],
    ["dynamodb://locks?region=eu-west-1", "accessKeyId", { credentials: { token: "hunter2" } }],
    ["dynamodb://locks?region=eu-west-1", "sessionToken", { credentials: { ...KEYS, sessionToken: 5 } }],
    ["dynamodb://locks?region=eu-west-1", "expiration", { credentials: { ...KEYS, expiration: "soon" } }],
    [STORE, "user, password", { credentials: { token: "hunter2" } }],
    [STORE, "quorums", { quorumId: "0".repeat(32) }],
    [STORE, "100 to 100000", { driftPpm: 1 }],
    [STORE, "request", { requestTimeout: 1 }],
  ]) {
    await assert.rejects(connect(url, { fetch, ...options }), (error) => {
      assert.ok(error instanceof ConfigError, `${url}: ${error.stack}`);
      assert.ok(error.message.includes(words), `${url}: ${error.message}`);
      assert.ok(!error.message.includes("hunter2"), error.message);
      return true;
    });
  }
  const client = await connect(STORE, { fetch });
  assert.deepEqual(client.stores, [STORE]);
  for (const [name, options, words] of [
    ["", {}, "no name"],
    ["a\nb", {}, "U+000A"],
    ["a", { ttl: 99 }, "ttl: 99 is below the smallest, 100: lengths of time are milliseconds, so for 99 s write 99_000"],
    ["a", { ttl: Infinity }, "ttl cannot be infinite"],
    ["a", { ttl: 1e300 }, "must be at most 86400000 ms"],
    ["a", { wait: -1 }, "not a duration"],
    ["a", { ttl: NaN }, "not a duration"],
    ["a", { renew: false, renewEvery: 100 }, "contradict"],
    ["a", { data: new Uint8Array(4_097) }, "4097 bytes"],
    ["a", { owner: "x".repeat(257) }, "257 bytes"],
  ]) {
    await assert.rejects(client.acquire(name, options), (error) => {
      assert.ok(error instanceof ConfigError && error.message.includes(words), error.message);
      return true;
    });
  }
  for (const options of [{ timeout: 5 }, { ttl: "30s" }, { signal: {} }, { renew: "no" }]) {
    await assert.rejects(client.acquire("a", options), TypeError);
  }
  await assert.rejects(client.tryAcquire("a", { wait: 5 }), TypeError);
  await assert.rejects(client.using("a", {}), TypeError);
  for (const store of [undefined, [], 5]) await assert.rejects(connect(store), TypeError);
  await assert.rejects(connect(STORE, { createQuorum: true }), TypeError);
  await client.close();
});

test("in a quorum of several kinds credentials are for the stores of their kind", async () => {
  const quorum = ["dynamodb://locks?region=eu-west-1", "webdis+https://open", "webdis+https://closed"];
  const settings = { quorumId: "0".repeat(32), requestTimeout: 5_000 };
  const login = { user: "user", password: "hunter2" };
  /** The stores that get requests, and their credentials. */
  const asked = async (urls, credentials) => {
    const seen = new Map();
    let all;
    const complete = new Promise((resolve) => (all = resolve));
    const fetch = async (url, { headers }) => {
      const { authorization } = Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]));
      seen.set(new URL(url).hostname.split(".")[0], authorization?.split(" ")[0] ?? "nobody");
      if (seen.size === urls.length) all();
      throw new TypeError("no");
    };
    const client = await connect(urls, { ...settings, credentials, fetch });
    await Promise.all([complete, assert.rejects(client.acquire("a", { wait: 0 }), { code: "store_unavailable" })]);
    return Object.fromEntries(seen);
  };
  const each = (store) => (store.startsWith("dynamodb") ? KEYS : store.includes("closed") ? login : undefined);
  const expected = { dynamodb: "AWS4-HMAC-SHA256", open: "nobody" };
  assert.deepEqual(await asked(quorum, async (store) => each(store)), { ...expected, closed: "Basic" });
  assert.deepEqual(await asked(quorum, KEYS), { ...expected, closed: "nobody" });
  await assert.rejects(connect(quorum, { ...settings, credentials: login }), /dynamodb:.*credentials are missing/);
  await assert.rejects(connect(quorum, { ...settings, credentials: { token: "t" } }), /credentials for this store must be/);
});

test("a signal that is aborted by the first request ends the wait", async () => {
  const reason = new Error("enough");
  const controller = new AbortController();
  const fetch = () => {
    controller.abort(reason);
    return new Promise(() => {});
  };
  const client = await connect(STORE, { fetch, requestTimeout: 60_000 });
  await assert.rejects(client.acquire("a", { signal: controller.signal }), (error) => error === reason);
});

test("a lock stays closed for as long as the clock may have missed", () => {
  assert.equal(lockOptions({}).lockDelayMs, 500n);
  assert.equal(lockOptions({ lockDelay: 1_000 }).lockDelayMs, 1_500n);
});

test("the outcome of a request is known only if it is certain", async (t) => {
  // Keeps the process alive, since no call is awaited here.
  const alive = setInterval(() => {}, 1_000);
  t.after(() => clearInterval(alive));
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = timers();
  const request = { url: "http://host/", method: "POST", headers: [{ name: "a", value: "b" }], body: new Uint8Array([1]) };
  const failed = (code, message = "fetch failed") => async () => {
    throw Object.assign(new TypeError(message), code && { cause: Object.assign(new Error(code), { code }) });
  };
  const cutOff = new ReadableStream({
    pull(controller) {
      controller.error(new TypeError("terminated"));
    },
  });
  for (const [what, fetch, expected] of [
    ["refused", failed("ECONNREFUSED"), ["not-sent", "unreachable"]],
    ["no such host", failed("ENOTFOUND"), ["not-sent", "unreachable"]],
    ["broken", failed("ECONNRESET"), ["unknown", "reset"]],
    ["broken, in other words", failed("UND_ERR_SOCKET"), ["unknown", "reset"]],
    ["no reason, as in browsers", failed(undefined, "Failed to fetch"), ["unknown", "reset"]],
    ["no end", async () => new Response(cutOff), ["unknown", "reset"]],
    ["redirected, as in browsers", async () => ({ type: "opaqueredirect" }), ["unknown", "protocol"]],
    ["never settled", () => new Promise(() => {}), ["unknown", "timeout"]],
    ["never an end", async () => new Response(new ReadableStream({})), ["unknown", "timeout"]],
    ["heard of the abort", (_, { signal }) => new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
    }), ["unknown", "timeout"]],
  ]) {
    const performing = perform(fetch, request, 100);
    assert.equal(timers(), before, "a pending acquire keeps the process alive");
    const { tag, val } = await performing;
    assert.deepEqual([tag, val.kind], expected, what);
  }

  let sent;
  const { tag, val } = await perform(
    async (...given) => {
      sent = given;
      return new Response(new Uint8Array(3 << 20), { status: 418, headers: { date: "now" } });
    },
    request,
    5_000,
  );
  const [url, { method, headers, body, redirect, credentials, signal }] = sent;
  assert.deepEqual([credentials, signal.aborted], ["omit", true], "no cookies, and the rest of the answer is not wanted");
  assert.deepEqual([url, method, headers, body, redirect], [request.url, "POST", [["a", "b"]], request.body, "manual"]);
  assert.deepEqual([tag, val.status, val.headers], ["http-response", 418, [{ name: "date", value: "now" }]]);
  assert.equal(val.body.length, 1_048_577, "no more than has to be read");
});

test("an answer that the runtime has when the deadline is noticed is read", async () => {
  const posts = `const { port, posted } = require("node:worker_threads").workerData;
    port.postMessage("read");
    Atomics.store(posted, 0, 1);
    Atomics.notify(posted, 0);`;
  const busy = async () => {
    const posted = new Int32Array(new SharedArrayBuffer(4));
    const { port1, port2: port } = new MessageChannel();
    const read = once(port1, "message");
    new Worker(posts, { eval: true, workerData: { port, posted }, transferList: [port] });
    // From here on the answer is there, and soon the deadline has passed.
    Atomics.wait(posted, 0, 0);
    for (const end = performance.now() + 150; performance.now() < end; );
    await read;
    port1.close();
    return new Response("read");
  };
  const { tag, val } = await perform(busy, { url: "http://127.0.0.1:1/", method: "GET", headers: [] }, 100);
  assert.deepEqual([tag, val.status], ["http-response", 200]);
});

test("the clock counts time that performance.now() has missed", () => {
  let [steady, wall] = [1_000, 5_000_000];
  const now = clock(
    () => steady,
    () => wall,
  );
  const ms = () => Number(now().monotonicNs) / 1e6;
  assert.deepEqual(now(), { monotonicNs: 1_000_000_000n, unixMs: 5_000_000n });
  [steady, wall] = [steady + 250, wall + 250];
  assert.equal(ms(), 1_250);
  // Suspended for an hour.
  [steady, wall] = [steady + 10, wall + 3_600_010];
  assert.equal(ms(), 3_601_260);
  assert.equal(ms(), 3_601_260);
  // Set back by an hour, and put right after that: an hour too much, which ends leases too early.
  [steady, wall] = [steady + 10, wall - 3_599_990];
  assert.equal(ms(), 3_601_270);
  [steady, wall] = [steady + 10, wall + 3_600_010];
  assert.equal(ms(), 7_201_280);
  // Slewed by less than the limit.
  for (let second = 0; second < 100; second += 1) {
    [steady, wall] = [steady + 1_000, wall + 1_001];
    now();
  }
  assert.equal(ms(), 7_301_280);
});

test("an instance that fails rejects all of its callers once", async () => {
  const trap = new WebAssembly.RuntimeError("unreachable");
  let isBroken = false;
  const breaking = (client) =>
    new Proxy(client, {
      get: (of, name) => (isBroken ? () => { throw trap; } : of[name].bind(of)),
    });
  const connectBreaking = connector(async () => {
    const make = await load();
    const createWired = (...given) => breaking(make().client.Client.createWired(...given));
    return () => ({ client: { Client: { createWired } } });
  });
  const answer = (script) => new Response(JSON.stringify({ [script]: script.includes("SHA") ? "NOSCRIPT" : "" }));
  const client = await connectBreaking(STORE, { fetch: async () => answer("EVALSHA"), requestTimeout: 5_000 });
  const waiting = client.acquire("a");
  isBroken = true;
  const failed = assert.rejects(waiting, (error) => error === trap);
  await assert.rejects(client.acquire("b"), (error) => error === trap);
  await failed;
  await assert.rejects(client.acquire("c"), (error) => error === trap);
  await client.close();
});
