// Requests with an Idempotency-Key that are answered once, for handlers that get a Request and give a Response. Documented in
// idempotency.d.mts. It loads no component: that is the client's.

import { bounded } from "./http.mjs";
import keyed from "./shared/keyed.mjs";

const { decide, ends, settled, uncertain } = keyed;
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
      if (!settings.applies(request.method, key)) return handler(request, ...rest);
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
      try {
        const { answer, ...work } = await decide(asked, { ...settings, maxBody }, sha256);
        return answer === undefined ? await answered(request, work, () => handler(request, ...rest)) : whole(answer);
      } finally {
        // Before the response, since a runtime may stop all that goes on after it.
        await own?.close?.().catch(() => {});
      }
    };
  };
}

export const leaseOf = (request) => runs.get(request);

/**
 * The response of the handler, once it is written down that its work is done.
 *
 * @param {Request} request @param {{ run?: any, print?: string, ttl?: number }} work @param {() => any} handle
 */
async function answered(request, { run, print, ttl }, handle) {
  runs.set(request, run);
  const forget = freeing(run, request.signal, ttl);
  /** @type {any} */
  let response;
  let body = new Uint8Array();
  try {
    // Nobody would get to know of the work.
    request.signal?.throwIfAborted();
    response = await handle();
    if (typeof response?.arrayBuffer !== "function") throw new TypeError("the handler has returned no Response");
    if (!isUpgrade(response)) body = new Uint8Array(await response.arrayBuffer());
  } catch (error) {
    await run.release().catch(() => {});
    throw error;
  } finally {
    forget();
  }
  if (isUpgrade(response)) {
    await run.release().catch(() => {});
    return response;
  }
  const { status, statusText } = response;
  if (!(await ends(run, print, { status, headers: Object.fromEntries(response.headers) }, body))) return whole(uncertain());
  const headers = new Headers(response.headers);
  // It may be the length of another encoding, in which a server had sent the body.
  headers.delete("content-length");
  return new Response(BODILESS.has(status) ? null : body, { status, statusText, headers });
}

/** Tells if a response has no end that could be awaited: one to a WebSocket, or to an error of the network. */
const isUpgrade = ({ status }) => status < 200;

/** Frees the key a ttl after the client has gone, since nobody may learn that the handler has ended. Returns what stops that. */
function freeing(run, signal, ttl) {
  let timer;
  const gone = () => {
    timer = setTimeout(() => run.release().catch(() => {}), ttl);
    timer.unref?.();
  };
  signal?.addEventListener("abort", gone, { once: true });
  return () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", gone);
  };
}

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
  return new Response(BODILESS.has(status) ? null : body, { status, headers });
}
