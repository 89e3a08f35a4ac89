import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { connect as open } from "node:net";
import { test } from "node:test";
import { ConfigError, StaleTokenError, StoreRefusedError } from "leasehold";
import * as fence from "leasehold/fence";
import { startRedis } from "./helpers/servers.mjs";

const { CosmosGuard, DynamodbGuard, Guards, ObjectGuard, PostgresGuard, PostgresRowGuard, RedisGuard } = fence;

test("import and require give the same guards", () => {
  const required = createRequire(import.meta.url)("leasehold/fence");
  for (const name of Object.keys(required)) assert.equal(required[name], fence[name], name);
});

test("a guard refuses older tokens, and writes out of order", () => {
  const guards = new Guards(2);
  assert.throws(() => guards.check("a", 33), ConfigError);
  guards.claim("a", 33);
  assert.equal(guards.highWater("a"), 33);
  assert.equal(guards.highWater("b"), null);
  assert.equal(guards.write("a", 33, () => "written"), "written");
  guards.check("a", 33, 1);
  assert.throws(() => guards.check("a", 33, 1), StaleTokenError);
  guards.claim("a", 34);
  let isWritten = false;
  const late = () => guards.write("a", 33, () => (isWritten = true));
  assert.throws(late, { name: "StaleTokenError", code: "stale_token", resource: "a" });
  assert.equal(isWritten, false);
  for (const token of [-1, 1.5, 2 ** 53, NaN]) assert.throws(() => guards.claim("a", token), ConfigError);
  assert.throws(() => guards.claim("a", "33"), TypeError);
  guards.claim("b", 1);
  assert.throws(() => guards.claim("c", 1), StoreRefusedError);
  guards.forget("b");
  guards.claim("c", 1);
});

test("a write that would end after its guard is refused", async () => {
  const guards = new Guards(1);
  guards.claim("a", 1);
  const written = [];
  const refusal = { name: "TypeError", message: /ends after its guard/ };
  assert.throws(() => guards.write("a", 1, async () => written.push("async")), refusal);
  assert.throws(() => guards.write("a", 1, function* () { yield written.push("generator"); }), refusal);
  assert.deepEqual(written, []);
  // A write that is detected only by its result has started by then; its failure causes no unhandled rejection.
  assert.throws(() => guards.write("a", 1, () => Promise.reject(new Error("on purpose"))), refusal);
  await new Promise(setImmediate);
  assert.equal(guards.write("a", 1, () => "written"), "written");
});

test("answers of PostgreSQL are read in every form of a bigint", () => {
  const guard = new PostgresGuard();
  assert.match(guard.createSql, /leasehold_fence/);
  assert.match(new PostgresGuard({ schema: "s", table: "t" }).claimSql, /"s"\."t"/);
  assert.throws(() => new PostgresGuard({ table: "" }), ConfigError);
  assert.deepEqual(PostgresGuard.parameters("a", 34), ["a", "34"]);
  for (const mark of ["34", 34, 34n]) PostgresGuard.outcome("a", 34, [{ mark }]);
  assert.throws(() => PostgresGuard.outcome("a", 34, [["35"]]), StaleTokenError);
  assert.throws(() => PostgresGuard.outcome("a", 34, []), ConfigError);

  const rows = new PostgresRowGuard({ table: "invoices", key: "id", fence: "fence" });
  assert.match(rows.claimSql, /"invoices"/);
  assert.equal(rows.raise(2), '"fence" = $2::bigint');
  assert.match(rows.condition(3), /\$3::bigint/);
  assert.equal(PostgresRowGuard.parameter(34), "34");
  assert.throws(() => PostgresRowGuard.parameter(2 ** 53), ConfigError);
  PostgresRowGuard.claimOutcome(34, [{ fence: "34" }]);
  PostgresRowGuard.checkOutcome(34, [{ fence: "34" }]);
  assert.throws(() => PostgresRowGuard.claimOutcome(34, []), ConfigError);
  assert.throws(() => PostgresRowGuard.checkOutcome(34, []), StaleTokenError);
  assert.throws(() => PostgresRowGuard.checkOutcome(34, [{ fence: null }]), ConfigError);
  assert.throws(() => PostgresRowGuard.refuse(34, [{ fence: "35" }]), StaleTokenError);
});

