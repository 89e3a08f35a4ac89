// Generated from wit/leasehold.wit by `cargo xtask component --bless`. Do not edit.

import type { DenialKind, Fault, FaultKind, Holding, LockOp, Outcome } from "./ops.js";
import type { Credentials, SqlValue } from "./stores.js";
import type { LockOptions, RunResult, SettingError } from "./types.js";

/** The reason why an acquisition ended without the lock. */
export type Failure =
  /** Held by somebody else; asked with `Wait once`. */
  | {
      type: "busy";
      /** The holder, if the store shows it. */
      holding?: Holding | undefined;
    }
  /** Held by somebody else for the whole wait. */
  | {
      type: "timed-out";
      /** The holder, if the store shows it. */
      holding?: Holding | undefined;
    }
  /** The store throttled requests for the whole wait. */
  | {
      type: "throttled";
      /** The kind of failure. */
      kind: FaultKind;
      /** The message of the store or the operating system, without secrets; cut after 512 bytes. */
      detail?: string | undefined;
    }
  /** The store could not be reached, or did not answer. */
  | {
      type: "unavailable";
      /** The kind of failure. */
      kind: FaultKind;
      /** The message of the store or the operating system, without secrets; cut after 512 bytes. */
      detail?: string | undefined;
    }
  /** The store may have lost past grants. */
  | {
      type: "abstains";
      /** The remaining time, as far as it is known; rounded up. */
      leftMs: number;
    }
  /** The store refuses, and trying again will not help. */
  | {
      type: "refused";
      /** The kind of refusal. */
      kind: DenialKind;
      /** The message of the store and advice, without secrets; cut after 512 bytes. */
      detail: string;
    }
  /** The work of a run is done: the completion that stands. */
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
  /**
   * Nodes of the quorum may have lost completions of finished work, and too few others are left to say that none
   * stands.
   */
  | { type: "completions-in-doubt" }
  /** Released before it was granted. */
  | { type: "cancelled" }
  /** Anything without a case in this version of the interface. */
  | {
      type: "other";
      /** A message for people. */
      message: string;
    };

/** The reason why a lease is over. */
export type LostReason =
  /** No renewal was confirmed before the deadline. */
  | { type: "expired" }
  /** `maxHold` has ended the renewals. */
  | { type: "max-hold" }
  /** The record belongs to somebody else. */
  | {
      type: "taken-over";
      /** The new holder, if the store shows it. */
      by?: Holding | undefined;
    }
  /** The record was released by somebody else, such as an administrator. */
  | { type: "released" }
  /** The store has lost data: it shows no record, or one that is older than the lease. */
  | { type: "record-gone" }
  /**
   * The lease was revoked. Its record still keeps others out: call `Client.release` once the work has ended, which
   * frees it. Otherwise the record runs out by itself.
   */
  | { type: "revoked" }
  /** Anything without a case in this version of the interface. */
  | {
      type: "other";
      /** A message for people. */
      message: string;
    };

/**
 * An event of a lock. An acquisition ends with `acquired` or `failed`, a lease with `lost`, `released` or `finished`.
 */
export type Event =
  /** The lock is held. */
  | {
      type: "acquired";
      /** The fencing token. */
      token: number;
      /** The deadline of the lease unless it is renewed. */
      deadlineNs: bigint;
      /** The reply to the acquire was lost, and the record itself showed the grant. */
      recovered: boolean;
    }
  /** Somebody else holds the lock; reported once for each acquisition. */
  | {
      type: "contended";
      /** The holder. */
      holding: Holding;
    }
  /** The acquisition ended without the lock. */
  | {
      type: "failed";
      /** The reason. */
      failure: Failure;
    }
  /** The deadline was extended. */
  | {
      type: "renewed";
      /** The new deadline. */
      deadlineNs: bigint;
      /** Validity that was left before: the best early warning. */
      leftNs: bigint;
      /** The reply to an earlier renewal was lost, and the record itself showed the renewal. */
      recovered: boolean;
    }
  /** A renewal failed; it is repeated while there is time. */
  | {
      type: "renew-delayed";
      /** The unchanged deadline. */
      deadlineNs: bigint;
      /** The failure. */
      fault: Fault;
    }
  /** A node of the quorum lost our record, and the others cover a shorter time. */
  | {
      type: "shortened";
      /** The new, earlier deadline. */
      deadlineNs: bigint;
    }
  /** The danger zone at the end of the ttl has begun, and no renewal has succeeded. */
  | {
      type: "expiring";
      /** The time when the lease will be lost. */
      deadlineNs: bigint;
    }
  /** The lease is over and the lock was not released: the work must stop. */
  | {
      type: "lost";
      /** The reason. */
      reason: LostReason;
    }
  /** The release has ended. */
  | {
      type: "released";
      /**
       * The store has confirmed that the record was ours until then. Otherwise an answer was lost and the next one
       * shows no record of ours, or the record has expired by now.
       */
      confirmed: boolean;
    }
  /** The finish of a run has ended. */
  | {
      type: "finished";
      /** The completion stands. Otherwise no answer says that it does, and the work may be done again. */
      confirmed: boolean;
      /** The work is done, but its result was not kept: too few nodes had room for it. */
      resultDropped: boolean;
    };

