//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.
//!
//! Where stores are and how they are spoken to, for `client.create-wired`.

mod values;

/// Payload of `store.redis`. The host connects to the primary (never to a replica, not even one that takes writes)
/// of one server; a Redis Cluster is none.
pub struct RedisStore {
    /// How long the token counter of an unused lock is kept: 1 to 3,153,600,000,000 (100 years). Default 604,800,000
    /// (7 days).
    pub retention_ms: Option<u64>,
    /// Counts a grant only when so many replicas have it. Each request then has `WAIT` in it and needs a connection
    /// that it does not share. Default: replicas are not asked.
    pub replicas: Option<u32>,
}

/// How a Redis behind HTTP is spoken to.
pub enum Dialect {
    /// The REST interface of Upstash, and of what behaves like it.
    Upstash,
    /// Webdis.
    Webdis,
}

/// Whether a server behind HTTP wants to know who asks.
pub enum Access {
    /// Requests carry no credentials.
    Anonymous,
    /// Requests wait for `client.set-credentials`.
    WithCredentials,
}

/// Whether secrets may be sent where others on the way can read them.
pub enum Plaintext {
    /// Only to this machine.
    Refused,
    /// The network is trusted.
    Allowed,
}

/// Payload of `store.redis-http`.
pub struct RedisHttpStore {
    /// Which of the two.
    pub dialect: Dialect,
    /// `https://host`, `http://host:port`, either with a path that the server's own stands below. No user, password
    /// or token, no `?` or `#`.
    pub url: String,
    /// Whether the server wants to know who asks.
    pub access: Access,
    /// As in `redis-store`.
    pub retention_ms: Option<u64>,
    /// Whether credentials may be sent over `http:` beyond this machine. Default `refused`.
    pub plaintext: Option<Plaintext>,
}

/// The second half of a primary key, the same for all locks.
pub struct SortKey {
    /// The attribute.
    pub name: String,
    /// What stands in it.
    pub value: String,
}

/// Payload of `store.dynamodb`. Requests always wait for `client.set-credentials`.
///
/// Renewals are requests of their own: as many come at once as `node-config.batch` says, at most 32.
pub struct DynamodbStore {
    /// The table, by name or ARN.
    pub table: String,
    /// The Region that requests are signed for.
    pub region: String,
    /// The endpoint: `https://host` or `http://host:port`, without a path.
    pub url: String,
    /// The attribute of the partition key. Default `key`.
    pub key: Option<String>,
    /// The sort key of a table that has one.
    pub sort_key: Option<SortKey>,
    /// An attribute for DynamoDB's time to live, in which the row's end of use stands. Default: none is written.
    pub expires: Option<String>,
    /// Whether requests may be sent over `http:` beyond this machine. Default `refused`.
    pub plaintext: Option<Plaintext>,
}

/// How requests to a node are written.
pub enum Store {
    /// Not at all: the host is given whole operations, in `output.transmit`, and performs them itself.
    Operations,
    /// Redis from version 5 on, or Valkey: commands for a connection or a library of the host's.
    Redis(RedisStore),
    /// A Redis behind HTTP.
    RedisHttp(RedisHttpStore),
    /// One table of DynamoDB.
    Dynamodb(DynamodbStore),
}

/// Payload of `credentials.aws`.
pub struct AwsCredentials {
    /// Names the key, and is no secret.
    pub access_key_id: String,
    /// The secret.
    pub secret_access_key: String,
    /// Comes with keys that expire.
    pub session_token: Option<String>,
    /// When they expire, in milliseconds since 1970. Others are asked for five minutes before, and they are used
    /// until ten seconds before, but for five seconds in any case: where they seem to have expired when they come,
    /// the host's clock is more likely to be wrong. Absent where they do not expire.
    pub expires_unix_ms: Option<u64>,
}

/// Payload of `credentials.token`.
pub struct BearerToken {
    /// The secret.
    pub token: String,
}

/// Payload of `credentials.password`.
pub struct PasswordLogin {
    /// The user, without a colon; may be empty.
    pub user: String,
    /// The secret.
    pub password: String,
}

/// Who asks. Secrets stand in nothing that the client says but the headers of requests. The client overwrites what it
/// keeps of them when it drops it: when they are replaced and no request that carries them is under way, and with the
/// client. Whatever made them, and requests that have been handed out, are the host's to forget.
pub enum Credentials {
    /// For `store.dynamodb`.
    Aws(AwsCredentials),
    /// For `store.redis-http`; usual for Upstash.
    Token(BearerToken),
    /// For `store.redis-http`; usual for Webdis.
    Password(PasswordLogin),
}

/// One command for Redis.
pub struct RedisCommand {
    /// Its name and its arguments.
    pub args: Vec<Vec<u8>>,
}
