// The two implementations of redlock 5: the library itself, and ours.

import { Redis } from "ioredis";
import { connect } from "leasehold";
import ours from "leasehold/compat/redlock";
import { createRequire } from "node:module";
import { undo } from "./undo.mjs";

// Its ES module lacks a file extension that Node requires.
const theirs = createRequire(import.meta.url)("redlock");

/** Tries often, and for longer than a busy machine needs. */
export const PATIENT = { retryCount: 600, retryDelay: 50, retryJitter: 10 };
export const ONCE = { retryCount: 0 };

async function overIoredis(t, Redlock, urls, settings) {
  const clients = urls.map((url) => new Redis(url));
  undo(t, () => clients.forEach((client) => client.disconnect()));
  const redlock = new Redlock(clients, settings);
  undo(t, () => redlock.quit());
  return redlock;
}

/** Names and factories: each returns an instance for these urls that is closed after the test. */
export const makers = {
  redlock: (t, urls, settings) => overIoredis(t, theirs.default, urls, settings),
  leasehold: async (t, urls, settings) => {
    if (urls.length === 1) return overIoredis(t, ours, urls, settings);
    const client = await connect(urls, { createQuorum: true, requestTimeout: 5_000 });
    // Not awaited, since its servers stop as well.
    undo(t, () => void client.close().catch(() => {}));
    return new ours([client], settings);
  },
};

export const faces = { redlock: theirs, leasehold: await import("leasehold/compat/redlock") };
