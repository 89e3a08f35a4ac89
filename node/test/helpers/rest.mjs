// Redis over HTTP in Upstash's format: one command as a JSON array, and a token.

import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";

export const TOKEN = "hunter2-token";

/** Returns `{ url, bare }`, the latter without the token; `redis` is the url of the server behind it. It ends with the test. */
export async function startRest(t, redis) {
  const server = createServer(async (request, response) => {
    const say = (status, answer) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(answer));
    };
    const parts = [];
    for await (const part of request) parts.push(part);
    if (request.headers.authorization !== `Bearer ${TOKEN}`) return say(401, { error: "Unauthorized" });
    const reply = await command(Number(new URL(redis).port), JSON.parse(Buffer.concat(parts)));
    return reply instanceof Error ? say(400, { error: reply.message }) : say(200, { result: reply });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const host = `127.0.0.1:${server.address().port}`;
  return { url: `upstash+http://:${TOKEN}@${host}`, bare: `upstash+http://${host}` };
}

/** One command over a separate connection. An error of Redis is an `Error`. */
async function command(port, words) {
  const socket = connect(port, "127.0.0.1");
  const bulk = (word) => `$${Buffer.byteLength(String(word))}\r\n${word}\r\n`;
  socket.write(`*${words.length}\r\n${words.map(bulk).join("")}`);
  let text = "";
  try {
    for await (const part of socket) {
      text += part.toString("latin1");
      const read = reply(text, 0);
      if (read !== undefined) return read.value;
    }
  } finally {
    socket.destroy();
  }
  throw new Error("Redis has closed the connection");
}

/** The reply at `from`, and its end; `undefined` until all of it has arrived. */
function reply(text, from) {
  const end = text.indexOf("\r\n", from);
  if (end < 0) return undefined;
  const [kind, line] = [text[from], text.slice(from + 1, end)];
  const after = end + 2;
  if (kind === "+") return { value: line, after };
  if (kind === "-") return { value: new Error(line), after };
  if (kind === ":") return { value: Number(line), after };
  const length = Number(line);
  if (length < 0) return { value: null, after };
  if (kind === "$") {
    const last = after + length;
    if (text.length < last + 2) return undefined;
    return { value: Buffer.from(text.slice(after, last), "latin1").toString(), after: last + 2 };
  }
  const value = [];
  for (let at = after; ; ) {
    if (value.length === length) return { value, after: at };
    const item = reply(text, at);
    if (item === undefined) return undefined;
    value.push(item.value);
    at = item.after;
  }
}
