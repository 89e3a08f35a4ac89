// Holds a lock when it exits, by itself or by its observer, which starts before or after the client. Or closes it just before.

import { connect, observe } from "leasehold";

const [when, last] = process.argv.slice(2);
const listen = () =>
  observe({
    event: ({ event }) => {
      console.log(event);
      if (event === last) process.exit(3);
    },
  });
if (when !== "after") listen();
const client = await connect("memory:");
if (when === "after") listen();
await client.acquire("a");
if (when === "closed") {
  await client.close();
  process.exit();
}
if (last !== undefined) {
  await (await client.acquire("b")).release();
  // Until the observer ends it.
  setInterval(() => {}, 60_000);
}
