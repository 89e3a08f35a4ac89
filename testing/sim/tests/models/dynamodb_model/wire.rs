//! A table of its own in DynamoDB Local, used as by a real host: the codec, its requests, and the meaning of their
//! answers. Changes of a row by other clients and by hand bypass the codec.

use std::cell::RefCell;

use leasehold_core::LockId;
use leasehold_core::Resource;
use leasehold_core::member::Marker;
use leasehold_core::op::{Fault, FaultKind, LockOp, Op, Outcome, Refusal};
use leasehold_servers::dynamodb::{ACCESS_KEY_ID, REGION, Server, table_name};
use leasehold_servers::http::Connection;
use leasehold_wire::dynamodb::table::{self, Billing};
use leasehold_wire::dynamodb::{Codec, Exchange, Request, Settings};
use leasehold_wire::{Exchange as _, HttpResponse, Progress};
use serde_json::{Map, Value as Json, json};

/// The time of the senders' wall clocks.
pub(crate) const SENT_UNIX_MS: u64 = 1_700_000_000_123;

/// The row of the marker, as the table's format has it.
const MARKER_ROW: &str = "leasehold\u{1f}quorum";

pub(crate) struct Wire {
    pub(crate) codec: Codec,
    connection: RefCell<Connection>,
}

/// The fate of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Answered,
    /// It arrives, and its answer does not.
    AnswerLost,
    /// DynamoDB refuses it.
    Throttled,
}

impl Fate {
    /// The outcome for the codec; `None` where DynamoDB decides it.
    pub(crate) fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Answered => None,
            Self::AnswerLost => Some(Outcome::Unknown(Fault::of(FaultKind::Timeout))),
            Self::Throttled => Some(Outcome::NotApplied(Refusal::Throttled(Fault::of(FaultKind::Busy)))),
        }
    }
}

/// One operation under way.
pub(crate) struct Flight {
    exchange: Exchange,
}

impl Wire {
    /// Every other seed has a sort key, and keys of other names.
    pub(crate) fn open(server: &Server, seed: u64) -> Self {
        let settings = Settings::new(&table_name()).unwrap();
        let settings = match seed % 3 {
            0 => settings,
            1 => settings.key("lock name").unwrap().sort_key("sk", "-").unwrap(),
            _ => settings.expires("ttl").unwrap(),
        };
        let wire = Self::of(server, Codec::new(settings));
        wire.create();
        wire
    }

    /// Another connection to a table.
    pub(crate) fn of(server: &Server, codec: Codec) -> Self {
        Self { codec, connection: RefCell::new(Connection::open(server.address()).unwrap()) }
    }

    fn settings(&self) -> &Settings {
        self.codec.settings()
    }

    fn create(&self) {
        let request = table::create(self.settings(), Billing::OnDemand, &[]).unwrap();
        assert_eq!(self.post(&request).status, 200);
    }

    /// An empty table in its place.
    pub(crate) fn wipe(&self) {
        let table = self.command("Scan", &json!({ "TableName": self.settings().table() }));
        for item in table["Items"].as_array().unwrap() {
            let keys = [Some(self.settings().key_name()), self.settings().sort().map(|sort| &*sort.name)];
            let key: Map<_, _> = keys.into_iter().flatten().map(|name| (name.to_owned(), item[name].clone())).collect();
            self.command("DeleteItem", &json!({ "TableName": self.settings().table(), "Key": key }));
        }
    }

    fn post(&self, request: &Request) -> HttpResponse {
        self.send(request.target.header(), &request.body)
    }

