// The types that leasehold/express and leasehold/fastify share.

/** Settings of the middleware that answers each request with an `Idempotency-Key` once. */
export interface IdempotencySettings<Asked> {
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
