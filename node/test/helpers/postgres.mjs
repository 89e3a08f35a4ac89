// A PostgreSQL server for one test, on a socket in its own folder.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { undo } from "./undo.mjs";

/** The folder of its programs: the newest where Debian puts them, else on the path. */
function programs() {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).map(Number).sort((a, b) => b - a) : [];
  const folders = [...versions.map((version) => join(debian, String(version), "bin")), ...process.env.PATH.split(":")];
  const found = folders.find((folder) => existsSync(join(folder, "initdb")));
  if (!found) throw new Error("initdb is not installed; on Debian: apt-get install postgresql");
  return found;
}

/** It refuses to run as root. */
function unprivileged() {
  if (process.getuid() !== 0) return {};
  const id = (flag) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

/** Returns settings for `pg`. The server ends with the test. */
export async function startPostgres(t) {
  const [folder, user, bin] = [mkdtempSync(join(tmpdir(), "leasehold-pg-")), unprivileged(), programs()];
  undo(t, () => rmSync(folder, { recursive: true, force: true }));
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid);
  const options = { cwd: folder, ...user };
  const data = join(folder, "data");
  const flags = ["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "-D", data];
  execFileSync(join(bin, "initdb"), flags, { ...options, stdio: "ignore" });
  const settings = ["listen_addresses=", "fsync=off", "shared_buffers=16MB"].flatMap((setting) => ["-c", setting]);
  const server = spawn(join(bin, "postgres"), ["-D", data, "-k", folder, ...settings], { ...options, stdio: ["ignore", "ignore", "pipe"] });
  const ended = once(server, "exit");
  // The order to stop at once; a kill would leave its processes behind.
  const stop = () => server.kill("SIGQUIT");
  process.on("exit", stop);
  undo(t, async () => {
    stop();
    await ended;
    process.off("exit", stop);
  });
  let said = "";
  for await (const text of server.stderr.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    said += text;
    if (said.includes("ready to accept connections")) return { host: folder, user: "postgres", database: "postgres" };
  }
  throw new Error(`PostgreSQL has ended:\n${said}`);
}

/** Makes the table of locks, and returns the url of the store. */
export async function lockTable({ host, user, database }) {
  const url = `postgres://${user}@/${database}?host=${host}`;
  const command = fileURLToPath(new URL("../../node_modules/leasehold/bin/leasehold.cjs", import.meta.url));
  execFileSync(process.execPath, [command, "store", "create", "--store", url]);
  return url;
}