    fn send(&self, target: &str, body: &[u8]) -> HttpResponse {
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={ACCESS_KEY_ID}/20260101/{REGION}/dynamodb/aws4_request, SignedHeaders=host, \
             Signature=none"
        );
        let headers = [
            ("X-Amz-Target", target),
            ("Content-Type", "application/x-amz-json-1.0"),
            ("Authorization", &*authorization),
        ];
        let response = self.connection.borrow_mut().request("POST", "/", &headers, body).unwrap();
        let date = response.header("date").map(|date| ("date".to_owned(), date.to_owned()));
        HttpResponse { status: response.status, headers: date.into_iter().collect(), body: response.body }
    }

    fn request(&self, operation: &str, body: &Json) -> HttpResponse {
        self.send(&format!("DynamoDB_20120810.{operation}"), body.to_string().as_bytes())
    }

    fn command(&self, operation: &str, body: &Json) -> Json {
        let response = self.request(operation, body);
        assert_eq!(response.status, 200, "{operation} {body}: {}", said(&response));
        serde_json::from_slice(&response.body).unwrap()
    }

    pub(crate) fn begin(&self, resource: &Resource, op: &Op) -> Flight {
        let op = LockOp { lock: LockId::new(1), resource: resource.clone(), op: op.clone() };
        Flight { exchange: self.codec.begin(&[op], SENT_UNIX_MS).unwrap() }
    }

    /// The next request. `None` where another follows.
    pub(crate) fn advance(&self, flight: &mut Flight, fate: Fate) -> Option<Outcome> {
        let [request] = flight.exchange.requests() else { panic!("{:?}", flight.exchange) };
        let response = if fate == Fate::Throttled { None } else { Some(self.post(request)) };
        let answer = match (fate.outcome(), response) {
            (None, Some(response)) => Ok(response),
            (Some(outcome), _) => Err(outcome),
            (None, None) => unreachable!("it was sent"),
        };
        match flight.exchange.answers(&mut (), vec![answer]) {
            Progress::Done(mut outcomes) => outcomes.pop(),
            Progress::Again => None,
        }
    }

    fn key(&self, row: &str) -> Json {
        let mut key = Map::new();
        key.insert(self.settings().key_name().to_owned(), json!({ "S": row }));
        if let Some(sort) = self.settings().sort() {
            key.insert(sort.name.to_string(), json!({ "S": &*sort.value }));
        }
        Json::Object(key)
    }

    /// The row as it is, keys left out.
    pub(crate) fn row(&self, row: &str) -> Option<Map<String, Json>> {
        let ask = json!({ "TableName": self.settings().table(), "Key": self.key(row), "ConsistentRead": true });
        let answer = self.command("GetItem", &ask);
        let mut item = answer.get("Item")?.as_object()?.clone();
        item.remove(self.settings().key_name());
        item.retain(|name, _| Some(&**name) != self.settings().sort().map(|sort| &*sort.name));
        Some(item)
    }

    pub(crate) fn marker(&self) -> Option<Marker> {
        let text = self.row(MARKER_ROW)?.get("quorumMarker")?["S"].as_str()?.to_owned();
        Some(Marker::parse(text.as_bytes()).expect("nobody writes another"))
    }

    /// Marks the table, even where there is a marker.
    pub(crate) fn mark(&self, marker: &Marker) {
        let found = self.marker().map(|marker| marker.text().into_bytes()).unwrap_or_default();
        let response = self.post(&self.codec.mark(&found, Some(marker)));
        assert_eq!(self.codec.marked(Some(marker), &response), Ok(true));
    }

    pub(crate) fn delete(&self, row: &str) {
        self.command("DeleteItem", &json!({ "TableName": self.settings().table(), "Key": self.key(row) }));
    }

    pub(crate) fn forget_marker(&self) {
        self.delete(MARKER_ROW);
    }

    /// Sets an attribute of an existing row by hand.
    pub(crate) fn set(&self, row: &str, name: &str, value: &str) {
        self.conditional(
            "UpdateItem",
            row,
            "attribute_exists(#pk)",
            &json!({
                "UpdateExpression": "SET #x = :x",
                "ExpressionAttributeNames": { "#x": name },
                "ExpressionAttributeValues": { ":x": { "S": value } },
            }),
        );
    }

    /// A write as the lock client for Java makes it, its key and condition apart. Whether the condition held.
    pub(crate) fn conditional(&self, operation: &str, row: &str, condition: &str, rest: &Json) -> bool {
        let mut body = rest.clone();
        body["TableName"] = self.settings().table().into();
        let mut condition = condition.to_owned();
        body["ExpressionAttributeNames"]["#pk"] = self.settings().key_name().into();
        if let Some(sort) = self.settings().sort() {
            body["ExpressionAttributeNames"]["#sk"] = (*sort.name).into();
            for test in ["attribute_not_exists", "attribute_exists"] {
                let both = format!("{test}(#pk) AND {test}(#sk)");
                condition = condition.replace(&format!("{test}(#pk)"), &both);
            }
        }
        body["ConditionExpression"] = condition.into();
        if operation == "PutItem" {
            for (name, value) in self.key(row).as_object().unwrap() {
                body["Item"][name] = value.clone();
            }
        } else {
            body["Key"] = self.key(row);
        }
        let response = self.request(operation, &body);
        let failed = said(&response).contains("ConditionalCheckFailedException");
        assert!(response.status == 200 || failed, "{operation} {body}: {}", said(&response));
        response.status == 200
    }
}

fn said(response: &HttpResponse) -> String {
    String::from_utf8_lossy(&response.body).into_owned()
}
