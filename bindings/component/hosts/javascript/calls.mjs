// How long the component takes in Node, and how large it is: calls.mjs TRANSPILED COMPONENT. No store is there: the answers are made up.

import { appendFileSync } from "node:fs";
import { readFile, readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";

import { compiled } from "./load.mjs";

const PAIRS = 20_000;
const ROUNDS = 5;

const folder = resolve(process.argv[2]);
const { instantiate } = await import(pathToFileURL(join(folder, "leasehold.js")));
const settings = { nodes: [{ poll: "acquire", watch: false }], limits: {} };
const options = { wait: { tag: "once" }, lockDelayMs: 0n, renewal: { tag: "automatic" }, owner: "example" };
const seed = new Uint8Array(32).fill(1);
const at = (ns) => ({ monotonicNs: BigInt(ns), unixMs: 1_700_000_000_000n });
const encoder = new TextEncoder();

/** What an honest store says to operations. */
function operations({ ops }) {
  const outcomes = ops.map(({ op }) => {
    const applied = op.tag === "acquire" ? { tag: "acquired", val: { counter: op.val.floor } } : { tag: "released" };
    return { tag: "applied", val: { applied } };
  });
  return { tag: "outcomes", val: { outcomes } };
}

/** What an honest Webdis says to requests. */
function requests({ body }, what) {
  // It echoes the number of the request, which comes last.
  const number = new TextDecoder().decode(body).split("/").at(-1);
  const said = what === "acquire" ? ["granted", "1700000000000000", number] : number;
  const headers = [{ name: "Content-Type", value: "application/json" }];
  return { tag: "http-response", val: { status: 200, headers, body: encoder.encode(JSON.stringify({ EVALSHA: said })) } };
}

function drain(client, ns, what, answer) {
  const seen = [];
  for (;;) {
    const { tag, val } = client.pollOutput(at(ns));
    if (tag === "wake-at") return seen;
    if (tag === "event") seen.push(val.event.tag);
    else client.handleResponse(val.id, answer(val, what), at(ns));
  }
}

/** For `cargo xtask bench --plot`: a line in the file that it names. */
function tell(...cells) {
  const file = process.env.LEASEHOLD_FIGURES;
  if (file) appendFileSync(file, `${cells.join(" | ")}\n`);
}

function pairs(client, what, answer) {
  let best = Infinity;
  let lock = 0n;
  for (let round = 0; round < ROUNDS; round += 1) {
    const began = performance.now();
    for (let pair = 0; pair < PAIRS; pair += 1) {
      const fresh = new Uint8Array(16);
      new DataView(fresh.buffer).setBigUint64(0, (lock += 1n));
      client.acquire(lock, "invoice/42", options, fresh, at(lock));
      const acquired = drain(client, lock, "acquire", answer);
      client.release(lock, at(lock));
      const released = drain(client, lock, "release", answer);
      if (`${acquired} ${released}` !== "acquired released") throw new Error(`${acquired} ${released}`);
    }
    best = Math.min(best, (performance.now() - began) / PAIRS);
  }
  tell("figure", "WebAssembly", what, "time", "us", "an ES module, in Node", (best * 1_000).toFixed(3), "-", "-");
  return `${(best * 1_000).toFixed(1)} us`;
}

tell("version", "node", process.versions.node);
const began = performance.now();
const component = await compiled(instantiate, (name) => readFile(join(folder, name)));
const loaded = performance.now();
const { Client } = component();
const made = Client.create(settings, seed, at(0));
console.log(`compiled in ${(loaded - began).toFixed(1)} ms, an instance in ${(performance.now() - loaded).toFixed(1)} ms`);
console.log(`${pairs(made, "as operations", operations)} for an acquire and a release, as operations`);
const store = { tag: "redis-http", val: { dialect: "webdis", url: "http://127.0.0.1:7379", access: "anonymous" } };
console.log(`${pairs(component().Client.createWired(settings, [store], seed, at(0)), "as requests over HTTP", requests)} for both as requests over HTTP`);

let all = 0;
for (const name of (await readdir(folder)).filter((name) => /\.(js|wasm)$/.test(name))) {
  const bytes = await readFile(join(folder, name));
  const zipped = gzipSync(bytes, { level: 9 }).length;
  console.log(`${name}: ${bytes.length} bytes, ${zipped} gzipped`);
  all += zipped;
}
tell("figure", "WebAssembly", "the ES module, with all files", "size, gzipped", "KB", "leasehold", (all / 1e3).toFixed(3), "-", "-");
const { size } = await stat(process.argv[3]);
console.log(`the component: ${size} bytes`);
tell("figure", "WebAssembly", "the component", "size", "MB", "leasehold", (size / 1e6).toFixed(3), "-", "-");
