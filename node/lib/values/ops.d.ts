// Generated from wit/leasehold.wit by `cargo xtask component --bless`. Do not edit.

import type { Durability } from "./types.js";

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
      /** In a quorum, what is known of the node, as in `renew`; absent for a single store. */
      quorum?: Durability | undefined;
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
  /** The node's token counter; of several nodes the token that a majority may have, absent where it is open which. */
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
