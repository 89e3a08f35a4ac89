// A Webdis of the test's own in front of a Redis, on a free port of 127.0.0.1.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "./redis.mjs";

/** The url of a server that is ready. It ends with the test. */
export async function startWebdis(t, redis) {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-webdis-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const config = join(folder, "webdis.json");
  for (let tries = 0; tries < 5; tries++) {
    const port = await freePort();
    const redisPort = Number(new URL(redis).port);
    const where = { redis_host: "127.0.0.1", redis_port: redisPort, http_host: "127.0.0.1", http_port: port };
    const quiet = { threads: 1, daemonize: false, verbosity: 0, logfile: join(folder, "log") };
    writeFileSync(config, JSON.stringify({ ...where, ...quiet }));
    const server = spawn("webdis", [config], { cwd: folder, stdio: "ignore" });
    // Should a test end without stopping it.
    const kill = () => server.kill("SIGKILL");
    process.on("exit", kill);
    const exited = once(server, "exit").then(() => process.off("exit", kill));
    const url = `http://127.0.0.1:${port}`;
    while (server.exitCode === null && server.signalCode === null) {
      const answer = await fetch(`${url}/PING`).catch(() => undefined);
      // Somebody else may have taken the port meanwhile: then ours has ended.
      await sleep(20);
      if (answer?.ok && server.exitCode === null) {
        t.after(async () => {
          kill();
          await exited;
        });
        return url;
      }
    }
    await exited;
  }
  throw new Error("webdis has found no free port");
}
