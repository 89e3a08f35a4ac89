// Servers for tests, as `leasehold-servers` of the repository starts them: on free ports of 127.0.0.1, until the test ends.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { undo } from "./undo.mjs";

const PROGRAM = process.env.LEASEHOLD_SERVERS;
const LOGIN = { user: "root", password: "hunter2" };
const SECRET = "hunter2";

/** Returns `{ ...facts, stop, restart }`: `stop` ends the server as a crash would, and `restart` starts it on the same port. */
async function start(t, ...words) {
  if (!PROGRAM) throw new Error("LEASEHOLD_SERVERS is not set: cargo xtask node starts these tests");
  const child = spawn(PROGRAM, words.map(String), { stdio: ["pipe", "pipe", "inherit"] });
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  await once(child, "spawn");
  const ended = once(child, "exit");
  const hear = async () => {
    const { value } = await answers.next();
    if (value === undefined) throw new Error(`the server ${words.join(" ")} has failed; stderr says why`);
    return JSON.parse(value);
  };
  // Where the test does not come to its end, the input ends with this process, and the server with that.
  undo(t, async () => {
    child.stdin.end();
    await ended;
  });
  const obey = (order) => {
    child.stdin.write(`${order}\n`);
    return hear();
  };
  return { ...(await hear()), stop: () => obey("kill"), restart: () => obey("restart") };
}

/** A Redis: `{ url, port, pid, stop, restart }`. */
export const startRedis = (t) => start(t, "redis");

/** A Webdis; `redis` is the url of the server behind it. */
export const startWebdis = (t, redis) => start(t, "webdis", new URL(redis).port);

/** An etcd with one user, who may do everything; `url` has the login, `bare` has none. */
export const startEtcd = async (t) => ({ ...(await start(t, "etcd", LOGIN.user, LOGIN.password)), credentials: LOGIN });

/** A table on a DynamoDB Local, which checks no signatures. */
export async function startDynamodb(t) {
  const { accessKeyId, ...table } = await start(t, "dynamodb", "table");
  return { ...table, ...keys(accessKeyId) };
}

/** Azurite; `env` is what native code finds the same key in. */
export async function startAzure(t) {
  const { key, ...server } = await start(t, "azure");
  return { ...server, credentials: { accountKey: key }, env: { AZURE_STORAGE_KEY: key } };
}

/** An emulator of Cosmos DB. */
export async function startCosmos(t) {
  const { key, ...server } = await start(t, "cosmos");
  return { ...server, credentials: { accountKey: key }, env: { AZURE_COSMOS_KEY: key } };
}

/** fake-gcs-server, which asks for no token. */
export const startGcs = async (t) => ({ ...(await start(t, "gcs")), credentials: undefined, env: {} });

/** moto as S3, which checks no signatures. */
export async function startS3(t) {
  return { ...(await start(t, "s3")), ...keys("leaseholdedge") };
}

function keys(accessKeyId) {
  const credentials = { accessKeyId, secretAccessKey: SECRET };
  return { credentials, env: { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: SECRET } };
}

/** A PostgreSQL, with settings for `pg`. */
export async function startPostgres(t) {
  const { host, port, user, database, url } = await start(t, "postgres");
  return { host, port, user, database, url };
}

/** Makes the table of locks, and returns the url of the store. */
export async function lockTable({ url }) {
  const command = fileURLToPath(new URL("../../node_modules/leasehold/bin/leasehold.cjs", import.meta.url));
  execFileSync(process.execPath, [command, "store", "create", "--store", url]);
  return url;
}
