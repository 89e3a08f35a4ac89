// Generated from wit/leasehold.wit by `cargo xtask component --bless`. Do not edit.

/** What the host's clocks show, sampled after the last input was read and before the first output is performed. */
export interface Now {
  /**
   * Decides everything about validity. It must count on while the machine is suspended; only differences matter. A
   * value below an earlier one counts as that earlier one.
   */
  monotonicNs: bigint;
  /** Milliseconds since 1970, for token floors and readable records only; never for validity. */
  unixMs: number;
}

/** What several nodes agree on that form a quorum; all its clients must have the same. */
export interface Quorum {
  /** Which quorum. */
  id: Uint8Array;
  /**
   * Bounds `ttl` and `lockDelay` of every lock together: 100 to 172,800,000 (48 h). Default 60,000. A node that has
   * lost its data abstains for a little longer than this. In milliseconds.
   */
  maxTtl?: number | undefined;
}

/**
 * Whether a node is known to keep across a restart all that it has acknowledged.
 *
 * `"declared"`: Its operator says so: a restart alone then means nothing.
 *
 * `"not-declared"`: Not known: a restart counts as lost memory.
 */
export type Durability = "declared" | "not-declared";

/**
 * Who decides that a record has run out.
 *
 * `"acquire"`: A refused acquire is as cheap as a read (Redis, memory).
 *
 * `"read"`: Reads are cheaper than refused writes (DynamoDB, SQLite): look first, write once it is free.
 */
export type Poll = "acquire" | "read";

/** What one store can do. */
export interface NodeConfig {
  /** How to look whether a held lock became free. */
  poll?: Poll | undefined;
  /** Whether the store can tell waiters of a release. */
  watch?: boolean | undefined;
  /** Most renewals in one request, at least 1. Default 100. */
  batch?: number | undefined;
  /** In a quorum: whether the store keeps every acknowledged write through a crash. Default `not-declared`. */
  durability?: Durability | undefined;
}

/** Bounds on what one client keeps; each at least 1. */
export interface Limits {
  /** Acquisitions alive at once, held, waiting or queued. Default 1,000,000. */
  locks?: number | undefined;
  /** Background releases alive at once; above it a record is left to run out. Default 100,000. */
  orphans?: number | undefined;
  /** Resources whose foreign versions are remembered. Default 1,024. */
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
   * The longest that one reply is awaited: 10 to 60,000. Default 500. A sixth of a lock's ttl binds as well. In
   * milliseconds.
   */
  requestTimeout?: number | undefined;
  /** Bounds on what the client keeps. */
  limits?: Limits | undefined;
  /**
   * Has the nodes remember which quorum they belong to, so that one that has lost its data does not vote as if it had
   * not. Without it, that must never happen. A single node has no use for it, and ignores it.
   */
  quorum?: Quorum | undefined;
}

/** How long to try. */
export type Wait =
  /** One attempt, answered as soon as it is decided. */
  | { type: "once" }
  /**
   * New attempts until some time has passed. One in flight by then is still awaited, for at most one request timeout.
   */
  | {
      type: "for";
      /** How long to go on trying. In milliseconds. */
      wait: number;
    }
  /** Until granted, cancelled or refused. */
  | { type: "forever" };

/** When to push a lease's expiry out. */
export type Renewal =
  /** Every third of the ttl. */
  | { type: "automatic" }
  /** Never: the lease ends at its first deadline. */
  | { type: "off" }
  /** At an interval of one's own. */
  | {
      type: "every";
      /** Time between renewals: 10 to half the ttl. In milliseconds. */
      interval: number;
    };

