/**
 * Guards for the protected resource: refuse whoever holds an older token.
 *
 * Between a holder's last check and its write any time can pass. Only the resource itself can refuse a write that comes too
 * late, by comparing tokens in one atomic step with the write. **Claim** every item before the first read of it; **check**
 * with every write. One mark belongs to one lock resource, since tokens of different resources cannot be compared.
 *
 * What is not a token, and use that cannot work, throws `ConfigError`; whoever holds an older token gets `StaleTokenError`, and
 * then nothing was written. Scripts, statements and expressions are for the client library that you have.
 *
 * @packageDocumentation
 */

/** The marks of many items in this process. */
export class Guards {
  /** @param most how many items there may be; each claimed one takes its name and about 100 bytes. */
  constructor(most: number);
  /** Makes `token` the only one that is accepted from now on, apart from higher ones: with each new lease, before the first read. */
  claim(item: string, token: number): void;
  /**
   * Throws unless a write with `token` would be let through now. `sequence` starts at 1, grows with each write, and refuses
   * delayed writes of the same lease as well.
   */
  check(item: string, token: number, sequence?: number): void;
  /**
   * Calls `write` if `token` may, and answers what it answers. `write` has to be done when it returns: throws a `TypeError` for
   * an async function or a generator, which is not called, and for a promise that another function returns, whose write is
   * not protected.
   */
  write<T>(item: string, token: number, write: () => T, sequence?: number): T;
  /** The highest token that has claimed the item; `null` where none has. */
  highWater(item: string): number | null;
  /** Drops the mark of an item that nobody will write again. A late write is still refused; a late claim is not. */
  forget(item: string): void;
}

/** A row as PostgreSQL drivers answer it: its one column is the mark. */
export type MarkRow = Record<string, unknown> | readonly unknown[];

/** Keeps marks in a table of PostgreSQL. `$1` is the item, `$2` the token: see {@link PostgresGuard.parameters}. */
export class PostgresGuard {
  /** Marks in this table, default `leasehold_fence`; in this schema, default the first of the search path. */
  constructor(where?: { table?: string; schema?: string });
  /** Makes the table unless it is there. */
  readonly createSql: string;
  /** Claims an item. */
  readonly claimSql: string;
  /** Checks, in the transaction of the write and before it; roll back when its outcome throws. */
  readonly checkSql: string;
  /** Reads the mark of the item `$1`. */
  readonly readSql: string;
  /** The parameters of the statements; the token as text, which every driver takes for a bigint. */
  static parameters(item: string, token: number): [string, string];
  /** What the rows that a claim or check has answered mean: throws unless it went well. */
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
  /** What raises the mark in the SET list of an UPDATE of your own, where `$parameter` is the token. */
  raise(parameter: number): string;
  /** What lets an UPDATE of your own through, to be added to its WHERE with AND. */
  condition(parameter: number): string;
  /** The token as PostgreSQL takes it. */
  static parameter(token: number): string;
  /** What the rows of a claim mean: throws unless it went well. */
  static claimOutcome(token: number, rows: readonly MarkRow[]): void;
  /** What the rows of a check mean: throws unless it went well. */
  static checkOutcome(token: number, rows: readonly MarkRow[]): void;
  /** Throws why an UPDATE of your own has updated no row, given what {@link PostgresRowGuard.readSql} answers after it. */
  static refuse(token: number, rows: readonly MarkRow[]): never;
}

/** Lua that keeps the mark of a key beside it, and compares in the script that writes. */
export class RedisGuard {
  private constructor();
  /** A function `leasehold_check(mark_key, token)` to put in front of a script of your own. */
  static readonly CHECK: string;
  /** KEYS: mark. ARGV: token. Before the first read, with each new lease. */
  static readonly CLAIM_SCRIPT: string;
  /** KEYS: mark. ARGV: token. For giving up early; it protects nothing. */
  static readonly CHECK_SCRIPT: string;
  /** KEYS: mark, key. ARGV: token, value. */
  static readonly CHECK_AND_SET_SCRIPT: string;
  /** The key of the mark that guards `key`, in the same hash slot. */
  static markKey(key: string): string;
  /** What the answer of a script means: throws unless it went well. */
  static outcome(item: string, token: number, reply: unknown): void;
}

/** Keeps the mark of an item of DynamoDB in the item itself, and compares in the request that writes. */
export class DynamodbGuard {
  /** Marks in this attribute: a number at the top level, which is no part of a key. */
  constructor(attribute: string);
  /** The condition of a claim, the first write of a new lease. */
  static readonly CLAIM_CONDITION: string;
  /** The condition of every other write. */
  static readonly CHECK_CONDITION: string;
  /** The assignment that raises the mark, to stand after `SET` or a comma, in claims and writes. */
  static readonly SET: string;
  /** For `ExpressionAttributeNames`. */
  readonly names: Readonly<Record<string, string>>;
  /** For `ExpressionAttributeValues`, as the plain client takes them; a document client takes the token itself. */
  static values(token: number): Record<string, { N: string }>;
  /**
   * Throws why a write has ended in `ConditionalCheckFailedException`, given the item in it (`ALL_OLD`), or returns: not by the
   * guard, but for the rest of the condition.
   */
  refuse(item: string, token: number, old: Record<string, unknown> | undefined): void;
  /** As {@link DynamodbGuard.refuse}, of a claim. */
  refuseClaim(item: string, token: number, old: Record<string, unknown> | undefined): void;
}
