// Sends requests of the component once with `fetch`, and returns their results.

import { after } from "./clock.mjs";

/** One byte more than the longest response that is accepted. */
const MOST_BYTES = 1_048_577;
/** The longest text of a failure. */
const MOST_TEXT = 400;
/** Error codes of Node when no connection was made, so nothing can have been sent. Other runtimes have none. */
const NOTHING_SENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN"]);
/** Runtimes without cookies reject the option that disables them. */
const COOKIES = "credentials" in Request.prototype ? { credentials: "omit" } : {};
/** An answer out of a cache would show an old lock. */
const FRESH = "cache" in Request.prototype ? { cache: "no-store" } : {};

/**
 * Performs one request within `patienceMs`, and returns a response for the component. It is `unknown` unless the request
 * certainly was not sent.
 */
export async function perform(fetch, { url, method, headers, body }, patienceMs) {
  const cut = new AbortController();
  const timer = after(patienceMs, () => cut.abort());
  // The caller that awaits the response keeps the process alive.
  /** @type {any} */ (timer).unref?.();
  try {
    const response = await orCut(cut.signal, () =>
      fetch(url, {
        method,
        headers: headers.map(({ name, value }) => [name, value]),
        body: method === "GET" ? undefined : body,
        redirect: "manual",
        signal: cut.signal,
        ...COOKIES,
        ...FRESH,
      }),
    );
    // A browser's result for a redirection.
    if (response.type === "opaqueredirect") return unknown("protocol", "the server redirects, which is not followed");
    const answer = {
      status: response.status,
      headers: Array.from(response.headers, ([name, value]) => ({ name, value })),
      body: await orCut(cut.signal, () => bounded(response.body, MOST_BYTES)),
    };
    return { tag: "http-response", val: answer };
  } catch (error) {
    if (cut.signal.aborted) return unknown("timeout");
    const code = error?.cause?.code;
    const said = String(code ?? error?.cause?.message ?? error?.message ?? error);
    // With a shared access signature the url is a secret.
    const detail = said.replaceAll(url, "the url").slice(0, MOST_TEXT);
    if (NOTHING_SENT.has(code)) return { tag: "not-sent", val: { kind: "unreachable", detail } };
    return unknown("reset", detail);
  } finally {
    clearTimeout(timer);
    // Stop reading after an abort or after too many bytes.
    cut.abort();
  }
}

const unknown = (kind, detail) => ({ tag: "unknown", val: { kind, detail } });

/** Rejects on an abort, even if `fetch` ignores it. */
async function orCut(signal, begin) {
  let cut;
  const aborted = new Promise((_, reject) => {
    cut = () => reject(new Error("cut off"));
    signal.addEventListener("abort", cut, { once: true });
  });
  try {
    return await Promise.race([begin(), aborted]);
  } finally {
    signal.removeEventListener("abort", cut);
  }
}

/** The bytes of a stream, or the first `most` of them. */
export async function bounded(stream, most) {
  const bytes = [];
  let length = 0;
  const reader = stream?.getReader();
  while (reader !== undefined && length < most) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes.push(value);
    length += value.byteLength;
  }
  // The caller may cancel the rest.
  reader?.releaseLock();
  const whole = new Uint8Array(Math.min(length, most));
  let at = 0;
  for (const part of bytes) {
    const fits = part.subarray(0, whole.length - at);
    whole.set(fits, at);
    at += fits.length;
  }
  return whole;
}
