// Valid and invalid uses in strict TypeScript. Only compiled, never run.

import {
  connect,
  observe,
  Lease,
  LeaseholdError,
  FinishUnconfirmedError,
  LeaseLostError,
  LockBusyError,
  Permit,
  Run,
  GivenUpError,
  type Attempts,
  type Client,
  type Election,
  type HolderOptions,
  type Leases,
  type Level,
  type LockInfo,
  type LockOptions,
  type Completion,
  type Occurrence,
  type OnceOptions,
  type OnceOutcome,
  type ReleaseIfOutcome,
  type RunInfo,
} from "leasehold";
import { collect } from "leasehold/prometheus";
import * as protocol from "leasehold/protocol";
import * as testing from "leasehold/testing";
import { connect as connectItems, type Item } from "leasehold/cas";
import { CosmosGuard, DynamodbGuard, Guards, ObjectGuard, PostgresGuard, PostgresRowGuard, RedisGuard } from "leasehold/fence";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(..._: Same<A, B> extends true ? [] : ["the types differ"]): void {}

export async function all(client: Client): Promise<void> {
  await using lease = await client.acquire("a", { ttl: 30_000, wait: Infinity, signal: AbortSignal.timeout(5) });
  same<typeof lease, Lease>();
  same<typeof lease.token, number>();
  same<typeof lease.signal, AbortSignal>();
  same<ReturnType<typeof lease.remaining>, number>();
  lease.check();
  lease.check(5_000);
  await fetch("http://127.0.0.1", { signal: lease.signal });

  const tried = await client.tryAcquire("a", { owner: "me" });
  same<typeof tried, Lease | null>();
  // @ts-expect-error: it may be null
  await tried.release();
  // @ts-expect-error: trying once waits for nothing
  await client.tryAcquire("a", { wait: 5 });
  // @ts-expect-error: durations are numbers
  await client.acquire("a", { ttl: "30s" });
  // @ts-expect-error: there is no such option
  await client.acquire("a", { timeout: 30_000 });

  same<Awaited<ReturnType<typeof connect>>, Client>();
  const result = await client.using("a", { ttl: 30_000 }, async (lease) => lease.token);
  same<typeof result, number>();
  same<Awaited<ReturnType<typeof plain>>, string>();

  const leases = await client.lockAll(new Set(["a", "b"]), { wait: 0 });
  same<typeof leases, Leases>();
  for (const lease of leases) same<typeof lease, Lease>();
  same<ReturnType<typeof leases.get>, Lease | undefined>();

  const election: Election = await client.elect("leader", {
    onStart: (lease) => void lease.token,
    onStop: async (loss) => same<typeof loss, LeaseholdError | null>(),
  });
  same<typeof election.token, number | null>();
  await election.resign();

  const stop = observe({
    level: "warn",
    event: ({ event, level, time, fields }) => {
      same<typeof event, string>();
      same<typeof level, Level>();
      same<typeof time, number>();
      same<typeof fields.resource, string | number | boolean | undefined>();
    },
    sample: ({ kind, value, labels }) => void [kind === "counter", value + 1, labels.outcome],
  });
  same<typeof stop, () => void>();
  // @ts-expect-error: there is no such level
  observe({ level: "notice", event: () => {} });

  const info = await client.inspect("a");
  same<typeof info, LockInfo | null>();
  same<LockInfo["data"], Buffer | undefined>();
  same<Awaited<ReturnType<typeof client.releaseIf>>, ReleaseIfOutcome>();
  await client.releaseIf("a", { token: 7, owner: "host:12:*" } satisfies HolderOptions);
  const options: LockOptions = { ttl: undefined, data: new Uint8Array(1) };
  await client.acquire("a", options);
  // @ts-expect-error: leases are given, not made
  new Lease();
  // @ts-expect-error: a token is read-only
  lease.token = 5;
}

