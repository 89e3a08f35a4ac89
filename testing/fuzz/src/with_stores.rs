//! The core with its wire formats: whole requests out, and any responses in.

use arbitrary::{Result, Unstructured};
use leasehold_core::member::RETENTION;
use leasehold_core::op::LockOp;
use leasehold_core::{LockId, Monotonic, NodeId, Now, OneOrMany, Output as Core, RequestId};
use leasehold_wire::client::{
    Access, AwsCredentials, BearerToken, Credentials, DynamodbStore, EtcdStore, HttpResponse, Input, ObjectsService,
    ObjectsStore, Output, Plaintext, PostgresStore, RedisHttpStore, RedisStore, Response, Store, WireClient,
};
use leasehold_wire::postgres::{Answer, Field, Notify, RefusalTime, refused};
use leasehold_wire::redis::Replicas;
use leasehold_wire::resp::Reader;
use leasehold_wire::rest::Dialect;
use leasehold_wire::sigv4;

use crate::ledger::{Ledger, MOST_OUTPUTS};
use crate::values::SECRET;
use crate::{answers, client, values};

/// Runs a client on input made of these bytes.
pub fn run(bytes: &[u8]) {
    let u = &mut Unstructured::new(bytes);
    if let Ok(Some(mut story)) = Story::new(u) {
        // The run ends where the bytes end.
        let _ = story.told(u);
        story.ended();
    }
}

fn store(u: &mut Unstructured<'_>) -> Result<Store> {
    let over_http = |dialect, access| {
        let (url, plaintext) = ("https://redis.example.com/".to_owned(), Plaintext::Refused);
        Store::RedisHttp(RedisHttpStore { dialect, url, access, retention: RETENTION, plaintext })
    };
    Ok(match u.int_in_range(0..=8)? {
        0 => Store::Redis(RedisStore::default()),
        1 => Store::Redis(RedisStore { replicas: Some(Replicas { count: 1 }), ..RedisStore::default() }),
        2 => over_http(Dialect::Upstash, Access::WithCredentials),
        3 => over_http(Dialect::Webdis, Access::Anonymous),
        4 => Store::Operations,
        5 => Store::Etcd(EtcdStore {
            url: "https://etcd.example.com".into(),
            prefix: "leasehold/".into(),
            access: Access::WithCredentials,
            plaintext: Plaintext::Refused,
        }),
        6 => Store::Objects(ObjectsStore {
            service: *u.choose(&[ObjectsService::AzureBlob, ObjectsService::Gcs, ObjectsService::GcsXml])?,
            url: "https://storage.example.com".into(),
            place: "locks".into(),
            prefix: "leasehold/".into(),
            region: String::new(),
            access: Access::WithCredentials,
            plaintext: Plaintext::Refused,
        }),
        7 => Store::Postgres(PostgresStore { schema: "public".into(), notify: *u.choose(&[Notify::Off, Notify::On])? }),
        _ => Store::Dynamodb(DynamodbStore {
            table: "locks".into(),
            region: "eu-west-1".into(),
            url: "https://dynamodb.eu-west-1.amazonaws.com".into(),
            key: None,
            sort_key: None,
            expires: values::maybe(u, |_| Ok("ttl".to_owned()))?,
            plaintext: Plaintext::Refused,
        }),
    })
}

fn credentials(u: &mut Unstructured<'_>, store: &Store) -> Result<Credentials> {
    Ok(match store {
        Store::RedisHttp(_) | Store::Etcd(_) | Store::Objects(_) => {
            Credentials::Token(BearerToken { token: SECRET.into(), expires_unix_ms: values::maybe(u, values::number)? })
        }
        Store::Operations | Store::Redis(_) | Store::Postgres(_) | Store::Dynamodb(_) => {
            Credentials::Aws(AwsCredentials {
                keys: sigv4::Credentials {
                    access_key_id: "AKIDEXAMPLE".into(),
                    secret_access_key: SECRET.into(),
                    session_token: None,
                },
                expires_unix_ms: values::maybe(u, values::number)?,
            })
        }
    })
}

/// A request that was handed out.
struct Open {
    id: RequestId,
    node: NodeId,
    kind: Kind,
}

