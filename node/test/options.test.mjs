// The options of requests, wherever Node declares them, are those of `bindings/options.txt`, which all languages share. That the
// types say the same is checked by the compiler: types/lib/options.mts.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";

const source = (path) => readFileSync(join(process.env.LEASEHOLD_SOURCE, path), "utf8");
const root = dirname(createRequire(import.meta.url).resolve("leasehold"));
const declared = createRequire(import.meta.url)(join(root, "lib/options.cjs"));

const KINDS = {
  length: "number",
  number: "number",
  text: "text",
  flag: "true or false",
  bytes: "Uint8Array or Buffer",
  signal: "AbortSignal",
  function: "function",
  object: "object or function",
};
/** What native code takes for each kind; the others stay in JavaScript. */
const NATIVE = { length: "f64", number: "f64", text: "String", flag: "bool", bytes: "Uint8Array" };

const camelCase = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());

/** The options of a request that these have, by name; the value is their kind. */
function listed(request, who) {
  const [, block] = new RegExp(`^${request}\n((?:  .*\n)+)`, "m").exec(source("bindings/options.txt"));
  const lines = block.trim().split("\n").map((line) => line.trim().split(" = ")[0].split(" "));
  return Object.fromEntries(lines.filter(([, , ...have]) => have.length === 0 || have.includes(who)).map(([name, kind]) => [name, kind]));
}

const inJavaScript = (options) => Object.fromEntries(Object.entries(options).map(([name, kind]) => [camelCase(name), KINDS[kind]]));
const without = ({ ...options }, name) => (delete options[name], options);

const REQUESTS = {
  connect: ["CONNECT", "options.rs", "ConnectOptions"],
  lock: ["NATIVE_LOCK", "options.rs", "LockOptions"],
  all: ["ALL", "options.rs", "AllOptions"],
  run: ["NATIVE_RUN", "run.rs", "RunOptions"],
  elect: ["ELECT", "options.rs", "ElectOptions"],
  shards: ["SHARDS", "options.rs", "ShardsOptions"],
  holder: ["HOLDER", "options.rs", "HolderOptions"],
};

for (const [request, [name, file, struct]] of Object.entries(REQUESTS)) {
  test(`the options of a request are as listed: ${request}`, () => {
    const options = listed(request, "node");
    assert.deepEqual(declared[name], inJavaScript(options));
    // Native code would ignore a setting that it does not know.
    const [, block] = new RegExp(`pub struct ${struct} \\{\n(.*?)\n\\}`, "s").exec(source(`node/src/${file}`));
    const fields = Object.fromEntries([...block.matchAll(/pub (\w+): Option<(\w+)>/g)].map(([, field, type]) => [field, type]));
    const native = Object.entries(options).filter(([, kind]) => kind in NATIVE);
    assert.deepEqual(fields, Object.fromEntries(native.map(([field, kind]) => [field, NATIVE[kind]])));
  });
}

test("requests that are made of others have their options", () => {
  const { ALL, ANY, LOCK, NATIVE_LOCK, NATIVE_TRY, TRY, TRY_ALL, TRY_ANY } = declared;
  assert.deepEqual(ANY, inJavaScript(listed("any", "node")));
  for (const [one, tried] of [[ALL, TRY_ALL], [ANY, TRY_ANY], [LOCK, TRY], [NATIVE_LOCK, NATIVE_TRY]]) {
    assert.deepEqual(tried, without(one, "wait"));
  }
});

test("leasehold/edge has its own", async () => {
  const { CONNECT } = await import(join(root, "edge/client.mjs"));
  const { LOCK, RUN } = declared;
  assert.deepEqual([CONNECT, LOCK, RUN], ["connect", "lock", "run"].map((request) => inJavaScript(listed(request, "edge"))));
});
