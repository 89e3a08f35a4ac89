// Holds a lock with the component that takes it by itself: hold.mjs TRANSPILED STORE URL NAME [OPTIONS].
//
// STORE is `webdis`, `upstash` or `dynamodb`; several URLs with commas between them are a quorum. Credentials come from the
// environment: UPSTASH_REDIS_REST_TOKEN for the second, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, with AWS_SESSION_TOKEN
// or without, for the third. Each line of the input is a call: `remaining`, `check MS`, `tend MS`, `again MS` (asks for the
// same lock once more, and waits so long), `close`, `release`. Nothing is renewed while a line is awaited. The end of the
// input releases the lock.
//
// What comes of it is written line by line. The status is 0 if the lock was released, 1 if it was not granted, 3 if the lease
// was lost, and 2 for anything else. `@bytecodealliance/preview2-shim` is that of the folder from which this is run.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const STATUS = { busy: 1, "timed-out": 1, "store-unavailable": 1, "store-refused": 1, lost: 3 };
const MS = ["ttl-ms", "wait-ms", "max-hold-ms", "max-ttl-ms", "reply-ms"];
const TEXTS = ["owner", "quorum", "table", "region"];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: Object.fromEntries([...MS, ...TEXTS].map((name) => [name, { type: "string" }])),
});
const [transpiled, store, urls, name] = positionals;
const installed = createRequire(join(process.cwd(), "package.json"));
const { WASIShim } = await import(pathToFileURL(installed.resolve("@bytecodealliance/preview2-shim/instantiation")));
const { instantiate } = await import(pathToFileURL(join(transpiled, "leasehold-locks.js")));
const core = (name) => new WebAssembly.Module(readFileSync(join(transpiled, name)));
const { client: locks } = instantiate(core, new WASIShim().getImportObject());
const say = (line) => process.stdout.write(`${line}\n`);

const [ttl, wait, maxHold, maxTtl, requestTimeout] = MS.map((name) => values[name] && BigInt(values[name]));

try {
  const client = locks.Client.connect({
    nodes: urls.split(",").map((url) => ({ store: place(url), credentials: credentials() })),
    owner: values.owner,
    requestTimeout,
    quorum: values.quorum && { id: values.quorum, maxTtl },
  });
  const lease = acquired(client);
  say(`acquired ${lease.token()}`);
  for await (const line of createInterface(process.stdin)) {
    const [call, ms] = line.split(" ");
    if (call === "release") break;
    if (call === "remaining") say(`remaining ${lease.remaining()}`);
    if (call === "check") say(`held${lease.check(BigInt(ms)) ?? ""}`);
    if (call === "tend") say(`tended ${client.tend(BigInt(ms)) ?? "None"}`);
    if (call === "again") say(`again ${again(client, BigInt(ms))}`);
    if (call === "close") say(`closed${client.close() ?? ""}`);
  }
  lease.release();
  say("released");
} catch (error) {
  // Whatever has no payload is no error of the component.
  if (error.payload === undefined) throw error;
  const { kind, message } = error.payload;
  say(`${kind}: ${message}`);
  process.exitCode = STATUS[kind] ?? 2;
}
// The shim's worker would keep the process alive, and what was written has to leave first.
if (process.stdout.writableLength > 0) await once(process.stdout, "drain");
process.exit();

function again(client, wait) {
  try {
    return `acquired ${client.acquire(name, { wait })}`;
  } catch ({ payload: { kind, message } }) {
    return `${kind}: ${message}`;
  }
}

function acquired(client) {
  try {
    return client.acquire(name, { ttl, wait, maxHold });
  } catch (error) {
    // It may have taken effect all the same: only calls take that back, and there will be no others.
    try {
      client.close();
    } catch ({ payload }) {
      process.stderr.write(`close: ${payload?.message}\n`);
    }
    throw error;
  }
}

function place(url) {
  if (store === "dynamodb") return { tag: store, val: { table: values.table, region: values.region ?? "us-east-1", url } };
  return { tag: "redis-http", val: { dialect: store, url } };
}

function credentials() {
  const { UPSTASH_REDIS_REST_TOKEN: token, AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = process.env;
  if (store === "upstash") return { tag: "token", val: { token } };
  if (store === "dynamodb") return { tag: "aws", val: { accessKeyId, secretAccessKey, sessionToken: process.env.AWS_SESSION_TOKEN } };
  return undefined;
}
