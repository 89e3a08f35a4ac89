"use strict";

// Guards for the protected resource. Documented in fence.d.ts.

const { builtin } = require("./lib/builtin.cjs");
const { types } = builtin("node:util", () => require("node:util"));
const native = require("./lib/native.cjs");
const { told } = require("./lib/told.cjs");
const { number, text } = require("./lib/options.cjs");

const UNGUARDED =
  "an asynchronous write ends after its guard: await everything before, and write in a function that is done when it returns";

class Guards {
  #native;

  constructor(most) {
    if (!Number.isInteger(most) || most < 1 || most > 0xffff_ffff) {
      throw new TypeError("most must be a whole number from 1 to 2^32 - 1");
    }
    this.#native = new native.Guards(most);
  }

  claim(item, token) {
    told(this.#native.claim(text("item", item), number("token", token)));
  }

  check(item, token, sequence) {
    told(this.#native.check(text("item", item), number("token", token), sequence));
  }

  write(item, token, write, sequence) {
    if (typeof write !== "function") throw new TypeError("write needs a function to call");
    if (types.isAsyncFunction(write) || types.isGeneratorFunction(write)) throw new TypeError(UNGUARDED);
    this.check(item, token, sequence);
    const written = write();
    if (typeof written?.then === "function") {
      // The write has started and cannot be stopped.
      written.then(undefined, () => {});
      throw new TypeError(UNGUARDED);
    }
    return written;
  }

  highWater(item) {
    return this.#native.highWater(text("item", item)) ?? null;
  }

  forget(item) {
    this.#native.forget(text("item", item));
  }
}

class PostgresGuard {
  constructor({ table, schema } = {}) {
    const { create, claim, check, read } = told(native.postgresGuard(table, schema));
    this.createSql = create;
    this.claimSql = claim;
    this.checkSql = check;
    this.readSql = read;
    Object.freeze(this);
  }

  static parameters(item, token) {
    return [text("item", item), digits(token)];
  }

  static outcome(item, token, rows) {
    told(native.postgresOutcome(text("item", item), number("token", token), marks(rows)[0]));
  }
}

class PostgresRowGuard {
  #native;

  constructor({ table, key, fence }) {
    this.#native = told(
      native.postgresRowGuard(text("table", table), text("key", key), text("fence", fence)),
    );
    const { claim, check, read } = this.#native.statements;
    this.claimSql = claim;
    this.checkSql = check;
    this.readSql = read;
    Object.freeze(this);
  }

  raise(parameter) {
    return this.#native.raise(number("parameter", parameter));
  }

  condition(parameter) {
    return this.#native.condition(number("parameter", parameter));
  }

  static parameter(token) {
    return digits(token);
  }

  static claimOutcome(token, rows) {
    told(native.postgresRowOutcome("claim", number("token", token), marks(rows)));
  }

  static checkOutcome(token, rows) {
    told(native.postgresRowOutcome("check", number("token", token), marks(rows)));
  }

  static refuse(token, rows) {
    told(native.postgresRowOutcome("refusal", number("token", token), marks(rows)));
  }
}

const scripts = native.redisScripts();

class RedisGuard {
  static CHECK = scripts.function;
  static CLAIM_SCRIPT = scripts.claim;
  static CHECK_SCRIPT = scripts.check;
  static CHECK_AND_SET_SCRIPT = scripts.checkAndSet;

  static markKey(key) {
    return told(native.redisMarkKey(text("key", key)));
  }

  static outcome(item, token, reply) {
    told(native.redisOutcome(text("item", item), number("token", token), number("reply", Number(reply))));
  }
}

const pieces = native.dynamodbPieces();

class DynamodbGuard {
  static CLAIM_CONDITION = pieces.claim;
  static CHECK_CONDITION = pieces.check;
  static SET = pieces.set;
  #attribute;

  constructor(attribute) {
    this.names = Object.freeze(entries(told(native.dynamodbNames(text("attribute", attribute)))));
    this.#attribute = attribute;
    Object.freeze(this);
  }

  static values(token) {
    const values = entries(told(native.dynamodbValues(number("token", token))));
    return Object.fromEntries(Object.entries(values).map(([name, digits]) => [name, { N: digits }]));
  }

  refuse(item, token, old) {
    this.#refuse("check", item, token, old);
  }

  refuseClaim(item, token, old) {
    this.#refuse("claim", item, token, old);
  }

  #refuse(asked, item, token, old) {
    const held = old?.[this.#attribute];
    const mark = held === undefined ? undefined : String(held?.N ?? JSON.stringify(held));
    const shown = { exists: old !== undefined && old !== null, mark };
    told(native.dynamodbRefusal(asked, text("item", item), number("token", token), shown));
  }
}

class CosmosGuard {
  #property;

  constructor(property) {
    this.#property = text("property", property);
    this.#pieces(0);
    Object.freeze(this);
  }

  claimCondition(token) {
    return this.#pieces(token).claim;
  }

  checkCondition(token) {
    return this.#pieces(token).check;
  }

  set(token) {
    return JSON.parse(this.#pieces(token).set);
  }

  refuse(item, token, found) {
    this.#refuse("check", item, token, found);
  }

  refuseClaim(item, token, found) {
    this.#refuse("claim", item, token, found);
  }

  #pieces(token) {
    return told(native.cosmosPieces(this.#property, number("token", token)));
  }

  #refuse(asked, item, token, found) {
    const held = found?.[this.#property];
    const mark = held === undefined ? undefined : JSON.stringify(held);
    const shown = { exists: found !== undefined && found !== null, mark };
    told(native.dynamodbRefusal(asked, text("item", item), number("token", token), shown));
  }
}

class ObjectGuard {
  static claim(item, token, seen) {
    return told(native.objectBody(text("item", item), number("token", token), bytes("seen", seen), undefined));
  }

  static write(item, token, seen, data) {
    if (data === undefined || data === null) throw new TypeError("data must be a Uint8Array or a string");
    return told(
      native.objectBody(text("item", item), number("token", token), bytes("seen", seen), bytes("data", data)),
    );
  }

  static data(body) {
    return native.objectData(bytes("body", body)) ?? null;
  }
}

/** Bytes or text; nothing stays nothing. */
function bytes(name, value) {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string") return Buffer.from(value);
  if (!(value instanceof Uint8Array)) throw new TypeError(`${name} must be a Uint8Array or a string`);
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
}

function digits(token) {
  told(native.checkToken(number("token", token)));
  return String(token);
}

/** The one column of all rows, as text: drivers return a bigint as text, as a number or as a BigInt. */
function marks(rows) {
  return rows.map((row) => {
    const mark = Object.values(row)[0];
    return mark === null || mark === undefined ? undefined : String(mark);
  });
}

function entries(placeholders) {
  return Object.fromEntries(placeholders.map(({ placeholder, standsFor }) => [placeholder, standsFor]));
}

module.exports = { CosmosGuard, DynamodbGuard, Guards, ObjectGuard, PostgresGuard, PostgresRowGuard, RedisGuard };
