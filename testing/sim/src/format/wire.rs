//! A golden vector of `leasehold_wire::client`: the same as the others, with whole requests and responses.

use leasehold_core::{NodeId, RequestId};
use leasehold_wire::client as wire;
use leasehold_wire::redis::Replicas;
use leasehold_wire::resp::decode_all;
use leasehold_wire::{rest, sigv4};
use serde::{Deserialize, Serialize};

use super::{At, Config, Error, FORMAT, Input, Output, Start, Within, duration, each, integer, names, ns, pretty};

names! {
    /// How a Redis behind HTTP is spoken to.
    Dialect = rest::Dialect {
        /// Upstash's REST interface.
        Upstash,
        /// Webdis.
        Webdis,
    }
}

names! {
    /// Whether a server behind HTTP wants to know who asks.
    Access = wire::Access {
        /// No.
        Anonymous,
        /// Yes.
        WithCredentials,
    }
}

/// How requests to a node are written. Secrets are sent over `https:` alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Store {
    /// As operations.
    Operations {},
    /// As commands.
    Redis {
        /// How long unused counters are kept.
        retention_ns: u64,
        /// How many replicas must have a grant.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replicas: Option<u32>,
    },
    /// As commands over HTTP.
    RedisHttp {
        /// Which.
        dialect: Dialect,
        /// Where.
        url: String,
        /// Who asks.
        access: Access,
        /// How long unused counters are kept.
        retention_ns: u64,
    },
    /// As requests to DynamoDB.
    Dynamodb {
        /// By name or ARN.
        table: String,
        /// That requests are signed for.
        region: String,
        /// Where.
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
}

impl Store {
    fn to_core(&self) -> Result<wire::Store, Error> {
        Ok(match self.clone() {
            Self::Operations {} => wire::Store::Operations,
            Self::Redis { retention_ns, replicas } => wire::Store::Redis(wire::RedisStore {
                retention: duration(retention_ns).within("redis.retention_ns")?,
                replicas: replicas.map(|count| Replicas { count }),
            }),
            Self::RedisHttp { dialect, url, access, retention_ns } => wire::Store::RedisHttp(wire::RedisHttpStore {
                dialect: dialect.into(),
                url,
                access: access.into(),
                retention: duration(retention_ns).within("redis_http.retention_ns")?,
                plaintext: wire::Plaintext::Refused,
            }),
            Self::Dynamodb { table, region, url, key, sort_key, expires } => {
                wire::Store::Dynamodb(wire::DynamodbStore {
                    table,
                    region,
                    url,
                    key,
                    sort_key: sort_key.map(|(name, value)| wire::SortKey { name, value }),
                    expires,
                    plaintext: wire::Plaintext::Refused,
                })
            }
        })
    }
}

impl From<&wire::Store> for Store {
    fn from(store: &wire::Store) -> Self {
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
        }
    }
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
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
    },
    Password {
        user: String,
        password: String,
    },
}

impl Credentials {
    fn to_core(&self) -> wire::Credentials {
        match self.clone() {
            Self::Aws { access_key_id, secret_access_key, session_token, expires_unix_ms } => {
                let keys = sigv4::Credentials { access_key_id, secret_access_key, session_token };
                wire::Credentials::Aws(wire::AwsCredentials { keys, expires_unix_ms })
            }
            Self::Token { token } => wire::Credentials::Token(wire::BearerToken { token }),
            Self::Password { user, password } => wire::Credentials::Password(wire::PasswordLogin { user, password }),
        }
    }
}

/// One call of a host: those of the other vectors, and three more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WireInput {
    /// As in the other vectors.
    Core(Input),
    /// With whole responses.
    Wired(Wired),
}

/// What only a client with stores is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Wired {
    /// `handle_response` with a response over HTTP.
    HttpResponse {
        /// The request.
        id: u64,
        /// The status.
        status: u16,
        /// Names and values.
        headers: Vec<(String, String)>,
        /// As text.
        body: String,
    },
    /// `handle_response` with replies of Redis.
    RedisReplies {
        /// The request.
        id: u64,
        /// As they come over a connection.
        replies: String,
    },
    /// `set_credentials`.
    SetCredentials {
        /// Whose.
        node: u16,
        /// What.
        credentials: Credentials,
    },
}

impl WireInput {
    /// The input itself; `None` for [`Input::Timeout`].
    ///
    /// # Errors
    /// Values that nothing can have.
    pub fn to_core(&self) -> Result<Option<wire::Input>, Error> {
        let answered = |id: u64, response| {
            Ok(Some(wire::Input::Response { id: RequestId::new(integer(id).within("id")?), response }))
        };
        match self {
            Self::Core(input) => Ok(input.to_core()?.map(wire::Input::Core)),
            Self::Wired(Wired::HttpResponse { id, status, headers, body }) => {
                let body = body.clone().into_bytes();
                let response = wire::HttpResponse { status: *status, headers: headers.clone(), body };
                answered(*id, wire::Response::Http(response))
            }
            // What is no RESP is no reply.
            Self::Wired(Wired::RedisReplies { id, replies }) => {
                answered(*id, wire::Response::Redis(decode_all(replies.as_bytes()).unwrap_or_default()))
            }
            Self::Wired(Wired::SetCredentials { node, credentials }) => {
                let (node, credentials) = (NodeId::new(*node), credentials.to_core());
                Ok(Some(wire::Input::SetCredentials { node, credentials }))
            }
        }
    }

