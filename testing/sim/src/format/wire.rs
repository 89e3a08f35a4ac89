//! A golden vector of `leasehold_wire::client`: the same as the others, with whole requests and responses.

use std::time::Duration;

use leasehold_core::{Monotonic, NodeId, Output, RequestId};
use leasehold_wire::client as wire;
use leasehold_wire::redis::Replicas;
use leasehold_wire::resp::decode_all;
use leasehold_wire::{rest, sigv4};
use serde::{Deserialize, Serialize};

use super::sql::{Notify, RefusalTime, Row, SqlValue};
use super::{Call, TakesEntropy, Vector};

/// One file.
pub type WireVector = Vector<WireInput, WireOutput>;

/// The same names here and in the core, for enums without payload.
macro_rules! names {
    ($(#[$about:meta])* $name:ident = $core:ty { $($(#[$case_about:meta])* $case:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$case_about])* $case,)* }

        impl From<$core> for $name {
            fn from(core: $core) -> Self {
                match core { $(<$core>::$case => Self::$case,)* }
            }
        }

        impl From<$name> for $core {
            fn from(name: $name) -> Self {
                match name { $($name::$case => Self::$case,)* }
            }
        }
    };
}
pub(super) use names;

names! {
    /// The interface of a Redis behind HTTP.
    Dialect = rest::Dialect {
        /// Upstash's REST interface.
        Upstash,
        /// Webdis.
        Webdis,
    }
}

names! {
    /// The access to a server behind HTTP.
    Access = wire::Access {
        /// Without credentials.
        Anonymous,
        /// With credentials.
        WithCredentials,
    }
}

/// A store, which decides how requests are written. Secrets are sent over `https:` alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Store {
    /// Requests are operations.
    Operations {},
    /// Requests are commands.
    Redis {
        /// The time for which unused counters are kept.
        retention_ns: u64,
        /// The number of replicas that must have a grant.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replicas: Option<u32>,
    },
    /// Requests are commands over HTTP.
    RedisHttp {
        /// The interface.
        dialect: Dialect,
        /// The address.
        url: String,
        /// The access.
        access: Access,
        /// The time for which unused counters are kept.
        retention_ns: u64,
    },
    /// Requests are statements.
    Postgres {
        /// The schema of the table.
        schema: String,
        /// The audience of releases.
        notify: Notify,
    },
    /// Requests are those of DynamoDB.
    Dynamodb {
        /// The table, by name or ARN.
        table: String,
        /// The region that requests are signed for.
        region: String,
        /// The address.
        url: String,
        /// The partition key's attribute, where it is not `key`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// The sort key's attribute and value.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sort_key: Option<(String, String)>,
        /// The attribute for DynamoDB's time to live.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires: Option<String>,
    },
    /// Requests are transactions of etcd.
    Etcd {
        /// The address.
        url: String,
        /// The prefix of the keys.
        prefix: String,
        /// The access.
        access: Access,
    },
    /// Requests read and write objects.
    Objects {
        /// The service and its API.
        service: ObjectsService,
        /// The address.
        url: String,
        /// The bucket or container.
        place: String,
        /// The prefix of the objects' names.
        prefix: String,
        /// The region that is signed for.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        region: String,
        /// The access.
        access: Access,
    },
}

/// A storage service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are those of the services")]
pub enum ObjectsService {
    S3,
    AzureBlob,
    Gcs,
    GcsXml,
    CosmosDb,
}

impl From<ObjectsService> for wire::ObjectsService {
    fn from(service: ObjectsService) -> Self {
        match service {
            ObjectsService::S3 => Self::S3,
            ObjectsService::AzureBlob => Self::AzureBlob,
            ObjectsService::Gcs => Self::Gcs,
            ObjectsService::GcsXml => Self::GcsXml,
            ObjectsService::CosmosDb => Self::CosmosDb,
        }
    }
}

impl From<wire::ObjectsService> for ObjectsService {
    fn from(service: wire::ObjectsService) -> Self {
        match service {
            wire::ObjectsService::S3 => Self::S3,
            wire::ObjectsService::AzureBlob => Self::AzureBlob,
            wire::ObjectsService::Gcs => Self::Gcs,
            wire::ObjectsService::GcsXml => Self::GcsXml,
            wire::ObjectsService::CosmosDb => Self::CosmosDb,
        }
    }
}

