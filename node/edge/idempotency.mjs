// Requests with an Idempotency-Key that are answered once, for handlers that get a Request and give a Response. Documented in
// idempotency.d.mts. It loads no component: that is the client's.

import { bounded } from "./http.mjs";
import keyed from "./shared/keyed.mjs";

const { KEPT, decide, ends, settled, uncertain } = keyed;
/** Settings beside those that all have. */
const SETTINGS = { wait: "number", maxBody: "number" };
const MAX_BODY = 1_048_576;
/** Statuses whose responses must not be made with a body, not even an empty one. */
const BODILESS = new Set([204, 205, 304]);

/** The runs under which requests are at work. */
const runs = new WeakMap();

export function idempotency(client, given) {
  if (typeof client?.beginRun !== "function" && typeof client !== "function") {
    throw new TypeError("idempotency needs a client, or a function that connects one: (request, env) => connect(env.LEASEHOLD_STORE)");
  }
  const settings = settled(given, SETTINGS);
  const { maxBody = MAX_BODY } = settings;
  if (!(maxBody >= 0)) throw new TypeError(`maxBody: ${maxBody} is no number of bytes`);
  return (handler) => {
    if (typeof handler !== "function") throw new TypeError(`idempotency needs the handler, a function of the request, not ${typeof handler}`);
    return async (request, ...rest) => {
      const key = request.headers.get("idempotency-key") ?? undefined;
      // The last where the wrapper stands twice: the outer one does all that the inner one would.
      if (!settings.applies(request.method, key) || runs.has(request)) return handler(request, ...rest);
      /** @type {any} */
      let own;
      const connected = async () => {
        if (typeof client !== "function") return client;
        own = await client(request, ...rest);
        if (typeof own?.beginRun === "function") return own;
        throw new TypeError("the function that idempotency was given must return a client: connect(...)");
      };
      const { pathname, search } = new URL(request.url);
      const asked = {
        method: request.method,
        url: pathname + search,
        key,
        principal: () => settings.principal(request, ...rest),
        compared: () => bodyOf(request, maxBody),
        client: connected,
      };
      const answering = async () => {
        try {
          const { answer, ...work } = await decide(asked, { ...settings, maxBody }, sha256);
          return answer === undefined ? await answered(request, work, () => handler(request, ...rest)) : whole(answer);
        } finally {
          // Before the response, since a runtime may stop all that goes on after it.
          await own?.close?.().catch(() => {});
        }
      };
      const response = answering();
      // A worker would be stopped as soon as its client has gone, with its work done and nothing written down of it.
      contextOf(rest)?.waitUntil(response.catch(() => {}));
      return response;
    };
  };
}

export const leaseOf = (request) => runs.get(request);

/** The context of a worker among the arguments of a handler: `ctx`, or that of Hono's `c`. */
function contextOf(rest) {
  for (const one of rest) {
    try {
      const context = [one, one?.executionCtx].find((context) => typeof context?.waitUntil === "function");
      if (context !== undefined) return context;
    } catch {
      // Hono throws outside of workers.
    }
  }
  return undefined;
}

/**
 * The response of the handler, once it is written down that its work is done.
 *
 * @param {Request} request @param {{ run?: any, print?: string }} work @param {() => any} handle
 */
async function answered(request, { run, print }, handle) {
  runs.set(request, run);
  /** @type {any} */
  let response;
  let body = new Uint8Array();
  try {
    // Nobody would get to know of the work.
    request.signal?.throwIfAborted();
    response = await handle();
    if (typeof response?.arrayBuffer !== "function") throw new TypeError("the handler has returned no Response");
    if (!isUpgrade(response)) body = await read(response, request.signal);
  } catch (error) {
    await run.release().catch(() => {});
    throw error;
  }
  if (isUpgrade(response)) {
    await run.release().catch(() => {});
    return response;
  }
  const headers = Object.fromEntries(response.headers);
  const encoding = headers["content-encoding"];
  // A fetch decodes the body of its response, and leaves the header.
  if (encoding === "gzip" && !(body[0] === 0x1f && body[1] === 0x8b)) delete headers["content-encoding"];
  const isOther = encoding !== undefined && encoding !== "gzip";
  if (!(await ends(run, print, { status: response.status, headers }, isOther ? undefined : body))) return whole(uncertain());
  const first = new Response(BODILESS.has(response.status) ? null : body, response);
  // It may be the length of another encoding, in which a server had sent the body.
  first.headers.delete("content-length");
  return first;
}

/**
 * The body of a response. Once the client has gone, no more is read of one that is too long to be kept.
 *
 * @param {Response} response @param {AbortSignal | undefined} signal
 */
async function read(response, signal) {
  const reader = response.body?.getReader();
  if (reader === undefined) return new Uint8Array(await response.arrayBuffer());
  const parts = [];
  let length = 0;
  const stop = () => length > KEPT && void reader.cancel().catch(() => {});
  signal?.addEventListener("abort", stop);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (!(value instanceof Uint8Array)) throw new TypeError("the body of the response has parts that are no bytes");
      parts.push(value);
      length += value.length;
      if (signal?.aborted) stop();
    }
  } finally {
    signal?.removeEventListener("abort", stop);
  }
  const body = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    body.set(part, at);
    at += part.length;
  }
  return body;
}

/** Returns true for a response that has no end: one to a WebSocket, or to an error of the network. */
const isUpgrade = ({ status }) => status < 200;

/** The body of a request, which the handler can read as well; `undefined` if it is longer than `most` bytes. */
async function bodyOf(request, most) {
  if (request.bodyUsed) {
    throw new TypeError("idempotency compares the body of a request, and this one was read before: wrap what reads it as well");
  }
  const copy = request.clone();
  // Firefox has no streams of requests.
  const bytes = copy.body === undefined ? new Uint8Array(await copy.arrayBuffer()) : await bounded(copy.body, most + 1);
  if (bytes.length <= most) return bytes;
  // Both copies, or the rest would still be received: neither is cancelled before the other one is.
  for (const { body } of [copy, request]) body?.cancel().catch(() => {});
  return undefined;
}

async function sha256(bytes) {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function whole({ status, headers, body }) {
  const init = /** @type {any} */ ({ status, headers });
  // In workers, bytes that are encoded already would be encoded once more.
  if (headers.some(([name]) => name === "content-encoding")) init.encodeBody = "manual";
  return new Response(BODILESS.has(status) ? null : body, init);
}
