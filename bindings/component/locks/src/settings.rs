//! Settings on their way in. What they may be is decided by the core.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use leasehold_core::config::Drift;
use leasehold_core::member::{Durability, QuorumId, RETENTION};
use leasehold_core::{Config, LockOptions, NodeConfig, Quorum, Wait};
use leasehold_wire::client::{
    Access, AwsCredentials, BearerToken, Credentials, DynamodbStore, PasswordLogin, Plaintext, RedisHttpStore, SortKey,
    Store,
};
use leasehold_wire::rest::Dialect;
use leasehold_wire::sigv4;

use crate::clock::SUSPENDED;
use crate::problem::config as wrong;
use crate::{random, wit};

/// The checked settings of a client.
pub(crate) struct Settings {
    pub(crate) config: Config,
    pub(crate) stores: Vec<Store>,
    pub(crate) credentials: Vec<Option<Credentials>>,
    pub(crate) owner: String,
}

pub(crate) fn settings(given: wit::Config) -> Result<Settings, wit::Error> {
    let nodes = given.nodes.iter().map(node).collect();
    let mut config = Config::new(nodes).map_err(wrong)?;
    if let Some(ppm) = given.drift_ppm {
        config = config.with_drift(Drift::from_ppm(ppm).map_err(wrong)?);
    }
    if let Some(ms) = given.request_timeout {
        config = config.with_request_timeout(Duration::from_millis(ms)).map_err(wrong)?;
    }
    if let Some(quorum) = quorum(given.quorum, given.nodes.len())? {
        config = config.with_quorum(quorum);
    }
    let mut stores = Vec::new();
    let mut credentials = Vec::new();
    for (n, node) in given.nodes.into_iter().enumerate() {
        let access = if node.credentials.is_some() { Access::WithCredentials } else { Access::Anonymous };
        if matches!((&node.store, access), (wit::Store::Dynamodb(_), Access::Anonymous)) {
            return Err(wrong(format!("node {n}: credentials are missing, but DynamoDB requires them")));
        }
        let store = store(node.store, access);
        if stores.contains(&store) {
            return Err(wrong(format!("node {n} is there twice: each node of a quorum votes once")));
        }
        stores.push(store);
        credentials.push(node.credentials.map(self::credentials));
    }
    let owner = given.owner.unwrap_or_else(|| format!("wasi:{:08x}", u32::from_le_bytes(random())));
    Ok(Settings { config, stores, credentials, owner })
}

fn node(node: &wit::Node) -> NodeConfig {
    let durability = match node.durability {
        Some(wit::Durability::Declared) => Durability::Declared,
        Some(wit::Durability::NotDeclared) | None => Durability::NotDeclared,
    };
    NodeConfig { durability, ..NodeConfig::default() }
}

fn quorum(given: Option<wit::Quorum>, nodes: usize) -> Result<Option<Quorum>, wit::Error> {
    let Some(quorum) = given else {
        return if nodes > 1 {
            Err(wrong("several nodes are a quorum, which needs an id: set the id that `leasehold quorum status` shows"))
        } else {
            Ok(None)
        };
    };
    if nodes == 1 {
        return Err(wrong("one node is no quorum: leave the quorum out, or name the other nodes"));
    }
    let id = id(&quorum.id)
        .ok_or_else(|| wrong("the id of a quorum is the 32 hexadecimal digits that `leasehold quorum status` shows"))?;
    let max_ttl = quorum.max_ttl.map_or(Quorum::MAX_TTL, Duration::from_millis);
    Ok(Some(Quorum::new(id, max_ttl).map_err(wrong)?))
}

fn id(text: &str) -> Option<QuorumId> {
    let is_id = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u128::from_str_radix(text, 16).ok().filter(|_| is_id)?;
    Some(QuorumId(number.to_be_bytes()))
}

fn store(store: wit::Store, access: Access) -> Store {
    match store {
        wit::Store::RedisHttp(redis) => Store::RedisHttp(RedisHttpStore {
            dialect: match redis.dialect {
                wit::Dialect::Upstash => Dialect::Upstash,
                wit::Dialect::Webdis => Dialect::Webdis,
            },
            url: redis.url,
            access,
            retention: RETENTION,
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
    }
}

fn plaintext(plaintext: Option<wit::Plaintext>) -> Plaintext {
    match plaintext {
        Some(wit::Plaintext::Allowed) => Plaintext::Allowed,
        Some(wit::Plaintext::Refused) | None => Plaintext::Refused,
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
            Credentials::Token(BearerToken { token: bearer.token, expires_unix_ms: None })
        }
        wit::Credentials::Password(login) => {
            Credentials::Password(PasswordLogin { user: login.user, password: login.password })
        }
    }
}

pub(crate) fn options(given: &wit::LockOptions, owner: &str) -> Result<LockOptions, wit::Error> {
    let ms = |length: Option<u64>| Duration::from_millis(length.unwrap_or_default());
    // What the clock may have missed of a suspension, the lock stays closed.
    let delay = ms(given.lock_delay).saturating_add(SUSPENDED);
    let mut builder = LockOptions::builder().wait(Wait::For(ms(given.wait))).lock_delay(delay).owner(owner);
    if let Some(ttl) = given.ttl {
        builder = builder.ttl(Duration::from_millis(ttl));
    }
    if let Some(bound) = given.max_hold {
        builder = builder.max_hold(Duration::from_millis(bound));
    }
    if let Some(data) = &given.data {
        builder = builder.data(data);
    }
    builder.build().map_err(wrong)
}
