//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.

use super::*;
use crate::face::*;

impl Read for Notify {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        Ok(match from.name(&["off", "on"])? {
            0 => Self::Off,
            _ => Self::On,
        })
    }
}

impl Read for PostgresStore {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["schema", "notify"])?;
        Ok(Self {
            schema: field(from, "schema")?,
            notify: field(from, "notify")?,
        })
    }
}

impl Read for RedisStore {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["retention", "replicas"])?;
        Ok(Self {
            retention_ms: length(from, "retention")?,
            replicas: field(from, "replicas")?,
        })
    }
}

impl Read for ObjectsService {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        Ok(match from.name(&["s3", "azure-blob", "gcs", "gcs-xml", "cosmos-db"])? {
            0 => Self::S3,
            1 => Self::AzureBlob,
            2 => Self::Gcs,
            3 => Self::GcsXml,
            _ => Self::CosmosDb,
        })
    }
}

impl Read for Dialect {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        Ok(match from.name(&["upstash", "webdis"])? {
            0 => Self::Upstash,
            _ => Self::Webdis,
        })
    }
}

impl Read for Access {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        Ok(match from.name(&["anonymous", "with-credentials"])? {
            0 => Self::Anonymous,
            _ => Self::WithCredentials,
        })
    }
}

impl Read for Plaintext {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        Ok(match from.name(&["refused", "allowed"])? {
            0 => Self::Refused,
            _ => Self::Allowed,
        })
    }
}

impl Read for RedisHttpStore {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["dialect", "url", "access", "retention", "plaintext"])?;
        Ok(Self {
            dialect: field(from, "dialect")?,
            url: field(from, "url")?,
            access: field(from, "access")?,
            retention_ms: length(from, "retention")?,
            plaintext: field(from, "plaintext")?,
        })
    }
}

impl Read for EtcdStore {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["url", "prefix", "access", "plaintext"])?;
        Ok(Self {
            url: field(from, "url")?,
            prefix: field(from, "prefix")?,
            access: field(from, "access")?,
            plaintext: field(from, "plaintext")?,
        })
    }
}

impl Read for ObjectsStore {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["service", "url", "place", "prefix", "region", "access", "plaintext"])?;
        Ok(Self {
            service: field(from, "service")?,
            url: field(from, "url")?,
            place: field(from, "place")?,
            prefix: field(from, "prefix")?,
            region: field(from, "region")?,
            access: field(from, "access")?,
            plaintext: field(from, "plaintext")?,
        })
    }
}

impl Read for SortKey {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["name", "value"])?;
        Ok(Self {
            name: field(from, "name")?,
            value: field(from, "value")?,
        })
    }
}

impl Read for DynamodbStore {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["table", "region", "url", "key", "sort-key", "expires", "plaintext"])?;
        Ok(Self {
            table: field(from, "table")?,
            region: field(from, "region")?,
            url: field(from, "url")?,
            key: field(from, "key")?,
            sort_key: field(from, "sort-key")?,
            expires: field(from, "expires")?,
            plaintext: field(from, "plaintext")?,
        })
    }
}

impl Read for Store {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        let case = from.case("store", &["operations", "redis", "redis-http", "dynamodb", "etcd", "objects", "postgres"])?;
        Ok(match case {
            0 => { from.only(&[])?; Self::Operations }
            1 => Self::Redis(Read::read(from)?),
            2 => Self::RedisHttp(Read::read(from)?),
            3 => Self::Dynamodb(Read::read(from)?),
            4 => Self::Etcd(Read::read(from)?),
            5 => Self::Objects(Read::read(from)?),
            _ => Self::Postgres(Read::read(from)?),
        })
    }
}

impl Read for AwsCredentials {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["access-key-id", "secret-access-key", "session-token", "expires-unix-ms"])?;
        Ok(Self {
            access_key_id: field(from, "access-key-id")?,
            secret_access_key: field(from, "secret-access-key")?,
            session_token: field(from, "session-token")?,
            expires_unix_ms: field(from, "expires-unix-ms")?,
        })
    }
}

impl Read for BearerToken {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["token", "expires-unix-ms"])?;
        Ok(Self {
            token: field(from, "token")?,
            expires_unix_ms: field(from, "expires-unix-ms")?,
        })
    }
}

impl Read for AccountKey {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["key"])?;
        Ok(Self {
            key: field(from, "key")?,
        })
    }
}

impl Read for AccessSignature {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["query", "expires-unix-ms"])?;
        Ok(Self {
            query: field(from, "query")?,
            expires_unix_ms: field(from, "expires-unix-ms")?,
        })
    }
}

impl Read for PasswordLogin {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["user", "password"])?;
        Ok(Self {
            user: field(from, "user")?,
            password: field(from, "password")?,
        })
    }
}

impl Read for Credentials {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        let case = from.case("credentials", &["aws", "token", "password", "account-key", "access-signature"])?;
        Ok(match case {
            0 => Self::Aws(Read::read(from)?),
            1 => Self::Token(Read::read(from)?),
            2 => Self::Password(Read::read(from)?),
            3 => Self::AccountKey(Read::read(from)?),
            _ => Self::AccessSignature(Read::read(from)?),
        })
    }
}

impl Read for RedisCommand {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        Ok(Self { args: Read::read(from)? })
    }
}

impl Write for RedisCommand {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        self.args.write(to)
    }
}

impl Read for SqlText {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["value"])?;
        Ok(Self {
            value: field(from, "value")?,
        })
    }
}

impl Fields for SqlText {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("value", self.value.write(to)),
        ]
    }
}

impl Read for SqlBytes {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["value"])?;
        Ok(Self {
            value: field(from, "value")?,
        })
    }
}

impl Fields for SqlBytes {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("value", self.value.write(to)),
        ]
    }
}

impl Read for SqlNumber {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["value"])?;
        Ok(Self {
            value: field(from, "value")?,
        })
    }
}

impl Fields for SqlNumber {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("value", self.value.write(to)),
        ]
    }
}

impl Read for SqlTruth {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["value"])?;
        Ok(Self {
            value: field(from, "value")?,
        })
    }
}

impl Fields for SqlTruth {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("value", self.value.write(to)),
        ]
    }
}

impl Read for SqlValue {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        let case = from.case("sql-value", &["null", "text", "bytes", "number", "truth"])?;
        Ok(match case {
            0 => { from.only(&[])?; Self::Null }
            1 => Self::Text(Read::read(from)?),
            2 => Self::Bytes(Read::read(from)?),
            3 => Self::Number(Read::read(from)?),
            _ => Self::Truth(Read::read(from)?),
        })
    }
}

impl Write for SqlValue {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        match self {
            Self::Null => to.case("sql-value", "null", Vec::new()),
            Self::Text(payload) => to.case("sql-value", "text", payload.fields(to)),
            Self::Bytes(payload) => to.case("sql-value", "bytes", payload.fields(to)),
            Self::Number(payload) => to.case("sql-value", "number", payload.fields(to)),
            Self::Truth(payload) => to.case("sql-value", "truth", payload.fields(to)),
        }
    }
}