/** What one acquisition asks for. */
export interface LockOptions {
  /** How long a grant lasts without renewal: 100 to 86,400,000 (24 h). Default 30,000. In milliseconds. */
  ttl?: number | undefined;
  /** How long to try. */
  wait?: Wait | undefined;
  /**
   * How long the lock stays closed after a holder let its lease run out, at most 86,400,000 (24 h). 0 is usual; a
   * released lock is free at once either way. In milliseconds.
   */
  lockDelay?: number | undefined;
  /**
   * Stops renewal this long after the grant, so that a wedged worker cannot hold for ever; at least the ttl. Default:
   * no bound. In milliseconds.
   */
  maxHold?: number | undefined;
  /** When to push the expiry out. */
  renewal?: Renewal | undefined;
  /** A label for people, at most 256 bytes without control characters; may be empty. */
  owner?: string | undefined;
  /** Bytes that others can read while the lease stands. */
  data?: Uint8Array | undefined;
}

/** Why a setting or an argument was refused: the value and its bound. */
export type SettingError =
  /** A resource without a name. */
  | { type: "empty-resource" }
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
  /** No node at all, or more than can be counted. */
  | {
      type: "nodes";
      /** How many were given. */
      count: number;
      /** The most. */
      max: number;
    }
  /** A limit of zero, which would allow nothing. */
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
  /** The settings or credentials of one store make no sense. */
  | {
      type: "store";
      /** Whose. */
      node: number;
      /** What is wrong, and what would be right, without secrets. */
      detail: string;
    }
  /** What this version of the interface has no case for. */
  | {
      type: "other";
      /** What happened, in words. */
      message: string;
    };

/**
 * Whether a client has found a quorum unborn.
 *
 * `"yes"`: All nodes abstained at once, and all were waited out: none of them has ever forgotten anything.
 *
 * `"no"`: Anything else.
 */
export type Birth = "yes" | "no";

/**
 * What a client of a quorum says along with every acquire.
 *
 * A node remembers, beside its locks, the quorum it belongs to. One that finds no such memory, or one of an earlier run
 * of its server that is not declared durable, has lost its data: it writes down `fresh` and abstains until a client
 * comes that has waited that loss out.
 */
export interface Membership {
  /** The quorum it means; a node of another refuses for good. */
  quorum: Uint8Array;
  /** The longest time that a record of this quorum stands; a node that knows another refuses for good. */
  maxTtlMs: number;
  /** What is known of this node. */
  durability: Durability;
  /** The name of a loss, should this send be the first to find it; never used before. */
  fresh: Uint8Array;
  /**
   * The loss whose abstention this client has waited out, or which it has seen to be over, before this attempt began.
   */
  waitedOut?: Uint8Array | undefined;
  /** Whether this client found the quorum unborn. */
  birth: Birth;
  /**
   * For how long the counters of a node that votes again stay in doubt, unless they are raised: 604,800,000 (7 days).
   */
  retentionMs: number;
}

/** An operation. */
export type Op =
  /** Write our record if the resource is free, or released, or still at the expected foreign version; mint a token. */
  | {
      type: "acquire";
      /** The attempt. */
      nonce: Uint8Array;
      /** Which send of the attempt this is. */
      seq: number;
      /** How long the record stands unless renewed. */
      recordTtlMs: number;
      /** The smallest token to mint. */
      floor: number;
      /** A foreign version that has been observed for its whole ttl and may be overwritten. */
      expect?: Uint8Array | undefined;
      /** Label for people. */
      owner: string;
      /** Bytes for others to read. */
      data?: Uint8Array | undefined;
      /**
       * The quorum that is asked, which the node checks before the lock itself, in the same atomic step; absent for a
       * single store.
       */
      member?: Membership | undefined;
    }
  /** Push the expiry out, if the record is still ours. Never shortens it, never creates a record. */
  | {
      type: "renew";
      /** The attempt that was granted. */
      nonce: Uint8Array;
      /** Which send of the attempt this is. */
      seq: number;
      /** How long the record stands from now on. */
      recordTtlMs: number;
      /**
       * In a quorum, what is known of the node, which then tells a record that is gone (`conflict`) from a memory that
       * is (`abstains`); absent for a single store.
       */
      quorum?: Durability | undefined;
    }
  /** Free the resource if the record is still ours; its token counter survives. */
  | {
      type: "release";
      /** The attempt whose record is to be freed. */
      nonce: Uint8Array;
    }
  /** Lift the node's counter to at least a token, if the record is still ours; answer the counter. */
  | {
      type: "raise";
      /** The attempt that must still own the record. */
      nonce: Uint8Array;
      /** The least that the counter must show afterwards. */
      token: number;
      /** The loss since which the node is in doubt; from then on it is trusted with this resource. */
      loss?: Uint8Array | undefined;
    }
  /** Show what is there. */
  | { type: "read" };

