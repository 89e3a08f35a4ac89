//! A gateway before a DynamoDB Local, or in its place, that answers as DynamoDB would on a bad day.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use leasehold_servers::answers::{Reply, Request, Server as Answers};
use leasehold_servers::dynamodb::{REGION, Server};
use serde_json::{Value, json};

type Answering = Box<dyn Fn(&Request) -> Option<Reply> + Send>;

/// An endpoint whose answers change while the test runs.
pub(crate) struct Gateway {
    server: Answers,
    answering: Arc<Mutex<Answering>>,
}

impl Gateway {
    /// Passes everything on, for now. It does not keep the server: connections may outlive the test.
    pub(crate) fn before(local: &Arc<Server>) -> Self {
        let local = Arc::downgrade(local);
        Self::new(move |request| match (operation(request), local.upgrade()) {
            (Some(operation), Some(local)) => {
                let answer = local.request(operation, &body(request));
                Reply::new(answer.status, answer.body)
            }
            (Some(_), None) => error(503, "ServiceUnavailable", "the server of this test is gone"),
            // Whether anybody is there.
            (None, _) => Reply::new(400, "{}"),
        })
    }

    /// Describes a table, and fails otherwise, for now.
    pub(crate) fn alone() -> Self {
        Self::new(|request| match operation(request) {
            Some("DescribeTable") => describing(&json!({})),
            Some(_) => error(500, "InternalServerError", "this test has no table"),
            None => Reply::new(400, "{}"),
        })
    }

    fn new(otherwise: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let answering: Arc<Mutex<Answering>> = Arc::new(Mutex::new(Box::new(|_| None)));
        let asked = Arc::clone(&answering);
        let server = Answers::start(move |request| {
            let scripted = (asked.lock().unwrap_or_else(PoisonError::into_inner))(request);
            scripted.unwrap_or_else(|| otherwise(request))
        });
        Self { server, answering }
    }

    /// From now on this answers, except where it leaves a request to the server behind.
    pub(crate) fn answer(&self, answering: impl Fn(&Request) -> Option<Reply> + Send + 'static) {
        *self.answering.lock().unwrap() = Box::new(answering);
    }

    /// As [`Gateway::answer`], for reads and writes of rows.
    pub(crate) fn answer_rows(&self, reply: Reply) {
        self.answer(move |request| is_of_a_row(request).then(|| reply.clone()));
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// A table of a gateway without a server behind it.
    pub(crate) fn url(&self) -> String {
        format!("dynamodb://locks?region={REGION}&endpoint={}", self.server.url())
    }

    pub(crate) fn asked(&self) -> Vec<Request> {
        self.server.asked()
    }
}

/// Such as `GetItem`; `None` for a request of another kind.
pub(crate) fn operation(request: &Request) -> Option<&str> {
    request.header("x-amz-target")?.strip_prefix("DynamoDB_20120810.")
}

pub(crate) fn is_of_a_row(request: &Request) -> bool {
    matches!(operation(request), Some("UpdateItem" | "GetItem"))
}

pub(crate) fn body(request: &Request) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

/// An error as DynamoDB writes it.
pub(crate) fn error(status: u16, code: &str, message: &str) -> Reply {
    let name = format!("com.amazonaws.dynamodb.v20120810#{code}");
    Reply::new(status, json!({"__type": name, "message": message}).to_string())
}

/// The description of a table with the usual key, and of whatever else.
pub(crate) fn describing(more: &Value) -> Reply {
    let mut table = json!({
        "TableName": "locks", "TableStatus": "ACTIVE",
        "KeySchema": [{"AttributeName": "key", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "key", "AttributeType": "S"}],
        "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
    });
    table.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Reply::new(200, json!({"Table": table}).to_string())
}