test("parts of DynamoDB's expressions", () => {
  const guard = new DynamodbGuard("fence");
  assert.deepEqual(guard.names, { "#leasehold_fence": "fence" });
  assert.deepEqual(DynamodbGuard.values(34), { ":leasehold_token": { N: "34" } });
  assert.equal(DynamodbGuard.SET, "#leasehold_fence = :leasehold_token");
  assert.equal(DynamodbGuard.CHECK_CONDITION, "#leasehold_fence <= :leasehold_token");
  assert.match(DynamodbGuard.CLAIM_CONDITION, /attribute_not_exists/);
  assert.throws(() => new DynamodbGuard(""), ConfigError);
  assert.throws(() => DynamodbGuard.values(-1), ConfigError);
  assert.throws(() => guard.refuse("a", 34, { fence: { N: "35" } }), StaleTokenError);
  assert.throws(() => guard.refuse("a", 34, undefined), StaleTokenError);
  assert.throws(() => guard.refuse("a", 34, { id: { S: "a" } }), ConfigError);
  assert.throws(() => guard.refuseClaim("a", 34, { fence: { S: "35x" } }), StoreRefusedError);
  guard.refuse("a", 34, { fence: { N: "34" } });
});

test("parts of patches of Cosmos DB", () => {
  const guard = new CosmosGuard("fence");
  assert.equal(guard.checkCondition(34), 'FROM c WHERE c["fence"] <= 34');
  assert.equal(guard.claimCondition(34), 'FROM c WHERE (NOT IS_DEFINED(c["fence"]) OR c["fence"] <= 34)');
  assert.deepEqual(guard.set(34), { op: "set", path: "/fence", value: 34 });
  assert.throws(() => new CosmosGuard('a"b'), ConfigError);
  assert.throws(() => guard.set(-1), ConfigError);
  assert.throws(() => guard.refuse("a", 34, { id: "a", fence: 35 }), StaleTokenError);
  assert.throws(() => guard.refuse("a", 34, undefined), StaleTokenError);
  assert.throws(() => guard.refuse("a", 34, { id: "a" }), ConfigError);
  assert.throws(() => guard.refuseClaim("a", 34, { fence: "35x" }), StoreRefusedError);
  guard.refuse("a", 34, { fence: 34 });
  guard.refuseClaim("a", 34, { id: "a" });
});

test("a mark in front of the data of an object refuses late writers", () => {
  const claimed = ObjectGuard.claim("invoice/42", 34, undefined);
  const written = ObjectGuard.write("invoice/42", 34, claimed, "paid");
  assert.deepEqual([String(claimed), String(written), String(ObjectGuard.data(written))], ["34 ", "34 paid", "paid"]);
  const later = ObjectGuard.claim("invoice/42", 35, written);
  assert.equal(String(later), "35 paid");
  const stale = { code: "stale_token", resource: "invoice/42" };
  assert.throws(() => ObjectGuard.write("invoice/42", 34, later, "late"), stale);
  assert.throws(() => ObjectGuard.claim("invoice/42", 34, later), stale);
  assert.throws(() => ObjectGuard.write("invoice/42", 35, null, "late"), StaleTokenError);
  assert.throws(() => ObjectGuard.claim("invoice/42", 35, "{}"), StoreRefusedError);
  assert.throws(() => ObjectGuard.write("invoice/42", 35, later), TypeError);
  assert.equal(ObjectGuard.data("{}"), null);
});

test("the scripts of Redis refuse an older token", async (t) => {
  const redis = await startRedis(t);
  const socket = open(Number(new URL(redis.url).port), "127.0.0.1");
  const answers = socket.setEncoding("utf8")[Symbol.asyncIterator]();
  const ask = async (...words) => {
    socket.write(`*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`);
    return (await answers.next()).value.trimEnd();
  };
  const run = async (script, keys, ...args) => (await ask("EVAL", script, String(keys.length), ...keys, ...args)).replace(/^:/, "");
  try {
    const mark = RedisGuard.markKey("invoice:42");
    const set = (token) => run(RedisGuard.CHECK_AND_SET_SCRIPT, [mark, "invoice:42"], String(token), "110");
    const unclaimed = await set(33);
    assert.throws(() => RedisGuard.outcome(mark, 33, unclaimed), ConfigError);
    RedisGuard.outcome(mark, 33, await run(RedisGuard.CLAIM_SCRIPT, [mark], "33"));
    RedisGuard.outcome(mark, 33, await set(33));
    RedisGuard.outcome(mark, 34, await run(RedisGuard.CLAIM_SCRIPT, [mark], "34"));
    const stale = await set(33);
    assert.throws(() => RedisGuard.outcome(mark, 33, stale), StaleTokenError);
    RedisGuard.outcome(mark, 34, await run(RedisGuard.CHECK_SCRIPT, [mark], "34"));
    const own = `${RedisGuard.CHECK}\nlocal passed, reply = leasehold_check(KEYS[1], ARGV[1])\nreturn reply`;
    RedisGuard.outcome(mark, 34, await run(own, [mark], "34"));
    assert.throws(() => RedisGuard.markKey(""), ConfigError);
  } finally {
    socket.destroy();
  }
});
