// What a worker does with locks, wherever it runs. Answers what it has seen.

export async function work({ connect, LeaseLostError }, { url, credentials }, owner) {
  const client = await connect(url, { credentials, owner, requestTimeout: 5_000 });
  const lease = await client.acquire("a", { ttl: 30_000 });
  const seen = { token: lease.token, remaining: lease.remaining() };
  const rival = await connect(url, { credentials, requestTimeout: 5_000 });
  seen.tried = await rival.tryAcquire("a");
  await lease.release();
  seen.again = await client.using("a", { ttl: 30_000 }, ({ token }) => token);
  const lost = await client.acquire("b", { ttl: 2_000, renew: false });
  await new Promise((resolve) => lost.signal.addEventListener("abort", resolve));
  seen.lost = lost.signal.reason instanceof LeaseLostError;
  // Stays held, for the test to look at.
  await client.acquire("held", { ttl: 30_000 });
  return seen;
}

/** The same on each store, all at once. */
export const workAll = (edge, stores, owner) => Promise.all(stores.map((store) => work(edge, store, owner).catch(failed)));

/** What goes wrong is something seen as well. */
export const failed = (error) => ({ failed: String(error?.stack ?? error) });
