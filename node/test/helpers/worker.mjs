// Checks of a worker with locks, from inside and outside.

import assert from "node:assert/strict";
import { connect } from "leasehold";

/** The sources of workers. */
export const sources = new URL("../worker/", import.meta.url);

/** Checks the results of a worker's `workAll`, and the view of native code of the same stores. */
export async function checkWork(seen, stores, owner) {
  assert.equal(seen.failed, undefined);
  assert.equal(seen.length, stores.length);
  await Promise.all(stores.map((store, at) => check(seen[at], store, owner)));
}

async function check({ failed, ...seen }, store, owner) {
  assert.equal(failed, undefined);
  assert.ok(seen.token > 0 && seen.again > seen.token);
  assert.ok(seen.remaining > 0);
  assert.deepEqual([seen.tried, seen.lost], [null, true]);
  const client = await connect(store);
  assert.equal((await client.inspect("held")).owner, owner);
  await client.close();
}
