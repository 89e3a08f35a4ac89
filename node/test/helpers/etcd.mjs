// An etcd for one test, with one member and one user, who may do everything.

import { join } from "node:path";
import { folder } from "./folder.mjs";
import { freePort } from "./redis.mjs";
import { startServer } from "./server.mjs";

const USER = { user: "root", password: "hunter2" };

/** Returns `{ url, bare, credentials, pid, stop }`; `url` has the login, `bare` has none. */
export async function startEtcd(t) {
  const server = await startServer(
    t,
    async (port) => {
      const [client, peer] = [port, await freePort()].map((port) => `http://127.0.0.1:${port}`);
      const flags = {
        name: "one",
        "data-dir": join(folder(t), "data"),
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": `one=${peer}`,
        logger: "zap",
        "log-outputs": "/dev/null",
      };
      return ["etcd", [...Object.entries(flags).map(([name, value]) => `--${name}=${value}`), "--unsafe-no-fsync"], {}];
    },
    async (port) => (await ask(port, "kv/range", { key: "YQ==" })).status === 200,
  );
  for (const [path, body] of [
    ["user/add", { name: USER.user, password: USER.password }],
    ["role/add", { name: "root" }],
    ["user/grant", { user: USER.user, role: "root" }],
    ["enable", {}],
  ]) {
    const { status } = await ask(server.port, `auth/${path}`, body);
    if (status !== 200) throw new Error(`etcd refuses ${path}: ${status}`);
  }
  const host = `127.0.0.1:${server.port}`;
  const url = `etcd://${USER.user}:${USER.password}@${host}`;
  return { ...server, url, bare: `etcd://${host}`, credentials: USER };
}

const ask = (port, path, body) =>
  fetch(`http://127.0.0.1:${port}/v3/${path}`, { method: "POST", body: JSON.stringify(body) });
