// Valid and invalid uses of the adapters for HTTP in strict TypeScript. Only compiled, never run.

import express from "express";
import fastify, { type FastifyRequest } from "fastify";
import { type Client } from "leasehold";
import * as ofExpress from "leasehold/express";
import { idempotency, type IdempotencyOptions } from "leasehold/fastify";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(..._: Same<A, B> extends true ? [] : ["the types differ"]): void {}

export async function applications(client: Client): Promise<void> {
  const principal = (request: FastifyRequest): string => String(request.headers["x-user"]);
  const options: IdempotencyOptions = { principal, keep: 60_000, ttl: 1_000, methods: ["PUT"], required: true };
  await fastify().register(idempotency(client, options));
  await fastify({ http2: true }).register(idempotency(client, { principal }));
  await fastify().register(async (scope) => {
    await scope.register(idempotency(client, { principal: (request) => (same<typeof request, FastifyRequest>(), request.ip) }));
  });
  const ofBody = (request: FastifyRequest<{ Body: { id: string } }>): string => request.body.id;
  await fastify().register(idempotency(client, { principal: ofBody, fingerprint: ofBody }));
  // @ts-expect-error
  idempotency(client, {});
  // @ts-expect-error
  idempotency(client, { principal: () => 7 });
  // @ts-expect-error
  idempotency(client, { principal, maxAttempts: 3 });

  express().use(ofExpress.idempotency(client, { principal: (req: express.Request) => req.ip ?? "" }));
  // @ts-expect-error
  ofExpress.idempotency(client, {});
}
