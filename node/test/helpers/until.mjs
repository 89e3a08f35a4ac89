// Polling, for conditions without a notification.

import { setTimeout as pause } from "node:timers/promises";

const PATIENCE_MS = 180_000;

/** Polls until there is a result, and returns it. */
export async function until(look) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const seen = await look();
    if (seen) return seen;
    if (Date.now() > end) throw new Error(`not within ${PATIENCE_MS} ms: ${look}`);
    // Random, since rivals that poll in step could block each other forever.
    await pause(10 + Math.random() * 40);
  }
}

/** Waits until every lock granted before this call for `ttl` ms, and not extended, has expired. */
export const ended = (ttl) => {
  const end = Date.now() + ttl;
  return until(() => Date.now() > end);
};
