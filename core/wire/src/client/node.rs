//! How one node is spoken to: its codec, its address, and who asks.

use alloc::collections::BTreeSet;
use alloc::string::String;
use core::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::Ask;
use super::endpoint::{Endpoint, Paths};
use super::keys::{Keys, ServerClock};
use super::objects::{Objects, is_region};
use super::postgres::Postgres;
use super::store::{Access, Credentials, DynamodbStore, EtcdStore, ObjectsService, PasswordLogin, RedisHttpStore};
use super::store::{SetupError, Store};
use crate::rest::Dialect;
use crate::sigv4::Signer;
use crate::{dynamodb, etcd, redis};
use leasehold_core::NodeId;
use leasehold_core::config::{ConfigError, NodeConfig, Poll};
use leasehold_core::op::{Denial, DenialKind};
use leasehold_core::time::Now;

/// Renewals to DynamoDB and of objects are a request each, and nobody's HTTP client should have to open a hundred connections at once.
const MOST_REQUESTS: usize = 32;
/// Renewals to etcd share a transaction, which takes 128 operations.
const MOST_IN_A_TXN: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) keys: Keys,
    pub(super) clock: ServerClock,
    /// Requests that wait for credentials.
    pub(super) held: BTreeSet<Ask>,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Operations,
    Redis(redis::Codec),
    RedisHttp(RedisHttp),
    Dynamodb(Dynamodb),
    Etcd(Etcd),
    Objects(Objects),
    Postgres(Postgres),
}

#[derive(Clone, Debug)]
pub(super) struct RedisHttp {
    pub(super) codec: redis::Codec,
    pub(super) memory: (),
    pub(super) dialect: Dialect,
    pub(super) endpoint: Endpoint,
    pub(super) access: Access,
}

#[derive(Clone, Debug)]
pub(super) struct Dynamodb {
    pub(super) codec: dynamodb::Codec,
    pub(super) memory: (),
    pub(super) endpoint: Endpoint,
    pub(super) region: String,
    pub(super) signer: Signer,
}

#[derive(Clone, Debug)]
pub(super) struct Etcd {
    pub(super) codec: etcd::Codec,
    pub(super) memory: etcd::Memory,
    pub(super) endpoint: Endpoint,
    pub(super) access: Access,
}

impl Node {
    /// Decides what the host need not know of its node in `config`.
    pub(super) fn new(id: NodeId, store: Store, config: &mut NodeConfig, is_single: bool) -> Result<Self, SetupError> {
        let refused = |denial| SetupError::Store { node: id, denial };
        let kind = match store {
            Store::Operations => Kind::Operations,
            Store::Redis(store) => {
                config.poll = Poll::Acquire;
                let retention = within_bounds(store.retention)?;
                let settings = redis::Settings { retention, replicas: store.replicas, ..redis::Settings::default() };
                Kind::Redis(redis::Codec::new(settings))
            }
            Store::RedisHttp(store) => {
                (config.poll, config.watch) = (Poll::Acquire, false);
                within_bounds(store.retention)?;
                Kind::RedisHttp(RedisHttp::new(store).map_err(|what| refused(denied(what)))?)
            }
            Store::Dynamodb(store) => {
                (config.poll, config.watch) = (Poll::Read, false);
                config.batch = config.batch.min(MOST_REQUESTS);
                Kind::Dynamodb(Dynamodb::new(store).map_err(refused)?)
            }
            Store::Etcd(store) => {
                (config.poll, config.watch) = (Poll::Read, false);
                config.batch = config.batch.min(MOST_IN_A_TXN);
                Kind::Etcd(Etcd::new(store).map_err(|what| refused(denied(what)))?)
            }
            Store::Objects(store) => {
                (config.poll, config.watch) = (Poll::Read, false);
                config.batch = config.batch.min(MOST_REQUESTS);
                Kind::Objects(Objects::new(store, is_single).map_err(|what| refused(denied(what)))?)
            }
            Store::Postgres(store) => {
                (config.poll, config.watch) = (Poll::Acquire, false);
                Kind::Postgres(Postgres::new(store, config.durability).map_err(|what| refused(denied(what)))?)
            }
        };
        Ok(Self { kind, keys: Keys::new(), clock: ServerClock::default(), held: BTreeSet::new() })
    }

    /// Nothing expires by itself in the store. Of [`Kind::Operations`], the host says so.
    pub(super) const fn is_observed(&self) -> bool {
        match self.kind {
            Kind::Operations | Kind::Redis(_) | Kind::RedisHttp(_) | Kind::Postgres(_) => false,
            Kind::Dynamodb(_) | Kind::Etcd(_) | Kind::Objects(_) => true,
        }
    }

    /// A read may miss a write that was answered before.
    pub(super) fn may_be_stale(&self) -> bool {
        matches!(&self.kind, Kind::Objects(objects) if objects.service == ObjectsService::CosmosDb)
    }

