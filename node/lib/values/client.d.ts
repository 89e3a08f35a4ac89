// Generated from wit/leasehold.wit by `cargo xtask component --bless`. Do not edit.

import type { DenialKind, Fault, FaultKind, Holding, LockOp, Outcome } from "./ops.js";
import type { Credentials } from "./stores.js";
import type { LockOptions, SettingError } from "./types.js";

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
      /**
       * The store has confirmed that the record was ours until then. Otherwise an answer was lost and the next one
       * shows no record of ours, or the record has run out by itself by now.
       */
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
