//! Values that only the files in `wire/` have: stores, credentials, and requests and responses as they travel.

use leasehold_wasmtime::client::{
    HttpHeader, HttpRequest, HttpResponse, NewCredentials, RedisCommands, RedisReplies, RefusalTime, Response, Row,
    Rows, ServerError, Statement,
};
use leasehold_wasmtime::stores::{
    Access, AccessSignature, AccountKey, AwsCredentials, BearerToken, Credentials, Dialect, DynamodbStore, EtcdStore,
    Notify, ObjectsService, ObjectsStore, PasswordLogin, PostgresStore, RedisHttpStore, RedisStore, SortKey, SqlBytes,
    SqlNumber, SqlText, SqlTruth, SqlValue, Store,
};
use serde_json::{Value, json};

use super::read::{bytes, case, ms, narrow, optional, text};
use super::write::hex;

fn owned(value: &Value) -> String {
    text(value).to_owned()
}

pub(super) fn store(value: &Value) -> Store {
    let (name, value) = case(value);
    let retention_ms = ms(value, "retention_ns");
    match name {
        "operations" => Store::Operations,
        "redis" => Store::Redis(RedisStore {
            retention_ms,
            replicas: value.get("replicas").map(|_| narrow(value, "replicas")),
        }),
        "redis_http" => Store::RedisHttp(RedisHttpStore {
            dialect: match text(&value["dialect"]) {
                "upstash" => Dialect::Upstash,
                "webdis" => Dialect::Webdis,
                other => panic!("dialect: {other}"),
            },
            url: owned(&value["url"]),
            access: access(&value["access"]),
            retention_ms,
            plaintext: None,
        }),
        "dynamodb" => Store::Dynamodb(DynamodbStore {
            table: owned(&value["table"]),
            region: owned(&value["region"]),
            url: owned(&value["url"]),
            key: value.get("key").map(owned),
            sort_key: value.get("sort_key").map(|pair| SortKey { name: owned(&pair[0]), value: owned(&pair[1]) }),
            expires: value.get("expires").map(owned),
            plaintext: None,
        }),
        "etcd" => Store::Etcd(EtcdStore {
            url: owned(&value["url"]),
            prefix: Some(owned(&value["prefix"])),
            access: access(&value["access"]),
            plaintext: None,
        }),
        "objects" => Store::Objects(ObjectsStore {
            service: match text(&value["service"]) {
                "s3" => ObjectsService::S3,
                "azure-blob" => ObjectsService::AzureBlob,
                "gcs" => ObjectsService::Gcs,
                "gcs-xml" => ObjectsService::GcsXml,
                "cosmos-db" => ObjectsService::CosmosDb,
                other => panic!("service: {other}"),
            },
            url: owned(&value["url"]),
            place: owned(&value["place"]),
            prefix: Some(owned(&value["prefix"])),
            region: value.get("region").map(owned),
            access: access(&value["access"]),
            plaintext: None,
        }),
        "postgres" => Store::Postgres(PostgresStore {
            schema: Some(owned(&value["schema"])),
            notify: match text(&value["notify"]) {
                "off" => Some(Notify::Off),
                "on" => Some(Notify::On),
                other => panic!("notify: {other}"),
            },
        }),
        other => panic!("store: {other}"),
    }
}

fn access(value: &Value) -> Access {
    match text(value) {
        "anonymous" => Access::Anonymous,
        "with_credentials" => Access::WithCredentials,
        other => panic!("access: {other}"),
    }
}

pub(super) fn credentials(value: &Value) -> NewCredentials {
    let credentials = match case(&value["credentials"]) {
        ("aws", aws) => Credentials::Aws(AwsCredentials {
            access_key_id: owned(&aws["access_key_id"]),
            secret_access_key: owned(&aws["secret_access_key"]),
            session_token: aws.get("session_token").map(owned),
            expires_unix_ms: optional(aws, "expires_unix_ms"),
        }),
        ("token", bearer) => Credentials::Token(BearerToken {
            token: owned(&bearer["token"]),
            expires_unix_ms: optional(bearer, "expires_unix_ms"),
        }),
        ("account_key", account) => Credentials::AccountKey(AccountKey { key: owned(&account["key"]) }),
        ("access_signature", signature) => Credentials::AccessSignature(AccessSignature {
            query: owned(&signature["query"]),
            expires_unix_ms: optional(signature, "expires_unix_ms"),
        }),
        ("password", login) => {
            Credentials::Password(PasswordLogin { user: owned(&login["user"]), password: owned(&login["password"]) })
        }
        (other, _) => panic!("credentials: {other}"),
    };
    NewCredentials { node: narrow(value, "node"), credentials }
}