/** One operation on one resource, on behalf of one lock. */
export interface LockOp {
  /** For whom, so that a host can tell one caller's requests from another's. */
  lock: number;
  /** On what. */
  resource: string;
  /** What to do. */
  op: Op;
}

/**
 * Kinds of passing failures.
 *
 * `"timeout"`: No reply in time.
 *
 * `"reset"`: The connection broke after something was sent.
 *
 * `"unreachable"`: No connection could be made.
 *
 * `"cancelled"`: The caller went away while the request was in flight.
 *
 * `"server"`: The store said that it failed.
 *
 * `"busy"`: The store is busy or throttles.
 *
 * `"protocol"`: The store's answer makes no sense.
 */
export type FaultKind = "timeout" | "reset" | "unreachable" | "cancelled" | "server" | "busy" | "protocol";

/** A failure that may pass by itself. */
export interface Fault {
  /** What kind of failure. */
  kind: FaultKind;
  /** What the store or the operating system said, without secrets; more than 512 bytes are cut. */
  detail?: string | undefined;
}

/**
 * Kinds of lasting refusals.
 *
 * `"permission"`: Not allowed to do this here.
 *
 * `"schema"`: The table, schema or kind of value is not what this client can work with.
 *
 * `"corrupt-record"`: The record was not written by an honest client: a ttl of years, a token above 2^53, bytes that
 * make no record.
 *
 * `"tokens-exhausted"`: The counter has reached 2^53 - 1.
 *
 * `"storage-full"`: No room left to write.
 *
 * `"membership"`: The node belongs to another quorum, or has other settings than its clients.
 *
 * `"other"`: Anything else that a retry does not mend.
 */
export type DenialKind = "permission" | "schema" | "corrupt-record" | "tokens-exhausted" | "storage-full" | "membership" | "other";

/** A writer that speaks this protocol. */
export interface LeaseHolder {
  /** Its attempt. */
  nonce: Uint8Array;
  /** The send that wrote the record last, where the store keeps it. */
  seq?: number | undefined;
}

/** A record, as much of it as the store keeps. */
export interface Holding {
  /** The client that wrote it; absent where another library did. */
  holder?: LeaseHolder | undefined;
  /** Names this state of the record. */
  version: Uint8Array;
  /** Freed by its holder: only its history is left. */
  released: boolean;
  /** The node's token counter. */
  counter?: number | undefined;
  /** The holder's label. */
  owner?: string | undefined;
  /** The ttl written in the record; rounded up. */
  recordTtlMs?: number | undefined;
  /**
   * Time until the store frees the record by itself, rounded up; absent where it does not, and observers must wait it
   * out.
   */
  leftMs?: number | undefined;
  /** When the lease was granted, by the holder's or store's wall clock, in milliseconds since 1970. */
  sinceUnixMs?: number | undefined;
  /** The holder's bytes. */
  data?: Uint8Array | undefined;
}

