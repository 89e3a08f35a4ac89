//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.
//!
//! Addresses and formats of stores, for `client.create-wired`.

mod values;

/// The audience of releases in PostgreSQL.
pub enum Notify {
    /// Nobody.
    Off,
    /// Those who listen, such as clients of other languages. All commits that notify wait for one another.
    On,
}

/// Payload of `store.postgres`: PostgreSQL 12 or newer, by whatever driver the host has. `leasehold store create` makes the
/// table.
///
/// Waiters stand in no queue and hear no notifications: they poll. Every statement is atomic by itself, so each may go by
/// another connection, also of a pooler in transaction mode.
pub struct PostgresStore {
    /// The schema of the table `leasehold`. Default `public`.
    pub schema: Option<String>,
    /// The waiters that a release notifies. Default `off`.
    pub notify: Option<Notify>,
}

/// Payload of `store.redis`. The host connects to the primary (never to a replica, not even one that takes writes)
/// of one server; a Redis Cluster is none.
pub struct RedisStore {
    /// How long the token counter of an unused lock is kept: 1 to 3,153,600,000,000 (100 years). Default 604,800,000
    /// (7 days).
    pub retention_ms: Option<u64>,
    /// A grant counts only when this many replicas have it. Each request then contains `WAIT` and needs its own
    /// connection. Default: no wait for replicas.
    pub replicas: Option<u32>,
}

/// A storage service, by its API.
pub enum ObjectsService {
    /// Amazon S3, R2, and others that honour `If-Match`. Takes `credentials.aws`.
    S3,
    /// Azure Blob Storage. Takes `credentials.account-key`, `access-signature` and `token`.
    AzureBlob,
    /// Google Cloud Storage by its JSON API. Takes `credentials.token`.
    Gcs,
    /// Google Cloud Storage by its XML API. Takes an HMAC key as `credentials.aws`, and `token`.
    GcsXml,
    /// Azure Cosmos DB for NoSQL, in a container with the partition key `/id`. Takes `credentials.account-key` and `token`.
    /// It cannot be a node of a quorum.
    CosmosDb,
}

/// The format of a Redis over HTTP.
pub enum Dialect {
    /// The REST interface of Upstash, or a compatible one.
    Upstash,
    /// Webdis.
    Webdis,
}

/// The access to a server over HTTP.
pub enum Access {
    /// Requests carry no credentials.
    Anonymous,
    /// Requests wait for `client.set-credentials`.
    WithCredentials,
}

/// The permission to send secrets unencrypted.
pub enum Plaintext {
    /// Only to this machine.
    Refused,
    /// The network is trusted.
    Allowed,
}

/// Payload of `store.redis-http`.
pub struct RedisHttpStore {
    /// The dialect.
    pub dialect: Dialect,
    /// `https://host`, `http://host:port`, either with a base path. No user, password
    /// or token, no `?` or `#`.
    pub url: String,
    /// True if the server requires a login.
    pub access: Access,
    /// As in `redis-store`.
    pub retention_ms: Option<u64>,
    /// Permission to send credentials over `http:` to other machines. Default `refused`.
    pub plaintext: Option<Plaintext>,
}

/// Payload of `store.etcd`: etcd 3.4 or newer, by its JSON gateway.
///
/// Renewals that are due together share a request, at most 64.
pub struct EtcdStore {
    /// The endpoint: `https://host` or `http://host:port`, without a path.
    pub url: String,
    /// The prefix of the keys. Default `leasehold/`.
    pub prefix: Option<String>,
    /// True if etcd has users. The host gets a token by `POST /v3/auth/authenticate`.
    pub access: Access,
    /// Permission to send the token over `http:` to other machines. Default `refused`.
    pub plaintext: Option<Plaintext>,
}

/// Payload of `store.objects`: the objects below a prefix.
///
/// Renewals are separate requests: at most `node-config.batch` at once, and at most 32. Nothing is tried when the client
/// is created: `leasehold doctor` shows beforehand if the service honours conditions.
pub struct ObjectsStore {
    /// The service and its API.
    pub service: ObjectsService,
    /// The endpoint: `https://host` or `http://host:port`, without a path.
    pub url: String,
    /// The bucket; empty for S3 if the host names it. The container of Azure; `ACCOUNT/CONTAINER` if the host does not name
    /// the account. `DATABASE/CONTAINER` of Cosmos DB.
    pub place: String,
    /// The prefix of the objects' names, with a slash at its end. Default `leasehold/`.
    pub prefix: Option<String>,
    /// The region in the signatures of requests to S3, `auto` for R2. Absent for other services.
    pub region: Option<String>,
    /// True if the service requires credentials; emulators may not.
    pub access: Access,
    /// Permission to send credentials over `http:` to other machines. Default `refused`.
    pub plaintext: Option<Plaintext>,
}

