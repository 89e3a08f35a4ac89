//! Where stores are, how they are spoken to, and who asks.

use alloc::string::String;
use core::fmt;
use core::time::Duration;

use zeroize::Zeroize;

use crate::postgres::Notify;
use crate::redis::Replicas;
use crate::rest::Dialect;
use crate::sigv4;
use leasehold_core::NodeId;
use leasehold_core::config::ConfigError;
use leasehold_core::member::RETENTION;
use leasehold_core::op::Denial;

/// How requests to a node are written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Store {
    /// Not at all: the host is given whole operations, in [`Transmit`](leasehold_core::Transmit), and performs them itself.
    Operations,
    /// Redis from version 5 on, or Valkey: commands for a connection or a library of the host's.
    Redis(RedisStore),
    /// A Redis behind HTTP.
    RedisHttp(RedisHttpStore),
    /// One table of DynamoDB.
    Dynamodb(DynamodbStore),
    /// One etcd.
    Etcd(EtcdStore),
    /// Objects in a bucket or container.
    Objects(ObjectsStore),
    /// One table of PostgreSQL.
    Postgres(PostgresStore),
}

/// A Redis that the host connects to by itself: to the primary of one server, never to a replica. A Redis Cluster is no
/// such thing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RedisStore {
    /// How long the token counter of an unused lock is kept: 1 ms to 100 years, 7 days by default.
    pub retention: Duration,
    /// Counts a grant only when so many replicas have it; not by default. Each request then has `WAIT` in it and needs a
    /// connection that it does not share.
    pub replicas: Option<Replicas>,
}

impl Default for RedisStore {
    fn default() -> Self {
        Self { retention: RETENTION, replicas: None }
    }
}

/// A Redis behind HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RedisHttpStore {
    /// Which of the two.
    pub dialect: Dialect,
    /// `https://host`, `http://host:port`, either with a path that the server's own stands below. No user, password or
    /// token, no `?` or `#`.
    pub url: String,
    /// Controls whether requests to the server carry credentials.
    pub access: Access,
    /// As in [`RedisStore`].
    pub retention: Duration,
    /// Controls whether credentials may be sent over `http:` beyond this machine.
    pub plaintext: Plaintext,
}

/// One etcd (3.4 or newer), by its JSON gateway. Renewals share a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EtcdStore {
    /// `https://host` or `http://host:port`, without a path.
    pub url: String,
    /// The prefix of the keys, such as `leasehold/`.
    pub prefix: String,
    /// Controls whether requests carry the token of a user, which the host gets by `POST /v3/auth/authenticate`.
    pub access: Access,
    /// Controls whether the token may be sent over `http:` beyond this machine.
    pub plaintext: Plaintext,
}

/// A bucket or container in a cloud's storage service. Renewals are requests of their own, at most 32 at once.
///
/// Nothing is tried when a client is made: `leasehold doctor` shows beforehand if the service honours conditions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectsStore {
    /// The service and its API.
    pub service: ObjectsService,
    /// `https://host` or `http://host:port`, without a path.
    pub url: String,
    /// The bucket, which is empty for S3 where the host names it. The container of Azure, behind `ACCOUNT/` where the host
    /// does not name the account. `DATABASE/CONTAINER` of Cosmos DB.
    pub place: String,
    /// The beginning of the objects' names, such as `leasehold/`.
    pub prefix: String,
    /// The region that requests to S3 are signed for; empty for others.
    pub region: String,
    /// Controls whether requests carry credentials.
    pub access: Access,
    /// Controls whether credentials may be sent over `http:` beyond this machine.
    pub plaintext: Plaintext,
}

/// One table of PostgreSQL (12 or newer), by whatever driver the host has. Waiters poll.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PostgresStore {
    /// The schema of the table `leasehold`.
    pub schema: String,
    /// The audience of releases.
    pub notify: Notify,
}

/// A storage service, by its API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectsService {
    /// Amazon S3, R2, and others that honour `If-Match`. Takes [`Credentials::Aws`].
    S3,
    /// Azure Blob Storage. Takes [`Credentials::AccountKey`], [`Credentials::AccessSignature`] and [`Credentials::Token`].
    AzureBlob,
    /// Google Cloud Storage by its JSON API. Takes [`Credentials::Token`].
    Gcs,
    /// Google Cloud Storage by its XML API. Takes an HMAC key as [`Credentials::Aws`], and [`Credentials::Token`].
    GcsXml,
    /// Azure Cosmos DB for NoSQL, in a container with the partition key `/id`. Takes [`Credentials::AccountKey`] and
    /// [`Credentials::Token`]. It is no node of a quorum here.
    CosmosDb,
}