/** The answer to an operation that was applied. */
export type Applied =
  /** The record is ours. The counter is the token minted with this grant, or for a resend the one it already had. */
  | {
      type: "acquired";
      /** The node's token counter. */
      counter: number;
    }
  /**
   * The record is ours, but this node of a quorum may have forgotten tokens: its counter has to be raised before it
   * counts.
   */
  | {
      type: "acquired-in-doubt";
      /** The node's token counter. */
      counter: number;
      /** The loss after which it is in doubt. */
      stamp: Uint8Array;
    }
  /** The expiry was pushed out. */
  | { type: "renewed" }
  /** The resource is free. */
  | { type: "released" }
  /** The counter is at least what was asked. */
  | {
      type: "raised";
      /** The node's token counter. */
      counter: number;
    }
  /** What is there. */
  | {
      type: "read";
      /** The record, absent when the resource is free and shows no trace of the last holder. */
      holding?: Holding | undefined;
    };

/** Why an operation was not applied. */
export type Refusal =
  /** The record that stood in the way; for renew, release and raise also: no record of ours. */
  | {
      type: "conflict";
      /** The record, absent when the resource is free and shows no trace of the last holder. */
      holding?: Holding | undefined;
    }
  /** The store asks for patience. */
  | {
      type: "throttled";
      /** What kind of failure. */
      kind: FaultKind;
      /** What the store or the operating system said, without secrets; more than 512 bytes are cut. */
      detail?: string | undefined;
    }
  /** The store cannot serve now, and did not begin to: connection refused, database busy, loading. */
  | {
      type: "unavailable";
      /** What kind of failure. */
      kind: FaultKind;
      /** What the store or the operating system said, without secrets; more than 512 bytes are cut. */
      detail?: string | undefined;
    }
  /** The node's memory of past grants is in doubt, so it does not vote yet. */
  | {
      type: "abstains";
      /** Names the loss, where the node was asked for its vote. */
      stamp?: Uint8Array | undefined;
    }
  /** Credentials are missing or have expired; fresh ones may help. */
  | {
      type: "needs-credentials";
      /** What kind of failure. */
      kind: FaultKind;
      /** What the store or the operating system said, without secrets; more than 512 bytes are cut. */
      detail?: string | undefined;
    }
  /** Trying again will not help. */
  | {
      type: "denied";
      /** What kind of refusal. */
      kind: DenialKind;
      /** What the store said and what to look at, without secrets; more than 512 bytes are cut. */
      detail: string;
    };

/**
 * How an operation ended. One that cannot be read, such as a nonce of 15 bytes or a token of 2^53, counts as unknown.
 */
export type Outcome =
  /** It happened. */
  | {
      type: "applied";
      /** The answer. */
      applied: Applied;
    }
  /** It certainly did not happen, and this send of it never will. */
  | {
      type: "not-applied";
      /** Why. */
      refusal: Refusal;
    }
  /** It may have happened, or may yet happen. */
  | {
      type: "unknown";
      /** What kind of failure. */
      kind: FaultKind;
      /** What the store or the operating system said, without secrets; more than 512 bytes are cut. */
      detail?: string | undefined;
    };

/**
 * How a Redis behind HTTP is spoken to.
 *
 * `"upstash"`: The REST interface of Upstash, and of what behaves like it.
 *
 * `"webdis"`: Webdis.
 */
export type Dialect = "upstash" | "webdis";

/**
 * Whether a server behind HTTP wants to know who asks.
 *
 * `"anonymous"`: Requests carry no credentials.
 *
 * `"with-credentials"`: Requests wait for `Client.setCredentials`.
 */
export type Access = "anonymous" | "with-credentials";

/**
 * Whether secrets may be sent where others on the way can read them.
 *
 * `"refused"`: Only to this machine.
 *
 * `"allowed"`: The network is trusted.
 */
export type Plaintext = "refused" | "allowed";

/** The second half of a primary key, the same for all locks. */
export interface SortKey {
  /** The attribute. */
  name: string;
  /** What stands in it. */
  value: string;
}

