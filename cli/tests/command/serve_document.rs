//! The document of the daemon for programs, held against what the daemon does: each route, field and status, both ways.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::thread;

use crate::common::daemon::{Answer, Daemon, answer, posted};
use crate::common::{Place, wait_for};
use leasehold_servers::redis::Server;
use serde_json::{Value, json};

const TOKEN: &str = "0123456789abcdef";
/// Answers that no test brings about: of a system without random numbers or a bug.
const UNSEEN: [&str; 1] = ["500"];
/// Answered on a quorum alone.
const OF_QUORUMS: [&str; 1] = ["/components/schemas/Completion/properties/result_unsettled"];

/// The routes of the program, from its source.
fn routes() -> Vec<(String, String)> {
    let source = include_str!("../../src/serve/api.rs");
    let routes = source.lines().filter_map(|line| line.trim().strip_prefix(".route(\""));
    routes
        .map(|route| {
            let (path, rest) = route.split_once("\", ").unwrap();
            (rest.split('(').next().unwrap().to_owned(), path.to_owned())
        })
        .collect()
}

/// The document, and what of it was seen.
struct Seen {
    document: Value,
    /// Routes and statuses.
    statuses: RefCell<BTreeSet<(String, String, String)>>,
    /// Places of fields in the document.
    fields: RefCell<BTreeSet<String>>,
}

impl Seen {
    fn of(document: Value) -> Self {
        Self { document, statuses: RefCell::default(), fields: RefCell::default() }
    }

    /// The part of the document at a place, which may name another one.
    fn at(&self, place: &str) -> (String, &Value) {
        let value = self.document.pointer(place).unwrap_or_else(|| panic!("nothing at {place}"));
        match value["$ref"].as_str() {
            Some(other) => self.at(&other[1..]),
            None => (place.to_owned(), value),
        }
    }

    /// Checks an answer, and returns its value.
    #[track_caller]
    fn check(&self, method: &str, path: &str, answer: Answer) -> Value {
        let status = answer.status.to_string();
        let place = format!("/paths/{}/{method}/responses/{status}", path.replace('~', "~0").replace('/', "~1"));
        assert!(self.document.pointer(&place).is_some(), "{method} {path} {status} is not documented: {answer:?}");
        self.statuses.borrow_mut().insert((method.to_owned(), path.to_owned(), status));
        let (place, response) = self.at(&place);
        let (kind, _) = response["content"].as_object().unwrap().iter().next().unwrap();
        let head = answer.head.to_lowercase();
        if answer.body.is_empty() {
            return Value::Null;
        }
        assert!(head.contains(&format!("content-type: {kind}")), "{path}: {answer:?}");
        for header in response["headers"].as_object().into_iter().flatten() {
            assert!(head.contains(&format!("{}: ", header.0.to_lowercase())), "{path}: {answer:?}");
        }
        if kind != "application/json" {
            return Value::Null;
        }
        let value: Value = serde_json::from_str(&answer.body).unwrap();
        let schema = format!("{place}/content/application~1json/schema");
        self.fits(&schema, &value).unwrap_or_else(|why| panic!("{method} {path}: {why} in {value}"));
        value
    }

    /// Checks a value against a schema, as far as the document uses the language. A field that the schema does not have is an
    /// error.
    fn fits(&self, place: &str, value: &Value) -> Result<(), String> {
        let (place, schema) = self.at(place);
        let is_a = |kind: &str| match kind {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            _ => false,
        };
        let kinds: Vec<&str> = match &schema["type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
        };
        if !kinds.is_empty() && !kinds.iter().any(|kind| is_a(kind)) {
            return Err(format!("{value} is no {kinds:?}"));
        }
        if let Some(constant) = schema.get("const").filter(|constant| *constant != value) {
            return Err(format!("{value} is not {constant}"));
        }
        if let Some(all) = schema["enum"].as_array().filter(|all| !all.contains(value)) {
            return Err(format!("{value} is none of {all:?}"));
        }
        if let Some(minimum) = schema["minimum"].as_u64().filter(|minimum| value.as_u64() < Some(*minimum)) {
            return Err(format!("{value} is less than {minimum}"));
        }
        if let Some(one) = schema["oneOf"].as_array() {
            let why: Vec<_> = (0..one.len()).map(|one| self.fits(&format!("{place}/oneOf/{one}"), value)).collect();
            let fitting = why.iter().filter(|why| why.is_ok()).count();
            return if fitting == 1 { Ok(()) } else { Err(format!("{fitting} of these fit: {why:?}")) };
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            if value.get(name.as_str().unwrap()).is_none() {
                return Err(format!("{name} is missing in {value}"));
            }
        }
        if let (Some(properties), Some(fields)) = (schema["properties"].as_object(), value.as_object()) {
            if let Some(unknown) = fields.keys().find(|name| !properties.contains_key(*name)) {
                return Err(format!("{unknown} is not documented"));
            }
            for (name, value) in fields {
                let field = format!("{place}/properties/{name}");
                self.fits(&field, value).map_err(|why| format!("{name}: {why}"))?;
                self.fields.borrow_mut().insert(field);
            }
        }
        for value in schema.get("items").and(value.as_array()).into_iter().flatten() {
            self.fits(&format!("{place}/items"), value)?;
        }
        Ok(())
    }
}