export async function runs(client: Client): Promise<number | string | undefined> {
  const daily: OnceOptions & Occurrence = { every: 86_400_000, offset: undefined, keep: 604_800_000, wait: 5, renew: false };
  const outcome = await client.once("a", { ...daily, evenIfDone: true }, async (run) => {
    same<typeof run, Run>();
    await fetch("http://127.0.0.1", { signal: run.signal });
    return run.token;
  });
  same<typeof outcome, OnceOutcome<number>>();
  // @ts-expect-error: there is a value only if it ran
  outcome.value;
  if (outcome.ran) return outcome.value;
  if (outcome.reason === "running") return outcome.holder?.owner;
  if (outcome.reason === "later") return outcome.attempts.retryAt;
  if (outcome.reason === "replaced") return undefined;
  same<typeof outcome.left, number>();
  // @ts-expect-error: somebody else is at it only while it is not done
  outcome.holder;
  same<Awaited<ReturnType<typeof report>>, OnceOutcome<string>>();

  const begun = await client.beginRun("a", { key: "2026-11-24" });
  if (begun.run === null && begun.reason === "later") return begun.attempts.reason ?? undefined;
  if (begun.run === null && begun.reason === "replaced") return undefined;
  if (begun.run === null) return begun.reason === "done" ? begun.at : begun.holder?.token;
  await using run = begun.run;
  const lease: Lease = run;
  lease.check();
  same<typeof run.attempts, Attempts | null>();
  if (run.attempts?.count === 3) await run.fail(new RangeError("no money"));
  await run.fail("no money");
  // @ts-expect-error: the reason is a text or an error
  await run.fail(7);
  await run.finish();
  await client.once("a", { key: "s", maxAttempts: 3, retryAfter: 60_000 }, () => 0).catch((error: unknown) => {
    if (error instanceof GivenUpError) same<typeof error.attempts, Attempts>();
  });
  await using other = (await client.beginRun("b", { cooldown: 5_000 })).run;
  same<typeof other, Run | null>();
  // @ts-expect-error: the key is a string
  await client.once("a", { key: new Date() }, () => 0);
  // @ts-expect-error: nothing says when the work is to be done again
  await client.once("a", {}, () => 0);
  // @ts-expect-error: the same
  await client.beginRun("a", { wait: 5 });
  // @ts-expect-error: a run needs its work
  await client.once("a", { key: "s" });
  // @ts-expect-error: runs are given, not made
  new Run();

  const info = await client.inspectRun("a", "s");
  same<typeof info, RunInfo>();
  same<typeof info.done, Completion | null>();
  same<typeof info.attempts, Attempts | null>();
  same<Awaited<ReturnType<typeof client.forgetRun>>, Completion | null>();
  return new FinishUnconfirmedError("unsure").code;
}

export async function permits(client: Client): Promise<number | undefined> {
  const any = client.lockAny(new Set(["a", "b"]));
  same<Awaited<ReturnType<typeof any.acquire>>, Lease>();
  same<Awaited<ReturnType<typeof any.tryAcquire>>, Lease | null>();
  await using permit = await client.semaphore("license", 5).acquire({ wait: 5, data: new Uint8Array(1) });
  same<typeof permit, Permit>();
  same<typeof permit.index, number>();
  const lease: Lease = permit;
  lease.check();
  const used = await client.semaphore("license", 5).using((permit) => permit.index);
  same<typeof used, number>();
  const lock = client.rwLock("catalog", { readers: 8 });
  await using writing = await lock.tryWrite({ ttl: 5_000 });
  same<typeof writing, Lease | null>();
  same<Awaited<ReturnType<typeof text>>, string>();
  for await (const info of client.list("job/")) same<typeof info, LockInfo>();
  for await (const change of client.watch("a", { every: 100, signal: AbortSignal.timeout(5) })) {
    if (change.type === "held") return change.holder.token;
    if (change.type === "unreadable") throw change.error;
    // @ts-expect-error: nobody holds it
    change.holder;
  }
  await client.acquire("a", { fair: false });
  // @ts-expect-error: a run stands in no line
  await client.once("a", { key: "s", fair: false }, () => 0);
  // @ts-expect-error: a semaphore has a number of permits
  client.semaphore("license");
  // @ts-expect-error: a wait of a try
  await any.tryAcquire({ wait: 5 });
  // @ts-expect-error: permits are given, not made
  new Permit();
  return undefined;
}

