// A worker with a lock, whose answer says what it has seen.

import * as edge from "./edge/workerd.mjs";
import { workAll } from "./work.mjs";

export default {
  async fetch(request, { STORES }) {
    if (new URL(request.url).pathname === "/ready") return new Response("yes");
    return Response.json(await workAll(edge, JSON.parse(STORES), "workerd"));
  },
};