/// Controls whether requests to a server behind HTTP carry credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Requests carry no credentials.
    Anonymous,
    /// Requests wait for [`WireClient::set_credentials`](super::WireClient::set_credentials).
    WithCredentials,
}

/// Controls whether secrets may be sent where others on the way can read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Plaintext {
    /// Only to this machine.
    #[default]
    Refused,
    /// The network is trusted.
    Allowed,
}

/// One table of DynamoDB. Its requests always wait for [`WireClient::set_credentials`](super::WireClient::set_credentials).
///
/// Renewals are requests of their own: as many come at once as [`NodeConfig::batch`](leasehold_core::NodeConfig::batch) says, at
/// most 32.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DynamodbStore {
    /// The table, by name or ARN.
    pub table: String,
    /// The Region that requests are signed for.
    pub region: String,
    /// The endpoint: `https://host` or `http://host:port`, without a path.
    pub url: String,
    /// The attribute of the partition key; `key` where it is left out.
    pub key: Option<String>,
    /// The sort key of a table that has one.
    pub sort_key: Option<SortKey>,
    /// An attribute for DynamoDB's time to live; none is written where it is left out.
    pub expires: Option<String>,
    /// Controls whether requests may be sent over `http:` beyond this machine.
    pub plaintext: Plaintext,
}

/// The second half of a primary key, the same for all locks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SortKey {
    /// The attribute.
    pub name: String,
    /// The attribute's value.
    pub value: String,
}

/// Credentials for a server. `Debug` shows no secrets, and they are overwritten when dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// For [`Store::Dynamodb`], and for [`Store::Objects`] on S3 or by Google's XML API.
    Aws(AwsCredentials),
    /// For [`Store::RedisHttp`], usual for Upstash; for [`Store::Etcd`] and [`Store::Objects`].
    Token(BearerToken),
    /// For [`Store::RedisHttp`]; usual for Webdis.
    Password(PasswordLogin),
    /// For [`Store::Objects`] on Azure Blob Storage and Cosmos DB.
    AccountKey(AccountKey),
    /// For [`Store::Objects`] on Azure Blob Storage.
    AccessSignature(AccessSignature),
}

/// Credentials that requests to AWS are signed with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwsCredentials {
    /// The key, and the token that comes with one that expires.
    pub keys: sigv4::Credentials,
    /// When they expire, in milliseconds since 1970; `None` where they do not. Others are asked for five minutes before,
    /// and they are used until ten seconds before, but for five seconds at least: the server decides.
    pub expires_unix_ms: Option<u64>,
}

/// A token that opens a database.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken {
    /// The secret.
    pub token: String,
    /// When it expires, as in [`AwsCredentials`]; `None` where that is not known.
    pub expires_unix_ms: Option<u64>,
}

/// The key of an account of Azure.
#[derive(Clone, PartialEq, Eq)]
pub struct AccountKey {
    /// The secret, in base64.
    pub key: String,
}

/// A shared access signature of Azure, which becomes part of the URL of a request.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessSignature {
    /// The secret, such as `sv=...&sig=...`.
    pub query: String,
    /// When it expires, as in [`AwsCredentials`]; `None` where that is not known.
    pub expires_unix_ms: Option<u64>,
}

/// A user and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordLogin {
    /// The user, without a colon; may be empty.
    pub user: String,
    /// The secret.
    pub password: String,
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BearerToken").finish_non_exhaustive()
    }
}

impl Drop for BearerToken {
    fn drop(&mut self) {
        self.token.zeroize();
    }
}

impl fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccountKey").finish_non_exhaustive()
    }
}

impl Drop for AccountKey {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

impl fmt::Debug for AccessSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessSignature").finish_non_exhaustive()
    }
}

impl Drop for AccessSignature {
    fn drop(&mut self) {
        self.query.zeroize();
    }
}

impl fmt::Debug for PasswordLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PasswordLogin").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Drop for PasswordLogin {
    fn drop(&mut self) {
        self.password.zeroize();
    }
}

/// Why a client cannot be made, or its credentials not be set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SetupError {
    /// A setting outside its bounds.
    Config(ConfigError),
    /// Another number of stores than of nodes.
    Stores {
        /// How many were given.
        count: usize,
        /// How many nodes there are.
        nodes: usize,
    },
    /// The settings or credentials of one store make no sense.
    Store {
        /// The node.
        node: NodeId,
        /// The error, and how to correct it, without secrets.
        denial: Denial,
    },
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Stores { count, nodes } => write!(f, "{count} stores for {nodes} nodes; give each node its store"),
            Self::Store { node, denial } => write!(f, "node {node}: {denial}"),
        }
    }
}

impl core::error::Error for SetupError {}

impl From<ConfigError> for SetupError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}
