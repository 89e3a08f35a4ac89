//! Where stores are and who asks, on their way in; requests in the formats of stores, on their way out.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use leasehold_core::member::RETENTION;
use leasehold_wire::client::{
    Access, AccessSignature, AccountKey, AwsCredentials, BearerToken, Credentials, DynamodbStore, EtcdStore,
    HttpRequest, HttpResponse, ObjectsService, ObjectsStore, PasswordLogin, Plaintext, PostgresStore, RedisCommands,
    RedisHttpStore, RedisStore, SetupError, SortKey, Statement, Store,
};
use leasehold_wire::postgres::{self, Field, Notify, Param};
use leasehold_wire::redis::{Command, Replicas};
use leasehold_wire::rest::Dialect;
use leasehold_wire::sigv4;

use crate::ops::{all, small};
use crate::settings::refused;
use crate::wit::stores as wit;
use crate::wit::{client, types};

/// Of keys and of objects.
const PREFIX: &str = "leasehold/";
/// Of the table of PostgreSQL.
const SCHEMA: &str = "public";

/// For a host that performs all operations itself.
pub(crate) fn none(nodes: usize) -> Vec<Store> {
    vec![Store::Operations; nodes]
}

pub(crate) fn store(store: wit::Store) -> Store {
    match store {
        wit::Store::Operations => Store::Operations,
        wit::Store::Redis(redis) => Store::Redis(RedisStore {
            retention: retention(redis.retention_ms),
            replicas: redis.replicas.map(|count| Replicas { count }),
        }),
        wit::Store::RedisHttp(redis) => Store::RedisHttp(RedisHttpStore {
            dialect: match redis.dialect {
                wit::Dialect::Upstash => Dialect::Upstash,
                wit::Dialect::Webdis => Dialect::Webdis,
            },
            url: redis.url,
            access: access(redis.access),
            retention: retention(redis.retention_ms),
            plaintext: plaintext(redis.plaintext),
        }),
        wit::Store::Dynamodb(table) => Store::Dynamodb(DynamodbStore {
            table: table.table,
            region: table.region,
            url: table.url,
            key: table.key,
            sort_key: table.sort_key.map(|key| SortKey { name: key.name, value: key.value }),
            expires: table.expires,
            plaintext: plaintext(table.plaintext),
        }),
        wit::Store::Etcd(etcd) => Store::Etcd(EtcdStore {
            url: etcd.url,
            prefix: etcd.prefix.unwrap_or_else(|| PREFIX.into()),
            access: access(etcd.access),
            plaintext: plaintext(etcd.plaintext),
        }),
        wit::Store::Objects(objects) => Store::Objects(ObjectsStore {
            service: match objects.service {
                wit::ObjectsService::S3 => ObjectsService::S3,
                wit::ObjectsService::AzureBlob => ObjectsService::AzureBlob,
                wit::ObjectsService::Gcs => ObjectsService::Gcs,
                wit::ObjectsService::GcsXml => ObjectsService::GcsXml,
                wit::ObjectsService::CosmosDb => ObjectsService::CosmosDb,
            },
            url: objects.url,
            place: objects.place,
            prefix: objects.prefix.unwrap_or_else(|| PREFIX.into()),
            region: objects.region.unwrap_or_default(),
            access: access(objects.access),
            plaintext: plaintext(objects.plaintext),
        }),
        wit::Store::Postgres(table) => Store::Postgres(PostgresStore {
            schema: table.schema.unwrap_or_else(|| SCHEMA.into()),
            notify: match table.notify {
                None | Some(wit::Notify::Off) => Notify::Off,
                Some(wit::Notify::On) => Notify::On,
            },
        }),
    }
}

fn retention(ms: Option<u64>) -> Duration {
    ms.map_or(RETENTION, Duration::from_millis)
}

fn access(access: wit::Access) -> Access {
    match access {
        wit::Access::Anonymous => Access::Anonymous,
        wit::Access::WithCredentials => Access::WithCredentials,
    }
}

fn plaintext(plaintext: Option<wit::Plaintext>) -> Plaintext {
    match plaintext {
        None => Plaintext::default(),
        Some(wit::Plaintext::Refused) => Plaintext::Refused,
        Some(wit::Plaintext::Allowed) => Plaintext::Allowed,
    }
}

