"use strict";

// Requests with an Idempotency-Key that are answered once. Documented in express.d.ts. What is kept has the form that
// leasehold.contrib.asgi of Python has; both compare the same bytes where a parser keeps them as `rawBody`.

const { builtin } = require("./lib/builtin.cjs");
const { LeaseholdError, ResultNotKeptError, StoreUnavailableError } = require("./lib/errors.cjs");
const { options } = require("./lib/options.cjs");
const { unsettled } = require("./lib/results.cjs");
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
const UNCERTAIN = "it is not certain that this was done: send the same request again";
const SETTINGS = /** @type {const} */ ({
  principal: "function",
  keep: "number",
  ttl: "number",
  methods: "object or function",
  required: "true or false",
  fingerprint: "function",
});

function idempotency(client, given) {
  if (typeof client?.beginRun !== "function") throw new TypeError("idempotency needs a client: await connect(...)");
  const settings = options(given, SETTINGS);
  const { principal, keep = 86_400_000, ttl = 30_000, methods = ["POST", "PATCH"], required = false, fingerprint = bodyOf } = settings;
  if (principal === undefined) throw new TypeError("idempotency needs principal: a function of the request that tells who asks");
  const applies = new Set([...methods].map((method) => method.toUpperCase()));
  return (req, res, next) => {
    if (!applies.has(req.method)) return next();
    const key = req.headers["idempotency-key"];
    if (key === undefined && !required) return next();
    if (key === undefined) {
      return problem(res, 400, "this request needs the header Idempotency-Key: a text of your own, new for each operation");
    }
    if (!KEY.test(key)) {
      return problem(res, 400, "Idempotency-Key has to be one text of 1 to 255 printable ASCII characters, such as a UUID");
    }
    let once;
    try {
      once = { ...occurrence(req, principal(req), key), print: hash(queryOf(req), fingerprint(req)) };
    } catch (error) {
      return next(error);
    }
    const { name, print, ...named } = once;
    const asked = client.beginRun(name, { ...named, keep, ttl, data: Buffer.from(print) }).then(async (begun) => {
      if (begun.run !== null || begun.reason !== "running" || begun.holder?.data) return begun;
      // A client does not ask the store while it holds the lock itself.
      return { ...begun, holder: (await client.inspectRun(name, named.key)).holder };
    });
    return asked.then(
      ({ run, ...outcome }) => (run === null ? other(res, outcome, print) : work(res, next, run, { print, ttl })),
      (error) => (error instanceof StoreUnavailableError ? problem(res, 503, UNCERTAIN, true) : next(error)),
    );
  };
}

/** Holds the response back until it is written down that the work is done. */
function work(res, next, run, { print, ttl }) {
  const chunks = [];
  const { write, end, writeHead, flushHeaders } = res;
  const before = headersOf(res);
  let [isBegun, isHeaded, isEnded] = [false, false, false];
  const collect = (chunk, encoding) => {
    isBegun = true;
    if (chunk !== undefined && chunk !== null && typeof chunk !== "function") {
      chunks.push(typeof chunk === "string" ? Buffer.from(chunk, typeof encoding === "string" ? encoding : "utf8") : Buffer.from(chunk));
    }
  };
  const told = (given) => given.findLast((one) => typeof one === "function");
  // An error handler must not add to what was sent already, as the application sees it.
  Object.defineProperty(res, "headersSent", { configurable: true, get: () => isBegun });
  res.writeHead = (status, ...given) => {
    [isBegun, isHeaded] = [true, true];
    res.statusCode = status;
    if (typeof given[0] === "string") res.statusMessage = given[0];
    setHeaders(res, given.find((one) => typeof one === "object" && one !== null) ?? {});
    return res;
  };
  res.flushHeaders = () => {
    isBegun = true;
  };
  res.write = (chunk, ...given) => {
    collect(chunk, given[0]);
    const callback = told(given);
    if (callback) process.nextTick(callback);
    return true;
  };
  res.end = (...given) => {
    // Middleware within may wait for this call to set its headers.
    if (!isHeaded) res.writeHead(res.statusCode);
    collect(given[0], given[1]);
    isEnded = true;
    const body = Buffer.concat(chunks);
    if (res.hasHeader("content-length")) res.setHeader("content-length", body.length);
    const head = { status: res.statusCode, message: res.statusMessage, headers: headersOf(res) };
    Object.assign(res, { write: () => true, end: () => res });
    const answer = ({ status, message, headers }) => {
      delete res.headersSent;
      Object.assign(res, { write, end, writeHead, flushHeaders, statusCode: status, statusMessage: message });
      for (const name of res.getHeaderNames()) res.removeHeader(name);
      setHeaders(res, headers);
    };
    ends(run, print, head, body).then(
      (isCertain) => {
        answer(isCertain ? head : { status: 503, message: undefined, headers: before });
        if (isCertain) res.end(body, told(given));
        else problem(res, 503, UNCERTAIN, true);
      },
      (error) => {
        answer(head);
        res.destroy(error);
      },
    );
    return res;
  };
  res.once("close", () => {
    // The handler may still be at work, but nobody will know of its end.
    if (!isEnded) setTimeout(() => isEnded || run.release().catch(() => {}), ttl).unref();
  });
  next();
}