const text = (client: Client) => client.rwLock("a").reading({ wait: 5 }, () => "text");

const report = (client: Client) => client.once("a", { keep: 60_000 }, () => "text");

const plain = (client: Client) => client.using("a", () => "text");

export async function errors(): Promise<string | undefined> {
  try {
    await using client = await connect(["redis://a", "redis://b"], { requestTimeout: 1_000, createQuorum: true });
    await client.close();
    await connect();
  } catch (error) {
    if (error instanceof LockBusyError) return error.holder?.owner;
    if (error instanceof LeaseLostError) return error.resource;
    if (error instanceof LeaseholdError) return error.code;
  }
  return undefined;
}

export function metrics(): void {
  const stop = collect({ buckets: { leasehold_wait_seconds: [1, 2] } });
  same<typeof stop, () => void>();
  // @ts-expect-error: there is no such histogram
  collect({ buckets: { leasehold_wait: [1] } });
}

export function guards(token: number): void {
  const guards = new Guards(1_000);
  guards.claim("a", token);
  same<ReturnType<typeof guards.highWater>, number | null>();
  const written: string = guards.write("a", token, () => "written");
  PostgresGuard.outcome(written, token, [{ mark: "34" }]);
  const rows = new PostgresRowGuard({ table: "invoices", key: "id", fence: "fence" });
  same<typeof rows.claimSql, string>();
  RedisGuard.outcome("a", token, 34n);
  const values: Record<string, { N: string }> = DynamodbGuard.values(token);
  new DynamodbGuard("fence").refuse("a", token, values);
  const operation: { op: "set"; value: number } = new CosmosGuard("fence").set(token);
  const body: Uint8Array = ObjectGuard.claim("a", operation.value, null);
  ObjectGuard.data(body);
  // @ts-expect-error: it has only static members
  new RedisGuard();
}

export function machine(machine: protocol.Client, now: protocol.Now): bigint | string | number {
  const options: protocol.LockOptions = { ttl: 30_000, wait: { type: "for", wait: 1_000 }, data: new Uint8Array(1) };
  machine.acquire(1, "a", options, new Uint8Array(16), now);
  // @ts-expect-error: a variant is an object with its type
  machine.acquire(1, "a", { wait: 1_000 }, new Uint8Array(16), now);
  // @ts-expect-error: instants are bigints
  machine.handleTimeout(new Uint8Array(16), { monotonicNs: 5, unixMs: 5 });
  // @ts-expect-error: the machine is made by create
  new protocol.Client();
  const output = machine.pollOutput(now);
  switch (output.type) {
    case "transmit":
    case "http-request":
    case "redis-commands":
    case "statement":
      return output.deadlineNs;
    case "event":
      return output.event.type === "acquired" ? output.event.token : output.lock;
    case "rejected":
      return output.error.type;
    case "subscribe":
    case "unsubscribe":
      return output.resource;
    case "need-credentials":
      return output.node;
    case "wake-at":
      same<typeof output.atNs, bigint | undefined>();
      return output.atNs ?? "never";
    default:
      // All cases are handled.
      same<typeof output, never>();
      return output;
  }
}

export async function fake(): Promise<void> {
  const client = testing.connect({ clock: new testing.FakeClock(), owner: "me" });
  same<typeof client, testing.FakeClient>();
  const real: Client = client;
  await real.close();
  client.clock.advance(1_000);
  client.lose("a");
  const { clock } = testing.connect({ clock: new testing.FakeClock({ seed: 2 }), session: "worker-7" });
  const has: boolean = clock.step();
  clock.settle();
  clock.storeDown();
  clock.storeUp();
  clock.loseReply();
  clock.late(has ? 100 : 0);
  // @ts-expect-error a number of milliseconds
  clock.late("1 s");
}

const items = await connectItems("memory:", { tries: 3 });
const written: Item | null = await items.update("a", async (old) => (old === null ? new Uint8Array() : null));
const version: number | undefined = written?.version;
await items.update("a", (old) => old?.subarray(1));
void version;
