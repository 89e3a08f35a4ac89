// A proxy in front of a store over HTTP that allows other origins and injects faults.

import { once } from "node:events";
import { createServer } from "node:http";

/** Headers that a proxy does not pass on. */
const OF_A_CONNECTION = ["host", "connection", "content-length", "transfer-encoding", "content-encoding", "keep-alive"];

/** Longer than any accepted response. */
const TOO_LONG = Buffer.alloc(2 << 20, "1");

const FAULTS = {
  hang() {},
  reset: (response) => response.socket.destroy(),
  "500": (response) => response.writeHead(500, { "content-type": "application/json" }).end('{"error":"ERR broken"}'),
  html: (response) => response.writeHead(200, { "content-type": "text/html" }).end("<h1>Welcome to the hotel</h1>"),
  "too long": (response) => response.writeHead(200, { "content-type": "application/json" }).end(TOO_LONG),
  redirect: (response) => response.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
  /** The end of the answer never comes. */
  half: (response) => response.writeHead(200, { "content-type": "application/json" }).write('{"EVALSHA":'),
};
export const FAULT_NAMES = [...Object.keys(FAULTS), "answer lost"];

/**
 * Returns `{ url, fault, broken }` in front of the store of this url: a `fault` that is set applies to every request, `broken`
 * counts these requests.
 */
export async function startProxy(t, url) {
  const [, target] = /(?:^[a-z]+\+|endpoint=)(https?:\/\/[^/]+)/.exec(url);
  const proxy = { fault: undefined, broken: 0 };
  const server = createServer(async (request, response) => {
    response.setHeader("access-control-allow-origin", "*");
    response.setHeader("access-control-allow-methods", "*");
    response.setHeader("access-control-allow-headers", "*, authorization");
    response.setHeader("access-control-expose-headers", "*");
    if (request.method === "OPTIONS") return response.end();
    const { fault } = proxy;
    if (fault !== undefined) proxy.broken += 1;
    if (fault in FAULTS) return FAULTS[fault](response);
    const parts = [];
    for await (const part of request) parts.push(part);
    const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => !OF_A_CONNECTION.includes(name)));
    const body = request.method === "GET" ? undefined : Buffer.concat(parts);
    // A server may close a kept connection just when it is used again.
    const asked = fetch(`${target}${request.url}`, { method: request.method, headers, body });
    const answer = await asked.catch(() => undefined);
    if (answer === undefined) return response.socket.destroy();
    const content = Buffer.from(await answer.arrayBuffer());
    if (fault === "answer lost") return response.socket.destroy();
    for (const [name, value] of answer.headers) if (!OF_A_CONNECTION.includes(name)) response.setHeader(name, value);
    response.writeHead(answer.status).end(content);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return Object.assign(proxy, { url: url.replace(target, `http://127.0.0.1:${server.address().port}`) });
}