enum Kind {
    Http,
    /// A number of commands.
    Redis(usize),
    Operations(OneOrMany<LockOp>),
    Postgres,
}

struct Story {
    client: WireClient,
    stores: Vec<Store>,
    ledger: Ledger,
    open: Vec<Open>,
    highest_id: Option<RequestId>,
    /// Some answer has said something that a grant could be.
    promised: bool,
    now: Now,
    wake_at: Monotonic,
    drawn: u64,
}

impl Story {
    fn new(u: &mut Unstructured<'_>) -> Result<Option<Self>> {
        let config = client::config(u)?;
        let count = config.nodes().len();
        let now = Now { monotonic: Monotonic::from_ns(1 << u.int_in_range(0..=50)?), unix_ms: values::number(u)? };
        let stores = (0..count).map(|_| store(u)).collect::<Result<Vec<_>>>()?;
        // The outcomes are the client's own business.
        let ledger = Ledger::new(config.limits(), config.drift(), count, false, now.monotonic);
        let Ok(client) = WireClient::new(config, stores.clone(), [7; 32], now) else { return Ok(None) };
        let mut story = Self {
            client,
            stores,
            ledger,
            open: Vec::new(),
            highest_id: None,
            promised: false,
            now,
            wake_at: Monotonic::FAR,
            drawn: 0,
        };
        for at in 0..count {
            if u.arbitrary()? {
                story.give(u, at)?;
            }
        }
        Ok(Some(story))
    }

    fn fresh(&mut self) -> [u8; 16] {
        self.drawn += 1;
        u128::from(self.drawn).to_be_bytes()
    }

    fn give(&mut self, u: &mut Unstructured<'_>, at: usize) -> Result<()> {
        let node = NodeId::new(u16::try_from(at).unwrap_or(u16::MAX));
        if let Some(store) = self.stores.get(at) {
            // Some stores take none, and some not these.
            let _ = self.client.set_credentials(node, credentials(u, store)?, self.now);
        }
        Ok(())
    }

    fn told(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        self.drain();
        while !u.is_empty() {
            self.input(u)?;
            self.drain();
        }
        Ok(())
    }

    fn input(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let (now, lock) = (self.now, LockId::new(u.int_in_range(0..=5)?));
        match u.int_in_range(0..=19)? {
            0..=3 => {
                let (resource, options, fresh) = (values::resource(u)?, client::options(u)?, self.fresh());
                let answer = self.client.acquire(lock, resource, options.clone(), &fresh, now);
                self.ledger.asked(lock, &options, answer);
            }
            4 => {
                let answer = self.client.release(lock, now);
                self.ledger.released(lock, answer);
            }
            5 => {
                // It is lost if it is held, and else nothing changes.
                let _ = self.client.declare_lost(lock, now);
            }
            6..=12 => self.answer(u)?,
            13 => {
                let (id, response) = (RequestId::new(u.arbitrary()?), any(u)?);
                if !self.open.iter().any(|open| open.id == id) {
                    self.client.handle_response(id, response, now);
                }
            }
            14 | 15 => self.now.monotonic = now.monotonic.plus(client::pause(u)?),
            16 if self.wake_at < Monotonic::FAR => self.now.monotonic = self.wake_at,
            17 => self.now.monotonic = Monotonic::from_ns(u.int_in_range(0..=now.monotonic.ns())?),
            18 => {
                let at = u.int_in_range(0..=5)?;
                self.give(u, at)?;
            }
            _ => match u.int_in_range(0..=4)? {
                0 => self.now.unix_ms = values::number(u)?,
                1 => self.client.notified(&values::resource(u)?, now),
                2 => {
                    let node = NodeId::new(u.int_in_range(0..=5)?);
                    self.client.node_votes(node, values::maybe(u, values::stamp)?, now);
                }
                3 => {
                    self.client.close(now);
                    self.ledger.closed();
                }
                _ => self.step(u)?,
            },
        }
        Ok(())
    }

