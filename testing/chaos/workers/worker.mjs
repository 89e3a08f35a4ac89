// The worker of `cargo xtask chaos` in JavaScript; those in Rust and Python do the same. The packages are where the
// environment says, so that nothing is installed beside this file.

import { writeSync } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const packages = createRequire(`${process.env.LEASEHOLD_CHAOS_NODE}/`);
const libraries = createRequire(`${process.env.LEASEHOLD_NODE_FOLDER}/`);
const { connect, LeaseLostError, StaleTokenError } = packages("leasehold");
const { RedisGuard } = packages("leasehold/fence");
const { Redis } = libraries("ioredis");

const LOOK = 5;
const STALL_NS = 10_000_000n;
const PATIENCE = 10_000;
const BARE_WORK = 20;
const WORK = 3;
const SLIP = 1;
const LONG = 4;
const MOST_ROUNDS = 6;
const UNWATCHED = 4;

const task = JSON.parse(process.argv[2]);
const server = new Redis(task.counters);
const mark = RedisGuard.markKey("guarded");
let held = null;

const now = () => process.hrtime.bigint();
const pause = (most) => sleep(Math.random() * most);

// Stamps are larger than numbers hold exactly on a machine that has run for months, so they are written as they are.
function say(what, more = {}, at = now()) {
  const fields = { at, what: JSON.stringify(what), ...more };
  const line = Object.entries(fields).map(([name, value]) => `"${name}":${value}`);
  // One write, so that a line is there whole or not at all.
  writeSync(1, `{${line.join(",")}}\n`);
}

// The clock first: whatever comes between makes the end look earlier, never later.
function endOf(lease) {
  const at = now();
  return [at, at + BigInt(Math.floor(lease.remaining() * 1e6))];
}

let known = { token: 0, until: 0n };
let last = now();
function watch() {
  const at = now();
  if (at - last > BigInt(LOOK) * 1_000_000n + STALL_NS) say("stalled", { from: last });
  last = at;
  if (held === null) return;
  const token = held.token;
  const [looked, until] = endOf(held);
  if ((token !== known.token || until > known.until + 1_000_000n) && until > looked) {
    known = { token, until };
    say("valid", known, looked);
  }
}

// What may pass by itself is said, anything else ends the worker.
function failed(error) {
  if (error.temporary !== true) throw error;
  say("failed", { kind: JSON.stringify(error.code) });
}

function accepted(lease, reply) {
  const { token } = lease;
  try {
    RedisGuard.outcome(mark, token, reply);
    return true;
  } catch (error) {
    if (!(error instanceof StaleTokenError)) throw error;
    say("refused", { token, valid: lease.remaining() > 0 });
    return false;
  }
}

const write = (counter, value, token) => server.eval(task.write, 2, counter, `${counter}-log`, value, token);

async function use(lease) {
  const { token } = lease;
  if (!accepted(lease, await server.eval(RedisGuard.CLAIM_SCRIPT, 1, mark, token))) return lease.remaining() > 0;
  const long = Math.random() * LONG < 1;
  for (let round = Math.ceil(Math.random() * MOST_ROUNDS); round > 0; round -= 1) {
    const [locked, guarded] = await server.mget("locked", "guarded");
    await pause(WORK);
    const at = now();
    try {
      lease.check();
    } catch (error) {
      if (!(error instanceof LeaseLostError)) throw error;
      say("lost", { token });
      return false;
    }
    say("checked", { token }, at);
    await pause(SLIP);
    await write("locked", Number(locked) + 1, token);
    const script = RedisGuard.CHECK + task.guarded_write;
    const reply = await server.eval(script, 3, mark, "guarded", "guarded-log", token, Number(guarded) + 1, token);
    if (!accepted(lease, reply)) return lease.remaining() > 0;
    if (long) await pause(task.ttl_ms / 2);
  }
  return true;
}

async function hold(lease) {
  const { token } = lease;
  let notified = lease.signal.aborted;
  if (notified) say("notified", { token });
  lease.signal.addEventListener("abort", () => {
    say("notified", { token });
    notified = true;
  });
  let lost = false;
  if (await use(lease)) {
    say("releasing", { token });
    try {
      await lease.release();
      say("released", { token });
    } catch (error) {
      lost = error instanceof LeaseLostError;
      if (lost) say("lost", { token });
      else failed(error);
    }
  } else {
    lost = true;
  }
  for (let waited = 0; lost && !notified && waited < PATIENCE; waited += LOOK) await sleep(LOOK);
  if (lost && !notified) say("not_notified", { token });
}

const settings = { owner: task.name };
if (task.max_ttl_ms !== null) Object.assign(settings, { maxTtl: task.max_ttl_ms, quorumId: task.quorum });
let client;
while (client === undefined) client = await connect(task.stores, settings).catch(failed);
say("started");
last = now();
setInterval(watch, LOOK);
for (;;) {
  const bare = await server.get("bare");
  await pause(BARE_WORK);
  await write("bare", Number(bare) + 1, 0);
  say("asked");
  const lease = await client.acquire(task.lock, { ttl: task.ttl_ms, wait: task.ttl_ms * 5 }).catch(failed);
  if (lease !== undefined) {
    const watched = Math.random() * UNWATCHED >= 1;
    say("granted", { token: lease.token, until: endOf(lease)[1], watched });
    held = watched ? lease : null;
    await hold(lease);
    held = null;
  }
  await pause(task.ttl_ms / 10);
}
