//! A host with a clock that stands still unless it is moved, and nothing else.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use leasehold_core::config::{LockOptions, Wait};
use leasehold_core::member::RETENTION;
use leasehold_core::op::{Fault, FaultKind, TransportFault};
use leasehold_core::{
    Config, Event, LockId, Monotonic, NodeConfig, NodeId, Now, Output as CoreOutput, RequestId, Resource,
};
use leasehold_wire::client::{
    Access, AwsCredentials, BearerToken, Credentials, DynamodbStore, HttpRequest, HttpResponse, Output, Plaintext,
    RedisCommands, RedisHttpStore, Response, Store, WireClient,
};
use leasehold_wire::rest::Dialect;
use leasehold_wire::sigv4;

pub(crate) const UNIX_MS: u64 = 1_700_000_000_000;

pub(crate) struct Host {
    pub(crate) client: WireClient,
    pub(crate) now: Now,
    pub(crate) events: Vec<Event>,
    pub(crate) http: VecDeque<HttpRequest>,
    pub(crate) commands: VecDeque<RedisCommands>,
    pub(crate) transmits: VecDeque<leasehold_core::Transmit>,
    /// Nodes that wanted credentials, as often as they did.
    pub(crate) asked: Vec<u16>,
    pub(crate) wake_at: Monotonic,
    ids: BTreeSet<RequestId>,
    drawn: u128,
}

impl Host {
    /// `seed` tells hosts apart: no two draw the same bytes.
    pub(crate) fn new(seed: u8, stores: Vec<Store>) -> Self {
        let config = Config::new(vec![NodeConfig::default(); stores.len()]).unwrap();
        Self::with(seed, config, stores)
    }

    pub(crate) fn with(seed: u8, config: Config, stores: Vec<Store>) -> Self {
        let now = Now { monotonic: Monotonic::from_ns(100_000_000_000), unix_ms: UNIX_MS };
        let config = config.with_request_timeout(Duration::from_secs(2)).unwrap();
        Self {
            client: WireClient::new(config, stores, [seed; 32], now).unwrap(),
            now,
            events: Vec::new(),
            http: VecDeque::new(),
            commands: VecDeque::new(),
            transmits: VecDeque::new(),
            asked: Vec::new(),
            wake_at: Monotonic::FAR,
            ids: BTreeSet::new(),
            drawn: u128::from(seed) << 100,
        }
    }

    /// Takes what the client has to say, and checks that every request has a name of its own.
    pub(crate) fn drain(&mut self) {
        let id = loop {
            let id = match self.client.poll_output(self.now) {
                Output::HttpRequest(request) => {
                    assert!(request.deadline > self.now.monotonic);
                    self.http.push_back(request);
                    self.http.back().unwrap().id
                }
                Output::RedisCommands(commands) => {
                    assert!(commands.deadline > self.now.monotonic && !commands.commands.is_empty());
                    self.commands.push_back(commands);
                    self.commands.back().unwrap().id
                }
                Output::Core(CoreOutput::Transmit(transmit)) => {
                    self.transmits.push_back(transmit);
                    self.transmits.back().unwrap().id
                }
                Output::Core(CoreOutput::Event(event)) => {
                    self.events.push(event);
                    continue;
                }
                Output::Core(CoreOutput::NeedCredentials { node }) => {
                    self.asked.push(node.get());
                    continue;
                }
                Output::Core(CoreOutput::WakeAt(at)) => break at,
                other @ (Output::Core(_) | Output::Statement(_)) => panic!("unexpected: {other:?}"),
            };
            assert!(self.ids.insert(id), "{id} comes twice");
        };
        self.wake_at = id;
    }

    pub(crate) fn fresh(&mut self) -> [u8; 16] {
        self.drawn += 1;
        self.drawn.to_be_bytes()
    }

    pub(crate) fn acquire(&mut self, lock: u64, wait: Wait) {
        self.acquire_named(lock, "invoice/42", wait);
    }

