// Programs that tests start as servers, on free ports of 127.0.0.1.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { until } from "./until.mjs";

const TRIES = 5;

export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** If a test ends without stopping them. */
const running = new Set();
process.on("exit", () => running.forEach((server) => server.kill("SIGKILL")));

/**
 * Starts a program that `command(port)` describes as `[program, args, options]`, until `isReady(port)`. Returns
 * `{ port, pid, stop }`. It ends with the test, if not before. If another process has taken the port, it tries another.
 */
export async function startServer(t, command, isReady) {
  for (let tries = 0; tries < TRIES; tries++) {
    const port = await freePort();
    const [program, args, options] = await command(port);
    const server = spawn(program, args, { stdio: "ignore", ...options });
    running.add(server);
    const exited = once(server, "exit").then(() => running.delete(server));
    const stop = async () => {
      server.kill("SIGKILL");
      await exited;
    };
    t.after(stop);
    await until(async () => !running.has(server) || (await isReady(port).catch(() => false)));
    if (running.has(server)) return { port, pid: server.pid, stop };
  }
  throw new Error("a server has found no free port, or never answered");
}
