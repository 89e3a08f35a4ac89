// How tests wait for what they cannot be told of.

import { setTimeout as pause } from "node:timers/promises";

const PATIENCE_MS = 60_000;

/** Looks until there is something to see, and answers it. */
export async function until(look) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const seen = await look();
    if (seen) return seen;
    if (Date.now() > end) throw new Error(`not within ${PATIENCE_MS} ms: ${look}`);
    // By chance, since rivals that look in step could stand in each other's way for ever.
    await pause(10 + Math.random() * 40);
  }
}

/** Until no lock stands that was granted before this call for `ttl` ms, and not extended. */
export const ended = (ttl) => {
  const end = Date.now() + ttl;
  return until(() => Date.now() > end);
};
