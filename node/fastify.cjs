"use strict";

// Requests with an Idempotency-Key that are answered once, in Fastify. Documented in fastify.d.ts.

const { hold, isOver, send } = require("./lib/held.cjs");
const { bytesOf, decider } = require("./lib/idempotency.cjs");

function idempotency(client, given) {
  const decide = decider(client, given, bodyOf);
  const plugin = (app, _, done) => {
    // Behind the parser of bodies, validation and authentication.
    app.addHook("preHandler", async (request, reply) => {
      const { answer, ...work } = (await decide(request)) ?? {};
      // Something outside has answered meanwhile, or the client has gone: nobody would get to know of the work.
      if (work.run !== undefined && isOver(reply.raw)) {
        await work.run.release().catch(() => {});
        reply.hijack();
        return reply;
      }
      if (answer === undefined) {
        if (work.run !== undefined) hold(reply.raw, work, reply.getHeaders());
        return undefined;
      }
      if (!answer.isReplayed) {
        for (const [name, value] of answer.headers) reply.header(name, value);
        return reply.code(answer.status).send(Buffer.from(answer.body));
      }
      // As it was sent: hooks that change a payload have changed it already.
      for (const [name, value] of Object.entries(reply.getHeaders())) reply.raw.setHeader(name, value);
      reply.hijack();
      send(reply.raw, answer);
      return reply;
    });
    done();
  };
  // For the application that registers it, and not for a new scope, as by fastify-plugin.
  return Object.assign(plugin, {
    [Symbol.for("skip-override")]: true,
    [Symbol.for("fastify.display-name")]: "leasehold-idempotency",
    [Symbol.for("plugin-meta")]: { name: "leasehold-idempotency", fastify: ">=4" },
  });
}

const bodyOf = (request) =>
  bytesOf(request, request.rawBody === undefined && request.body === null, "the route needs a parser for its content type");

module.exports = { idempotency };
