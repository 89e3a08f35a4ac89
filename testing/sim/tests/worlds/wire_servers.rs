//! Whole requests of `leasehold_wire::client` to real servers: Redis over a socket, over a REST server and over Webdis,
//! and DynamoDB Local. The hosts have nothing but these, and a clock that stands still unless they sleep.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use leasehold_core::config::{LockOptions, Poll, Quorum, Wait};
use leasehold_core::member::{QuorumId, RETENTION};
use leasehold_core::{Config, Event, Failure, LockId, Monotonic, NodeConfig, Now, Output as CoreOutput, Resource};
use leasehold_servers::dynamodb::{ACCESS_KEY_ID, REGION, table_name};
use leasehold_servers::{dynamodb, http, redis, rest, webdis};
use leasehold_wire::client::{
    Access, AwsCredentials, BearerToken, Credentials, DynamodbStore, HttpRequest, HttpResponse, Output, Plaintext,
    RedisCommands, RedisHttpStore, RedisStore, Response, Store, WireClient,
};
use leasehold_wire::dynamodb::table::{self, Billing};
use leasehold_wire::dynamodb::{Settings, Target};
use leasehold_wire::resp::{Reader, decode_all, encode};
use leasehold_wire::rest::Dialect;
use leasehold_wire::sigv4;

/// The connection of a host to one node.
#[derive(Clone)]
struct Way {
    store: Store,
    address: SocketAddr,
    credentials: Option<Credentials>,
}

struct Host {
    client: WireClient,
    ways: Vec<Way>,
    now: Now,
    wake_at: Monotonic,
    events: Vec<Event>,
    drawn: u128,
}

impl Host {
    fn new(seed: u8, ways: &[Way]) -> Self {
        Self::with(seed, ways, |config| config)
    }

    fn with(seed: u8, ways: &[Way], settings: impl FnOnce(Config) -> Config) -> Self {
        let now = Now { monotonic: Monotonic::from_ns(1_000_000_000), unix_ms: 1_700_000_000_000 };
        let config = settings(Config::new(vec![NodeConfig::default(); ways.len()]).unwrap());
        let stores = ways.iter().map(|way| way.store.clone()).collect();
        let client = WireClient::new(config, stores, [seed; 32], now).unwrap();
        let drawn = u128::from(seed) << 100;
        Self { client, ways: ways.to_vec(), now, wake_at: Monotonic::FAR, events: Vec::new(), drawn }
    }

    /// Does all that the client says.
    fn drive(&mut self) {
        loop {
            match self.client.poll_output(self.now) {
                Output::HttpRequest(request) => {
                    let response = post(self.ways[request.node.index()].address, &request);
                    self.client.handle_response(request.id, response, self.now);
                }
                Output::RedisCommands(commands) => {
                    let response = send(self.ways[commands.node.index()].address, &commands);
                    self.client.handle_response(commands.id, response, self.now);
                }
                Output::Core(CoreOutput::Event(event)) => self.events.push(event),
                Output::Core(CoreOutput::NeedCredentials { node }) => {
                    let credentials = self.ways[node.index()].credentials.clone().expect("it takes some");
                    self.client.set_credentials(node, credentials, self.now).unwrap();
                }
                Output::Core(CoreOutput::WakeAt(at)) => {
                    self.wake_at = at;
                    return;
                }
                Output::Statement(_) => unreachable!("no node is a PostgreSQL"),
                Output::Core(other) => panic!("{other:?}"),
            }
        }
    }

    fn fresh(&mut self) -> [u8; 16] {
        self.drawn += 1;
        self.drawn.to_be_bytes()
    }

    fn acquire(&mut self, lock: u64, wait: Wait) {
        let options = LockOptions::builder().ttl(Duration::from_secs(30)).wait(wait).owner("me").data(&[0, 255]);
        let fresh = self.fresh();
        let resource = Resource::new("invoice/42 é %").unwrap();
        self.client.acquire(LockId::new(lock), resource, options.build().unwrap(), &fresh, self.now).unwrap();
        self.drive();
    }

    fn release(&mut self, lock: u64) {
        self.client.release(LockId::new(lock), self.now).unwrap();
        self.drive();
    }

    /// Sleeps until there is an event.
    fn until_told(&mut self) -> &Event {
        let before = self.events.len();
        for _ in 0..1_000 {
            if self.events.len() > before {
                return self.events.last().unwrap();
            }
            assert!(self.wake_at < Monotonic::FAR, "it would sleep forever: {:?}", self.events);
            self.now.monotonic = self.wake_at.max(self.now.monotonic);
            let fresh = self.fresh();
            self.client.handle_timeout(&fresh, self.now);
            self.drive();
        }
        panic!("nothing happens: {:?}", self.events);
    }

    fn token(&self) -> Option<u64> {
        self.events.iter().rev().find_map(|event| match event {
            Event::Acquired { token, .. } => Some(token.get()),
            _ => None,
        })
    }
}

fn post(address: SocketAddr, request: &HttpRequest) -> Response {
    let path = request.url.split_once("//").unwrap().1;
    let path = &path[path.find('/').unwrap()..];
    let headers: Vec<(&str, &str)> = request.headers.iter().collect();
    let response = http::request(address, request.method, path, &headers, &request.body).unwrap();
    Response::Http(HttpResponse { status: response.status, headers: response.headers, body: response.body })
}

fn send(address: SocketAddr, commands: &RedisCommands) -> Response {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut bytes = Vec::new();
    commands.commands.iter().for_each(|command| encode(command, &mut bytes));
    stream.write_all(&bytes).unwrap();
    let mut reader = Reader::new(1 << 20).unwrap();
    let mut piece = [0; 100];
    loop {
        if let Some(replies) = reader.take(commands.commands.len()).unwrap() {
            return Response::Redis(decode_all(&replies).unwrap());
        }
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "the server has ended the connection");
        reader.push(&piece[..count]);
    }
}