impl From<&Store> for wire::Store {
    fn from(store: &Store) -> Self {
        match store.clone() {
            Store::Operations {} => Self::Operations,
            Store::Redis { retention_ns, replicas } => Self::Redis(wire::RedisStore {
                retention: Duration::from_nanos(retention_ns),
                replicas: replicas.map(|count| Replicas { count }),
            }),
            Store::RedisHttp { dialect, url, access, retention_ns } => Self::RedisHttp(wire::RedisHttpStore {
                dialect: dialect.into(),
                url,
                access: access.into(),
                retention: Duration::from_nanos(retention_ns),
                plaintext: wire::Plaintext::Refused,
            }),
            Store::Dynamodb { table, region, url, key, sort_key, expires } => Self::Dynamodb(wire::DynamodbStore {
                table,
                region,
                url,
                key,
                sort_key: sort_key.map(|(name, value)| wire::SortKey { name, value }),
                expires,
                plaintext: wire::Plaintext::Refused,
            }),
            Store::Postgres { schema, notify } => Self::Postgres(wire::PostgresStore { schema, notify: notify.into() }),
            Store::Etcd { url, prefix, access } => {
                Self::Etcd(wire::EtcdStore { url, prefix, access: access.into(), plaintext: wire::Plaintext::Refused })
            }
            Store::Objects { service, url, place, prefix, region, access } => Self::Objects(wire::ObjectsStore {
                service: service.into(),
                url,
                place,
                prefix,
                region,
                access: access.into(),
                plaintext: wire::Plaintext::Refused,
            }),
        }
    }
}

impl From<&wire::Store> for Store {
    fn from(store: &wire::Store) -> Self {
        let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        match store.clone() {
            wire::Store::Operations => Self::Operations {},
            wire::Store::Redis(store) => Self::Redis {
                retention_ns: ns(store.retention),
                replicas: store.replicas.map(|replicas| replicas.count),
            },
            wire::Store::RedisHttp(store) => Self::RedisHttp {
                dialect: store.dialect.into(),
                url: store.url,
                access: store.access.into(),
                retention_ns: ns(store.retention),
            },
            wire::Store::Dynamodb(store) => Self::Dynamodb {
                table: store.table,
                region: store.region,
                url: store.url,
                key: store.key,
                sort_key: store.sort_key.map(|sort| (sort.name, sort.value)),
                expires: store.expires,
            },
            wire::Store::Postgres(store) => Self::Postgres { schema: store.schema, notify: store.notify.into() },
            wire::Store::Etcd(store) => {
                Self::Etcd { url: store.url, prefix: store.prefix, access: store.access.into() }
            }
            wire::Store::Objects(store) => Self::Objects {
                service: store.service.into(),
                url: store.url,
                place: store.place,
                prefix: store.prefix,
                region: store.region,
                access: store.access.into(),
            },
        }
    }
}

/// Credentials. The core's own do not write themselves, so that no secret can be written by mistake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are those of the services")]
pub enum Credentials {
    Aws {
        access_key_id: String,
        secret_access_key: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_token: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_unix_ms: Option<u64>,
    },
    Token {
        token: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_unix_ms: Option<u64>,
    },
    Password {
        user: String,
        password: String,
    },
    AccountKey {
        key: String,
    },
    AccessSignature {
        query: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_unix_ms: Option<u64>,
    },
}

impl From<&Credentials> for wire::Credentials {
    fn from(credentials: &Credentials) -> Self {
        match credentials.clone() {
            Credentials::Aws { access_key_id, secret_access_key, session_token, expires_unix_ms } => {
                let keys = sigv4::Credentials { access_key_id, secret_access_key, session_token };
                Self::Aws(wire::AwsCredentials { keys, expires_unix_ms })
            }
            Credentials::Token { token, expires_unix_ms } => Self::Token(wire::BearerToken { token, expires_unix_ms }),
            Credentials::Password { user, password } => Self::Password(wire::PasswordLogin { user, password }),
            Credentials::AccountKey { key } => Self::AccountKey(wire::AccountKey { key }),
            Credentials::AccessSignature { query, expires_unix_ms } => {
                Self::AccessSignature(wire::AccessSignature { query, expires_unix_ms })
            }
        }
    }
}

/// One call of a host: those of the other vectors, and three more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WireInput {
    /// A call with whole responses or credentials.
    Wired(Wired),
    /// A call as in the other vectors.
    Core(Call),
}

