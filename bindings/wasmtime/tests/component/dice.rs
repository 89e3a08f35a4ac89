//! Values that nobody should pass, and some that one should, drawn from a seed.

use leasehold_wasmtime::client::{
    AcquireCommand, FinishCommand, HttpHeader, HttpResponse, Input, LockRef, NewCredentials, NewSeed, NodeRef,
    NodeVote, Outcomes, RedisReplies, RefusalTime, RequestResponse, ResourceRef, Response, Row, Rows, ServerError,
    Subscription,
};
use leasehold_wasmtime::ops::{
    Applied, AppliedOutcome, Completion, Denial, DenialKind, DoubtfulCounter, Fault, FaultKind, Holding, LeaseHolder,
    LostMemory, NodeCounter, NotAppliedOutcome, Outcome, Refusal, Seen,
};
use leasehold_wasmtime::stores::{
    Access, AccessSignature, AccountKey, AwsCredentials, BearerToken, Credentials, Dialect, DynamodbStore, Notify,
    ObjectsService, ObjectsStore, PasswordLogin, Plaintext, PostgresStore, RedisHttpStore, RedisStore, SortKey,
    SqlBytes, SqlNumber, SqlText, SqlTruth, SqlValue, Store,
};
use leasehold_wasmtime::types::{
    Config, Durability, Limits, LockOptions, NodeConfig, Now, Poll, Quorum, RenewEvery, Renewal, RunOptions, Wait,
    WaitFor,
};

/// Where things change: bounds of settings and of types.
const EDGES: [u64; 16] = [
    0,
    1,
    9,
    10,
    100,
    30_000,
    86_400_000,
    86_400_001,
    1 << 31,
    u32::MAX as u64,
    1 << 32,
    (1 << 53) - 1,
    1 << 53,
    i64::MAX as u64,
    u64::MAX - 1,
    u64::MAX,
];

