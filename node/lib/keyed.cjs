"use strict";

// Requests with an Idempotency-Key that are answered once: the rules that leasehold/express, leasehold/fastify and
// leasehold/edge/idempotency share, so nothing here is Node's alone. Runs have the names, and responses the form, that
// leasehold.contrib.asgi of Python gives them: bindings/idempotency.json.

const { options } = require("./options.cjs");
const { unsettled } = require("./results.cjs");

const KEY = /^(?:"[ !#-~]{1,255}"|[!#-~]{1,255})$/;
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** The longest result of a run, in bytes. */
const KEPT = 4_096;
/** The characters of a path in the name of a run, which people read. */
const SHOWN = 200;
const NEVER_KEPT = new Set([
  "set-cookie", "connection", "keep-alive", "transfer-encoding", "content-length", "date", "upgrade", "trailer",
  "te", "proxy-authenticate", "proxy-authorization", "proxy-connection",
]);
/** Statuses that ask for the same request again, as all from 500 on do. */
const ASKED_AGAIN = new Set([408, 425, 429]);
const DIFFERS = "this Idempotency-Key was used for another request: use a new key for each operation";
const SETTINGS = /** @type {const} */ ({
  principal: "function",
  keep: "number",
  ttl: "number",
  methods: "object or function",
  required: "true or false",
});

const encoder = new TextEncoder();
// With a byte order mark it is no JSON, as Node reads it.
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * The settings, with the defaults of those that all have; `applies` returns true if the rules apply to a request of this method and key.
 *
 * @param {unknown} given @param {Record<string, string>} more Settings of one of the adapters. @returns {Record<string, any>}
 */
function settled(given, more) {
  const { principal, keep = 86_400_000, ttl = 30_000, methods = ["POST", "PATCH"], required = false, ...others } = options(given, { ...SETTINGS, ...more });
  if (principal === undefined) throw new TypeError("idempotency needs principal: a function of the request that returns who asks");
  const all = new Set([...methods].map((method) => method.toUpperCase()));
  const applies = (method, key) => all.has(method) && (key !== undefined || required);
  return { ...others, principal, keep, ttl, applies };
}

/**
 * Decides about a request to which the rules apply. It gives an `answer`, as `{ status, headers, body }`, or the run under which the
 * request's work is to be done, with the request's fingerprint and the ttl.
 *
 * @param {object} request
 * @param {string} request.method
 * @param {string} request.url Its path and query.
 * @param {string | undefined} request.key
 * @param {() => any} request.principal
 * @param {() => any} request.compared What has to be the same under one key beside the query, as bytes; `undefined` if it is too long.
 * @param {() => any} request.client
 * @param {Record<string, any>} settings
 * @param {(bytes: Uint8Array) => any} sha256 A hash as hexadecimal digits; it may be a promise, as the other answers may.
 * @returns {Promise<{ answer?: any, run?: any, print?: string, ttl?: number }>}
 */
async function decide({ method, url, key, principal, compared, client }, { keep, ttl, wait, maxBody }, sha256) {
  if (key === undefined) {
    return { answer: problem(400, "this request needs the header Idempotency-Key: a text of your own, new for each operation") };
  }
  if (!KEY.test(key)) {
    return { answer: problem(400, "Idempotency-Key has to be one text of 1 to 255 printable ASCII characters, such as a UUID") };
  }
  const { name, framed } = occurrenceOf(method, url, await principal(), key);
  const occurrence = await sha256(framed);
  const bytes = await compared();
  if (bytes === undefined) return { answer: problem(413, `a request with an Idempotency-Key has at most ${maxBody} bytes`) };
  const print = await sha256(frame(queryOf(url), bytes));
  try {
    const runs = await client();
    const begun = await runs.beginRun(name, { key: occurrence, keep, ttl, wait, data: encoder.encode(print) });
    if (begun.run !== null) return { run: begun.run, print, ttl };
    if (begun.reason !== "running" || begun.holder?.data || runs.inspectRun === undefined) return { answer: other(begun, print) };
    // A client does not ask the store while it holds the lock itself, or asks for another request already.
    const { holder, done } = await runs.inspectRun(name, occurrence);
    return { answer: other(done === null ? { ...begun, holder } : { reason: "done", ...done }, print) };
  } catch (error) {
    // A server that ends closes its client: another one may be asked.
    if (["store_unavailable", "closed"].includes(codeOf(error))) return { answer: uncertain() };
    throw error;
  }
}

/** Returns true for a response that asks for the same request again; by 409, another service says that it sees the work under way. */
function isAskedAgain({ status, headers }) {
  const hasRetry = Object.keys(headers).some((name) => name.toLowerCase() === "retry-after");
  return status >= 500 || ASKED_AGAIN.has(status) || (status === 409 && hasRetry);
}

/** Records that the work is done, before anybody gets the answer; false if that is not certain. */
async function ends(run, print, head, body) {
  if (isAskedAgain(head)) {
    await run.release().catch(() => {});
    return true;
  }
  try {
    await run.finish({ result: written(print, head, body) });
  } catch (error) {
    // The work is done, and this caller gets the response.
    if (codeOf(error) === "result_not_kept") return true;
    if (codeOf(error) !== undefined) return false;
    throw error;
  }
  return true;
}

/** The code of an error of leasehold. Both halves of the package have classes of their own, and a client may be of either. */
const codeOf = (error) => (typeof error?.temporary === "boolean" && typeof error.code === "string" ? error.code : undefined);

/** The answer to a request whose work another one has done, or does. */
function other(outcome, print) {
  if (outcome.reason === "running") {
    const { data } = outcome.holder ?? {};
    if (data !== undefined && data !== null && decoder.decode(data) !== print) return problem(422, DIFFERS);
    return problem(409, "the first request with this Idempotency-Key is still at work: ask again", true);
  }
  if (isUnsettled(outcome.result)) return problem(409, "this was done, and the response is not settled yet: ask again", true);
  const kept = read(outcome.result);
  if (kept !== undefined && kept.print !== print) return problem(422, DIFFERS);
  if (kept === undefined || kept.status === null) {
    return problem(409, "this was done, and the response is not kept, since it was too long");
  }
  return { status: kept.status, headers: [...kept.headers, ["Idempotency-Replayed", "true"]], body: kept.body, isReplayed: true };
}

/** Returns true for the `unsettled` of either half of the package. */
const isUnsettled = (result) => typeof result === "symbol" && result.description === unsettled.description;

/** The run that a request stands for: its name, and the bytes whose hash is its key. */
function occurrenceOf(method, url, principal, key) {
  if (typeof principal !== "string") throw new TypeError(`principal must return a string that says who asks, not ${typeof principal}`);
  const path = pathOf(url);
  // By characters, as in Python, and not by halves of them. Braces have a meaning in names on Redis Cluster.
  const shown = [...path].slice(0, SHOWN).join("").replace(/[^\x20-z|~]/gu, "?");
  return { name: `${method} ${shown}`, framed: frame(method, path, principal, key.replace(/^"|"$/g, "")) };
}

const queryOf = (url) => url.split("?").slice(1).join("?");

/** The path as ASGI has it: decoded, and with U+FFFD for what is no UTF-8. */
const pathOf = (url) =>
  url.split("?")[0].replace(/(?:%[0-9a-f]{2})+/gi, (bytes) => decoder.decode(Uint8Array.from(bytes.match(/[0-9a-f]{2}/gi), (hex) => parseInt(hex, 16))));

/** These parts with their lengths, so that they cannot run into each other. @param {(string | Uint8Array)[]} parts */
function frame(...parts) {
  return joined(
    parts.flatMap((part) => {
      const bytes = typeof part === "string" ? encoder.encode(part) : part;
      const length = new Uint8Array(8);
      new DataView(length.buffer).setBigUint64(0, BigInt(bytes.length));
      return [length, bytes];
    }),
  );
}

/** @param {Uint8Array[]} parts */
function joined(parts) {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** The response as it is kept: a line of JSON, and the body. Of one that is too long, or has no body to keep, the fingerprint alone. */
function written(print, head, body) {
  const headers = [];
  for (const [name, value] of Object.entries(head.headers)) {
    if (NEVER_KEPT.has(name.toLowerCase()) || !NAME.test(name)) continue;
    // `Headers` takes values that no reader does.
    for (const one of [value].flat().map(String)) if (isPlain(one)) headers.push([name.toLowerCase(), one]);
  }
  const first = line({ fingerprint: print, status: head.status, headers });
  return body !== undefined && first.length + body.length <= KEPT ? joined([first, body]) : line({ fingerprint: print, status: null });
}

const line = (kept) => encoder.encode(`${JSON.stringify(kept)}\n`);

/** The response that `written` has written; `undefined` for anything else, since others may write to the store. */
function read(result) {
  if (!(result instanceof Uint8Array)) return undefined;
  const end = result.indexOf(10);
  try {
    const { fingerprint: print, status, headers = [] } = JSON.parse(decoder.decode(result.subarray(0, Math.max(end, 0))));
    const isStatus = status === null || (Number.isInteger(status) && status >= 200 && status < 500);
    const isHeader = (one) => Array.isArray(one) && one.length === 2 && one.every(isPlain) && NAME.test(one[0]);
    if (typeof print !== "string" || !isStatus || !Array.isArray(headers) || !headers.every(isHeader)) return undefined;
    // A length that is not that of the body would put the rest of it into the next response.
    const own = headers.filter(([name]) => !NEVER_KEPT.has(name.toLowerCase()));
    return { print, status, headers: own, body: result.subarray(end + 1) };
  } catch {
    return undefined;
  }
}

/** A header's name or value; with a line break it would begin another one. */
const isPlain = (text) => typeof text === "string" && /^[\t\x20-\x7e\x80-\xff]*$/.test(text);

/** An answer that is ours, and not the application's. */
function problem(status, detail, again = false) {
  const headers = [["Content-Type", "application/problem+json"], ...(again ? [["Retry-After", "1"]] : [])];
  return { status, headers, body: encoder.encode(JSON.stringify({ title: "Idempotency-Key", status, detail })) };
}

const uncertain = () => problem(503, "it is not certain that this was done: send the same request again", true);

module.exports = { KEPT, NEVER_KEPT, decide, ends, isAskedAgain, read, settled, uncertain };
