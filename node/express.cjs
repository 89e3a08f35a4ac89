"use strict";

// Requests with an Idempotency-Key that are answered once, in Express. Documented in express.d.ts.

const { hold, isOver, send } = require("./lib/held.cjs");
const { bytesOf, decider } = require("./lib/idempotency.cjs");

function idempotency(client, given) {
  const decide = decider(client, given, bodyOf);
  return (req, res, next) => {
    const decided = decide(req);
    if (decided === undefined) return next();
    return decided.then(({ answer, ...work }) => {
      // Something outside has answered meanwhile, or the client has gone: nobody would get to know of the work.
      if (isOver(res)) return void work.run?.release().catch(() => {});
      if (answer !== undefined) return send(res, answer);
      hold(res, work);
      return next();
    }, next);
  };
}

function bodyOf(req) {
  // Express 4 has an empty object for what no parser has read.
  const isEmpty = typeof req.body === "object" && Object.keys(req.body ?? {}).length === 0;
  const isUnread = isEmpty && req._body !== true && req.rawBody === undefined;
  return bytesOf(req, isUnread, "use it behind a parser such as express.json()");
}

module.exports = { idempotency };
