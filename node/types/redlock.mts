// The interface of redlock 5 in strict TypeScript. Only compiled, never run.

import { Redis, Cluster } from "ioredis";
import type { Client } from "leasehold";
import Redlock, { ExecutionError, Lock, ResourceLockedError, type RedlockAbortSignal } from "leasehold/compat/redlock";

export async function use(client: Client): Promise<number> {
  const redlock = new Redlock([new Redis(), "redis://a"], { retryCount: -1 });
  new Redlock([new Cluster([{ host: "a" }])]);
  redlock.on("error", (error) => error);
  let lock: Lock = await redlock.acquire(["a"], 5_000);
  lock = await lock.extend(5_000);
  await redlock.release(await redlock.extend(lock, 5_000, { retryCount: 0 }), { retryCount: 0 });
  new Redlock([client]);
  // @ts-expect-error: resources are an array
  await redlock.acquire("a", 5_000);
  // @ts-expect-error: the end follows from renewals
  lock.expiration = 5;
  await redlock.using(["a"], 5_000, { retryCount: 0 }, async (signal: RedlockAbortSignal) => {
    if (signal.aborted) throw signal.error;
  });
  return redlock.using(["a"], 5_000, async (signal) => (signal.aborted ? 1 : 2));
}

export async function errors(error: unknown): Promise<Error | undefined> {
  if (!(error instanceof ExecutionError)) return undefined;
  for (const attempt of error.attempts) {
    for (const vote of (await attempt).votesAgainst.values()) if (vote instanceof ResourceLockedError) return vote;
  }
  return undefined;
}