/// The fields that an error names as those that a request may have.
fn expected(answer: Answer) -> BTreeSet<String> {
    let error = answer.expect(400);
    let message = error["error"]["message"].as_str().unwrap();
    let (_, rest) = message.split_once("unknown field `odd`").unwrap_or_else(|| panic!("{message}"));
    rest.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn got(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
}

fn keys(of: &Value) -> BTreeSet<String> {
    of.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn the_document_has_the_routes_and_the_fields_of_requests() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &[]);
    let seen = Seen::of(daemon.get("/openapi.json").expect(200));
    let mut documented = Vec::new();
    for (path, methods) in seen.document["paths"].as_object().unwrap() {
        documented.extend(keys(methods).into_iter().map(|method| (method, path.clone())));
    }
    let mut real = routes();
    real.sort();
    documented.sort();
    assert_eq!(real, documented);
    for (method, path) in real {
        let operation = &seen.document["paths"][&path][&method];
        if method == "post" {
            let body = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str().unwrap();
            let (_, schema) = seen.at(&body[1..]);
            assert_eq!(schema["additionalProperties"], json!(false));
            let real = expected(daemon.post(&path.replace("{id}", "0"), &json!({ "odd": 1 })));
            assert_eq!(real, keys(&schema["properties"]), "{path}");
        } else if path.starts_with("/v1/") {
            let all = operation["parameters"].as_array().unwrap();
            let all: BTreeSet<_> = all.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect();
            assert_eq!(expected(daemon.get(&format!("{path}?odd=1"))), all, "{path}");
        }
    }
}

