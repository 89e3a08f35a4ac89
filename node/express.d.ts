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

/** Settings of {@link idempotency}. */
export interface IdempotencyOptions<Asked extends IncomingMessage = any> {
  /**
   * The principal that asks: for example the id of the user. Two of them never share a response. It is required, since without it
   * one user would get what another one has asked for.
   */
  principal: (request: Asked) => string;
  /** How many ms a response is kept; default a day. */
  keep?: number | undefined;
  /** How many ms after the death of a process another one may do its work; default 30,000. */
  ttl?: number | undefined;
  /** The methods to which it applies; default POST and PATCH. */
  methods?: Iterable<string> | undefined;
  /** Answers 400 to requests of these methods that have no key; without it they pass. Default `false`. */
  required?: boolean | undefined;
  /**
   * The part of a request that has to be the same under the same key, beside the query. By default the body: `rawBody` where a
   * parser has kept it, or else `body` as JSON.
   */
  fingerprint?: ((request: Asked) => string | Uint8Array) | undefined;
}

/**
 * Middleware that answers each request with an `Idempotency-Key` once. Use it behind the parser of bodies, and behind what
 * tells who asks.
 */
export function idempotency<Asked extends IncomingMessage = any>(
  client: Client,
  options: IdempotencyOptions<Asked>,
): (request: Asked, response: ServerResponse, next: (error?: unknown) => void) => unknown;