/** How requests to a node are written. */
export type Store =
  /** Not at all: the host is given whole operations, in `Output transmit`, and performs them itself. */
  | { type: "operations" }
  /** Redis from version 5 on, or Valkey: commands for a connection or a library of the host's. */
  | {
      type: "redis";
      /**
       * How long the token counter of an unused lock is kept: 1 to 3,153,600,000,000 (100 years). Default 604,800,000
       * (7 days). In milliseconds.
       */
      retention?: number | undefined;
      /**
       * Counts a grant only when so many replicas have it. Each request then has `WAIT` in it and needs a connection
       * that it does not share. Default: replicas are not asked.
       */
      replicas?: number | undefined;
    }
  /** A Redis behind HTTP. */
  | {
      type: "redis-http";
      /** Which of the two. */
      dialect: Dialect;
      /**
       * `https://host`, `http://host:port`, either with a path that the server's own stands below. No user, password or
       * token, no `?` or `#`.
       */
      url: string;
      /** Whether the server wants to know who asks. */
      access: Access;
      /** As in `redisStore`. In milliseconds. */
      retention?: number | undefined;
      /** Whether credentials may be sent over `http:` beyond this machine. Default `refused`. */
      plaintext?: Plaintext | undefined;
    }
  /** One table of DynamoDB. */
  | {
      type: "dynamodb";
      /** The table, by name or ARN. */
      table: string;
      /** The Region that requests are signed for. */
      region: string;
      /** The endpoint: `https://host` or `http://host:port`, without a path. */
      url: string;
      /** The attribute of the partition key. Default `key`. */
      key?: string | undefined;
      /** The sort key of a table that has one. */
      sortKey?: SortKey | undefined;
      /** An attribute for DynamoDB's time to live, in which the row's end of use stands. Default: none is written. */
      expires?: string | undefined;
      /** Whether requests may be sent over `http:` beyond this machine. Default `refused`. */
      plaintext?: Plaintext | undefined;
    };

/**
 * Who asks. Secrets stand in nothing that the client says but the headers of requests. The client overwrites what it
 * keeps of them when it drops it: when they are replaced and no request that carries them is under way, and with the
 * client. Whatever made them, and requests that have been handed out, are the host's to forget.
 */
export type Credentials =
  /** For `Store dynamodb`. */
  | {
      type: "aws";
      /** Names the key, and is no secret. */
      accessKeyId: string;
      /** The secret. */
      secretAccessKey: string;
      /** Comes with keys that expire. */
      sessionToken?: string | undefined;
      /**
       * When they expire, in milliseconds since 1970. Others are asked for five minutes before, and they are used until
       * ten seconds before, but for five seconds in any case: where they seem to have expired when they come, the
       * host's clock is more likely to be wrong. Absent where they do not expire.
       */
      expiresUnixMs?: number | undefined;
    }
  /** For `Store redis-http`; usual for Upstash. */
  | {
      type: "token";
      /** The secret. */
      token: string;
    }
  /** For `Store redis-http`; usual for Webdis. */
  | {
      type: "password";
      /** The user, without a colon; may be empty. */
      user: string;
      /** The secret. */
      password: string;
    };

/** Why an acquisition ended without the lock. */
export type Failure =
  /** Held by somebody else; asked with `Wait once`. */
  | {
      type: "busy";
      /** By whom, where the store shows it. */
      holding?: Holding | undefined;
    }
  /** Held by somebody else for as long as the caller would wait. */
  | {
      type: "timed-out";
      /** By whom, where the store shows it. */
      holding?: Holding | undefined;
    }
  /** The store asked for patience for as long as the caller would wait. */
  | {
      type: "throttled";
      /** What kind of failure. */
      kind: FaultKind;
      /** What the store or the operating system said, without secrets; more than 512 bytes are cut. */
      detail?: string | undefined;
    }
  /** The store could not be reached, or did not answer. */
  | {
      type: "unavailable";
      /** What kind of failure. */
      kind: FaultKind;
      /** What the store or the operating system said, without secrets; more than 512 bytes are cut. */
      detail?: string | undefined;
    }
  /** The store's memory of past grants is in doubt. */
  | {
      type: "abstains";
      /** For how long still, as far as is known; rounded up. */
      leftMs: number;
    }
  /** The store refuses, and trying again will not help. */
  | {
      type: "refused";
      /** What kind of refusal. */
      kind: DenialKind;
      /** What the store said and what to look at, without secrets; more than 512 bytes are cut. */
      detail: string;
    }
  /** Released before it was granted. */
  | { type: "cancelled" }
  /** What this version of the interface has no case for. */
  | {
      type: "other";
      /** What happened, in words. */
      message: string;
    };