#[test]
fn each_answer_is_documented_and_each_documented_answer_is_given() {
    let place = Place::new();
    let server = Server::start();
    let url = server.url();
    fs::write(place.path("tokens"), format!("alice {TOKEN}\n")).unwrap();
    let daemon = Daemon::start(&place, &["--store", &url, "--max-leases", "3"]);
    let guarded = Daemon::start(&place, &["--store", &url, "--tokens", "tokens"]);
    let seen = Seen::of(daemon.get("/openapi.json").expect(200));
    let check = |method: &str, path: &str, answer: Answer| seen.check(method, path, answer);
    let acquire = |body: Value| check("post", "/v1/acquire", daemon.post("/v1/acquire", &body));
    let by_id =
        |what: &str, lease: &Value| check("post", &format!("/v1/leases/{{id}}/{what}"), daemon.lease(lease, what));

    // Answers that come before anything is looked at, and from all routes alike.
    for (method, path) in routes() {
        let real = path.replace("{id}", "0");
        let (real, get) = match &*path {
            "/v1/inspect" => (format!("{real}?resource=a"), true),
            _ => (real, method == "get"),
        };
        let whole = if get { got(&real) } else { posted(&real, "{}", "") };
        let with = |line: &str| whole.replacen("\r\nConnection", &format!("\r\n{line}\r\nConnection"), 1);
        let ask = |text: &str| check(&method, &path, answer(daemon.send(text)));
        ask(&with("Host: localhost"));
        ask(&with("Origin: http://evil.example"));
        ask(&whole.replace("Host: localhost", "Host: evil.example"));
        ask(&with(&format!("X: {}", "y".repeat(66_000))));
        let long = if get { with("Content-Length: 70000") } else { whole.replace("Length: 2", "Length: 70000") };
        ask(&long);
        if path != "/healthz" {
            check(&method, &path, answer(guarded.send(&whole)));
        }
        if !get {
            ask(&whole.replace("application/json", "text/plain"));
        }
    }
    // Bodies that do not come, all of them at once.
    let late: Vec<_> = routes()
        .into_iter()
        .filter(|(method, _)| method == "post")
        .map(|(_, path)| {
            let text = posted(&path.replace("{id}", "0"), "{}", "");
            (path, daemon.send(&text[..text.len() - 1]))
        })
        .collect();
    for (path, stream) in late {
        check("post", &path, answer(stream));
    }

    // Answers about the store.
    let lease = acquire(json!({ "resource": "job", "data": "x" }));
    acquire(json!({ "resource": "job" }));
    acquire(json!({ "resource": "" }));
    check("post", "/v1/hold", daemon.post("/v1/hold", &json!({ "resource": "job" })));
    check("get", "/v1/inspect", daemon.get("/v1/inspect?resource=job"));
    check("get", "/v1/inspect", daemon.get("/v1/inspect?resource=free"));
    check("get", "/v1/list", daemon.get("/v1/list"));
    check("get", "/v1/list", daemon.get("/v1/list?limit=0"));
    by_id("finish", &lease);
    for what in ["renew", "release", "release", "renew", "finish"] {
        by_id(what, &lease);
    }
    by_id("release", &json!({ "id": "0" }));
    let once =
        |name: &str| check("post", "/v1/once", daemon.post("/v1/once", &json!({ "name": name, "keep_ms": 600_000 })));
    let run = once("report");
    once("report");
    by_id("renew", &run);
    check("get", "/v1/runs", daemon.get("/v1/runs"));
    by_id("finish", &run);
    check("get", "/v1/runs", daemon.get("/v1/runs"));
    check("get", "/v1/runs", daemon.get("/v1/runs?limit=0"));
    by_id("finish", &run);
    once("report");
    once("");
    let tried = |pause: u64| {
        let body = json!({ "name": "fails", "key": "x", "max_attempts": 2, "retry_after_ms": pause });
        check("post", "/v1/once", daemon.post("/v1/once", &body))
    };
    for pause in [60_000, 60_000, 0, 0] {
        let Some(id) = tried(pause)["id"].as_str().map(str::to_owned) else { continue };
        let path = format!("/v1/leases/{id}/release");
        check("post", "/v1/leases/{id}/release", daemon.post(&path, &json!({ "reason": "no disk" })));
    }
    check("get", "/v1/runs", daemon.get("/v1/runs"));
    let replacing = || {
        let body = json!({ "name": "newest", "key": "x", "replace": true, "wait_ms": 60_000 });
        daemon.post("/v1/once", &body)
    };
    let runner = check("post", "/v1/once", replacing());
    let is_revoked = || daemon.get("/v1/inspect?resource=newest@x").expect(200)["revoked"] == true;
    let (older, newest) = thread::scope(|scope| {
        let older = scope.spawn(replacing);
        wait_for("the older one has its number", is_revoked);
        let newest = scope.spawn(replacing);
        let older = older.join().unwrap();
        by_id("release", &runner);
        (older, newest.join().unwrap())
    });
    assert_eq!(check("post", "/v1/once", older)["state"], "replaced");
    assert_eq!(check("post", "/v1/once", newest)["state"], "run");
    for result in [json!([1]), json!("x".repeat(5_000))] {
        let name = format!("with {} bytes", result.to_string().len());
        let run = once(&name);
        let path = format!("/v1/leases/{}/finish", run["id"].as_str().unwrap());
        check("post", "/v1/leases/{id}/finish", daemon.post(&path, &json!({ "result": result })));
        once(&name);
    }
    check("get", "/v1/runs", daemon.get("/v1/runs"));

    // A lock by its connection, to its loss.
    let body = json!({ "resource": "stream", "ttl_ms": 2_000 }).to_string();
    let mut events = BufReader::new(daemon.send(&posted("/v1/hold", &body, ""))).lines().map(Result::unwrap);
    let mut names = BTreeSet::new();
    while names.len() < 3 {
        let line = events.next().unwrap();
        let Some(event) = serde_json::from_str::<Value>(&line).ok().filter(Value::is_object) else { continue };
        seen.fits("/components/schemas/Event", &event).unwrap();
        if event["event"] == "held" && !names.contains("held") {
            place.run(&["break", "--yes", "stream", "--store", &url]).expect(0);
        }
        names.insert(event["event"].as_str().unwrap().to_owned());
    }
    seen.statuses.borrow_mut().insert(("post".to_owned(), "/v1/hold".to_owned(), "200".to_owned()));

    // Leases that were broken.
    let roomy = Daemon::start(&place, &["--store", &url]);
    let keyed = |path: &str, body: &Value| {
        let text = posted(path, &body.to_string(), "Idempotency-Key: 1\r\n");
        check("post", path, answer(roomy.send(&text)))
    };
    let lock = json!({ "resource": "a", "ttl_ms": 15_000 });
    let run = json!({ "name": "a", "key": "b", "ttl_ms": 15_000 });
    let taken = ["c", "d"].map(|name| {
        let body = json!({ "resource": name, "ttl_ms": 15_000 });
        check("post", "/v1/acquire", answer(roomy.send(&posted("/v1/acquire", &body.to_string(), ""))))
    });
    let unfinished = roomy.post("/v1/once", &json!({ "name": "e", "key": "f", "ttl_ms": 15_000 })).expect(200);
    keyed("/v1/acquire", &lock);
    keyed("/v1/once", &run);
    for name in ["a", "a@b", "c", "d", "e@f"] {
        place.run(&["break", "--yes", name, "--store", &url]).expect(0);
    }
    wait_for("the losses", || roomy.metric("leasehold_serve_lost_total") == 5);
    // Lost, and then over.
    for _ in 0..2 {
        keyed("/v1/acquire", &lock);
        keyed("/v1/once", &run);
    }
    for (lease, what) in [(&taken[0], "renew"), (&taken[1], "release"), (&unfinished, "finish")] {
        check("post", &format!("/v1/leases/{{id}}/{what}"), roomy.lease(lease, what));
    }

    // As many leases as a client may have.
    for name in ["one", "two", "three"] {
        check("post", "/v1/once", daemon.post("/v1/once", &json!({ "name": name, "key": "x", "ttl_ms": 60_000 })));
    }
    acquire(json!({ "resource": "four" }));
    for (path, body) in [("/v1/hold", json!({ "resource": "four" })), ("/v1/once", json!({ "name": "4", "key": "x" }))]
    {
        check("post", path, daemon.post(path, &body));
    }
    for path in ["/metrics", "/openapi.json", "/healthz", "/"] {
        check("get", path, daemon.get(path));
    }

    // A store that refuses, and one that is down.
    // A release is waited for in 2 s, and a finish for as long as its lease lasts.
    let hold_two = |names: [&str; 2]| {
        [(names[0], 60_000), (names[1], 2_000)]
            .map(|(name, ttl)| roomy.post("/v1/once", &json!({ "name": name, "key": "x", "ttl_ms": ttl })).expect(200))
    };
    let ask_all = |held: &[Value]| {
        let id = |lease: &Value, what: &str| format!("/v1/leases/{}/{what}", lease["id"].as_str().unwrap());
        let lock = r#"{"resource":"four","ttl_ms":2000}"#;
        let asked = [
            ("/v1/leases/{id}/release", posted(&id(&held[0], "release"), "{}", "")),
            ("/v1/leases/{id}/finish", posted(&id(&held[1], "finish"), "{}", "")),
            ("/v1/acquire", posted("/v1/acquire", lock, "")),
            ("/v1/hold", posted("/v1/hold", &lock.replace("four", "five"), "")),
            ("/v1/once", posted("/v1/once", r#"{"name":"4","key":"x","ttl_ms":2000}"#, "")),
            ("/v1/inspect", got("/v1/inspect?resource=a")),
            ("/v1/list", got("/v1/list")),
            ("/v1/runs", got("/v1/runs")),
        ];
        // All at once, since each waits for the store.
        let streams =
            asked.map(|(path, text)| (path, if text.starts_with("GET") { "get" } else { "post" }, roomy.send(&text)));
        for (path, method, stream) in streams {
            check(method, path, answer(stream));
        }
    };
    let held = hold_two(["held-1", "held-2"]);
    assert!(!server.command(&["ACL", "SETUSER", "default", "-@all", "+@connection", "+acl"]).is_error());
    ask_all(&held);
    assert!(!server.command(&["ACL", "SETUSER", "default", "+@all"]).is_error());
    let held = hold_two(["held-3", "held-4"]);
    server.kill();
    ask_all(&held);

    let (statuses, fields) = (seen.statuses.take(), seen.fields.take());
    let mut unseen = Vec::new();
    for (path, methods) in seen.document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            for status in keys(&operation["responses"]) {
                let one = (method.clone(), path.clone(), status);
                if !statuses.contains(&one) && !UNSEEN.contains(&&*one.2) {
                    unseen.push(format!("{one:?}"));
                }
            }
        }
    }
    let requests = ["Asked", "AskedOnce", "GivenBack", "Nothing", "RunOutcome"];
    for (name, schema) in seen.document["components"]["schemas"].as_object().unwrap() {
        for field in schema["properties"].as_object().into_iter().flat_map(|fields| fields.keys()) {
            let place = format!("/components/schemas/{name}/properties/{field}");
            if !requests.contains(&&**name) && !fields.contains(&place) && !OF_QUORUMS.contains(&&*place) {
                unseen.push(place);
            }
        }
    }
    assert!(unseen.is_empty(), "documented, and never answered: {unseen:#?}");
}