    /// Whether the call takes fresh bytes.
    pub const fn takes_entropy(&self) -> bool {
        match self {
            Self::Core(input) => input.takes_entropy(),
            Self::Wired(_) => false,
        }
    }
}

/// What a client tells its host: that of the other vectors, and whole requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WireOutput {
    /// As in the other vectors.
    Core(Output),
    /// A whole request.
    Request(WireRequest),
}

/// A whole request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum WireRequest {
    /// Over HTTP.
    HttpRequest {
        /// Correlates the response.
        id: u64,
        /// To whom.
        node: u16,
        /// When the host may stop waiting.
        deadline_ns: At,
        /// Always `POST`.
        method: String,
        /// Where to.
        url: String,
        /// Names and values.
        headers: Vec<(String, String)>,
        /// As text.
        body: String,
    },
    /// To a Redis.
    RedisCommands {
        /// Correlates the replies.
        id: u64,
        /// To whom.
        node: u16,
        /// When the host may stop waiting.
        deadline_ns: At,
        /// Their arguments, as text.
        commands: Vec<Vec<String>>,
    },
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl From<&wire::Output> for WireOutput {
    fn from(output: &wire::Output) -> Self {
        match output {
            wire::Output::Core(output) => Self::Core(output.into()),
            wire::Output::HttpRequest(request) => Self::Request(WireRequest::HttpRequest {
                id: request.id.get(),
                node: request.node.get(),
                deadline_ns: request.deadline.into(),
                method: request.method.to_owned(),
                url: request.url.clone(),
                headers: request.headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
                body: text(&request.body),
            }),
            wire::Output::RedisCommands(commands) => Self::Request(WireRequest::RedisCommands {
                id: commands.id.get(),
                node: commands.node.get(),
                deadline_ns: commands.deadline.into(),
                commands: commands
                    .commands
                    .iter()
                    .map(|command| command.args.iter().map(|arg| text(arg)).collect())
                    .collect(),
            }),
        }
    }
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireVector {
    /// Always [`FORMAT`].
    pub format: u32,
    /// As the file, without `.json`.
    pub name: String,
    /// What it shows, for whoever sees it fail.
    pub why: String,
    /// Of the client, as the host gives them.
    pub config: Config,
    /// One for each node.
    pub stores: Vec<Store>,
    /// Of the client: 32 bytes.
    pub seed: String,
    /// What the clocks show when the client is made.
    pub start: Start,
    /// In order.
    pub steps: Vec<WireStep>,
}

/// One call, and all outputs until the client is drained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireStep {
    /// What the monotonic clock shows.
    pub at_ns: u64,
    /// What the wall clock shows; absent where it shows the same as in the step before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix_ms: Option<u64>,
    /// 16 fresh bytes, for the calls that take some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entropy: Option<String>,
    /// The call.
    #[serde(rename = "do")]
    pub input: WireInput,
    /// All that comes out, in order.
    pub outputs: Vec<WireOutput>,
    /// When the client wants to be called again.
    pub wake_at_ns: At,
}

impl WireVector {
    /// Reads a file.
    ///
    /// # Errors
    /// What is no such vector.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let vector: Self = serde_json::from_str(text).map_err(Error::new)?;
        if vector.format != FORMAT {
            return Err(Error::new(format!("this is version {}, and {FORMAT} is understood here", vector.format)))
                .within("format");
        }
        vector.check()?;
        Ok(vector)
    }

    /// The text of its file.
    ///
    /// # Errors
    /// A value that a file cannot hold.
    pub fn to_text(&self) -> Result<String, Error> {
        self.check()?;
        Ok(pretty(&serde_json::to_string(self).map_err(Error::new)?))
    }

    fn check(&self) -> Result<(), Error> {
        self.config.to_core().within("config")?;
        self.stores()?;
        super::bytes::array::<32>(&self.seed).within("seed")?;
        for (n, step) in self.steps.iter().enumerate() {
            integer(step.at_ns).within(&format!("steps[{n}].at_ns"))?;
            step.input.to_core().within(&format!("steps[{n}].do"))?;
            if step.entropy.is_some() != step.input.takes_entropy() {
                return Err(Error::new("fresh bytes are for the calls that take some"))
                    .within(&format!("steps[{n}].entropy"));
            }
        }
        Ok(())
    }

    /// The stores themselves.
    ///
    /// # Errors
    /// Lengths that nothing can have.
    pub fn stores(&self) -> Result<Vec<wire::Store>, Error> {
        each(&self.stores, Store::to_core).within("stores")
    }
}
