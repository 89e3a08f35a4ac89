/**
 * Express 4 and 5, and what is made of it, such as NestJS: requests with an `Idempotency-Key` that are answered once.
 *
 * ```js
 * app.use(express.json());
 * app.use(idempotency(await connect("redis://locks"), { principal: (req) => String(req.user.id) }));
 * ```
 *
 * The first request with a key does the work; later ones get its response, with `Idempotency-Replayed: true`. What is promised, and
 * what is not kept, is in the guide: docs/idempotency.md.
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Client } from "./index.js";
import type { IdempotencySettings } from "./lib/idempotency.js";

export type { IdempotencySettings };

/** Settings of {@link idempotency}. */
export interface IdempotencyOptions<Asked extends IncomingMessage = any> extends IdempotencySettings<Asked> {}

/**
 * Middleware that answers each request with an `Idempotency-Key` once. Use it behind the parser of bodies and
 * behind authentication.
 */
export function idempotency<Asked extends IncomingMessage = any>(
  client: Client,
  options: IdempotencyOptions<Asked>,
): (request: Asked, response: ServerResponse, next: (error?: unknown) => void) => unknown;