    pub(super) fn check(&self, credentials: &Credentials) -> Result<(), Denial> {
        let what = match (&self.kind, credentials) {
            (Kind::Objects(objects), _) if objects.check(credentials).is_err() => {
                return objects.check(credentials).map_err(denied);
            }
            (Kind::Objects(_), Credentials::AccountKey(account)) => {
                if STANDARD.decode(&account.key).is_ok_and(|key| !key.is_empty()) {
                    return Ok(());
                }
                "the key of the account is not base64; copy it again"
            }
            (Kind::Objects(_), Credentials::AccessSignature(signature)) => {
                if is_plain(&signature.query) && signature.query.contains("sig=") && !signature.query.contains('#') {
                    return Ok(());
                }
                "the shared access signature has no sig=, or characters that no signature has; copy it again"
            }
            (Kind::Dynamodb(_) | Kind::Objects(_), Credentials::Aws(aws)) => {
                let token = aws.keys.session_token.as_deref().unwrap_or("-");
                if !is_plain(&aws.keys.access_key_id) || !is_plain(token) || aws.keys.secret_access_key.is_empty() {
                    "the access key or its token is empty, or has characters that no key has; copy it again"
                } else {
                    return Ok(());
                }
            }
            (Kind::RedisHttp(RedisHttp { access: Access::WithCredentials, .. }), Credentials::Token(bearer))
            | (
                Kind::Etcd(Etcd { access: Access::WithCredentials, .. }) | Kind::Objects(_),
                Credentials::Token(bearer),
            ) => {
                if is_plain(&bearer.token) {
                    return Ok(());
                }
                "the token is empty, or has characters that no token has; copy it again"
            }
            (Kind::RedisHttp(http), Credentials::Password(login)) if http.access == Access::WithCredentials => {
                if !login.user.contains(':') && !login.user.chars().chain(login.password.chars()).any(char::is_control)
                {
                    return Ok(());
                }
                "the user has a colon, or the password a control character"
            }
            (Kind::Dynamodb(_), _) => "DynamoDB takes credentials of AWS only",
            (Kind::RedisHttp(_), _) => "the store takes a token or a password, and only where its access says so",
            (Kind::Etcd(_), _) => {
                "etcd takes a token, which a user gets for a password, and only where its access says so"
            }
            (Kind::Objects(_), Credentials::Password(_)) => "a storage service takes no password",
            (Kind::Operations | Kind::Redis(_) | Kind::Postgres(_), _) => {
                "the store takes no credentials from here: its requests carry none"
            }
        };
        Err(denied(what))
    }

    pub(super) fn set_credentials(&mut self, credentials: Credentials, now: Now) {
        let unix_ms = self.clock.unix_ms(now);
        self.keys.set(credentials, now, unix_ms);
    }
}

impl RedisHttp {
    fn new(store: RedisHttpStore) -> Result<Self, &'static str> {
        let endpoint = Endpoint::parse(&store.url, Paths::Allowed)?;
        if store.access == Access::WithCredentials && !endpoint.keeps_secrets(store.plaintext) {
            return Err(OPEN_TO_ALL);
        }
        let settings = redis::Settings { retention: store.retention, ..redis::Settings::default() };
        let codec = redis::Codec::new(settings);
        Ok(Self { codec, memory: (), dialect: store.dialect, endpoint, access: store.access })
    }
}

impl Dynamodb {
    fn new(store: DynamodbStore) -> Result<Self, Denial> {
        let mut settings = dynamodb::Settings::new(&store.table)?;
        if let Some(key) = &store.key {
            settings = settings.key(key)?;
        }
        if let Some(sort) = &store.sort_key {
            settings = settings.sort_key(&sort.name, &sort.value)?;
        }
        if let Some(expires) = &store.expires {
            settings = settings.expires(expires)?;
        }
        if !is_region(&store.region) {
            return Err(denied("the region is not a valid name; write one such as eu-west-1"));
        }
        if settings.region().is_some_and(|region| region != store.region) {
            return Err(denied("the table's ARN names another Region than the one to sign for"));
        }
        let endpoint = Endpoint::parse(&store.url, Paths::None).map_err(denied)?;
        if !endpoint.keeps_secrets(store.plaintext) {
            return Err(denied(OPEN_TO_ALL));
        }
        let codec = dynamodb::Codec::new(settings);
        Ok(Self { codec, memory: (), endpoint, region: store.region, signer: Signer::new() })
    }
}

impl Etcd {
    fn new(store: EtcdStore) -> Result<Self, &'static str> {
        let endpoint = Endpoint::parse(&store.url, Paths::None)?;
        if store.access == Access::WithCredentials && !endpoint.keeps_secrets(store.plaintext) {
            return Err(OPEN_TO_ALL);
        }
        let codec = etcd::Codec::new(&store.prefix);
        Ok(Self { codec, memory: etcd::Memory::default(), endpoint, access: store.access })
    }
}

pub(super) const OPEN_TO_ALL: &str = "over http everybody on the network path could read what is sent: give an https \
                                      url, or allow plaintext where the network is trusted";

fn within_bounds(retention: Duration) -> Result<Duration, ConfigError> {
    let (what, min, max) = ("retention", Duration::from_millis(1), Duration::from_secs(100 * 365 * 24 * 3600));
    if retention < min {
        return Err(ConfigError::TooShort { what, value: retention, min });
    }
    if retention > max {
        return Err(ConfigError::TooFar { what, value: retention, max });
    }
    Ok(retention)
}

pub(super) fn authorization(credentials: &Credentials) -> Option<String> {
    match credentials {
        Credentials::Token(bearer) => Some(["Bearer ", bearer.token.as_str()].concat()),
        Credentials::Password(login) => Some(["Basic ", pair(login).as_str()].concat()),
        Credentials::Aws(_) | Credentials::AccountKey(_) | Credentials::AccessSignature(_) => None,
    }
}

/// User and password as they stand in a header.
pub(super) fn pair(login: &PasswordLogin) -> Zeroizing<String> {
    let pair = Zeroizing::new([login.user.as_str(), ":", login.password.as_str()].concat());
    Zeroizing::new(STANDARD.encode(pair.as_bytes()))
}

/// Returns true if the text may stand in a header as it is.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn denied(what: &str) -> Denial {
    Denial::new(DenialKind::Other, what)
}