    pub(crate) fn acquire_named(&mut self, lock: u64, name: &str, wait: Wait) {
        let options = LockOptions::builder().ttl(Duration::from_secs(30)).wait(wait).owner("me").build().unwrap();
        let fresh = self.fresh();
        self.client.acquire(LockId::new(lock), Resource::new(name).unwrap(), options, &fresh, self.now).unwrap();
        self.drain();
    }

    pub(crate) fn release(&mut self, lock: u64) {
        self.client.release(LockId::new(lock), self.now).unwrap();
        self.drain();
    }

    pub(crate) fn answer(&mut self, id: RequestId, response: Response) {
        self.client.handle_response(id, response, self.now);
        self.drain();
    }

    /// To the one request that is open.
    pub(crate) fn answer_http(&mut self, status: u16, headers: &[(&str, &str)], body: &str) {
        let request = self.http.pop_front().expect("a request over HTTP");
        self.answer(request.id, http(status, headers, body));
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now.monotonic = self.now.monotonic.plus(time);
        self.now.unix_ms += u64::try_from(time.as_millis()).unwrap();
        let fresh = self.fresh();
        self.client.handle_timeout(&fresh, self.now);
        self.drain();
    }

    /// Sleeps for as long as it was told.
    pub(crate) fn sleep(&mut self) {
        assert!(self.wake_at < Monotonic::FAR, "it would sleep forever");
        self.pass(self.wake_at.since(self.now.monotonic).max(Duration::from_nanos(1)));
    }

    pub(crate) fn give(&mut self, node: u16, credentials: Credentials) {
        self.client.set_credentials(NodeId::new(node), credentials, self.now).unwrap();
        self.drain();
    }

    pub(crate) fn token(&self) -> Option<u64> {
        self.events.iter().rev().find_map(|event| match event {
            Event::Acquired { token, .. } => Some(token.get()),
            _ => None,
        })
    }

    pub(crate) fn last_event(&self) -> &Event {
        self.events.last().expect("an event")
    }
}

pub(crate) fn http(status: u16, headers: &[(&str, &str)], body: &str) -> Response {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Response::Http(HttpResponse { status, headers, body: body.as_bytes().to_vec() })
}

pub(crate) fn lost() -> Response {
    Response::Fault(TransportFault::Unknown(Fault::of(FaultKind::Timeout)))
}

pub(crate) fn not_sent() -> Response {
    Response::Fault(TransportFault::NotSent(Fault::of(FaultKind::Unreachable)))
}

pub(crate) fn redis_http(dialect: Dialect, access: Access) -> Store {
    Store::RedisHttp(RedisHttpStore {
        dialect,
        url: "https://redis.example.com/".into(),
        access,
        retention: RETENTION,
        plaintext: Plaintext::Refused,
    })
}

pub(crate) fn dynamodb_store() -> DynamodbStore {
    DynamodbStore {
        table: "locks".into(),
        region: "eu-west-1".into(),
        url: "https://dynamodb.eu-west-1.amazonaws.com".into(),
        key: None,
        sort_key: None,
        expires: None,
        plaintext: Plaintext::Refused,
    }
}

pub(crate) fn aws(id: &str, expires_unix_ms: Option<u64>) -> Credentials {
    let keys = sigv4::Credentials {
        access_key_id: id.into(),
        secret_access_key: "a very secret key".into(),
        session_token: Some("a-session-token".into()),
    };
    Credentials::Aws(AwsCredentials { keys, expires_unix_ms })
}

pub(crate) fn bearer(token: &str) -> Credentials {
    Credentials::Token(BearerToken { token: token.into(), expires_unix_ms: None })
}

pub(crate) fn header<'a>(request: &'a HttpRequest, name: &str) -> Option<&'a str> {
    request.headers.iter().find(|(named, _)| *named == name).map(|(_, value)| value)
}
