// Runs the recipe of that name: the recipe, the grace period, and the names of locks. The step "hangs" never ends.

import { once } from "node:events";

const [recipe, graceMs, ...names] = process.argv.slice(2);
const { main } = await import(recipe);
const step = async (lease, signal) => {
  console.log(`holds ${lease.resource}`);
  await (lease.resource === "hangs" ? new Promise(() => setInterval(() => {}, 1_000)) : once(signal, "abort"));
};
await main(names, step, Number(graceMs));
