// A redis-server for one test, on a free port of 127.0.0.1.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { undo } from "./undo.mjs";

export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** Returns `{ url, pid, stop }` of a server that is ready, on this port if one is given. It ends with the test, if not before. */
export async function startRedis(t, port) {
  const redis = await started(port);
  undo(t, redis.stop);
  return redis;
}

/** If another process has taken the port meanwhile, tries another port. */
async function started(given) {
  for (let tries = 0; tries < 5; tries++) {
    const port = given ?? (await freePort());
    const flags = ["--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"].map(String);
    const server = spawn("redis-server", flags, { stdio: ["ignore", "pipe", "inherit"] });
    // If a test ends without stopping it.
    const kill = () => server.kill("SIGKILL");
    process.on("exit", kill);
    const exited = once(server, "exit").then(() => process.off("exit", kill));
    let isReady = false;
    for await (const line of createInterface({ input: server.stdout })) {
      if (!line.includes("Ready to accept connections")) continue;
      isReady = true;
      break;
    }
    server.stdout.resume();
    if (isReady) {
      const stop = async () => {
        kill();
        await exited;
      };
      return { url: `redis://127.0.0.1:${port}`, pid: server.pid, stop };
    }
    await exited;
  }
  throw new Error("redis-server has found no free port");
}
