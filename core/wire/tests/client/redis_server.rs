//! A Redis in memory that knows the scripts by what they do, spoken to over a connection, Upstash's REST interface, or
//! Webdis.

use std::collections::{BTreeMap, BTreeSet};

use leasehold_wire::client::{HttpRequest, Response};
use leasehold_wire::redis::{Command, SCRIPTS};
use leasehold_wire::resp::Value;
use serde_json::{Value as Json, json};

use super::common::{Host, http};

#[derive(Default)]
pub(crate) struct RedisServer {
    known: BTreeSet<&'static str>,
    locks: BTreeMap<String, String>,
    fences: BTreeMap<String, u64>,
    /// Scripts that were run, by name.
    pub(crate) ran: Vec<&'static str>,
}

impl RedisServer {
    /// Every request of this host is answered, until there are none.
    pub(crate) fn serve(&mut self, host: &mut Host) {
        loop {
            if let Some(commands) = host.commands.pop_front() {
                let replies = commands.commands.iter().map(|command| self.run(command)).collect();
                host.answer(commands.id, Response::Redis(replies));
            } else if let Some(request) = host.http.pop_front() {
                let response = self.serve_http(&request);
                host.answer(request.id, response);
            } else {
                return;
            }
        }
    }

    /// Serves a request of Upstash or Webdis; the request shows which.
    pub(crate) fn serve_http(&mut self, request: &HttpRequest) -> Response {
        assert_eq!((request.method, request.url.as_str()), ("POST", "https://redis.example.com/"));
        let text = std::str::from_utf8(&request.body).unwrap();
        let is_upstash = text.starts_with('[');
        let args: Vec<Vec<u8>> = if is_upstash {
            let Json::Array(args) = serde_json::from_str(text).unwrap() else { panic!("{text}") };
            args.iter().map(|arg| arg.as_str().unwrap().as_bytes().to_vec()).collect()
        } else {
            text.split('/').map(unescaped).collect()
        };
        let name = String::from_utf8(args[0].clone()).unwrap();
        let reply = self.run(&Command::new(&args));
        match (is_upstash, reply) {
            (true, Value::Error(error)) => http(400, &[], &json!({ "error": error }).to_string()),
            (true, value) => http(200, &[], &json!({ "result": to_json(&value) }).to_string()),
            (false, Value::Error(error)) => http(200, &[], &json!({ name: [false, error] }).to_string()),
            (false, value) => {
                http(200, &[("Content-Type", "application/json")], &json!({ name: to_json(&value) }).to_string())
            }
        }
    }

    pub(crate) fn run(&mut self, command: &Command) -> Value {
        let args: Vec<&str> = command.words().map(|word| std::str::from_utf8(word).unwrap()).collect();
        let by_text = match args[0] {
            "EVAL" => true,
            "EVALSHA" => false,
            other => panic!("{other}"),
        };
        let named =
            |script: &&leasehold_wire::redis::Script| args[1] == if by_text { script.text } else { script.sha1 };
        let script = SCRIPTS.iter().find(named).expect("a script of ours");
        if by_text {
            self.known.insert(script.name);
        } else if !self.known.contains(script.name) {
            return Value::Error("NOSCRIPT No matching script. Please use EVAL.".into());
        }
        self.ran.push(script.name);
        let count: usize = args[2].parse().unwrap();
        let (keys, argv) = args[3..].split_at(count);
        if script.name == "release" && is_of(self.locks.get(keys[0]), argv[0]) {
            self.locks.remove(keys[0]);
            return Value::Bulk((*argv.last().unwrap()).into());
        }
        let mut reply = self.script(script.name, keys, argv);
        reply.push((*argv.last().unwrap()).to_owned());
        Value::Array(reply.into_iter().map(|part| Value::Bulk(part.into_bytes())).collect())
    }

    fn script(&mut self, name: &str, keys: &[&str], argv: &[&str]) -> Vec<String> {
        let (lock, fence) = (keys[0].to_owned(), keys[1].to_owned());
        match name {
            "acquire" => {
                if !is_of(self.locks.get(&lock), &argv[0][..32]) {
                    if self.locks.contains_key(&lock) {
                        return self.seen(&lock, &fence);
                    }
                    self.locks.insert(lock, argv[0].to_owned());
                    let floor: u64 = argv[3].parse().unwrap();
                    let next = self.fences.get(&fence).map_or(floor, |counter| floor.max(counter + 1));
                    self.fences.insert(fence.clone(), next);
                }
                vec!["granted".into(), self.fences[&fence].to_string()]
            }
            "renew" => {
                let pairs = keys.chunks(2).zip(argv[1..].chunks(2));
                let each = pairs.flat_map(|(keys, own)| {
                    let mut parts = if is_of(self.locks.get(keys[0]), own[0]) {
                        vec!["renewed".to_owned()]
                    } else {
                        self.seen(keys[0], keys[1])
                    };
                    parts.resize(4, String::new());
                    parts
                });
                each.collect()
            }
            "raise" if is_of(self.locks.get(&lock), argv[0]) => {
                let raised = argv[2].parse::<u64>().unwrap().max(self.fences[&fence]);
                self.fences.insert(fence, raised);
                vec!["raised".into(), raised.to_string()]
            }
            "release" | "raise" | "read" => self.seen(&lock, &fence),
            other => panic!("{other}"),
        }
    }

    fn seen(&self, lock: &str, fence: &str) -> Vec<String> {
        match self.locks.get(lock) {
            None => vec!["free".into(), self.fences.get(fence).map(ToString::to_string).unwrap_or_default()],
            Some(value) => vec!["held".into(), value.clone(), "30000".into(), self.fences[fence].to_string()],
        }
    }
}

fn to_json(value: &Value) -> Json {
    match value {
        Value::Bulk(bytes) => std::str::from_utf8(bytes).unwrap().into(),
        Value::Array(items) => items.iter().map(to_json).collect(),
        other => panic!("{other:?}"),
    }
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = text.bytes();
    let mut all = Vec::new();
    while let Some(byte) = bytes.next() {
        all.push(match byte {
            b'%' => {
                let pair = [bytes.next().unwrap(), bytes.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&pair).unwrap(), 16).unwrap()
            }
            byte => byte,
        });
    }
    all
}

/// Tells if the value of a lock is that of this attempt.
fn is_of(value: Option<&String>, nonce: &str) -> bool {
    value.is_some_and(|value| value.starts_with(&format!("{nonce}@")))
}
