// A worker with a lock, whose answer says what it has seen.

import { connect, LeaseLostError } from "./edge/workerd.mjs";

async function work(store) {
  const client = await connect(store, { owner: "workerd", requestTimeout: 5_000 });
  const lease = await client.acquire("a", { ttl: 30_000 });
  const seen = { token: lease.token, remaining: lease.remaining() };
  const rival = await connect(store, { requestTimeout: 5_000 });
  seen.tried = await rival.tryAcquire("a");
  await lease.release();
  seen.again = await client.using("a", { ttl: 30_000 }, ({ token }) => token);
  const lost = await client.acquire("b", { ttl: 2_000, renew: false });
  await new Promise((resolve) => lost.signal.addEventListener("abort", resolve));
  seen.lost = lost.signal.reason instanceof LeaseLostError;
  return seen;
}

export default {
  async fetch(request, { STORE }) {
    if (new URL(request.url).pathname === "/ready") return new Response("yes");
    return Response.json(await work(STORE).catch((error) => ({ failed: String(error?.stack ?? error) })));
  },
};
