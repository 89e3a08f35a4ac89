// What a program for a runtime without Node writes in strict TypeScript, and what it must not. Only compiled, never run.

import { connect, ConfigError, GivenUpError, Lease, LeaseholdError, Run, type Attempts, type Client, type LockInfo, type OnceOutcome } from "leasehold/edge";
import { idempotency, leaseOf, type IdempotencyOptions } from "leasehold/edge/idempotency";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(..._: Same<A, B> extends true ? [] : ["the types differ"]): void {}

export async function all(): Promise<string | undefined> {
  await using client = await connect("dynamodb://locks?region=eu-west-1", {
    credentials: async (store) => ({ accessKeyId: store, secretAccessKey: "", expiration: new Date() }),
    fetch: globalThis.fetch,
  });
  same<typeof client, Client>();
  await using lease = await client.acquire("a", { ttl: 30_000, wait: Infinity, signal: AbortSignal.timeout(5) });
  same<typeof lease, Lease>();
  same<typeof lease.token, number>();
  lease.check(5_000);
  await fetch("https://host", { signal: lease.signal });
  const tried = await client.tryAcquire("a", { data: new Uint8Array(1) });
  same<typeof tried, Lease | null>();
  const result = await client.using("a", async (lease) => lease.token);
  same<typeof result, number>();
  same<LockInfo["data"], Uint8Array | undefined>();

  const outcome = await client.once("a", { key: "s", keep: 30_000 }, (run) => run.token);
  same<typeof outcome, OnceOutcome<number>>();
  await using run = (await client.beginRun("a", { every: 60_000 })).run;
  same<typeof run, Run | null>();
  await run?.finish();
  same<NonNullable<typeof run>["attempts"], Attempts | null>();
  await run?.fail(new Error("no"));
  await client.once("a", { cron: "0 2 * * 1-5", tz: "Europe/Berlin", maxAttempts: 3, retryAfter: 60_000 }, () => 0);
  await client.once("a", { every: 86_400_000, at: "02:00", tz: "UTC" }, () => 0);
  if (!outcome.ran && outcome.reason === "later") same<typeof outcome.attempts, Attempts>();
  const begun = await client.beginRun("a", { key: "live", replace: true });
  if (begun.run === null && begun.reason === "replaced") same<typeof begun.ran, false>();
  // @ts-expect-error: it is or it is not
  await client.once("a", { key: "live", replace: 1 }, () => 0);
  // @ts-expect-error: a cron expression needs a zone
  await client.once("a", { cron: "0 2 * * *" }, () => 0);
  // @ts-expect-error: a reason is needed
  await run?.fail();
  // @ts-expect-error: the key is a string
  await client.once("a", { key: 5 }, () => 0);

  // @ts-expect-error: trying once waits for nothing
  await client.tryAcquire("a", { wait: 5 });
  // @ts-expect-error: there is no such option
  await client.acquire("a", { timeout: 30_000 });
  // @ts-expect-error: there is no environment that could name a store
  await connect();
  await connect("webdis+http://host", { credentials: () => undefined });
  // @ts-expect-error: half of a pair
  await connect("webdis+http://host", { credentials: { user: "me" } });
  // @ts-expect-error: leases are given, not made
  new Lease();
  try {
    await connect(["webdis+http://a", "webdis+http://b"], { quorumId: "0", credentials: { token: "t" } });
  } catch (error) {
    if (error instanceof ConfigError) return error.holder?.owner;
    if (error instanceof GivenUpError) return error.attempts.reason ?? undefined;
    if (error instanceof LeaseholdError) return error.code;
  }
  return undefined;
}

interface Env {
  STORE: string;
  USER: string;
}

export async function handlers(client: Client): Promise<void> {
  const once = idempotency((_: Request, env: Env) => connect(env.STORE), {
    principal: async (request, env) => (same<typeof env, Env>(), same<typeof request, Request>(), env.USER),
    keep: 60_000,
    ttl: 5_000,
    wait: 8_000,
    methods: ["PUT"],
    required: true,
    maxBody: 1_000,
  });
  const worker = once(async (request, env, context: { waitUntil(done: Promise<unknown>): void }) => {
    same<typeof env, Env>();
    context.waitUntil(fetch(request.url, { signal: leaseOf(request)?.signal ?? null }));
    return Response.json(leaseOf(request)?.token);
  });
  same<typeof worker, (request: Request, env: Env, context: { waitUntil(done: Promise<unknown>): void }) => Promise<Response>>();
  const plain = once((request) => new Response(request.body));
  await plain(new Request("https://host"), { STORE: "", USER: "" });
  const options: IdempotencyOptions = { principal: () => "me" };
  const route: (request: Request, context: { params: string }) => Promise<Response> = idempotency(client, options)((_, context: { params: string }) => new Response(context.params));
  await route(new Request("https://host"), { params: "" });
  // @ts-expect-error: it says who asks
  idempotency(client, {});
  // @ts-expect-error: in a string
  idempotency(client, { principal: () => 7 });
  // @ts-expect-error: there is no such option
  idempotency(client, { principal: () => "me", maxAttempts: 3 });
  // @ts-expect-error: a handler gives a response
  once(() => "done");
  // @ts-expect-error: another environment
  once((_, env: { OTHER: string }) => new Response(env.OTHER));
}
