// A Webdis for one test, in front of a Redis.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { folder } from "./folder.mjs";
import { startServer } from "./server.mjs";

/** Returns `{ url, pid, stop }`; `redis` is the url of the server behind it. */
export async function startWebdis(t, redis) {
  const place = folder(t);
  const server = await startServer(
    t,
    async (port) => {
      const settings = {
        redis_host: "127.0.0.1",
        redis_port: Number(new URL(redis).port),
        http_host: "127.0.0.1",
        http_port: port,
        threads: 2,
        daemonize: false,
        verbosity: 3,
        logfile: join(place, "log"),
      };
      const file = join(place, `${port}.json`);
      await writeFile(file, JSON.stringify(settings));
      return ["webdis", [file], { cwd: place }];
    },
    // Its connections to Redis may not be open yet.
    async (port) => (await fetch(`http://127.0.0.1:${port}/PING`)).status === 200,
  );
  return { ...server, url: `webdis+http://127.0.0.1:${server.port}` };
}