    /// The whole loop in one call, with an answer among its inputs.
    fn step(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let response = self.response(u, &open)?;
        let inputs = vec![Input::Response { id: open.id, response }];
        let (fresh, mut outputs) = (self.fresh(), Vec::new());
        let wake_at = self.client.step(&fresh, self.now, inputs, &mut outputs).expect("no credentials among it");
        self.wake_at = wake_at;
        outputs.into_iter().for_each(|output| self.output(output));
        Ok(())
    }

    fn answer(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        if self.open.is_empty() {
            return Ok(());
        }
        let open = self.open.swap_remove(u.choose_index(self.open.len())?);
        let response = self.response(u, &open)?;
        self.client.handle_response(open.id, response.clone(), self.now);
        if values::chance(u, 10) {
            // The same answer once more belongs to no request.
            self.drain();
            let ignored = self.client.stats().ignored_responses;
            self.client.handle_response(open.id, response, self.now);
            assert_eq!(self.client.stats().ignored_responses, ignored + 1);
        }
        Ok(())
    }

    /// Close to what the store would say, whose numbers of requests are guessed.
    fn response(&mut self, u: &mut Unstructured<'_>, open: &Open) -> Result<Response> {
        if values::chance(u, 20) {
            let response = any(u)?;
            self.promised = true;
            return Ok(response);
        }
        let (id, ops) = (RequestId::new(u.int_in_range(0..=6)?), values::ops(u)?);
        let store = self.stores.get(open.node.index());
        let response = match (&open.kind, store) {
            (Kind::Operations(ops), _) => {
                let outcomes = ops.iter().map(|op| values::outcome(u, Some(&op.op)));
                Response::Outcomes(outcomes.collect::<Result<_>>()?)
            }
            (Kind::Redis(commands), _) => {
                let replies = (0..*commands).map(|_| answers::reply(u, id, &ops));
                Response::Redis(replies.collect::<Result<_>>()?)
            }
            (Kind::Postgres, _) => Response::Postgres(postgres(u)?),
            (Kind::Http, Some(Store::Dynamodb(_))) => {
                let nonce = ops.first().and_then(|op| op.op.nonce());
                let (status, body) = answers::dynamodb(u, nonce)?;
                let date = ("date".to_owned(), "Tue, 14 Nov 2023 22:13:20 GMT".to_owned());
                Response::Http(HttpResponse { status, headers: vec![date], body })
            }
            (Kind::Http, _) => {
                let reply = answers::json_of(&answers::reply(u, id, &ops)?);
                let name = *u.choose(&["result", "EVALSHA", "error"])?;
                let body = serde_json::json!({ name: reply }).to_string().into_bytes();
                Response::Http(HttpResponse { status: *u.choose(&[200, 200, 400, 401])?, headers: Vec::new(), body })
            }
        };
        self.promised = true;
        Ok(response)
    }

    fn drain(&mut self) {
        self.ledger.tick(self.now.monotonic);
        for _ in 0..4 {
            self.take();
            let fresh = self.fresh();
            self.client.handle_timeout(&fresh, self.now);
            self.take();
            // By the clock as the host reads it. It may have been set back since.
            if self.wake_at > self.now.monotonic {
                let (client, now) = (&self.client, self.now);
                self.ledger.drained(&client.stats(), |lock| client.remaining(lock, now));
                return;
            }
        }
        panic!("it wants to be woken at {:?}, and it is {:?}", self.wake_at, self.now);
    }

    fn take(&mut self) {
        for _ in 0..MOST_OUTPUTS {
            match self.client.poll_output(self.now) {
                Output::Core(Core::WakeAt(at)) => {
                    self.wake_at = at;
                    return;
                }
                output => self.output(output),
            }
        }
        panic!("outputs without end");
    }

