/**
 * Guards for the protected resource: they reject writers with older tokens.
 *
 * Any amount of time can pass between a holder's last check and its write. Only the resource itself can reject a late write,
 * by comparing tokens atomically with the write. **Claim** every item before the first read of it; **check**
 * with every write. One mark belongs to one lock resource, since tokens of different resources cannot be compared.
 *
 * An invalid token or use throws `ConfigError`. A writer with an older token gets `StaleTokenError`, and
 * nothing is written. Scripts, statements and expressions are for your own client library.
 *
 * @packageDocumentation
 */

/** The marks of many items in this process. */
export class Guards {
  /** @param most the maximum number of items; each claimed item takes its name and about 100 bytes. */
  constructor(most: number);
  /** From now on only `token` and higher ones are accepted. Call it with each new lease, before the first read. */
  claim(item: string, token: number): void;
  /**
   * Throws unless a write with `token` would be accepted now. `sequence` starts at 1 and grows with each write; with it,
   * delayed writes of the same lease are rejected as well.
   */
  check(item: string, token: number, sequence?: number): void;
  /**
   * Calls `write` if `token` may write, and returns its result. `write` must be done when it returns: an async function or a
   * generator is a `TypeError` and is not called; a returned promise is a `TypeError` too, but its write is not protected.
   */
  write<T>(item: string, token: number, write: () => T, sequence?: number): T;
  /** The highest token that has claimed the item; `null` if none has. */
  highWater(item: string): number | null;
  /** Drops the mark of an item that nobody will write again. A late write is still rejected; a late claim is not. */
  forget(item: string): void;
}

/** A row as returned by PostgreSQL drivers: its one column is the mark. */
export type MarkRow = Record<string, unknown> | readonly unknown[];

/** Keeps marks in a table of PostgreSQL. `$1` is the item, `$2` the token: see {@link PostgresGuard.parameters}. */
export class PostgresGuard {
  /** Marks in this table, default `leasehold_fence`; in this schema, default the first of the search path. */
  constructor(where?: { table?: string; schema?: string });
  /** Creates the table unless it exists. */
  readonly createSql: string;
  /** Claims an item. */
  readonly claimSql: string;
  /** Checks, in the transaction of the write and before it; roll back when its outcome throws. */
  readonly checkSql: string;
  /** Reads the mark of the item `$1`. */
  readonly readSql: string;
  /** The parameters of the statements; the token as text, which every driver accepts for a bigint. */
  static parameters(item: string, token: number): [string, string];
  /** Interprets the rows of a claim or check: throws unless it succeeded. */
  static outcome(item: string, token: number, rows: readonly MarkRow[]): void;
}

/** Keeps the mark of a row in a column of your table. `$1` is the key, `$2` the token: see {@link PostgresRowGuard.parameter}. */
export class PostgresRowGuard {
  constructor(where: { table: string; key: string; fence: string });
  /** Claims a row. */
  readonly claimSql: string;
  /** Checks, in the transaction of the write and before it. */
  readonly checkSql: string;
  /** Reads the mark of a row. */
  readonly readSql: string;
  /** Raises the mark in the SET list of your own UPDATE, where `$parameter` is the token. */
  raise(parameter: number): string;
  /** The condition for your own UPDATE: add it to its WHERE with AND. */
  condition(parameter: number): string;
  /** The token as a parameter for PostgreSQL. */
  static parameter(token: number): string;
  /** Interprets the rows of a claim: throws unless it succeeded. */
  static claimOutcome(token: number, rows: readonly MarkRow[]): void;
  /** Interprets the rows of a check: throws unless it succeeded. */
  static checkOutcome(token: number, rows: readonly MarkRow[]): void;
  /** Throws the reason why your own UPDATE updated no row, given the rows of {@link PostgresRowGuard.readSql} after it. */
  static refuse(token: number, rows: readonly MarkRow[]): never;
}

