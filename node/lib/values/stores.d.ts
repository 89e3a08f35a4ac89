// Generated from wit/leasehold.wit by `cargo xtask component --bless`. Do not edit.

/**
 * The audience of releases in PostgreSQL.
 *
 * `"off"`: Nobody.
 *
 * `"on"`: Those who listen, such as clients of other languages. All commits that notify wait for one another.
 */
export type Notify = "off" | "on";

/**
 * A storage service, by its API.
 *
 * `"s3"`: Amazon S3, R2, and others that honour `IfMatch`. Takes `Credentials aws`.
 *
 * `"azure-blob"`: Azure Blob Storage. Takes `Credentials account-key`, `accessSignature` and `token`.
 *
 * `"gcs"`: Google Cloud Storage by its JSON API. Takes `Credentials token`.
 *
 * `"gcs-xml"`: Google Cloud Storage by its XML API. Takes an HMAC key as `Credentials aws`, and `token`.
 *
 * `"cosmos-db"`: Azure Cosmos DB for NoSQL, in a container with the partition key `/id`. Takes `Credentials
 * account-key` and `token`. It cannot be a node of a quorum.
 */
export type ObjectsService = "s3" | "azure-blob" | "gcs" | "gcs-xml" | "cosmos-db";

/**
 * The format of a Redis over HTTP.
 *
 * `"upstash"`: The REST interface of Upstash, or a compatible one.
 *
 * `"webdis"`: Webdis.
 */
export type Dialect = "upstash" | "webdis";

/**
 * The access to a server over HTTP.
 *
 * `"anonymous"`: Requests carry no credentials.
 *
 * `"with-credentials"`: Requests wait for `Client.setCredentials`.
 */
export type Access = "anonymous" | "with-credentials";

/**
 * The permission to send secrets unencrypted.
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
  /** Its value. */
  value: string;
}

/** The format of requests to a node. */
export type Store =
  /** None: the host gets whole operations, in `Output transmit`, and performs them itself. */
  | { type: "operations" }
  /** Redis 5 or newer, or Valkey: commands for a connection or a library of the host. */
  | {
      type: "redis";
      /**
       * How long the token counter of an unused lock is kept: 1 to 3,153,600,000,000 (100 years). Default 604,800,000
       * (7 days). In milliseconds.
       */
      retention?: number | undefined;
      /**
       * A grant counts only when this many replicas have it. Each request then contains `WAIT` and needs its own
       * connection. Default: no wait for replicas.
       */
      replicas?: number | undefined;
    }
  /** A Redis behind HTTP. */
  | {
      type: "redis-http";
      /** The dialect. */
      dialect: Dialect;
      /** `https://host`, `http://host:port`, either with a base path. No user, password or token, no `?` or `#`. */
      url: string;
      /** True if the server requires a login. */
      access: Access;
      /** As in `redisStore`. In milliseconds. */
      retention?: number | undefined;
      /** Permission to send credentials over `http:` to other machines. Default `refused`. */
      plaintext?: Plaintext | undefined;
    }
  /** One table of DynamoDB. */
  | {
      type: "dynamodb";
      /** The table, by name or ARN. */
      table: string;
      /** The Region in the signatures of requests. */
      region: string;
      /** The endpoint: `https://host` or `http://host:port`, without a path. */
      url: string;
      /** The attribute of the partition key. Default `key`. */
      key?: string | undefined;
      /** The sort key of a table that has one. */
      sortKey?: SortKey | undefined;
      /**
       * An attribute for DynamoDB's time to live, for the time when the row is no longer needed. Default: none is
       * written.
       */
      expires?: string | undefined;
      /** Permission to send requests over `http:` to other machines. Default `refused`. */
      plaintext?: Plaintext | undefined;
    }
  /** One etcd. */
  | {
      type: "etcd";
      /** The endpoint: `https://host` or `http://host:port`, without a path. */
      url: string;
      /** The prefix of the keys. Default `leasehold/`. */
      prefix?: string | undefined;
      /** True if etcd has users. The host gets a token by `POST /v3/auth/authenticate`. */
      access: Access;
      /** Permission to send the token over `http:` to other machines. Default `refused`. */
      plaintext?: Plaintext | undefined;
    }
  /** Objects in a bucket or container of a cloud. */
  | {
      type: "objects";
      /** The service and its API. */
      service: ObjectsService;
      /** The endpoint: `https://host` or `http://host:port`, without a path. */
      url: string;
      /**
       * The bucket; empty for S3 if the host names it. The container of Azure; `ACCOUNT/CONTAINER` if the host does not
       * name the account. `DATABASE/CONTAINER` of Cosmos DB.
       */
      place: string;
      /** The prefix of the objects' names, with a slash at its end. Default `leasehold/`. */
      prefix?: string | undefined;
      /** The region in the signatures of requests to S3, `auto` for R2. Absent for other services. */
      region?: string | undefined;
      /** True if the service requires credentials; emulators may not. */
      access: Access;
      /** Permission to send credentials over `http:` to other machines. Default `refused`. */
      plaintext?: Plaintext | undefined;
    }
  /** One table of PostgreSQL: statements for a driver of the host. */
  | {
      type: "postgres";
      /** The schema of the table `leasehold`. Default `public`. */
      schema?: string | undefined;
      /** The waiters that a release notifies. Default `off`. */
      notify?: Notify | undefined;
    };

