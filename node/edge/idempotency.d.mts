/**
 * Handlers that get a `Request` and give a `Response`, in workers, Hono, Deno, Bun and Next.js: requests with an `Idempotency-Key` that
 * are answered once.
 *
 * ```js
 * const once = idempotency((request, env) => connect(env.LEASEHOLD_STORE), { principal: (request) => userOf(request) });
 *
 * export default { fetch: once(async (request, env) => Response.json(await charge(await request.json(), env))) };
 * ```
 *
 * The first request with a key does the work; later ones get its response, with `Idempotency-Replayed: true`. What is promised, and
 * what is not kept, is in the guide: docs/idempotency.md.
 *
 * @packageDocumentation
 */

/** The lease under which the work of a request is done. */
export interface WorkLease {
  /** The fencing token: grows with every request that does the same work. */
  readonly token: number;
  /** Aborted when the lease is lost: another request may do the work then, and this one is answered 503. */
  readonly signal: AbortSignal;
  /** Throws unless at least `min` ms (default 0) of validity are left. Call it before a step that takes that long. */
  check(min?: number): void;
}

/** The run of a request, of which a client has made it. */
export interface WorkRun extends WorkLease {
  /** Leaves the work to the next request. */
  release(): Promise<void>;
  /** Keeps the response. */
  finish(options: { result: Uint8Array }): Promise<void>;
}

/** The part of a client that is used. Those of `leasehold/edge` have it, and those of `leasehold`. */
export interface RunsClient {
  /** Begins the run that a request stands for. */
  beginRun(
    name: string,
    options: { key: string; keep: number; ttl: number; wait?: number | undefined; data: Uint8Array },
  ): Promise<{ run: WorkRun | null }>;
  /** Called for clients that were connected for one request. */
  close(): Promise<void>;
}

/** Settings of {@link idempotency}. */
export interface IdempotencyOptions<Asked extends Request = Request, Rest extends unknown[] = any[]> {
  /**
   * The principal that asks: for example the id of the user. It is called with the arguments of the handler. Two principals never share a
   * response. It is required, since without it one user would get what another one has asked for.
   */
  principal: (request: Asked, ...rest: Rest) => string | PromiseLike<string>;
  /** How many ms a response is kept; default a day. */
  keep?: number | undefined;
  /** How many ms after the death of a worker another one may do its work; default 30,000. */
  ttl?: number | undefined;
  /**
   * How many ms a request waits for the first one to end, before it is answered 409; default 0. On DynamoDB, etcd, Cosmos DB and cloud
   * storage make it longer than the ttl: there only a request that waits so long can know that the worker of the first one has died.
   */
  wait?: number | undefined;
  /** The methods to which it applies; default POST and PATCH. */
  methods?: Iterable<string> | undefined;
  /** Answers 400 to requests of these methods that have no key; without it they pass. Default `false`. */
  required?: boolean | undefined;
  /** The longest body of a request with a key, in bytes: a longer one is answered 413. Default 1 MiB. */
  maxBody?: number | undefined;
}

/** The arguments of a handler after those that the functions of the settings have. */
export type Beyond<Given extends unknown[], Known extends unknown[]> = Known extends [unknown, ...infer Others]
  ? Given extends [unknown, ...infer Left]
    ? Beyond<Left, Others>
    : []
  : Given;

/**
 * Makes a wrapper of handlers that answers each request with an `Idempotency-Key` once. A handler gets the request as it came, with its
 * body, and what else the runtime gives it. Its response is held back until it has ended and is kept.
 *
 * Give a function that connects a client, with the arguments of the handler: it is called for each request with a key, and the client
 * closed before the response. Outside of workers it may be a client that stays open.
 */
export function idempotency<Asked extends Request = Request, Rest extends unknown[] = any[]>(
  client: RunsClient | ((request: Asked, ...rest: Rest) => RunsClient | PromiseLike<RunsClient>),
  options: IdempotencyOptions<Asked, Rest>,
): <Handler extends (request: Asked, ...rest: [...Rest, ...any[]]) => Response | PromiseLike<Response>>(
  handler: Handler,
) => (request: Asked, ...rest: [...Rest, ...Beyond<Parameters<Handler>, [Asked, ...Rest]>]) => Promise<Response>;

/**
 * The lease under which a handler does the work of a request; `undefined` for a request without a key. Pass its signal to each `fetch`,
 * and its token to what can compare it.
 *
 * @param request The one that the handler was given.
 */
export function leaseOf(request: Request): WorkLease | undefined;
