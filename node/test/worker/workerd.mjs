// A worker with a lock, whose answer says what it has seen.

import { idempotency, leaseOf } from "./edge/idempotency.mjs";
import * as edge from "./edge/workerd.mjs";
import { workAll } from "./work.mjs";

const connected = (request, { STORES }) => edge.connect(JSON.parse(STORES)[0].url, { requestTimeout: 5_000 });
const charge = idempotency(connected, { principal: () => "ann", maxBody: 100 })(async (request) => {
  const headers = { "Set-Cookie": "a=b", "X-Token": String(leaseOf(request).token) };
  return new Response(`charged ${await request.text()}`, { status: 201, headers });
});

export default {
  async fetch(request, env) {
    const { STORES } = env;
    const { pathname } = new URL(request.url);
    if (pathname === "/ready") return new Response("yes");
    if (pathname === "/charge") return charge(request, env);
    return Response.json(await workAll(edge, JSON.parse(STORES), "workerd"));
  },
};
