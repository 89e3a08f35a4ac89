// Holds a lock when it ends, by itself or by its observer.

import { connect, observe } from "leasehold";

const [last] = process.argv.slice(2);
const client = await connect("memory:");
observe({
  event: ({ event }) => {
    console.log(event);
    if (event === last) process.exit(3);
  },
});
await client.acquire("a");
if (last !== undefined) {
  await (await client.acquire("b")).release();
  // Until the observer ends it.
  setInterval(() => {}, 60_000);
}