/** Why a lease is over. */
export type LostReason =
  /** No renewal was confirmed before the deadline. */
  | { type: "expired" }
  /** `maxHold` has ended the renewals. */
  | { type: "max-hold" }
  /** The record is somebody else's. */
  | {
      type: "taken-over";
      /** Whose the record is now, where the store shows it. */
      by?: Holding | undefined;
    }
  /** The record was released by somebody else, such as an administrator. */
  | { type: "released" }
  /** The record is gone. */
  | { type: "record-gone" }
  /** What this version of the interface has no case for. */
  | {
      type: "other";
      /** What happened, in words. */
      message: string;
    };

/** What happened to a lock. An acquisition ends with `acquired` or `failed`, a lease with `lost` or `released`. */
export type Event =
  /** The lock is held. */
  | {
      type: "acquired";
      /** The fencing token. */
      token: number;
      /** Until when the lease is believed in unless renewed. */
      deadlineNs: bigint;
      /** The reply to the acquire was lost, and the record itself told. */
      recovered: boolean;
    }
  /** Somebody else holds the lock; told once for each acquisition. */
  | {
      type: "contended";
      /** Who. */
      holding: Holding;
    }
  /** The acquisition ended without the lock. */
  | {
      type: "failed";
      /** Why. */
      failure: Failure;
    }
  /** The deadline moved out. */
  | {
      type: "renewed";
      /** The new deadline. */
      deadlineNs: bigint;
      /** Validity that was left before: the best early warning there is. */
      leftNs: bigint;
      /** The reply to an earlier renewal was lost, and the record itself told. */
      recovered: boolean;
    }
  /** A renewal did not succeed; another follows while there is time. */
  | {
      type: "renew-delayed";
      /** The deadline, unmoved. */
      deadlineNs: bigint;
      /** What went wrong. */
      fault: Fault;
    }
  /** A node of the quorum lost our record, and the others vouch for less. */
  | {
      type: "shortened";
      /** The new, earlier deadline. */
      deadlineNs: bigint;
    }
  /** Less than the danger zone is left and no renewal has succeeded. */
  | {
      type: "expiring";
      /** When the lease will be lost. */
      deadlineNs: bigint;
    }
  /** The lease is over and the lock was not released: the work must stop. */
  | {
      type: "lost";
      /** Why. */
      reason: LostReason;
    }
  /** The release has ended. */
  | {
      type: "released";
      /** The store has confirmed it; otherwise the record has run out by itself by now. */
      confirmed: boolean;
    };

/** What became of a request. An answer of another kind than was asked for counts as unknown. */
export type Response =
  /** The node answered, to `Output transmit`. */
  | {
      type: "outcomes";
      /** One for each operation of the request, in order; missing ones count as unknown. */
      outcomes: Outcome[];
    }
  /** The server answered, to `Output http-request`, whatever its status. */
  | {
      type: "http-response";
      /** The status. */
      status: number;
      /** All of them, or at least `contentType`, `date` and `location`. */
      headers: [string, string][];
      /**
       * As it was sent, decompressed. No more than 1,048,577 bytes of it need be read: 1,048,576 is the longest that is
       * understood.
       */
      body: Uint8Array;
    }
  /** The server answered, to `Output redis-commands`, errors included. */
  | {
      type: "redis-replies";
      /**
       * One reply to each command, in order, in the format of the connection (RESP 2 or 3). Another number of them, or
       * what is no RESP, counts as unknown.
       */
      replies: Uint8Array;
    }
  /** Nothing left this machine: none of the operations was applied. */
  | {
      type: "not-sent";
      /** What kind of failure. */
      kind: FaultKind;
      /** What the store or the operating system said, without secrets; more than 512 bytes are cut. */
      detail?: string | undefined;
    }
  /** Something may have left: every operation may have been applied. */
  | {
      type: "unknown";
      /** What kind of failure. */
      kind: FaultKind;
      /** What the store or the operating system said, without secrets; more than 512 bytes are cut. */
      detail?: string | undefined;
    };

