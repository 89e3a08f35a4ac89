// A page in Chromium, headless: its program is named by LEASEHOLD_BROWSER.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";

const TYPES = { ".html": "text/html", ".json": "application/json", ".wasm": "application/wasm" };
const OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"];
/** Of what the browser says about itself, the end, for the message of a page that never answers. */
const SAID = 4_096;

/**
 * Opens `/page.html` of what `load` answers by path (`null` for what is not there), and answers what the page posts to
 * `/told`, as JSON. A page that does not post within `patience` ms is an error.
 */
export async function told(load, patience = 120_000) {
  let tell;
  const answer = new Promise((resolve) => (tell = resolve));
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://page");
    if (request.method === "POST" && pathname === "/told") {
      const parts = [];
      for await (const part of request) parts.push(part);
      response.end();
      tell(JSON.parse(Buffer.concat(parts)));
      return;
    }
    const content = await load(pathname.slice(1)).catch(() => null);
    response.writeHead(content === null ? 404 : 200, { "content-type": TYPES[extname(pathname)] ?? "text/javascript" });
    response.end(content ?? undefined);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const profile = await mkdtemp(join(tmpdir(), "leasehold-browser-"));
  const browser = spawn(
    process.env.LEASEHOLD_BROWSER ?? "chromium",
    [...OPTIONS, `--user-data-dir=${profile}`, "--remote-debugging-port=0", `http://127.0.0.1:${server.address().port}/page.html`],
    // A group of its own, since what is on the path may be a script that starts the browser and stays beside it.
    { stdio: ["ignore", "ignore", "pipe"], detached: true },
  );
  let said = "";
  browser.stderr.on("data", (text) => (said = (said + text).slice(-SAID)));
  const ended = once(browser, "exit");
  let timer;
  try {
    return await Promise.race([
      answer,
      ended.then(([code]) => Promise.reject(new Error(`the browser ended with ${code}\n${said}`))),
      new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`the page has not told anything\n${said}`)), patience);
      }),
    ]);
  } finally {
    clearTimeout(timer);
    await end(browser, ended);
    server.close();
    server.closeAllConnections();
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function end(browser, ended) {
  if (browser.pid === undefined) return;
  try {
    process.kill(-browser.pid, "SIGKILL");
  } catch (error) {
    // There is nobody any more.
    if (error.code !== "ESRCH") throw error;
  }
  await ended.catch(() => {});
  browser.stderr.destroy();
}
