// Generated from wit/leasehold.wit by `cargo xtask component --bless`. Do not edit.

import type { Durability } from "./types.js";

/**
 * The state of a quorum as a client has found it.
 *
 * `"yes"`: All nodes abstained at once, and all were waited out: it is a new quorum.
 *
 * `"no"`: Any other state.
 */
export type Birth = "yes" | "no";

/**
 * The membership data that a client of a quorum sends with every acquire.
 *
 * A node remembers, beside its locks, the quorum it belongs to. One that finds no such memory, or one of an earlier run
 * of its server that is not declared durable, has lost its data: it writes down `fresh` and abstains until a client
 * comes that has waited that loss out.
 */
export interface Membership {
  /** The client's quorum; a node of another quorum refuses for good. */
  quorum: Uint8Array;
  /** The longest record of this quorum; a node with another value refuses for good. */
  maxTtlMs: number;
  /** The declared durability of this node. */
  durability: Durability;
  /** A new id for a loss, if this send is the first to detect it. */
  fresh: Uint8Array;
  /**
   * The loss whose abstention this client has waited out, or which it has seen to be over, before this attempt began.
   */
  waitedOut?: Uint8Array | undefined;
  /** True if this client found a quorum without a past. */
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
      /** The number of this send within the attempt. */
      seq: number;
      /** How long the record lasts unless renewed. */
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
       * The membership, which the node checks before the lock itself, in the same atomic step; absent for a single
       * store.
       */
      member?: Membership | undefined;
      /** Refuse (`done`) if a completion says that the work is done. */
      unlessDone: boolean;
    }
  /** Extend the expiry, if the record is still ours. Never shortens it, never creates a record. */
  | {
      type: "renew";
      /** The attempt that was granted. */
      nonce: Uint8Array;
      /** The number of this send within the attempt. */
      seq: number;
      /** How long the record lasts from now on. */
      recordTtlMs: number;
      /**
       * In a quorum, the declared durability of the node, which then distinguishes a lost record (`conflict`) from lost
       * memory (`abstains`); absent for a single store.
       */
      quorum?: Durability | undefined;
    }
  /** Free the resource if the record is still ours; its token counter survives. */
  | {
      type: "release";
      /** The attempt whose record to free. */
      nonce: Uint8Array;
      /** In a quorum, as in `renew`; absent for a single store. */
      quorum?: Durability | undefined;
    }
  /** Write the completion that the work is done, and free the resource, in one step, if the record is still ours. */
  | {
      type: "finish";
      /** The attempt whose work is done. */
      nonce: Uint8Array;
      /** The fencing token of the lease. */
      token: number;
      /**
       * The counter that the grant has shown. Refuse as not ours where the record's is another: its grant is another as
       * well.
       */
      counter: number;
      /** How long the completion stands from now on. */
      keepMs: number;
      /** The label of the holder; may be empty. */
      owner: string;
      /**
       * The record of the run, to keep beside the completion and to show with it; absent for a run without a result.
       * `Runs.readAbout` reads it. A store that has no room for it may refuse the finish: the next one carries none.
       */
      about?: Uint8Array | undefined;
      /** In a quorum, as in `renew`; absent for a single store. */
      quorum?: Durability | undefined;
    }
  /**
   * Mark the record if it is still that of the attempt: its renewals are refused from then on, release and finish free
   * it as ever. The expiry stays. No client of this interface sends it.
   */
  | {
      type: "revoke";
      /** The attempt whose record to mark. */
      nonce: Uint8Array;
    }
  /** Raise the node's counter to at least a token, if the record is still ours; return the counter. */
  | {
      type: "raise";
      /** The attempt that must still own the record. */
      nonce: Uint8Array;
      /** The minimum of the counter afterwards. */
      token: number;
      /** The loss since which the node is in doubt; after the raise its counter of this resource is trusted. */
      loss?: Uint8Array | undefined;
    }
  /** Read the record. */
  | { type: "read" };

/** One operation on one resource, on behalf of one lock. */
export interface LockOp {
  /** The lock, so that a host can distinguish the requests of callers. */
  lock: number;
  /** The resource. */
  resource: string;
  /** The operation. */
  op: Op;
}