/** Lua scripts that keep the mark of a key beside it, and compare tokens in the script that writes. */
export class RedisGuard {
  private constructor();
  /** A function `leasehold_check(mark_key, token)` to put in front of your own script. */
  static readonly CHECK: string;
  /** KEYS: mark. ARGV: token. Before the first read, with each new lease. */
  static readonly CLAIM_SCRIPT: string;
  /** KEYS: mark. ARGV: token. For stopping early; it protects nothing. */
  static readonly CHECK_SCRIPT: string;
  /** KEYS: mark, key. ARGV: token, value. */
  static readonly CHECK_AND_SET_SCRIPT: string;
  /** The key of the mark that guards `key`, in the same hash slot. */
  static markKey(key: string): string;
  /** Interprets the answer of a script: throws unless it succeeded. */
  static outcome(item: string, token: number, reply: unknown): void;
}

/** Keeps the mark of a DynamoDB item in the item itself, and compares tokens in the request that writes. */
export class DynamodbGuard {
  /** Marks in this attribute: a number at the top level, not part of a key. */
  constructor(attribute: string);
  /** The condition of a claim, the first write of a new lease. */
  static readonly CLAIM_CONDITION: string;
  /** The condition of every other write. */
  static readonly CHECK_CONDITION: string;
  /** The assignment that raises the mark, for use after `SET` or a comma, in claims and writes. */
  static readonly SET: string;
  /** For `ExpressionAttributeNames`. */
  readonly names: Readonly<Record<string, string>>;
  /** For `ExpressionAttributeValues` of the plain client; a document client needs the token itself. */
  static values(token: number): Record<string, { N: string }>;
  /**
   * Throws the reason of a `ConditionalCheckFailedException` of a write, given its item (`ALL_OLD`). Returns if not the guard
   * but the rest of the condition was false.
   */
  refuse(item: string, token: number, old: Record<string, unknown> | undefined): void;
  /** As {@link DynamodbGuard.refuse}, for a claim. */
  refuseClaim(item: string, token: number, old: Record<string, unknown> | undefined): void;
}

/** Keeps the mark of an item of Cosmos DB in the item itself, and compares tokens in the patch that writes. */
export class CosmosGuard {
  /** Marks in this property: a number at the top level. Its name has letters, digits and `_`. */
  constructor(property: string);
  /** The condition (`filterPredicate`) of a claim, the first write of a new lease, before the first read. */
  claimCondition(token: number): string;
  /** The condition of every other write; ` AND (...)` may follow. */
  checkCondition(token: number): string;
  /** The operation that raises the mark, in claims and writes. */
  set(token: number): { op: "set"; path: string; value: number };
  /**
   * Throws the reason of status 412 of a write, given the item as it is then; `undefined` if there is none. Returns if not the
   * guard but the rest of the condition was false.
   */
  refuse(item: string, token: number, found: Record<string, unknown> | undefined): void;
  /** As {@link CosmosGuard.refuse}, for a claim. */
  refuseClaim(item: string, token: number, found: Record<string, unknown> | undefined): void;
}

/**
 * Keeps the mark of an object in cloud storage in front of its data, as `34 data`. It makes the bodies that you write with your
 * own client library, on the condition that nobody has written since you read the object (`If-Match`, `ifGenerationMatch`). When
 * somebody has, read again and make the body again.
 */
export class ObjectGuard {
  private constructor();
  /**
   * The body of a claim, with the data unchanged: with each new lease, before you use the data. `seen` is the object as you read
   * it. Throws when a later holder has claimed it, and for an object that no guard has written.
   */
  static claim(item: string, token: number, seen: Uint8Array | string | null | undefined): Buffer;
  /** The body of a write. Throws as {@link ObjectGuard.claim} does, and if there is no object. */
  static write(item: string, token: number, seen: Uint8Array | string | null | undefined, data: Uint8Array | string): Buffer;
  /** The data of an object; `null` for one that no guard has written. */
  static data(body: Uint8Array | string): Buffer | null;
}
