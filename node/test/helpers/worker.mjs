// What a worker with locks has to have seen, and what others see of it.

import assert from "node:assert/strict";
import { connect } from "leasehold";

/** The sources of workers. */
export const sources = new URL("../worker/", import.meta.url);

/** Holds what `work` of a worker has answered, and native code sees, against what has to be. */
export async function checkWork({ failed, ...seen }, store, owner) {
  assert.equal(failed, undefined);
  assert.ok(seen.token > 0 && seen.again > seen.token);
  assert.ok(seen.remaining > 0);
  assert.deepEqual([seen.tried, seen.lost], [null, true]);
  const client = await connect(store);
  assert.equal((await client.inspect("held")).owner, owner);
  await client.close();
}
