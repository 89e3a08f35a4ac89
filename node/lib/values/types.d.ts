// Generated from wit/leasehold.wit by `cargo xtask component --bless`. Do not edit.

/** Readings of the host's clocks, sampled after the last input was read and before the first output is performed. */
export interface Now {
  /**
   * Decides everything about validity. It must count suspended time; only differences matter. A value below an earlier
   * one counts as that earlier one.
   */
  monotonicNs: bigint;
  /** Milliseconds since 1970, for token floors and readable records only; never for validity. */
  unixMs: number;
}

/** The settings of a quorum; all its clients must have the same. */
export interface Quorum {
  /** The id. */
  id: Uint8Array;
  /**
   * Bounds `ttl` and `lockDelay` of every lock together: 100 to 172,800,000 (48 h). Default 60,000. A node that has
   * lost its data abstains for a little longer than this. In milliseconds.
   */
  maxTtl?: number | undefined;
}

/**
 * The durability of a node's acknowledged writes across a restart.
 *
 * `"declared"`: Declared by its operator: a restart alone does not count as a loss.
 *
 * `"not-declared"`: Not known: a restart counts as a loss.
 */
export type Durability = "declared" | "not-declared";

/**
 * How a waiter checks a held lock.
 *
 * `"acquire"`: A refused acquire is as cheap as a read (Redis, memory).
 *
 * `"read"`: Reads are cheaper than refused writes (DynamoDB, SQLite): read first, write once it is free.
 */
export type Poll = "acquire" | "read";

/** The abilities of one store. */
export interface NodeConfig {
  /** How to check if a held lock became free. */
  poll?: Poll | undefined;
  /** True if the store can notify waiters of a release. */
  watch?: boolean | undefined;
  /** Most renewals in one request, at least 1. Default 100. */
  batch?: number | undefined;
  /** In a quorum: the durability of acknowledged writes. Default `not-declared`. */
  durability?: Durability | undefined;
}

/** Limits of one client's state; each at least 1. */
export interface Limits {
  /** Acquisitions alive at once, held, waiting or queued. Default 1,000,000. */
  locks?: number | undefined;
  /** Background releases alive at once; above it, a record is left to expire. Default 100,000. */
  orphans?: number | undefined;
  /** Resources whose foreign versions are observed. Default 1,024. */
  observations?: number | undefined;
}

/** Settings of one client. */
export interface Config {
  /** One entry for each store, 1 to 31; several form a quorum. */
  nodes: NodeConfig[];
  /**
   * How far the rate of a clock may be off, in parts per million: 100 to 100,000. Default 10,000, which is 1%. Every
   * client of a store should use the same value.
   */
  driftPpm?: number | undefined;
  /**
   * The longest wait for one reply: 10 to 60,000. Default 500; never more than a sixth of a lock's ttl. In
   * milliseconds.
   */
  requestTimeout?: number | undefined;
  /** Limits of the client's state. */
  limits?: Limits | undefined;
  /**
   * Makes the nodes remember their quorum, so that a node that has lost its data does not vote as if it had not.
   * Without it, nodes must never lose data. A single node ignores it.
   */
  quorum?: Quorum | undefined;
}

/**
 * The form of a result.
 *
 * `"bytes"`: Bytes of any kind.
 *
 * `"json"`: A value as JSON writes it, in UTF-8.
 *
 * `"output"`: The output of a command.
 */
export type ResultKind = "bytes" | "json" | "output";

/** The result of a run, for those who come later. */
export interface RunResult {
  /** The form of the bytes. */
  kind: ResultKind;
  /** At most 4,096 bytes. */
  bytes: Uint8Array;
}

/** The record of a run beside its completion. */
export interface RunRecord {
  /** When the run began, by the clock of the one that did it, in milliseconds since 1970. */
  beganUnixMs: number;
  /** The number of attempts with this one; 0 if they were not counted. */
  attempts: number;
  /** The result, if one was kept. */
  runResult?: RunResult | undefined;
}

/** The options of a run. */
export interface RunOptions {
  /**
   * How long the completion of finished work stands: from `ttl` to 3,153,600,000,000 (100 years); in a quorum no more
   * than the default, 604,800,000 (7 days). In milliseconds.
   */
  keep?: number | undefined;
  /**
   * True is the word of an operator that no completion was lost: nodes of a quorum that have lost their data count all
   * the same.
   */
  trustQuorum?: boolean | undefined;
  /** Run although a completion may say that the work is done. Default false. */
  evenIfDone?: boolean | undefined;
}