/** A command that was not accepted. */
export type CommandError =
  /** The lock id is in use; take a new one for each acquisition. */
  | { type: "duplicate-lock" }
  /** No such lock is alive: never acquired, lost, or released before. */
  | { type: "unknown-lock" }
  /** As many locks as the client may have are alive. */
  | {
      type: "too-many-locks";
      /** The limit. */
      limit: number;
    }
  /** The record would stand for longer than the quorum allows. */
  | {
      type: "above-max-ttl";
      /** What was asked for: `ttl` and `lockDelay` together. */
      recordTtlMs: number;
      /** The most: `maxTtl` of the quorum. */
      maxTtlMs: number;
    }
  /** The client was closed. */
  | { type: "closed" }
  /** An argument was refused. */
  | {
      type: "invalid";
      /** Which, and why. */
      error: SettingError;
    }
  /** What this version of the interface has no case for. */
  | {
      type: "other";
      /** What happened, in words. */
      message: string;
    };

/** What the client tells its host. */
export type Output =
  /** Perform these operations, and hand their outcomes to `handleResponse`. */
  | {
      type: "transmit";
      /** Correlates the response. */
      id: number;
      /** To whom. */
      node: number;
      /** When the host may stop waiting; the client counts the request as unknown from then on. */
      deadlineNs: bigint;
      /** What to do, in order; several only for renewals. */
      ops: LockOp[];
    }
  /** Send this request over HTTP, and hand the response to `handleResponse`. */
  | {
      type: "http-request";
      /** Correlates the response. What is one request to a node may become several, each with an id of its own. */
      id: number;
      /** To whom. */
      node: number;
      /** When the host may stop waiting; the client counts the request as unknown from then on. */
      deadlineNs: bigint;
      /** Always `POST`. */
      method: string;
      /** Where to, whole. */
      url: string;
      /** In lowercase, each name once. They hold secrets. */
      headers: [string, string][];
      /** UTF-8. It names attempts, and so holds secrets too. */
      body: Uint8Array;
    }
  /** Send these commands to a Redis, and hand the replies to `handleResponse`. */
  | {
      type: "redis-commands";
      /** Correlates the replies. What is one request to a node may become several, each with an id of its own. */
      id: number;
      /** To whom. */
      node: number;
      /**
       * When the host may stop waiting; the client counts the request as unknown from then on. A connection on which
       * replies are still missing then must be closed: they would be taken for those of later commands.
       */
      deadlineNs: bigint;
      /** At least one. They name attempts, and so hold secrets. */
      commands: Uint8Array[][];
    }
  /** Something happened to a lock. */
  | {
      type: "event";
      /** Which lock. */
      lock: number;
      /** What happened. */
      event: Event;
    }
  /** Ask for wake-ups on a resource, then call `subscribed`. */
  | {
      type: "subscribe";
      /** Where. */
      node: number;
      /** For what. */
      resource: string;
    }
  /** Wake-ups on a resource are no longer needed. */
  | {
      type: "unsubscribe";
      /** Where. */
      node: number;
      /** For what. */
      resource: string;
    }
  /**
   * The node wants fresh credentials. For nodes that are spoken to in the format of a store: call `setCredentials`;
   * requests wait for it until their deadline. For others the node has refused: call `credentialsRenewed` when it has
   * them.
   */
  | {
      type: "need-credentials";
      /** Which. */
      node: number;
    }
  /** A command given to `step` was not accepted. */
  | {
      type: "rejected";
      /** The lock that the command was about. */
      lock: number;
      /** Why. */
      error: CommandError;
    }
  /** Nothing more to do: sleep until then, or until a response or a command, then call `handleTimeout`. */
  | {
      type: "wake-at";
      /** When, on the monotonic clock; absent when nothing is due. */
      atNs?: bigint | undefined;
    };

