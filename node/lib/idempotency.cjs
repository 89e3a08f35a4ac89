"use strict";

// Requests of Node's servers with an Idempotency-Key that are answered once: what leasehold/express and leasehold/fastify share.

const { builtin } = require("./builtin.cjs");
const { decide, settled } = require("./keyed.cjs");
const { createHash } = builtin("node:crypto", () => require("node:crypto"));

/** Requests whose work is under way. @type {WeakSet<object>} */
const underWay = new WeakSet();

/**
 * A function that decides about a request: `undefined` if the rules do not apply to it, or else a promise. It gives an answer, as
 * `{ status, headers, body }`, or the run under which the request's work is to be done, with the request's fingerprint and the ttl.
 *
 * @param {any} client @param {unknown} given The settings. @param {(req: any) => string | Uint8Array} bodyOf
 */
function decider(client, given, bodyOf) {
  if (typeof client?.beginRun !== "function") throw new TypeError("idempotency needs a client: await connect(...)");
  const settings = settled(given, { fingerprint: "function" });
  const { principal, fingerprint = bodyOf } = settings;
  return (req) => {
    const key = req.headers["idempotency-key"];
    const raw = req.raw ?? req;
    // The last where the middleware stands twice: the outer one does all that the inner one would.
    if (!settings.applies(req.method, key) || underWay.has(raw)) return undefined;
    const request = {
      method: req.method,
      url: req.originalUrl ?? req.url,
      key,
      principal: () => principal(req),
      compared: () => Buffer.from(fingerprint(req)),
      client: () => client,
    };
    return decide(request, settings, sha256).then((decided) => {
      if (decided.run !== undefined) underWay.add(raw);
      return decided;
    });
  };
}

const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

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

module.exports = { bytesOf, decider };
