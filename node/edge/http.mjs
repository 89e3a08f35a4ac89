// Requests that the component has written, as far as `fetch` goes: sent once, and what became of them.

/** One byte more than the longest answer that is understood. */
const MOST_BYTES = 1_048_577;
/** The longest text that a failure carries along. */
const MOST_TEXT = 400;
/** What Node says where no connection could be made, so that nothing can have been sent. Elsewhere nobody knows. */
const NOTHING_SENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN"]);
/** Runtimes without cookies refuse the option that keeps them out. */
const COOKIES = "credentials" in Request.prototype ? { credentials: "omit" } : {};

/**
 * Performs one request within `patienceMs`, and answers what the component calls a response. Whatever is not known to have
 * stayed here is `unknown`.
 */
export async function perform(fetch, { url, method, headers, body }, patienceMs) {
  const cut = new AbortController();
  const timer = setTimeout(() => cut.abort(), patienceMs);
  // Whoever awaits the answer keeps the process alive.
  timer.unref?.();
  try {
    const response = await orCut(cut.signal, () =>
      fetch(url, {
        method,
        headers: headers.map(({ name, value }) => [name, value]),
        body,
        redirect: "manual",
        signal: cut.signal,
        ...COOKIES,
      }),
    );
    // What a browser says instead of showing a redirection.
    if (response.type === "opaqueredirect") return unknown("protocol", "the server redirects, which is not followed");
    const answer = {
      status: response.status,
      headers: Array.from(response.headers, ([name, value]) => ({ name, value })),
      body: await orCut(cut.signal, () => bounded(response.body)),
    };
    return { tag: "http-response", val: answer };
  } catch (error) {
    if (cut.signal.aborted) return unknown("timeout");
    const code = error?.cause?.code;
    const detail = String(code ?? error?.cause?.message ?? error?.message ?? error).slice(0, MOST_TEXT);
    if (NOTHING_SENT.has(code)) return { tag: "not-sent", val: { kind: "unreachable", detail } };
    return unknown("reset", detail);
  } finally {
    clearTimeout(timer);
    // Whoever was cut off, or said too much, is not listened to any more.
    cut.abort();
  }
}

const unknown = (kind, detail) => ({ tag: "unknown", val: { kind, detail } });

/** A `fetch` that does not hear of the abort keeps nobody waiting. */
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

async function bounded(stream) {
  const bytes = [];
  let length = 0;
  const reader = stream?.getReader();
  while (reader !== undefined && length < MOST_BYTES) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes.push(value);
    length += value.byteLength;
  }
  const whole = new Uint8Array(Math.min(length, MOST_BYTES));
  let at = 0;
  for (const part of bytes) {
    const fits = part.subarray(0, whole.length - at);
    whole.set(fits, at);
    at += fits.length;
  }
  return whole;
}
