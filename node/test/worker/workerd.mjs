// A worker with a lock, whose answer says what it has seen.

import * as edge from "./edge/workerd.mjs";
import { failed, work } from "./work.mjs";

export default {
  async fetch(request, { STORE }) {
    if (new URL(request.url).pathname === "/ready") return new Response("yes");
    return Response.json(await work(edge, STORE, "workerd").catch(failed));
  },
};
