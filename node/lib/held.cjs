"use strict";

// Responses of `node:http` and `node:http2` that are held back until it is written down that their work is done.

const { ends, uncertain } = require("./keyed.cjs");

/**
 * Holds the response of the work of a run back.
 *
 * @param {any} res @param {{ run: any, print: string, ttl: number }} work
 * @param {Record<string, any>} before The headers that were set before the work.
 */
function hold(res, { run, print, ttl }, before = headersOf(res)) {
  const chunks = [];
  const outside = new Map(Object.entries({ ...headersOf(res), ...before }).map(([name, value]) => [name.toLowerCase(), value]));
  const { write, end, writeHead, flushHeaders } = res;
  // A response of HTTP/2 has no message, and warns who asks for it.
  const hasMessage = res.stream === undefined;
  let [isBegun, isHeaded, isEnded] = [false, false, false];
  /** @param {any} chunk @param {any} encoding */
  const collect = (chunk, encoding) => {
    isBegun = true;
    if (chunk !== undefined && chunk !== null && typeof chunk !== "function") {
      const of = /** @type {BufferEncoding} */ (typeof encoding === "string" ? encoding : "utf8");
      chunks.push(typeof chunk === "string" ? Buffer.from(chunk, of) : Buffer.from(chunk));
    }
  };
  const told = (given) => given.findLast((one) => typeof one === "function");
  // An error handler must not add to what was sent already, as the application sees it.
  Object.defineProperty(res, "headersSent", { configurable: true, get: () => isBegun });
  res.writeHead = (status, ...given) => {
    [isBegun, isHeaded] = [true, true];
    res.statusCode = status;
    if (typeof given[0] === "string" && hasMessage) res.statusMessage = given[0];
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
    const head = { status: res.statusCode, message: hasMessage ? res.statusMessage : undefined, headers: headersOf(res) };
    // Those that were set outside, as by CORS, are those of each request.
    const own = Object.entries(head.headers).filter(([name, value]) => /^content-type$/i.test(name) || !isSame(value, outside.get(name.toLowerCase())));
    Object.assign(res, { write: () => true, end: () => res });
    const answer = ({ status, message, headers }) => {
      delete res.headersSent;
      Object.assign(res, { write, end, writeHead, flushHeaders, statusCode: status }, hasMessage && { statusMessage: message });
      for (const name of res.getHeaderNames()) res.removeHeader(name);
      setHeaders(res, headers);
    };
    ends(run, print, { ...head, headers: Object.fromEntries(own) }, body).then(
      (isCertain) => {
        answer(isCertain ? head : { status: 503, message: undefined, headers: before });
        if (isCertain) res.end(body, told(given));
        else send(res, uncertain());
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
}

/** Returns true for a response that nobody gets: it was sent already, or its client has gone. */
const isOver = (res) => res.headersSent || [res, res.socket, res.stream].some((one) => one?.destroyed === true);

const isSame = (value, other) => String(value) === String(other);

/** Sends a whole answer, as a buffer: what others put around `end` may know no other bytes. */
function send(res, { status, headers, body }) {
  res.statusCode = status;
  setHeaders(res, headers);
  res.end(Buffer.from(body));
}

/** The headers by their names as they were written. */
const headersOf = (res) =>
  Object.fromEntries((res.getRawHeaderNames?.() ?? res.getHeaderNames()).map((name) => [name, res.getHeader(name)]));

/** Sets headers in any form that Node takes: an object, names and values in turns, or pairs. */
function setHeaders(res, headers) {
  if (!Array.isArray(headers)) {
    for (const [name, value] of Object.entries(headers)) if (value !== undefined) res.setHeader(name, value);
    return;
  }
  const flat = headers.flatMap((one) => (Array.isArray(one) ? one : [one]));
  const names = flat.filter((_, at) => at % 2 === 0);
  const values = new Map();
  names.forEach((name, at) => values.set(name.toLowerCase(), [...(values.get(name.toLowerCase()) ?? []), flat[2 * at + 1]]));
  for (const name of names) {
    const own = values.get(name.toLowerCase());
    res.setHeader(name, own.length === 1 ? own[0] : own);
  }
}

module.exports = { hold, isOver, send };