pub(crate) fn credentials(credentials: wit::Credentials) -> Credentials {
    match credentials {
        wit::Credentials::Aws(aws) => Credentials::Aws(AwsCredentials {
            keys: sigv4::Credentials {
                access_key_id: aws.access_key_id,
                secret_access_key: aws.secret_access_key,
                session_token: aws.session_token,
            },
            expires_unix_ms: aws.expires_unix_ms,
        }),
        wit::Credentials::Token(bearer) => {
            Credentials::Token(BearerToken { token: bearer.token, expires_unix_ms: bearer.expires_unix_ms })
        }
        wit::Credentials::Password(login) => {
            Credentials::Password(PasswordLogin { user: login.user, password: login.password })
        }
        wit::Credentials::AccountKey(account) => Credentials::AccountKey(AccountKey { key: account.key }),
        wit::Credentials::AccessSignature(signature) => Credentials::AccessSignature(AccessSignature {
            query: signature.query,
            expires_unix_ms: signature.expires_unix_ms,
        }),
    }
}

pub(crate) fn unfit(error: SetupError) -> types::ConfigError {
    match error {
        SetupError::Config(error) => refused(error),
        SetupError::Stores { count, nodes } => {
            types::ConfigError::Stores(types::WrongStoreCount { count: small(count), nodes: small(nodes) })
        }
        SetupError::Store { node, denial } => {
            let (node, detail) = (node.get(), denial.detail.as_ref().into());
            types::ConfigError::Store(types::RefusedStore { node, detail })
        }
    }
}

pub(crate) fn http_request(request: HttpRequest) -> client::HttpRequest {
    let header = |(name, value): (&str, &str)| client::HttpHeader { name: name.into(), value: value.into() };
    client::HttpRequest {
        id: request.id.get(),
        node: request.node.get(),
        deadline_ns: request.deadline.ns(),
        method: request.method.into(),
        url: request.url,
        headers: request.headers.iter().map(header).collect(),
        body: request.body,
    }
}

pub(crate) fn http_response(response: client::HttpResponse) -> HttpResponse {
    let headers = all(response.headers, |header| (header.name, header.value));
    HttpResponse { status: response.status, headers, body: response.body }
}

pub(crate) fn redis_commands(request: RedisCommands) -> client::RedisCommands {
    client::RedisCommands {
        id: request.id.get(),
        node: request.node.get(),
        deadline_ns: request.deadline.ns(),
        commands: all(request.commands, |command| wit::RedisCommand {
            args: command.words().map(<[u8]>::to_vec).collect(),
        }),
    }
}

pub(crate) fn statement(request: Statement) -> client::Statement {
    let (id, node, deadline_ns) = (request.id.get(), request.node.get(), request.deadline.ns());
    let postgres::Statement { sql, params } = request.statement;
    client::Statement { id, node, deadline_ns, sql, params: all(params, parameter) }
}

fn parameter(param: Param) -> wit::SqlValue {
    if let Some(value) = param.array() {
        return wit::SqlValue::Text(wit::SqlText { value });
    }
    match param {
        Param::Text(Some(value)) => wit::SqlValue::Text(wit::SqlText { value }),
        Param::Bytea(Some(value)) => wit::SqlValue::Bytes(wit::SqlBytes { value }),
        // None of ours is negative.
        Param::Int8(number) => wit::SqlValue::Number(wit::SqlNumber { value: u64::try_from(number).unwrap_or(0) }),
        Param::Bool(value) => wit::SqlValue::Truth(wit::SqlTruth { value }),
        Param::Text(None) | Param::Bytea(None) | Param::TextArray(_) | Param::ByteaArray(_) | Param::Int8Array(_) => {
            wit::SqlValue::Null
        }
    }
}

pub(crate) fn field(value: wit::SqlValue) -> Field {
    match value {
        wit::SqlValue::Null => Field::Null,
        wit::SqlValue::Text(it) => Field::Text(it.value),
        wit::SqlValue::Bytes(it) => Field::Bytes(it.value),
        wit::SqlValue::Number(it) => Field::Int(i64::try_from(it.value).unwrap_or(i64::MAX)),
        wit::SqlValue::Truth(it) => Field::Bool(it.value),
    }
}

pub(crate) fn redis_command(command: wit::RedisCommand) -> Command {
    Command::new(command.args)
}