pub(super) fn http_response(value: &Value) -> Response {
    let header = |pair: &Value| HttpHeader { name: owned(&pair[0]), value: owned(&pair[1]) };
    Response::HttpResponse(HttpResponse {
        status: narrow(value, "status"),
        headers: value["headers"].as_array().expect("headers").iter().map(header).collect(),
        body: owned(&value["body"]).into_bytes(),
    })
}

pub(super) fn redis_replies(value: &Value) -> Response {
    Response::RedisReplies(RedisReplies { replies: owned(&value["replies"]).into_bytes() })
}

pub(super) fn rows(value: &Value) -> Response {
    let row =
        |row: &Value| Row { columns: row["columns"].as_array().expect("columns").iter().map(sql_value).collect() };
    Response::Rows(Rows { rows: value["rows"].as_array().expect("rows").iter().map(row).collect() })
}

pub(super) fn server_error(value: &Value) -> Response {
    let when = match text(&value["when"]) {
        "at_login" => RefusalTime::AtLogin,
        "in_session" => RefusalTime::InSession,
        "at_the_end" => RefusalTime::AtTheEnd,
        other => panic!("when: {other}"),
    };
    Response::ServerError(ServerError { code: owned(&value["code"]), message: owned(&value["message"]), when })
}

fn sql_value(value: &Value) -> SqlValue {
    match case(value) {
        ("null", _) => SqlValue::Null,
        ("text", it) => SqlValue::Text(SqlText { value: owned(&it["value"]) }),
        ("bytes", it) => SqlValue::Bytes(SqlBytes { value: bytes(&it["value"]) }),
        ("number", it) => SqlValue::Number(SqlNumber { value: it["value"].as_u64().expect("a number") }),
        ("truth", it) => SqlValue::Truth(SqlTruth { value: it["value"] == true }),
        (other, _) => panic!("value: {other}"),
    }
}

pub(super) fn statement(it: &Statement) -> Value {
    let param = |param: &SqlValue| match param {
        SqlValue::Null => json!({ "null": {} }),
        SqlValue::Text(it) => json!({ "text": { "value": it.value } }),
        SqlValue::Bytes(it) => json!({ "bytes": { "value": hex(&it.value) } }),
        SqlValue::Number(it) => json!({ "number": { "value": it.value } }),
        SqlValue::Truth(it) => json!({ "truth": { "value": it.value } }),
    };
    let params: Vec<Value> = it.params.iter().map(param).collect();
    json!({ "statement": {
        "id": it.id, "node": it.node, "deadline_ns": it.deadline_ns, "sql": it.sql, "params": params,
    } })
}

fn utf8(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("requests are UTF-8 in all files")
}

pub(super) fn http_request(it: &HttpRequest) -> Value {
    let headers: Vec<Value> = it.headers.iter().map(|header| json!([header.name, header.value])).collect();
    json!({ "http_request": {
        "id": it.id, "node": it.node, "deadline_ns": it.deadline_ns, "method": it.method, "url": it.url,
        "headers": headers, "body": utf8(&it.body),
    } })
}

pub(super) fn redis_commands(it: &RedisCommands) -> Value {
    let args = |args: &Vec<Vec<u8>>| args.iter().map(|arg| utf8(arg).to_owned()).collect::<Vec<_>>();
    let commands: Vec<_> = it.commands.iter().map(|command| args(&command.args)).collect();
    json!({ "redis_commands": {
        "id": it.id, "node": it.node, "deadline_ns": it.deadline_ns, "commands": commands,
    } })
}

/// Headers count in any order.
pub(super) fn sort_headers(outcome: &mut Value) {
    for output in outcome["outputs"].as_array_mut().into_iter().flatten() {
        if let Some(headers) = output.pointer_mut("/http_request/headers").and_then(Value::as_array_mut) {
            headers.sort_by_key(|header| header[0].as_str().map(str::to_owned));
        }
    }
}
