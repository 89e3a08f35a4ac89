"use strict";

// Requests with an Idempotency-Key that are answered once: the rules that leasehold/express and leasehold/fastify share. Runs have
// the names, and responses the form, that leasehold.contrib.asgi of Python gives them: bindings/idempotency.json.

const { builtin } = require("./builtin.cjs");
const { LeaseholdError, ResultNotKeptError, StoreUnavailableError } = require("./errors.cjs");
const { options } = require("./options.cjs");
const { unsettled } = require("./results.cjs");
const { createHash } = builtin("node:crypto", () => require("node:crypto"));

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
  fingerprint: "function",
});

/**
 * A function that decides about a request: `undefined` if the rules do not apply to it, or else a promise. It gives an answer, as
 * `{ status, headers, body }`, or the run under which the request's work is to be done, with the request's fingerprint and the ttl.
 *
 * @param {any} client @param {unknown} given The settings. @param {(req: any) => string | Uint8Array} bodyOf
 */
function decider(client, given, bodyOf) {
  if (typeof client?.beginRun !== "function") throw new TypeError("idempotency needs a client: await connect(...)");
  const settings = options(given, SETTINGS);
  const { principal, keep = 86_400_000, ttl = 30_000, methods = ["POST", "PATCH"], required = false, fingerprint = bodyOf } = settings;
  if (principal === undefined) throw new TypeError("idempotency needs principal: a function of the request that returns who asks");
  const applies = new Set([...methods].map((method) => method.toUpperCase()));

  const decide = async (req, key) => {
    if (key === undefined) {
      return { answer: problem(400, "this request needs the header Idempotency-Key: a text of your own, new for each operation") };
    }
    if (!KEY.test(key)) {
      return { answer: problem(400, "Idempotency-Key has to be one text of 1 to 255 printable ASCII characters, such as a UUID") };
    }
    const { name, key: occurrence } = occurrenceOf(req.method, urlOf(req), principal(req), key);
    const print = printOf(urlOf(req), fingerprint(req));
    try {
      const begun = await client.beginRun(name, { key: occurrence, keep, ttl, data: Buffer.from(print) });
      if (begun.run !== null) return { run: begun.run, print, ttl };
      if (begun.reason !== "running" || begun.holder?.data) return { answer: other(begun, print) };
      // A client does not ask the store while it holds the lock itself, or asks for another request already.
      const { holder, done } = await client.inspectRun(name, occurrence);
      return { answer: other(done === null ? { ...begun, holder } : { reason: "done", ...done }, print) };
    } catch (error) {
      if (error instanceof StoreUnavailableError) return { answer: uncertain() };
      throw error;
    }
  };

  return (req) => {
    const key = req.headers["idempotency-key"];
    return applies.has(req.method) && (key !== undefined || required) ? decide(req, key) : undefined;
  };
}

/** Records that the work is done, before anybody gets the answer; false if that is not certain. */
async function ends(run, print, head, body) {
  if (head.status >= 500 || ASKED_AGAIN.has(head.status)) {
    await run.release().catch(() => {});
    return true;
  }
  try {
    await run.finish({ result: written(print, head, body) });
  } catch (error) {
    // The work is done, and this caller gets the response.
    if (error instanceof ResultNotKeptError) return true;
    if (error instanceof LeaseholdError) return false;
    throw error;
  }
  return true;
}

/** The answer to a request whose work another one has done, or does. */
function other(outcome, print) {
  if (outcome.reason === "running") {
    const { data } = outcome.holder ?? {};
    if (data !== undefined && data !== null && Buffer.from(data).toString() !== print) return problem(422, DIFFERS);
    return problem(409, "the first request with this Idempotency-Key is still at work: ask again", true);
  }
  if (outcome.result === unsettled) return problem(409, "this was done, and the response is not settled yet: ask again", true);
  const kept = read(outcome.result);
  if (kept !== undefined && kept.print !== print) return problem(422, DIFFERS);
  if (kept === undefined || kept.status === null) {
    return problem(409, "this was done, and the response is not kept, since it was too long");
  }
  return { status: kept.status, headers: [...kept.headers, ["Idempotency-Replayed", "true"]], body: kept.body, isReplayed: true };
}