/**
 * Kinds of temporary failures.
 *
 * `"timeout"`: No reply in time.
 *
 * `"reset"`: The connection broke after something was sent.
 *
 * `"unreachable"`: No connection could be made.
 *
 * `"cancelled"`: The caller cancelled the request.
 *
 * `"server"`: The store reported a failure.
 *
 * `"busy"`: The store is busy or throttles.
 *
 * `"protocol"`: The store's answer is invalid.
 */
export type FaultKind = "timeout" | "reset" | "unreachable" | "cancelled" | "server" | "busy" | "protocol";

/** A temporary failure. */
export interface Fault {
  /** The kind of failure. */
  kind: FaultKind;
  /** The message of the store or the operating system, without secrets; cut after 512 bytes. */
  detail?: string | undefined;
}

/**
 * Kinds of permanent refusals.
 *
 * `"permission"`: Permission denied.
 *
 * `"schema"`: This client cannot work with the table, schema or type of value.
 *
 * `"corrupt-record"`: No valid client wrote the record: a ttl of years, a token above 2^53, unreadable bytes.
 *
 * `"tokens-exhausted"`: The counter has reached 2^53 - 1.
 *
 * `"storage-full"`: No room left to write.
 *
 * `"membership"`: The node belongs to another quorum, or has other settings than its clients.
 *
 * `"other"`: Any other permanent refusal.
 */
export type DenialKind = "permission" | "schema" | "corrupt-record" | "tokens-exhausted" | "storage-full" | "membership" | "other";

/** The completion of finished work: while it stands, nobody does the work again. */
export interface Completion {
  /** The fencing token of the lease under which the work was done. */
  token: number;
  /** The label of its holder; may be empty. */
  owner: string;
  /** When the work was finished, by the holder's or store's wall clock, in milliseconds since 1970. */
  atUnixMs: number;
  /** How much longer the completion stands; rounded up. */
  leftMs: number;
  /**
   * The record of the run that wrote the completion, as it came with `Op finish`; absent where none was kept, and where
   * the store shows one that does not begin with the nonce of that finish. `Runs.readAbout` reads it.
   */
  about?: Uint8Array | undefined;
  /**
   * In a quorum: a node shows a record of the run, but no majority is known to show the same completion. A store says
   * false.
   */
  unsettled: boolean;
}

/** A writer that speaks this protocol. */
export interface LeaseHolder {
  /** Its attempt. */
  nonce: Uint8Array;
  /** The send that wrote the record last, if the store keeps it. */
  seq?: number | undefined;
}

/** A record, as much of it as the store keeps. */
export interface Holding {
  /** The client that wrote it; absent if another library did. */
  holder?: LeaseHolder | undefined;
  /** The id of this state of the record. */
  version: Uint8Array;
  /** Freed by its holder: only its history is left. */
  released: boolean;
  /** The node's token counter; of several nodes, the token that a majority may have, absent if it is not certain. */
  counter?: number | undefined;
  /** The holder's label. */
  owner?: string | undefined;
  /** The ttl written in the record; rounded up. */
  recordTtlMs?: number | undefined;
  /**
   * Time until the store frees the record by itself, rounded up; absent if the store does not, and observers must wait.
   */
  leftMs?: number | undefined;
  /** When the lease was granted, by the holder's or store's wall clock, in milliseconds since 1970. */
  sinceUnixMs?: number | undefined;
  /** The holder's data. */
  data?: Uint8Array | undefined;
}

/** The state of a resource on a node. */
export interface Seen {
  /** The record; absent if the resource is free without a trace of the last holder. */
  holding?: Holding | undefined;
  /** The completion of finished work, in the answer to `Op read`; absent if none stands. */
  done?: Completion | undefined;
}

