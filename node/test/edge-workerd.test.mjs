// `leasehold/edge` in workerd, which has no API of Node and cannot compile WebAssembly at run time.

import assert from "node:assert/strict";
import { cp, readdir, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { folder as edge } from "./helpers/edge.mjs";
import { folder } from "./helpers/folder.mjs";
import { startAzure, startRedis, startWebdis } from "./helpers/servers.mjs";
import { startServer } from "./helpers/server.mjs";
import { checkWork, sources } from "./helpers/worker.mjs";

const WORKER = "workerd.mjs";
const SHARED = "work.mjs";
/** Modules that compile WebAssembly out of text, which is not possible here. */
const ELSEWHERE = ["edge/index.mjs", "edge/inline.mjs", "edge/component/packed.mjs"];

/** Installed for these tests only. */
const isLinux = process.platform === "linux" && ["x64", "arm64"].includes(process.arch);

/** The program of the npm package for this platform. */
function program() {
  const require = createRequire(join(process.env.LEASEHOLD_WORKERD, "package.json"));
  return require.resolve(`@cloudflare/workerd-linux-${process.arch === "x64" ? "64" : "arm64"}/bin/workerd`);
}

async function settings(place, port, stores) {
  const names = (await readdir(place, { recursive: true })).filter((name) => /\.(mjs|wasm)$/.test(name));
  const modules = [WORKER, ...names.filter((name) => name !== WORKER && !ELSEWHERE.includes(name))];
  const kind = (name) => (name.endsWith(".wasm") ? "wasm" : "esModule");
  const embedded = modules.map((name) => `(name = "${name}", ${kind(name)} = embed "${name}")`);
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    (name = "internet", network = (allow = ["local"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
const main :Workerd.Worker = (
  compatibilityDate = "2026-11-01",
  bindings = [(name = "STORES", text = ${JSON.stringify(JSON.stringify(stores))})],
  modules = [${embedded.join(", ")}],
);
`;
}

test("a worker in workerd holds a lock, and loses one", { skip: !isLinux && "workerd is installed on Linux" }, async (t) => {
  const redis = await startRedis(t);
  const webdis = await startWebdis(t, redis.url);
  const azure = await startAzure(t);
  Object.assign(process.env, azure.env);
  const place = folder(t);
  await cp(edge, join(place, "edge"), { recursive: true });
  for (const name of [WORKER, SHARED]) await cp(new URL(name, sources), join(place, name));
  const server = await startServer(
    t,
    async (port) => {
      await writeFile(join(place, "config.capnp"), await settings(place, port, [{ url: webdis.url }, { url: azure.url, credentials: azure.credentials }]));
      return [program(), ["serve", "config.capnp"], { cwd: place, stdio: ["ignore", "ignore", "inherit"] }];
    },
    async (port) => (await fetch(`http://127.0.0.1:${port}/ready`)).ok,
  );
  const seen = await (await fetch(`http://127.0.0.1:${server.port}/`)).json();
  await checkWork(seen, [redis.url, azure.url], "workerd");

  const charge = async (body) => {
    const headers = { "Idempotency-Key": "k1" };
    const response = await fetch(`http://127.0.0.1:${server.port}/charge`, { method: "POST", headers, body });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  const [first, second] = [await charge("9 euros"), await charge("9 euros")];
  assert.deepEqual([first.status, first.text, second.status, second.text], [201, "charged 9 euros", 201, "charged 9 euros"]);
  const names = ["x-token", "set-cookie", "idempotency-replayed"];
  const token = first.headers.get("x-token");
  assert.deepEqual([first, second].map(({ headers }) => names.map((name) => headers.get(name))), [[token, "a=b", null], [token, null, "true"]]);
  assert.deepEqual([(await charge("10 euros")).status, (await charge("x".repeat(101))).status], [422, 413]);
});