/** The commands of `client` as data, for `step`. */
export type Input =
  /** As `Client.acquire`. */
  | {
      type: "acquire";
      /** Chosen by the host. */
      lock: number;
      /** What to lock. */
      resource: string;
      /** How. */
      options: LockOptions;
    }
  /** As `Client.release`. */
  | {
      type: "release";
      /** Which. */
      lock: number;
    }
  /** As `Client.declareLost`. */
  | {
      type: "declare-lost";
      /** Which. */
      lock: number;
    }
  /** As `Client.handleResponse`. */
  | {
      type: "response";
      /** The request. */
      id: number;
      /** What became of it. */
      response: Response;
    }
  /** As `Client.notified`. */
  | {
      type: "notified";
      /** Which. */
      resource: string;
    }
  /** As `Client.subscribed`. */
  | {
      type: "subscribed";
      /** Where. */
      node: number;
      /** For what. */
      resource: string;
    }
  /** As `Client.credentialsRenewed`. */
  | {
      type: "credentials-renewed";
      /** Which. */
      node: number;
    }
  /** As `Client.setCredentials`. */
  | {
      type: "set-credentials";
      /** Whose. */
      node: number;
      /** What its requests carry from now on. */
      credentials: Credentials;
    }
  /** As `Client.nodeVotes`. */
  | {
      type: "node-votes";
      /** Which node. */
      node: number;
      /** The loss of data since which its counters are in doubt; absent where it had none. */
      loss?: Uint8Array | undefined;
    }
  /** As `Client.reseed`. */
  | {
      type: "reseed";
      /** The new seed. */
      seed: Uint8Array;
    }
  /** As `Client.close`. */
  | { type: "close" };

/** What one `step` brought. */
export interface Stepped {
  /** In order, without `wakeAt`. */
  outputs: Output[];
  /** When to call again at the latest, on the monotonic clock; absent when nothing is due. */
  wakeAtNs?: bigint | undefined;
}

/** Counts of what a client keeps and has seen. */
export interface Stats {
  /** Acquisitions alive, in any state. */
  locks: number;
  /** Of these, held. */
  held: number;
  /** Requests without a response yet. */
  inFlight: number;
  /** Background releases of attempts that were given up. */
  orphans: number;
  /** Foreign versions under observation. */
  observations: number;
  /** Outputs that the host has not drained. */
  undrained: number;
  /** Responses so far that belonged to no open request: late, duplicate or made up. */
  ignoredResponses: number;
  /** Requests so far whose deadline passed without a response. */
  timedOutRequests: number;
}

/** Why a claim or a write was refused. */
export type Rejected =
  /** A later holder has claimed the item. */
  | {
      type: "stale";
      /** The token that was presented. */
      token: number;
      /** The highest token the item has seen. */
      highWater: number;
    }
  /** A write of the same lease with a higher number has already been accepted. */
  | {
      type: "out-of-order";
      /** The number that was presented. */
      write: number;
      /** The highest number accepted. */
      last: number;
    }
  /** Nobody has claimed the item; a holder must claim before it writes. */
  | { type: "unclaimed" }
  /** The number is no token. */
  | {
      type: "invalid-token";
      /** The number that was presented. */
      token: number;
      /** The largest token, 2^53 - 1. */
      max: number;
    };