/** How long to try. */
export type Wait =
  /** One attempt, answered as soon as it is decided. */
  | { type: "once" }
  /** New attempts until some time has passed. A pending attempt is still awaited, for at most one request timeout. */
  | {
      type: "for";
      /** How long to go on trying. In milliseconds. */
      wait: number;
    }
  /** Until granted, cancelled or refused. */
  | { type: "forever" };

/** When to extend a lease's expiry. */
export type Renewal =
  /** Every third of the ttl. */
  | { type: "automatic" }
  /** Never: the lease ends at its first deadline. */
  | { type: "off" }
  /** At a given interval. */
  | {
      type: "every";
      /** Time between renewals: 10 to half the ttl. In milliseconds. */
      interval: number;
    };

/** The options of one acquisition. */
export interface LockOptions {
  /** How long a grant lasts without renewal: 100 to 86,400,000 (24 h). Default 30,000. In milliseconds. */
  ttl?: number | undefined;
  /** How long to try. */
  wait?: Wait | undefined;
  /**
   * How long the lock stays closed after a lease has expired, at most 86,400,000 (24 h). 0 is usual; a released lock is
   * free at once either way. In milliseconds.
   */
  lockDelay?: number | undefined;
  /**
   * Stops renewal this long after the grant, so that a stuck worker cannot hold forever; at least the ttl. Default: no
   * bound. In milliseconds.
   */
  maxHold?: number | undefined;
  /** When to extend the expiry. */
  renewal?: Renewal | undefined;
  /** A label for people, at most 256 bytes without control characters; may be empty. */
  owner?: string | undefined;
  /** Bytes that others can read while the lease lasts. */
  data?: Uint8Array | undefined;
  /**
   * Makes it a run: work that is done once, so that the acquisition fails if a completion says that it is done.
   * Default: a plain lock, which neither reads nor writes completions.
   */
  run?: RunOptions | undefined;
}

/** The reason why a setting or an argument was rejected: the value and its bound. */
export type SettingError =
  /** A resource without a name. */
  | { type: "empty-resource" }
  /** A key of a run without a name. */
  | { type: "empty-key" }
  /** A text or payload above its bound. */
  | {
      type: "too-long";
      /** Which setting. */
      what: string;
      /** Its size. */
      bytes: number;
      /** The most it may have. */
      maxBytes: number;
    }
  /** A NUL, newline or other control character in a name or label. */
  | {
      type: "control-character";
      /** Which setting. */
      what: string;
      /** Byte offset of the character. */
      at: number;
      /** Its code point. */
      code: number;
    }
  /** A label of a session that is empty, too long, or has a character that not every store can keep in a name. */
  | {
      type: "session-label";
      /** The label given; of a long one its beginning. */
      given: string;
    }
  /** A duration below its bound. */
  | {
      type: "too-short";
      /** Which setting. */
      what: string;
      /** The value given. */
      valueMs: number;
      /** The smallest allowed. */
      minMs: number;
    }
  /** A duration above its bound. */
  | {
      type: "too-far";
      /** Which setting. */
      what: string;
      /** The value given. */
      valueMs: number;
      /** The largest allowed. */
      maxMs: number;
    }
  /** A completion of finished work that would end before the lease of its run. */
  | {
      type: "keep-below-ttl";
      /** How long the completion would stand. */
      keepMs: number;
      /** The ttl of the lease. */
      ttlMs: number;
    }
  /** A drift outside its bounds. */
  | {
      type: "drift";
      /** The value given. */
      ppm: number;
      /** The smallest allowed. */
      minPpm: number;
      /** The largest allowed. */
      maxPpm: number;
    }
  /** No node, or too many nodes. */
  | {
      type: "nodes";
      /** How many were given. */
      count: number;
      /** The most. */
      max: number;
    }
  /** A limit of zero. */
  | {
      type: "zero-limit";
      /** Which limit. */
      what: string;
    }
  /** A seed, an entropy or a name of a quorum below its size. */
  | {
      type: "too-few-bytes";
      /** `seed`, `fresh` or `quorum id`. */
      what: string;
      /** How many were given. */
      bytes: number;
      /** The fewest. */
      minBytes: number;
    }
  /** `Client.createWired` was given another number of stores than of nodes. */
  | {
      type: "stores";
      /** How many were given. */
      count: number;
      /** How many nodes there are. */
      nodes: number;
    }
  /** The settings or credentials of one store are invalid. */
  | {
      type: "store";
      /** The node. */
      node: number;
      /** The problem, and how to fix it, without secrets. */
      detail: string;
    }
  /** Anything without a case in this version of the interface. */
  | {
      type: "other";
      /** A message for people. */
      message: string;
    };
