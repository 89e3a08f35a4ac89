/** An API that must not process an order twice, on however many machines it runs: `POST /orders/ID`. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { connect } from "leasehold";
import { Ledger } from "./ledger.mjs";

const client = await connect();

/** The status of the answer. */
async function handle(order: string): Promise<number> {
  const outcome = await client.once(`order-${order}`, { keep: 365 * 86_400_000, ttl: 4_000, wait: 10_000 }, (run) =>
    Ledger.using(run, async (ledger) => {
      // The record decides: a run may die between the work and its completion.
      if (!ledger.lines.includes(order)) await ledger.write(order);
    }),
  );
  return outcome.ran ? 201 : outcome.reason === "done" ? 200 : 409;
}

const server = createServer((request, response) => {
  const order = (request.url ?? "").replace("/orders/", "");
  handle(order)
    .catch((error: unknown) => {
      console.log("order", order, "later:", error);
      return 503;
    })
    .then((status) => response.writeHead(status).end());
});
server.listen(Number(process.env.PORT ?? 8000), "127.0.0.1", () =>
  console.log("listening on port", (server.address() as AddressInfo).port),
);