/** The answer to an operation that was applied. */
export type Applied =
  /** The record is ours. The counter is the token of this grant; for a resend, the token it already had. */
  | {
      type: "acquired";
      /** The node's token counter. */
      counter: number;
    }
  /**
   * The record is ours, but this node of a quorum may have lost tokens: its counter must be raised before it counts.
   */
  | {
      type: "acquired-in-doubt";
      /** The node's token counter. */
      counter: number;
      /** The loss after which it is in doubt. */
      stamp: Uint8Array;
    }
  /** The expiry was extended. */
  | { type: "renewed" }
  /** The resource is free. */
  | { type: "released" }
  /** The completion stands and the resource is free. */
  | { type: "finished" }
  /** The record is marked: nobody renews it any more. */
  | { type: "revoked" }
  /** The counter is at least the requested token. */
  | {
      type: "raised";
      /** The node's token counter. */
      counter: number;
    }
  /** The contents of the record. */
  | {
      type: "read";
      /** The record; absent if the resource is free without a trace of the last holder. */
      holding?: Holding | undefined;
      /** The completion of finished work, in the answer to `Op read`; absent if none stands. */
      done?: Completion | undefined;
    };

/** The reason why an operation was not applied. */
export type Refusal =
  /**
   * The conflicting record; for renew, release, finish, revoke and raise also: no record of ours. For a renewal also
   * our own record, if it is revoked: it shows the seq 4,294,967,295.
   */
  | {
      type: "conflict";
      /** The record; absent if the resource is free without a trace of the last holder. */
      holding?: Holding | undefined;
      /** The completion of finished work, in the answer to `Op read`; absent if none stands. */
      done?: Completion | undefined;
    }
  /** The work is done: the completion that stands. */
  | {
      type: "done";
      /** The fencing token of the lease under which the work was done. */
      token: number;
      /** The label of its holder; may be empty. */
      owner: string;
      /** When the work was finished, by the holder's or store's wall clock, in milliseconds since 1970. */
      atUnixMs: number;
      /** How much longer the completion stands; rounded up. */
      leftMs: number;
      /**
       * The record of the run that wrote the completion, as it came with `Op finish`; absent where none was kept, and
       * where the store shows one that does not begin with the nonce of that finish. `Runs.readAbout` reads it.
       */
      about?: Uint8Array | undefined;
      /**
       * In a quorum: a node shows a record of the run, but no majority is known to show the same completion. A store
       * says false.
       */
      unsettled: boolean;
    }
  /** The store throttles requests. */
  | {
      type: "throttled";
      /** The kind of failure. */
      kind: FaultKind;
      /** The message of the store or the operating system, without secrets; cut after 512 bytes. */
      detail?: string | undefined;
    }
  /** The store cannot serve now, and did not begin to: connection refused, database busy, loading. */
  | {
      type: "unavailable";
      /** The kind of failure. */
      kind: FaultKind;
      /** The message of the store or the operating system, without secrets; cut after 512 bytes. */
      detail?: string | undefined;
    }
  /** The node may have lost past grants, so it does not vote yet. */
  | {
      type: "abstains";
      /** The id of the loss, if a vote was requested. */
      stamp?: Uint8Array | undefined;
    }
  /** Credentials are missing or have expired; fresh ones may help. */
  | {
      type: "needs-credentials";
      /** The kind of failure. */
      kind: FaultKind;
      /** The message of the store or the operating system, without secrets; cut after 512 bytes. */
      detail?: string | undefined;
    }
  /** Trying again will not help. */
  | {
      type: "denied";
      /** The kind of refusal. */
      kind: DenialKind;
      /** The message of the store and advice, without secrets; cut after 512 bytes. */
      detail: string;
    };

/** The result of an operation. An invalid one, such as a nonce of 15 bytes or a token of 2^53, counts as unknown. */
export type Outcome =
  /** It happened. */
  | {
      type: "applied";
      /** The answer. */
      applied: Applied;
    }
  /** It certainly did not happen, and this send never will. */
  | {
      type: "not-applied";
      /** The reason. */
      refusal: Refusal;
    }
  /** It may have happened, or may still happen. */
  | {
      type: "unknown";
      /** The kind of failure. */
      kind: FaultKind;
      /** The message of the store or the operating system, without secrets; cut after 512 bytes. */
      detail?: string | undefined;
    };