fn over_a_socket(server: &redis::Server) -> Way {
    Way { store: Store::Redis(RedisStore::default()), address: server.address(), credentials: None }
}

fn over_http(dialect: Dialect, url: String, address: SocketAddr, token: Option<&str>) -> Way {
    let access = if token.is_some() { Access::WithCredentials } else { Access::Anonymous };
    let store = RedisHttpStore { dialect, url, access, retention: RETENTION, plaintext: Plaintext::Refused };
    let credentials = token.map(|token| Credentials::Token(BearerToken { token: token.into(), expires_unix_ms: None }));
    Way { store: Store::RedisHttp(store), address, credentials }
}

fn table_of(server: &dynamodb::Server) -> Way {
    let name = table_name();
    let settings = Settings::new(&name).unwrap();
    let request = table::create(&settings, Billing::OnDemand, &[]).unwrap();
    assert_eq!(request.target, Target::CreateTable);
    let credentials = sigv4::Credentials {
        access_key_id: ACCESS_KEY_ID.into(),
        secret_access_key: "secret".into(),
        session_token: None,
    };
    let host = server.address().to_string();
    let headers = sigv4::Signer::new().sign(&request, &host, REGION, &credentials, 1_700_000_000_000);
    let headers: Vec<(&str, &str)> = headers.iter().collect();
    let made = http::request(server.address(), "POST", "/", &headers, &request.body).unwrap();
    assert_eq!(made.status, 200, "{}", made.text());
    let store = DynamodbStore {
        table: name,
        region: REGION.into(),
        url: format!("http://{host}"),
        key: None,
        sort_key: None,
        expires: None,
        plaintext: Plaintext::Refused,
    };
    let aws = AwsCredentials { keys: credentials, expires_unix_ms: None };
    Way { store: Store::Dynamodb(store), address: server.address(), credentials: Some(Credentials::Aws(aws)) }
}

/// One holds the lock, and the other sees the holder; renewed, released, and taken by the other with a higher token.
fn take_turns(one: &Way, other: &Way) {
    let (mut one, mut other) = (Host::new(1, std::slice::from_ref(one)), Host::new(2, std::slice::from_ref(other)));
    one.acquire(1, Wait::Once);
    let first = one.token().unwrap_or_else(|| panic!("the lock is free: {:?}", one.events));
    other.acquire(1, Wait::Once);
    let Some(Event::Failed { failure: Failure::Busy { holding: Some(holding) }, .. }) = other.events.last() else {
        panic!("{:?}", other.events)
    };
    assert_eq!(holding.owner.as_ref().map(|owner| owner.as_str()), Some("me"));
    assert_eq!(holding.data.as_ref().map(|data| data.as_bytes()), Some(&[0, 255][..]));
    assert!(matches!(one.until_told(), Event::Renewed { .. }), "{:?}", one.events);
    one.release(1);
    assert!(matches!(one.events.last(), Some(Event::Released { confirmed: true, .. })), "{:?}", one.events);
    other.acquire(2, Wait::Once);
    assert!(other.token() > Some(first), "{:?}", other.events);
    other.release(2);
    assert!(one.client.is_idle() && other.client.is_idle());
}

#[test]
fn redis_protocols_share_locks() {
    let redis = redis::Server::start();
    let (rest, webdis) = (rest::Server::start(&redis), webdis::Server::start(&redis));
    let socket = over_a_socket(&redis);
    let rest = over_http(Dialect::Upstash, format!("http://{}", rest.address()), rest.address(), Some(rest.token()));
    let webdis = over_http(Dialect::Webdis, webdis.url(), webdis.address(), None);
    take_turns(&socket, &rest);
    take_turns(&rest, &webdis);
    take_turns(&webdis, &socket);
}

#[test]
fn dynamodb_rows_work_as_locks() {
    let server = dynamodb::Server::shared();
    let table = table_of(&server);
    take_turns(&table, &table);
    let client = Host::new(1, &[table]).client;
    assert_eq!(client.config().nodes()[0].poll, Poll::Read);
}

/// A quorum that remembers itself, born here: two kinds of ways to Redis, and a table.
#[test]
fn three_kinds_of_stores_form_a_quorum() {
    let (first, second, server) = (redis::Server::start(), redis::Server::start(), dynamodb::Server::shared());
    let rest = rest::Server::start(&second);
    let ways = [
        over_a_socket(&first),
        over_http(Dialect::Upstash, format!("http://{}", rest.address()), rest.address(), Some(rest.token())),
        table_of(&server),
    ];
    let quorum = |config: Config| {
        let quorum = Quorum::new(QuorumId([7; 16]), Duration::from_secs(60)).unwrap();
        config.with_quorum(quorum).with_request_timeout(Duration::from_secs(10)).unwrap()
    };
    let (mut one, mut other) = (Host::with(1, &ways, quorum), Host::with(2, &ways, quorum));
    one.acquire(1, Wait::Forever);
    assert!(matches!(one.until_told(), Event::Acquired { .. }), "{:?}", one.events);
    other.acquire(1, Wait::Once);
    assert!(matches!(other.events.last(), Some(Event::Failed { .. })), "{:?}", other.events);
    assert!(matches!(one.until_told(), Event::Renewed { .. }), "{:?}", one.events);
    one.release(1);
    assert!(one.events.iter().any(|event| matches!(event, Event::Released { .. })), "{:?}", one.events);
}
