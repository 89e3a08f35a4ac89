// Generated from wit/leasehold.wit by `cargo xtask component --bless`. Do not edit.

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