/** Payload of `Response outcomes`, and the answers to a read. */
export interface Outcomes {
  /** One for each operation of the request, in order; missing ones count as unknown. Of a read, one for each node. */
  outcomes: Outcome[];
}

/** One row. */
export interface Row {
  /** Its columns, in order. */
  columns: SqlValue[];
}

/**
 * When a server has refused.
 *
 * `"at-login"`: When the host connected: the statement was not sent.
 *
 * `"in-session"`: In answer to the statement, whose session goes on: the severity is `ERROR`.
 *
 * `"at-the-end"`: With the end of the session, or the driver does not show the severity.
 */
export type RefusalTime = "at-login" | "in-session" | "at-the-end";

/** The result of a request. An answer of an unexpected kind counts as unknown. */
export type Response =
  /** The node answered, to `Output transmit`. */
  | {
      type: "outcomes";
      /**
       * One for each operation of the request, in order; missing ones count as unknown. Of a read, one for each node.
       */
      outcomes: Outcome[];
    }
  /** The server answered, to `Output http-request`, with any status. */
  | {
      type: "http-response";
      /** The status. */
      status: number;
      /** All of them, or at least `content-type`, `date` and `location`. */
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
  /** The server answered, to `Output statement`. */
  | {
      type: "rows";
      /** All of them. */
      rows: Row[];
    }
  /** The server refused, to `Output statement`, or did not let the host in. */
  | {
      type: "server-error";
      /** The SQLSTATE. */
      code: string;
      /** Its message. */
      message: string;
      /** When the server said so. */
      when: RefusalTime;
    }
  /** Nothing left this machine: none of the operations was applied. */
  | {
      type: "not-sent";
      /** The kind of failure. */
      kind: FaultKind;
      /** The message of the store or the operating system, without secrets; cut after 512 bytes. */
      detail?: string | undefined;
    }
  /** Something may have left: every operation may have been applied. */
  | {
      type: "unknown";
      /** The kind of failure. */
      kind: FaultKind;
      /** The message of the store or the operating system, without secrets; cut after 512 bytes. */
      detail?: string | undefined;
    };

/** A command that was not accepted. */
export type CommandError =
  /** The lock id is in use; take a new one for each acquisition. */
  | { type: "duplicate-lock" }
  /** No such lock is alive: it was never acquired, or it was lost or released. */
  | { type: "unknown-lock" }
  /** The client has as many locks as it may have. */
  | {
      type: "too-many-locks";
      /** The limit. */
      limit: number;
    }
  /** The record would last longer than the quorum allows. */
  | {
      type: "above-max-ttl";
      /** The sum of `ttl` and `lockDelay`. */
      recordTtlMs: number;
      /** The limit: `maxTtl` of the quorum. */
      maxTtlMs: number;
    }
  /** The completion would stand for longer than the quorum allows. */
  | {
      type: "above-max-keep";
      /** The time that was asked for. */
      keepMs: number;
      /** The limit: a node that may have lost completions is in doubt about them for so long. */
      maxKeepMs: number;
    }
  /** A plain lock has no completion, so it cannot be finished. */
  | { type: "not-a-run" }
  /** The client was closed. */
  | { type: "closed" }
  /** An argument was rejected. */
  | {
      type: "invalid";
      /** The argument and the reason. */
      error: SettingError;
    }
  /** Anything without a case in this version of the interface. */
  | {
      type: "other";
      /** A message for people. */
      message: string;
    };

/** An output of the client for its host. */
export type Output =
  /** Perform these operations, and pass their outcomes to `handleResponse`. */
  | {
      type: "transmit";
      /** Correlates the response. */
      id: number;
      /** The node. */
      node: number;
      /** When the host may stop waiting; from then on the client counts the request as unknown. */
      deadlineNs: bigint;
      /** The operations, in order; several only for renewals. */
      ops: LockOp[];
    }
  /** Send this request over HTTP, and pass the response to `handleResponse`. */
  | {
      type: "http-request";
      /** Correlates the response. One request to a node may become several, each with its own id. */
      id: number;
      /** The node. */
      node: number;
      /** When the host may stop waiting; from then on the client counts the request as unknown. */
      deadlineNs: bigint;
      /** `GET`, `PUT` or `POST`. A `GET` has no body. */
      method: string;
      /** The complete URL. A response from a cache is none. */
      url: string;
      /** In lowercase, each name once. They contain secrets. */
      headers: [string, string][];
      /** UTF-8. It contains nonces, which are secrets. */
      body: Uint8Array;
    }
  /** Send these commands to a Redis, and pass the replies to `handleResponse`. */
  | {
      type: "redis-commands";
      /** Correlates the replies. One request to a node may become several, each with its own id. */
      id: number;
      /** The node. */
      node: number;
      /**
       * When the host may stop waiting; the client counts the request as unknown from then on. Close a connection with
       * missing replies then: they would be read as those of later commands.
       */
      deadlineNs: bigint;
      /** At least one. They contain nonces, which are secrets. */
      commands: Uint8Array[][];
    }
  /** Have a PostgreSQL execute this statement, and pass its rows or its error to `handleResponse`. */
  | {
      type: "statement";
      /** Correlates the rows. One request to a node may become several, each with its own id. */
      id: number;
      /** The node. */
      node: number;
      /** When the host may stop waiting; the client counts the request as unknown from then on. */
      deadlineNs: bigint;
      /** The text. */
      sql: string;
      /** The parameters. They contain nonces, which are secrets. */
      params: SqlValue[];
    }
  /** An event of a lock. */
  | {
      type: "event";
      /** The lock. */
      lock: number;
      /** The event. */
      event: Event;
    }
  /** Subscribe to wake-ups of a resource, then call `subscribed`. */
  | {
      type: "subscribe";
      /** The node. */
      node: number;
      /** The resource. */
      resource: string;
    }
  /** Wake-ups of a resource are no longer needed. */
  | {
      type: "unsubscribe";
      /** The node. */
      node: number;
      /** The resource. */
      resource: string;
    }
  /**
   * The node needs fresh credentials. For a node with the format of a store, call `setCredentials`; requests wait for
   * it until their deadline. Any other node has refused the old ones: call `credentialsRenewed` when it has new ones.
   */
  | {
      type: "need-credentials";
      /** Which. */
      node: number;
    }
  /** A command given to `step` was not accepted. */
  | {
      type: "rejected";
      /** The lock of the command. */
      lock: number;
      /** The reason. */
      error: CommandError;
    }
  /** Nothing more to do: sleep until then, or until a response or a command, then call `handleTimeout`. */
  | {
      type: "wake-at";
      /** The time on the monotonic clock; absent when nothing is due. */
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
  /** As `Client.finish`. */
  | {
      type: "finish";
      /** The lock. */
      lock: number;
      /** The result of the run, for those who come later. */
      runResult?: RunResult | undefined;
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
      /** Its result. */
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
      /** The node. */
      node: number;
      /** The resource. */
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
      /** The node. */
      node: number;
      /** The credentials for its requests from now on. */
      credentials: Credentials;
    }
  /** As `Client.nodeVotes`. */
  | {
      type: "node-votes";
      /** Which node. */
      node: number;
      /** Its last loss of data, after which its counters are in doubt; absent if there was none. */
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

/** The result of one `step`. */
export interface Stepped {
  /** In order, without `wakeAt`. */
  outputs: Output[];
  /** When to call again at the latest, on the monotonic clock; absent when nothing is due. */
  wakeAtNs?: bigint | undefined;
}

/** Counts of a client's state and history. */
export interface Stats {
  /** Acquisitions alive, in any state. */
  locks: number;
  /** Of these, held. */
  held: number;
  /** Requests without a response yet. */
  inFlight: number;
  /** Background releases of abandoned attempts. */
  orphans: number;
  /** Foreign versions under observation. */
  observations: number;
  /** Outputs that the host has not drained. */
  undrained: number;
  /** Responses so far without an open request: late, duplicate or invented. */
  ignoredResponses: number;
  /** Requests so far whose deadline passed without a response. */
  timedOutRequests: number;
}

/** The outcome of `Client.revoke`. */
export interface Revocation {
  /**
   * True if the lease is revoked, false if it was over. Absent where too few nodes say so, and its holder may keep it:
   * ask again.
   */
  isRevoked?: boolean | undefined;
  /** The answers in the way, of nodes that were not reached or have refused. */
  troubles: Outcome[];
}