/// The second half of a primary key, the same for all locks.
pub struct SortKey {
    /// The attribute.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Payload of `store.dynamodb`. Requests always wait for `client.set-credentials`.
///
/// Renewals are separate requests: at most `node-config.batch` at once, and at most 32.
pub struct DynamodbStore {
    /// The table, by name or ARN.
    pub table: String,
    /// The Region in the signatures of requests.
    pub region: String,
    /// The endpoint: `https://host` or `http://host:port`, without a path.
    pub url: String,
    /// The attribute of the partition key. Default `key`.
    pub key: Option<String>,
    /// The sort key of a table that has one.
    pub sort_key: Option<SortKey>,
    /// An attribute for DynamoDB's time to live, for the time when the row is no longer needed. Default: none is written.
    pub expires: Option<String>,
    /// Permission to send requests over `http:` to other machines. Default `refused`.
    pub plaintext: Option<Plaintext>,
}

/// The format of requests to a node.
pub enum Store {
    /// None: the host gets whole operations, in `output.transmit`, and performs them itself.
    Operations,
    /// Redis 5 or newer, or Valkey: commands for a connection or a library of the host.
    Redis(RedisStore),
    /// A Redis behind HTTP.
    RedisHttp(RedisHttpStore),
    /// One table of DynamoDB.
    Dynamodb(DynamodbStore),
    /// One etcd.
    Etcd(EtcdStore),
    /// Objects in a bucket or container of a cloud.
    Objects(ObjectsStore),
    /// One table of PostgreSQL: statements for a driver of the host.
    Postgres(PostgresStore),
}

/// Payload of `credentials.aws`.
pub struct AwsCredentials {
    /// The id of the key; not a secret.
    pub access_key_id: String,
    /// The secret.
    pub secret_access_key: String,
    /// Comes with keys that expire.
    pub session_token: Option<String>,
    /// When they expire, in milliseconds since 1970. New ones are requested five minutes before, and they are used
    /// until ten seconds before, but for at least five seconds: if they seem to have expired on arrival,
    /// the host's clock is probably wrong. Absent if they do not expire.
    pub expires_unix_ms: Option<u64>,
}

/// Payload of `credentials.token`.
pub struct BearerToken {
    /// The secret.
    pub token: String,
    /// When it expires, as in `aws-credentials`. Absent if that is not known.
    pub expires_unix_ms: Option<u64>,
}

/// Payload of `credentials.account-key`.
pub struct AccountKey {
    /// The secret, in base64.
    pub key: String,
}

/// Payload of `credentials.access-signature`.
pub struct AccessSignature {
    /// The secret, such as `sv=...&sig=...`.
    pub query: String,
    /// When it expires, as in `aws-credentials`. Absent if that is not known.
    pub expires_unix_ms: Option<u64>,
}

/// Payload of `credentials.password`.
pub struct PasswordLogin {
    /// The user, without a colon; may be empty.
    pub user: String,
    /// The secret.
    pub password: String,
}

/// Credentials. Of the client's outputs, only headers of requests contain secrets, and the URLs of requests with an
/// access signature. The client overwrites its copies when
/// it drops them: when they are replaced and no pending request uses them, and with the client. The host must erase its
/// own copies and the requests that it got.
pub enum Credentials {
    /// For `store.dynamodb`; for `store.objects` on S3 or by Google's XML API.
    Aws(AwsCredentials),
    /// For `store.redis-http`, usual for Upstash; for `store.etcd` and `store.objects`.
    Token(BearerToken),
    /// For `store.redis-http`; usual for Webdis.
    Password(PasswordLogin),
    /// For `store.objects` on Azure Blob Storage and Cosmos DB.
    AccountKey(AccountKey),
    /// For `store.objects` on Azure Blob Storage.
    AccessSignature(AccessSignature),
}

/// One command for Redis.
pub struct RedisCommand {
    /// Its name and its arguments.
    pub args: Vec<Vec<u8>>,
}

/// Payload of `sql-value.text`.
pub struct SqlText {
    /// The text.
    pub value: String,
}

/// Payload of `sql-value.bytes`.
pub struct SqlBytes {
    /// The bytes.
    pub value: Vec<u8>,
}

/// Payload of `sql-value.number`.
pub struct SqlNumber {
    /// The number.
    pub value: u64,
}

/// Payload of `sql-value.truth`.
pub struct SqlTruth {
    /// True or false.
    pub value: bool,
}

/// A parameter of a statement, or a column of a row, for PostgreSQL.
///
/// Statements say the type of each parameter themselves. Whatever else a column has is given as `null`.
pub enum SqlValue {
    /// Nothing.
    Null,
    /// A `text`, or an array in PostgreSQL's own notation.
    Text(SqlText),
    /// A `bytea`.
    Bytes(SqlBytes),
    /// A `bigint`. Give a negative one as 0: it is a length of time that has passed.
    Number(SqlNumber),
    /// A `boolean`.
    Truth(SqlTruth),
}