/**
 * Credentials. Of the client's outputs, only headers of requests contain secrets, and the URLs of requests with an
 * access signature. The client overwrites its copies when it drops them: when they are replaced and no pending request
 * uses them, and with the client. The host must erase its own copies and the requests that it got.
 */
export type Credentials =
  /** For `Store dynamodb`; for `Store objects` on S3 or by Google's XML API. */
  | {
      type: "aws";
      /** The id of the key; not a secret. */
      accessKeyId: string;
      /** The secret. */
      secretAccessKey: string;
      /** Comes with keys that expire. */
      sessionToken?: string | undefined;
      /**
       * When they expire, in milliseconds since 1970. New ones are requested five minutes before, and they are used
       * until ten seconds before, but for at least five seconds: if they seem to have expired on arrival, the host's
       * clock is probably wrong. Absent if they do not expire.
       */
      expiresUnixMs?: number | undefined;
    }
  /** For `Store redis-http`, usual for Upstash; for `Store etcd` and `Store objects`. */
  | {
      type: "token";
      /** The secret. */
      token: string;
      /** When it expires, as in `awsCredentials`. Absent if that is not known. */
      expiresUnixMs?: number | undefined;
    }
  /** For `Store redis-http`; usual for Webdis. */
  | {
      type: "password";
      /** The user, without a colon; may be empty. */
      user: string;
      /** The secret. */
      password: string;
    }
  /** For `Store objects` on Azure Blob Storage and Cosmos DB. */
  | {
      type: "account-key";
      /** The secret, in base64. */
      key: string;
    }
  /** For `Store objects` on Azure Blob Storage. */
  | {
      type: "access-signature";
      /** The secret, such as `sv=...&sig=...`. */
      query: string;
      /** When it expires, as in `awsCredentials`. Absent if that is not known. */
      expiresUnixMs?: number | undefined;
    };

/**
 * A parameter of a statement, or a column of a row, for PostgreSQL.
 *
 * Statements say the type of each parameter themselves. Whatever else a column has is given as `null`.
 */
export type SqlValue =
  /** Nothing. */
  | { type: "null" }
  /** A `text`, or an array in PostgreSQL's own notation. */
  | {
      type: "text";
      /** The text. */
      value: string;
    }
  /** A `bytea`. */
  | {
      type: "bytes";
      /** The bytes. */
      value: Uint8Array;
    }
  /** A `bigint`. Give a negative one as 0: it is a length of time that has passed. */
  | {
      type: "number";
      /** The number. */
      value: number;
    }
  /** A `boolean`. */
  | {
      type: "truth";
      /** True or false. */
      value: boolean;
    };