    fn output(&mut self, output: Output) {
        let now = self.ledger.now();
        assert!(!format!("{output:?}").contains(SECRET));
        let open = match output {
            Output::HttpRequest(request) => {
                assert!(request.deadline > now && request.url.starts_with("https://"));
                assert!(std::str::from_utf8(&request.body).is_ok());
                Open { id: request.id, node: request.node, kind: Kind::Http }
            }
            Output::RedisCommands(commands) => {
                assert!(commands.deadline > now && !commands.commands.is_empty());
                Open { id: commands.id, node: commands.node, kind: Kind::Redis(commands.commands.len()) }
            }
            Output::Statement(request) => {
                assert!(request.deadline > now && !request.statement.sql.is_empty());
                Open { id: request.id, node: request.node, kind: Kind::Postgres }
            }
            Output::Core(Core::Transmit(transmit)) => {
                assert!(transmit.deadline > now);
                Open { id: transmit.id, node: transmit.node, kind: Kind::Operations(transmit.ops) }
            }
            Output::Core(Core::Event(event)) => {
                assert!(self.promised || !matches!(event, leasehold_core::Event::Acquired { .. }), "{event:?}");
                self.ledger.event(&event);
                return;
            }
            Output::Core(Core::Rejected { .. }) => panic!("nothing was asked for"),
            Output::Core(Core::WakeAt(_)) => panic!("a step hands it out by itself"),
            Output::Core(Core::Subscribe { .. } | Core::Unsubscribe { .. } | Core::NeedCredentials { .. }) => return,
        };
        assert!(self.highest_id < Some(open.id), "an id twice");
        assert!(self.stores.get(open.node.index()).is_some());
        self.highest_id = Some(open.id);
        self.open.push(open);
    }

    /// Without a single further answer everything comes to an end, once the client is closed.
    fn ended(&mut self) {
        self.drain();
        self.client.close(self.now);
        self.ledger.closed();
        for _ in 0..20_000 {
            self.drain();
            if self.client.is_idle() {
                assert!(self.ledger.is_empty());
                return;
            }
            assert!(self.wake_at < Monotonic::FAR, "asleep forever, and not at rest: {:?}", self.client.stats());
            self.now.monotonic = self.wake_at;
        }
        panic!("a closed client that never comes to rest: {:?}", self.client.stats());
    }
}

/// An answer of any kind, as bytes where it comes as bytes.
fn any(u: &mut Unstructured<'_>) -> Result<Response> {
    Ok(match u.int_in_range(0..=4)? {
        0 => Response::Outcomes(values::some(u, 3, |u| values::outcome(u, None))?),
        1 => {
            let headers = values::some(u, 2, |u| Ok((values::text(u, 8)?, values::text(u, 20)?)))?;
            Response::Http(HttpResponse { status: u.arbitrary()?, headers, body: values::bytes(u, 200)? })
        }
        2 => Response::Redis(replies(u)?),
        3 => Response::Postgres(postgres(u)?),
        _ => Response::Fault(values::transport_fault(u)?),
    })
}

/// A few rows, or an error.
fn postgres(u: &mut Unstructured<'_>) -> Result<Answer> {
    if values::chance(u, 4) {
        let code = *u.choose(&["40001", "42P01", "57P01", "28P01", "23514", "", "é"])?;
        let when = *u.choose(&[RefusalTime::AtLogin, RefusalTime::InSession, RefusalTime::AtTheEnd])?;
        return Ok(Err(refused(code, &values::text(u, 20)?, when)));
    }
    let field = |u: &mut Unstructured<'_>| {
        Ok(match u.int_in_range(0..=5)? {
            0 => Field::Null,
            1 => Field::Text(values::text(u, 20)?),
            2 => Field::Bytes(values::bytes(u, 20)?),
            3 => Field::Int(u.arbitrary()?),
            4 => Field::Int(1_700_000_000_000),
            _ => Field::Bool(u.arbitrary()?),
        })
    };
    // Grants have two columns, and rows of locks twenty.
    Ok(Ok(values::some(u, 3, |u| (0..*u.choose(&[1, 2, 2, 20])?).map(|_| field(u)).collect())?))
}

/// Replies from bytes that come in pieces, as from a connection.
fn replies(u: &mut Unstructured<'_>) -> Result<Vec<leasehold_wire::resp::Value>> {
    let mut reader = Reader::new(1 << 16).expect("invariant: it is not 0");
    let mut replies = Vec::new();
    for piece in values::some(u, 4, |u| values::bytes(u, 60))? {
        reader.push(&piece);
        while let Ok(Some(one)) = reader.take(1) {
            replies.extend(leasehold_wire::resp::decode_all(&one).expect("what was cut out is whole"));
        }
    }
    Ok(replies)
}
