// A web worker with a lock. It tells the page what it has seen.

import { connect, LeaseLostError } from "/leasehold/edge/index.mjs";

async function work() {
  const { url } = await (await fetch("/store.json")).json();
  const client = await connect(url, { owner: "browser", requestTimeout: 5_000 });
  const lease = await client.acquire("a", { ttl: 30_000 });
  const seen = { token: lease.token, remaining: lease.remaining() };
  const rival = await connect(url, { requestTimeout: 5_000 });
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

postMessage(await work().catch((error) => ({ failed: String(error?.stack ?? error) })));