/** The name and key of the run that a request stands for. */
function occurrenceOf(method, url, principal, key) {
  if (typeof principal !== "string") throw new TypeError(`principal must return a string that says who asks, not ${typeof principal}`);
  const path = pathOf(url);
  // By characters, as in Python, and not by halves of them.
  const shown = [...path].slice(0, SHOWN).join("").replace(/[^\x20-\x7e]/gu, "?");
  return { name: `${method} ${shown}`, key: hash(method, path, principal, key.replace(/^"|"$/g, "")) };
}

/** The fingerprint of a request: of its query, and of what is compared beside it. */
const printOf = (url, compared) => hash(url.split("?").slice(1).join("?"), compared);

const urlOf = (req) => req.originalUrl ?? req.url;

/** The path as ASGI has it. */
function pathOf(url) {
  const [path] = url.split("?");
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/**
 * The body of a request: as it came, where a parser has kept it, or else as it was parsed.
 *
 * @param {any} req @param {boolean} isUnread No parser has read the body. @param {string} hint What to do then.
 */
function bytesOf(req, isUnread, hint) {
  const body = req.rawBody ?? req.body;
  if (typeof body === "string" || body instanceof Uint8Array) return body;
  if (body === undefined || isUnread || typeof body?.pipe === "function") {
    if (Number(req.headers["content-length"] ?? 0) === 0 && req.headers["transfer-encoding"] === undefined) return "";
    throw new TypeError(`idempotency has no body to compare: ${hint}, or give fingerprint`);
  }
  return JSON.stringify(body);
}

function hash(...parts) {
  const whole = createHash("sha256");
  for (const part of parts) {
    const bytes = Buffer.from(part);
    const length = Buffer.alloc(8);
    length.writeBigUInt64BE(BigInt(bytes.length));
    whole.update(length).update(bytes);
  }
  return whole.digest("hex");
}

/** The response as it is kept: a line of JSON, and the body. Of one that is too long, the fingerprint alone. */
function written(print, head, body) {
  const headers = [];
  for (const [name, value] of Object.entries(head.headers)) {
    if (NEVER_KEPT.has(name.toLowerCase())) continue;
    for (const one of Array.isArray(value) ? value : [value]) headers.push([name.toLowerCase(), String(one)]);
  }
  const whole = Buffer.concat([line({ fingerprint: print, status: head.status, headers }), body]);
  return whole.length <= KEPT ? whole : line({ fingerprint: print, status: null });
}

const line = (kept) => Buffer.from(`${JSON.stringify(kept)}\n`);

/** The response that `written` has written; `undefined` for anything else, since others may write to the store. */
function read(result) {
  if (!(result instanceof Uint8Array)) return undefined;
  const end = result.indexOf(10);
  try {
    const { fingerprint: print, status, headers = [] } = JSON.parse(Buffer.from(result.subarray(0, Math.max(end, 0))).toString());
    const isStatus = status === null || (Number.isInteger(status) && status >= 200 && status < 500);
    const isHeader = (one) => Array.isArray(one) && one.length === 2 && one.every(isPlain) && NAME.test(one[0]);
    if (typeof print !== "string" || !isStatus || !Array.isArray(headers) || !headers.every(isHeader)) return undefined;
    return { print, status, headers, body: Buffer.from(result.subarray(end + 1)) };
  } catch {
    return undefined;
  }
}

/** A header's name or value; with a line break it would begin another one. */
const isPlain = (text) => typeof text === "string" && /^[\t\x20-\x7e\x80-\xff]*$/.test(text);

/** An answer that is ours, and not the application's. */
function problem(status, detail, again = false) {
  const headers = [["Content-Type", "application/problem+json"], ...(again ? [["Retry-After", "1"]] : [])];
  return { status, headers, body: Buffer.from(JSON.stringify({ title: "Idempotency-Key", status, detail })) };
}

const uncertain = () => problem(503, "it is not certain that this was done: send the same request again", true);

module.exports = { bytesOf, decider, ends, occurrenceOf, printOf, read, uncertain, written };