pub(crate) struct Dice {
    state: u64,
    at: u64,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, at: 0 }
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        (self.word() >> 11) % end
    }

    pub(crate) fn is_one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn count(&mut self, most: u64) -> usize {
        usize::try_from(self.below(most + 1)).expect("a small number")
    }

    pub(crate) fn number(&mut self) -> u64 {
        match self.below(4) {
            0 => self.word(),
            1 => self.below(100_000),
            _ => EDGES[self.count(EDGES.len() as u64 - 1)],
        }
    }

    fn narrow(&mut self) -> u32 {
        u32::try_from(self.number() & u64::from(u32::MAX)).expect("32 bits")
    }

    /// Mostly an id that was drawn before.
    pub(crate) fn id(&mut self) -> u64 {
        if self.is_one_in(10) { self.number() } else { self.below(40) }
    }

    pub(crate) fn node(&mut self) -> u16 {
        if self.is_one_in(10) { u16::MAX } else { u16::try_from(self.below(4)).expect("a small number") }
    }

    pub(crate) fn maybe<T>(&mut self, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (!self.is_one_in(3)).then(|| draw(self))
    }

    fn list<T>(&mut self, most: u64, mut draw: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.count(most)).map(|_| draw(self)).collect()
    }

    /// Mostly as many as there should be.
    pub(crate) fn bytes(&mut self, usual: usize) -> Vec<u8> {
        let length = match self.below(8) {
            0 => self.count(40),
            1 => usual + 1,
            2 if self.is_one_in(20) => 9_000,
            _ => usual,
        };
        (0..length).map(|_| self.word().to_le_bytes()[7]).collect()
    }

    pub(crate) fn text(&mut self) -> String {
        const PIECES: [&str; 8] = ["a", "lock/", "é", "\u{1f512}", "\0", "\n", "\u{202e}", "0123456789abcdef"];
        match self.below(8) {
            0 => self.list(12, |dice| PIECES[dice.count(7)]).concat(),
            1 => PIECES[7].repeat(self.count(80)),
            _ => format!("r{}", self.below(5)),
        }
    }

    /// Mostly forwards.
    pub(crate) fn now(&mut self) -> Now {
        match self.below(60) {
            // A clock that jumps ahead is believed forever, so rarely.
            0 if self.is_one_in(8) => return Now { monotonic_ns: self.number(), unix_ms: self.number() },
            1 => self.at = self.at.saturating_sub(1_000_000_000),
            2 => self.at = self.at.saturating_add(3_600_000_000_000),
            _ => self.at = self.at.saturating_add(self.word() % 200_000_000),
        }
        Now { monotonic_ns: self.at, unix_ms: 1_700_000_000_000 + self.at / 1_000_000 }
    }

    pub(crate) fn config(&mut self) -> Config {
        let nodes = [0, 1, 1, 1, 1, 1, 3, 3, 3, 5, 31, 2_000][self.count(11)];
        Config {
            nodes: (0..nodes).map(|_| self.node_config()).collect(),
            drift_ppm: self.is_one_in(12).then(|| self.narrow()),
            request_timeout_ms: self.is_one_in(12).then(|| self.number()),
            limits: Limits {
                locks: self.is_one_in(4).then(|| self.narrow()),
                orphans: self.is_one_in(4).then(|| self.narrow()),
                observations: self.is_one_in(4).then(|| self.narrow()),
            },
            quorum: self
                .maybe(|dice| Quorum { id: dice.bytes(16), max_ttl_ms: dice.is_one_in(4).then(|| dice.number()) }),
        }
    }

    fn node_config(&mut self) -> NodeConfig {
        NodeConfig {
            poll: if self.is_one_in(2) { Poll::Acquire } else { Poll::Read },
            watch: self.is_one_in(2),
            batch: self.is_one_in(20).then(|| self.narrow()),
            durability: self.maybe(Self::durability),
        }
    }

    fn durability(&mut self) -> Durability {
        if self.is_one_in(2) { Durability::Declared } else { Durability::NotDeclared }
    }

    pub(crate) fn options(&mut self) -> LockOptions {
        LockOptions {
            ttl_ms: self.is_one_in(6).then(|| self.number()),
            wait: match self.below(3) {
                0 => Wait::Once,
                1 => Wait::For(WaitFor { wait_ms: self.number() }),
                _ => Wait::Forever,
            },
            lock_delay_ms: if self.is_one_in(8) { self.number() } else { 0 },
            max_hold_ms: self.is_one_in(8).then(|| self.number()),
            renewal: match self.below(6) {
                0 => Renewal::Off,
                1 => Renewal::Every(RenewEvery { interval_ms: self.number() }),
                _ => Renewal::Automatic,
            },
            owner: self.text(),
            data: self.is_one_in(4).then(|| self.bytes(100)),
            run: self.is_one_in(2).then(|| RunOptions {
                keep_ms: self.is_one_in(4).then(|| self.number()),
                trust_quorum: self.is_one_in(4),
                even_if_done: self.is_one_in(8),
            }),
        }
    }

    /// A response by which an honest store grants a lock.
    pub(crate) fn grant() -> Response {
        let counter = NodeCounter { counter: 1_700_000_000_000 };
        let granted = Outcome::Applied(AppliedOutcome { applied: Applied::Acquired(counter) });
        Response::Outcomes(Outcomes { outcomes: vec![granted] })
    }

    pub(crate) fn response(&mut self) -> Response {
        match self.below(10) {
            0 => Response::NotSent(self.fault()),
            1 => Response::Unknown(self.fault()),
            2 => Response::HttpResponse(self.http_response()),
            3 => Response::RedisReplies(RedisReplies { replies: self.replies() }),
            4 => Response::Rows(Rows { rows: self.list(3, Self::row) }),
            5 => Response::ServerError(ServerError {
                code: if self.is_one_in(4) {
                    self.text()
                } else {
                    ["42P01", "55P03", "57P01"][self.count(2)].to_owned()
                },
                message: self.text(),
                when: [RefusalTime::AtLogin, RefusalTime::InSession, RefusalTime::AtTheEnd][self.count(2)],
            }),
            _ => {
                let most = if self.is_one_in(50) { 3_000 } else { 4 };
                Response::Outcomes(Outcomes { outcomes: self.list(most, Self::outcome) })
            }
        }
    }

    fn row(&mut self) -> Row {
        let columns = [1, 2, 2, 20][self.count(3)];
        let value = |dice: &mut Self| match dice.below(5) {
            0 => SqlValue::Null,
            1 => SqlValue::Text(SqlText { value: dice.text() }),
            2 => SqlValue::Bytes(SqlBytes { value: dice.bytes(20) }),
            3 => SqlValue::Truth(SqlTruth { value: dice.is_one_in(2) }),
            _ => SqlValue::Number(SqlNumber { value: dice.number() }),
        };
        Row { columns: (0..columns).map(|_| value(self)).collect() }
    }

    fn http_response(&mut self) -> HttpResponse {
        const STATUSES: [u16; 8] = [200, 200, 200, 301, 400, 401, 500, 0];
        const BODIES: [&str; 8] = [
            "{}",
            "{\"result\":[1,1700000000001]}",
            "{\"EVALSHA\":[1,1700000000001]}",
            "{\"__type\":\"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException\",\"Item\":{}}",
            "{\"Attributes\":{\"token\":{\"N\":\"1700000000001\"}}}",
            "{\"error\":\"NOSCRIPT No matching script\"}",
            "[[[[[[[[[[[[[[",
            "\u{0}",
        ];
        let body = if self.is_one_in(4) { self.bytes(200) } else { BODIES[self.count(7)].as_bytes().to_vec() };
        let header = |dice: &mut Self| HttpHeader {
            name: if dice.is_one_in(2) { "Date".to_owned() } else { dice.text() },
            value: if dice.is_one_in(2) { "Fri, 31 Feb 9999 25:61:61 GMT".to_owned() } else { dice.text() },
        };
        HttpResponse { status: STATUSES[self.count(7)], headers: self.list(3, header), body }
    }

    pub(crate) fn replies(&mut self) -> Vec<u8> {
        const PIECES: [&[u8]; 10] = [
            b"*2\r\n:1\r\n:1700000000001\r\n",
            b"-NOSCRIPT No matching script\r\n",
            b"$-1\r\n",
            b":9223372036854775807\r\n",
            b"*2147483647\r\n",
            b"$99999999999999999999\r\n",
            b"%1\r\n+a\r\n",
            b"*1\r\n*1\r\n*1\r\n",
            b"\r\n",
            b"+OK\r\n",
        ];
        match self.below(4) {
            0 => self.bytes(30),
            1 => b"*1\r\n".repeat(self.count(5_000)),
            _ => self.list(4, |dice| PIECES[dice.count(9)]).concat(),
        }
    }

    pub(crate) fn store(&mut self) -> Store {
        const URLS: [&str; 6] =
            ["http://127.0.0.1:8000", "https://db.example", "http://db.example", "https://a@b", "http://[::1", "x"];
        let url = if self.is_one_in(8) { self.text() } else { URLS[self.count(5) / 2].to_owned() };
        let plaintext = self.maybe(|dice| if dice.is_one_in(3) { Plaintext::Refused } else { Plaintext::Allowed });
        let retention_ms = self.is_one_in(6).then(|| self.number());
        match self.below(7) {
            0 => Store::Operations,
            5 => Store::Postgres(PostgresStore {
                schema: self.is_one_in(4).then(|| self.text()),
                notify: self.is_one_in(3).then_some(Notify::On),
            }),
            4 => Store::Objects(ObjectsStore {
                service: [
                    ObjectsService::S3,
                    ObjectsService::AzureBlob,
                    ObjectsService::Gcs,
                    ObjectsService::GcsXml,
                    ObjectsService::CosmosDb,
                ][self.count(4)],
                url,
                place: if self.is_one_in(8) { self.text() } else { ["locks", "a/locks"][self.count(1)].to_owned() },
                prefix: self.is_one_in(4).then(|| self.text()),
                region: self.is_one_in(2).then(|| "eu-central-1".to_owned()),
                access: if self.is_one_in(2) { Access::Anonymous } else { Access::WithCredentials },
                plaintext,
            }),
            1 => Store::Redis(RedisStore { retention_ms, replicas: self.is_one_in(3).then(|| self.narrow()) }),
            2 | 3 => Store::RedisHttp(RedisHttpStore {
                dialect: if self.is_one_in(2) { Dialect::Upstash } else { Dialect::Webdis },
                url,
                access: if self.is_one_in(2) { Access::Anonymous } else { Access::WithCredentials },
                retention_ms,
                plaintext,
            }),
            _ => Store::Dynamodb(DynamodbStore {
                table: if self.is_one_in(8) { self.text() } else { "locks".to_owned() },
                region: if self.is_one_in(8) { self.text() } else { "eu-central-1".to_owned() },
                url,
                key: self.is_one_in(4).then(|| self.text()),
                sort_key: self.is_one_in(4).then(|| SortKey { name: self.text(), value: self.text() }),
                expires: self.is_one_in(4).then(|| self.text()),
                plaintext,
            }),
        }
    }

    fn credentials(&mut self) -> Credentials {
        match self.below(5) {
            0 => Credentials::Aws(AwsCredentials {
                access_key_id: self.text(),
                secret_access_key: self.text(),
                session_token: self.is_one_in(2).then(|| self.text()),
                expires_unix_ms: self.is_one_in(2).then(|| self.number()),
            }),
            1 => Credentials::Token(BearerToken { token: self.text(), expires_unix_ms: None }),
            2 => Credentials::AccountKey(AccountKey { key: self.text() }),
            3 => Credentials::AccessSignature(AccessSignature {
                query: if self.is_one_in(2) { self.text() } else { "sv=1&sig=1".to_owned() },
                expires_unix_ms: self.is_one_in(2).then(|| self.number()),
            }),
            _ => Credentials::Password(PasswordLogin { user: self.text(), password: self.text() }),
        }
    }

    fn outcome(&mut self) -> Outcome {
        match self.below(8) {
            0 => Outcome::Unknown(self.fault()),
            1..4 => Outcome::NotApplied(NotAppliedOutcome { refusal: self.refusal() }),
            _ => Outcome::Applied(AppliedOutcome { applied: self.applied() }),
        }
    }

    fn counter(&mut self) -> u64 {
        if self.is_one_in(4) { self.number() } else { 1_700_000_000_000 + self.below(1_000) }
    }

    fn applied(&mut self) -> Applied {
        match self.below(11) {
            0 => Applied::Read(self.seen()),
            1 => Applied::AcquiredInDoubt(DoubtfulCounter { counter: self.counter(), stamp: self.bytes(16) }),
            2 => Applied::Renewed,
            3 => Applied::Released,
            4 => Applied::Raised(NodeCounter { counter: self.counter() }),
            5 => Applied::Finished,
            6 => Applied::Revoked,
            _ => Applied::Acquired(NodeCounter { counter: self.counter() }),
        }
    }

    fn refusal(&mut self) -> Refusal {
        match self.below(7) {
            0 => Refusal::Throttled(self.fault()),
            1 => Refusal::Unavailable(self.fault()),
            2 => Refusal::Abstains(LostMemory { stamp: self.maybe(|dice| dice.bytes(16)) }),
            3 => Refusal::NeedsCredentials(self.fault()),
            4 => Refusal::Denied(self.denial()),
            5 => Refusal::Done(self.completion()),
            _ => Refusal::Conflict(self.seen()),
        }
    }

    fn seen(&mut self) -> Seen {
        Seen {
            holding: self.maybe(|dice| Holding {
                holder: dice.maybe(|dice| LeaseHolder { nonce: dice.bytes(16), seq: dice.maybe(|dice| dice.narrow()) }),
                version: dice.bytes(20),
                released: dice.is_one_in(4),
                counter: dice.maybe(Self::counter),
                owner: dice.maybe(Self::text),
                record_ttl_ms: dice.maybe(Self::number),
                left_ms: dice.maybe(Self::number),
                since_unix_ms: dice.maybe(Self::number),
                data: dice.maybe(|dice| dice.bytes(10)),
            }),
            done: self.maybe(Self::completion),
        }
    }

    fn completion(&mut self) -> Completion {
        Completion {
            token: self.counter(),
            owner: self.text(),
            at_unix_ms: self.number(),
            left_ms: self.number(),
            about: self.maybe(|dice| dice.bytes(40)),
            unsettled: false,
        }
    }

    fn fault(&mut self) -> Fault {
        const KINDS: [FaultKind; 7] = [
            FaultKind::Timeout,
            FaultKind::Reset,
            FaultKind::Unreachable,
            FaultKind::Cancelled,
            FaultKind::Server,
            FaultKind::Busy,
            FaultKind::Protocol,
        ];
        Fault { kind: KINDS[self.count(6)], detail: self.maybe(Self::text) }
    }

    fn denial(&mut self) -> Denial {
        let kind = if self.is_one_in(2) { DenialKind::Permission } else { DenialKind::Other };
        Denial { kind, detail: self.text() }
    }

    pub(crate) fn input(&mut self) -> Input {
        match self.below(17) {
            0 => Input::DeclareLost(LockRef { lock: self.id() }),
            1 => Input::Notified(ResourceRef { resource: self.text() }),
            2 => Input::Subscribed(Subscription { node: self.node(), resource: self.text() }),
            3 => Input::CredentialsRenewed(NodeRef { node: self.node() }),
            15 => Input::SetCredentials(NewCredentials { node: self.node(), credentials: self.credentials() }),
            4 => Input::NodeVotes(NodeVote { node: self.node(), loss: self.maybe(|dice| dice.bytes(16)) }),
            5 => Input::Reseed(NewSeed { seed: self.bytes(32) }),
            6 if self.is_one_in(30) => Input::Close,
            16 => Input::Finish(FinishCommand { lock: self.id(), run_result: None }),
            7..9 => Input::Release(LockRef { lock: self.id() }),
            9..12 => Input::Response(RequestResponse { id: self.id(), response: self.response() }),
            _ => Input::Acquire(AcquireCommand { lock: self.id(), resource: self.text(), options: self.options() }),
        }
    }
}
