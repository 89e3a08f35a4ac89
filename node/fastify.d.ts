/**
 * Fastify 4 and 5: requests with an `Idempotency-Key` that are answered once.
 *
 * ```js
 * await app.register(idempotency(await connect("redis://locks"), { principal: (request) => String(request.user.id) }));
 * ```
 *
 * The first request with a key does the work; later ones get its response, with `Idempotency-Replayed: true`. What is promised, and
 * what is not kept, is in the guide: docs/idempotency.md.
 */

import type { FastifyRequest } from "fastify";
import type { Client } from "./index.js";
import type { IdempotencySettings } from "./lib/idempotency.js";

export type { IdempotencySettings };

/** Settings of {@link idempotency}. */
export interface IdempotencyOptions<Asked = FastifyRequest> extends IdempotencySettings<Asked> {}

/**
 * A plugin that answers each request with an `Idempotency-Key` once. It counts for all routes of the application or scope that registers
 * it. Its hook is a `preHandler`, so hooks that authenticate are of an earlier kind, such as `onRequest`, or registered before.
 */
export function idempotency<Asked = FastifyRequest>(
  client: Client,
  options: IdempotencyOptions<Asked>,
): (app: any, options: object, done: (error?: Error) => void) => void;