/** The headers by their names as they were written. */
const headersOf = (res) => Object.fromEntries(res.getRawHeaderNames().map((name) => [name, res.getHeader(name)]));

/** Sets headers in any form that Node takes: an object, names and values in turns, or pairs. */
function setHeaders(res, headers) {
  if (!Array.isArray(headers)) {
    for (const [name, value] of Object.entries(headers)) if (value !== undefined) res.setHeader(name, value);
    return;
  }
  const flat = headers.flatMap((one) => (Array.isArray(one) ? one : [one]));
  const names = flat.filter((_, at) => at % 2 === 0);
  for (const name of names) res.removeHeader(name);
  names.forEach((name, at) => res.appendHeader(name, flat[2 * at + 1]));
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

/** Answers a request whose work another one has done, or does. */
function other(res, outcome, print) {
  if (outcome.reason === "running") {
    const { data } = outcome.holder ?? {};
    if (data !== undefined && data !== null && Buffer.from(data).toString() !== print) return problem(res, 422, DIFFERS);
    return problem(res, 409, "the first request with this Idempotency-Key is still at work: ask again", true);
  }
  if (outcome.result === unsettled) return problem(res, 409, "this was done, and the response is not settled yet: ask again", true);
  const kept = read(outcome.result);
  if (kept !== undefined && kept.print !== print) return problem(res, 422, DIFFERS);
  if (kept === undefined || kept.status === null) {
    return problem(res, 409, "this was done, and the response is not kept, since it was too long");
  }
  res.statusCode = kept.status;
  setHeaders(res, kept.headers);
  res.setHeader("Idempotency-Replayed", "true");
  res.end(kept.body);
}

function occurrence(req, principal, key) {
  if (typeof principal !== "string") throw new TypeError(`principal must give a string that tells who asks, not ${typeof principal}`);
  const path = pathOf(req);
  const shown = path.slice(0, SHOWN).replace(/[^\x20-\x7e]/g, "?");
  return { name: `${req.method} ${shown}`, key: hash(req.method, path, principal, key.replace(/^"|"$/g, "")) };
}

const urlOf = (req) => req.originalUrl ?? req.url;
const queryOf = (req) => urlOf(req).split("?").slice(1).join("?");

/** The path as ASGI has it. */
function pathOf(req) {
  const [path] = urlOf(req).split("?");
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** The body of the request: as it came, where a parser has kept it, or else as it was parsed. */
function bodyOf(req) {
  const body = req.rawBody ?? req.body;
  if (typeof body === "string" || body instanceof Uint8Array) return body;
  // Express 4 has an empty object for what no parser has read.
  const isUnread = typeof body === "object" && Object.keys(body ?? {}).length === 0 && req._body !== true && req.rawBody === undefined;
  if (body === undefined || isUnread) {
    if (Number(req.headers["content-length"] ?? 0) === 0 && req.headers["transfer-encoding"] === undefined) return "";
    throw new TypeError("idempotency has no body to compare: use it behind a parser such as express.json(), or give fingerprint");
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

function problem(res, status, detail, again = false) {
  res.statusCode = status;
  res.setHeader("Content-Type", "application/problem+json");
  if (again) res.setHeader("Retry-After", "1");
  res.end(JSON.stringify({ title: "Idempotency-Key", status, detail }));
}

module.exports = { idempotency };