/// The calls of a client with stores alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wired {
    /// `handle_response` with a response over HTTP.
    HttpResponse {
        /// The request.
        id: RequestId,
        /// The status.
        status: u16,
        /// Names and values.
        headers: Vec<(String, String)>,
        /// The body as text.
        body: String,
    },
    /// `handle_response` with replies of Redis.
    RedisReplies {
        /// The request.
        id: RequestId,
        /// The replies as they come over a connection.
        replies: String,
    },
    /// `handle_response` with rows of PostgreSQL.
    Rows {
        /// The request.
        id: RequestId,
        /// All of them.
        rows: Vec<Row>,
    },
    /// `handle_response` with an error of PostgreSQL.
    ServerError {
        /// The request.
        id: RequestId,
        /// The SQLSTATE.
        code: String,
        /// Its message.
        message: String,
        /// When the server said so.
        when: RefusalTime,
    },
    /// `set_credentials`.
    SetCredentials {
        /// The node.
        node: NodeId,
        /// The credentials.
        credentials: Credentials,
    },
}

impl WireInput {
    /// The input; `None` where only time has passed.
    pub fn to_core(&self) -> Option<wire::Input> {
        Some(match self {
            Self::Core(Call(input)) => wire::Input::Core(input.clone()?),
            Self::Wired(Wired::HttpResponse { id, status, headers, body }) => {
                let body = body.clone().into_bytes();
                let response = wire::HttpResponse { status: *status, headers: headers.clone(), body };
                wire::Input::Response { id: *id, response: wire::Response::Http(response) }
            }
            // Bytes that are not RESP count as no reply.
            Self::Wired(Wired::RedisReplies { id, replies }) => {
                let replies = decode_all(replies.as_bytes()).unwrap_or_default();
                wire::Input::Response { id: *id, response: wire::Response::Redis(replies) }
            }
            Self::Wired(Wired::Rows { id, rows }) => {
                let rows = rows.iter().map(|row| row.columns.iter().map(Into::into).collect()).collect();
                wire::Input::Response { id: *id, response: wire::Response::Postgres(Ok(rows)) }
            }
            Self::Wired(Wired::ServerError { id, code, message, when }) => {
                let refused = leasehold_wire::postgres::refused(code, message, (*when).into());
                wire::Input::Response { id: *id, response: wire::Response::Postgres(Err(refused)) }
            }
            Self::Wired(Wired::SetCredentials { node, credentials }) => {
                wire::Input::SetCredentials { node: *node, credentials: credentials.into() }
            }
        })
    }
}

impl TakesEntropy for WireInput {
    fn takes_entropy(&self) -> bool {
        match self {
            Self::Core(call) => call.takes_entropy(),
            Self::Wired(_) => false,
        }
    }
}

/// An output of a client with stores: those of the other vectors, and whole requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WireOutput {
    /// An output as in the other vectors.
    Core(Output),
    /// A whole request.
    Request(WireRequest),
}

/// A whole request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WireRequest {
    /// A request over HTTP.
    HttpRequest {
        /// The id, which its response repeats.
        id: RequestId,
        /// The node.
        node: NodeId,
        /// The time at which the host may stop waiting.
        deadline_ns: Monotonic,
        /// Always `POST`.
        method: String,
        /// The address.
        url: String,
        /// Names and values.
        headers: Vec<(String, String)>,
        /// The body as text.
        body: String,
    },
    /// Commands to a Redis.
    RedisCommands {
        /// The id, which the replies repeat.
        id: RequestId,
        /// The node.
        node: NodeId,
        /// The time at which the host may stop waiting.
        deadline_ns: Monotonic,
        /// Their arguments, as text.
        commands: Vec<Vec<String>>,
    },
    /// A statement for PostgreSQL.
    Statement {
        /// The id, which its answer repeats.
        id: RequestId,
        /// The node.
        node: NodeId,
        /// The time at which the host may stop waiting.
        deadline_ns: Monotonic,
        /// The text.
        sql: String,
        /// The parameters.
        params: Vec<SqlValue>,
    },
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl From<&wire::Output> for WireOutput {
    fn from(output: &wire::Output) -> Self {
        match output {
            wire::Output::Core(output) => Self::Core(output.clone()),
            wire::Output::HttpRequest(request) => Self::Request(WireRequest::HttpRequest {
                id: request.id,
                node: request.node,
                deadline_ns: request.deadline,
                method: request.method.to_owned(),
                url: request.url.clone(),
                headers: request.headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
                body: text(&request.body),
            }),
            wire::Output::Statement(request) => Self::Request(WireRequest::Statement {
                id: request.id,
                node: request.node,
                deadline_ns: request.deadline,
                sql: request.statement.sql.clone(),
                params: request.statement.params.iter().map(Into::into).collect(),
            }),
            wire::Output::RedisCommands(commands) => Self::Request(WireRequest::RedisCommands {
                id: commands.id,
                node: commands.node,
                deadline_ns: commands.deadline,
                commands: commands.commands.iter().map(|command| command.words().map(text).collect()).collect(),
            }),
        }
    }
}
