//! The border of the component, by its own conversions: every call, with any values.
//!
//! A value is drawn when it is needed, so it is always of the right type, and of any content.

use std::cell::RefCell;
use std::rc::Rc;

use arbitrary::{Result as Drawn, Unstructured};
use leasehold_protocol::wit::{client, fence, redis};
use leasehold_protocol::{Problem, Sink, Source, Unfit};
use serde_json::{Value as Json, json};

use crate::{answers, values};

/// Calls to everything that there is, one after the other.
pub fn run(bytes: &[u8]) {
    let dice = Dice(Rc::new(RefCell::new(Unstructured::new(bytes))));
    let first = dice.drawn(|u| u.int_in_range(0..=9), 0);
    match first {
        0 => guarded(&dice),
        1 => connected(&dice),
        _ => clients(&dice),
    }
}

/// The source of values.
#[derive(Clone)]
struct Dice<'a>(Rc<RefCell<Unstructured<'a>>>);

impl<'a> Dice<'a> {
    fn drawn<T>(&self, draw: impl FnOnce(&mut Unstructured<'a>) -> Drawn<T>, or: T) -> T {
        draw(&mut self.0.borrow_mut()).unwrap_or(or)
    }

    fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    fn value(&self, name: &'static str) -> Value<'a> {
        Value { dice: self.clone(), name, depth: 0 }
    }

    fn values<const N: usize>(&self, names: [&'static str; N]) -> [Value<'a>; N] {
        names.map(|name| self.value(name))
    }
}

/// Any value, known by the name of where it stands.
struct Value<'a> {
    dice: Dice<'a>,
    name: &'static str,
    depth: u32,
}

impl Value<'_> {
    fn below(&self, name: &'static str) -> Self {
        Self { dice: self.dice.clone(), name, depth: self.depth + 1 }
    }
}

impl Source for Value<'_> {
    fn spelt(name: &str) -> String {
        name.to_owned()
    }

    fn is_absent(&self) -> bool {
        self.dice.is_empty() || self.dice.drawn(|u| Ok(values::chance(u, 150)), true)
    }

    fn flag(&self) -> Result<bool, Unfit> {
        Ok(self.dice.drawn(|u| u.arbitrary(), false))
    }

    fn number(&self) -> Result<u64, Unfit> {
        let name = self.name;
        let small = |u: &mut Unstructured<'_>| {
            Ok(match name {
                "lock" | "node" | "id" | "request" => u.int_in_range(0..=5)?,
                "monotonic-ns" => u.int_in_range(0..=1_u64 << 50)?,
                "batch" | "locks" | "orphans" | "observations" => u.int_in_range(1..=9)?,
                "replies" => u.int_in_range(0..=3)?,
                _ => values::number(u)?,
            })
        };
        Ok(self.dice.drawn(|u| if values::chance(u, 12) { u.arbitrary() } else { small(u) }, 1))
    }

    fn milliseconds(&self) -> Result<u64, Unfit> {
        let usual = [0, 1, 10, 100, 1_000, 30_000, 60_000, 86_400_000, 172_800_000];
        Ok(self.dice.drawn(|u| if values::chance(u, 20) { u.arbitrary() } else { Ok(*u.choose(&usual)?) }, 1_000))
    }

    fn text(&self) -> Result<String, Unfit> {
        let usual: &[&str] = match self.name {
            "resource" | "name" => &["a", "b", "{a}", ""],
            "url" => &["https://dynamodb.eu-west-1.amazonaws.com", "http://127.0.0.1:1", "https://a/b", "ftp://a"],
            "table" => &["locks", "arn:aws:dynamodb:eu-west-1:123456789012:table/locks", ""],
            "region" => &["eu-west-1", "Nowhere"],
            _ => &["", "me", "é", "\u{1b}[31m"],
        };
        Ok(self.dice.drawn(
            |u| if values::chance(u, 20) { values::text(u, 20) } else { Ok((*u.choose(usual)?).to_owned()) },
            String::new(),
        ))
    }

    fn bytes(&self) -> Result<Vec<u8>, Unfit> {
        let draw = |u: &mut Unstructured<'_>| {
            Ok(match (self.name, u.arbitrary::<u8>()?) {
                (_, 250..) => values::bytes(u, 40)?,
                ("seed", _) => vec![7; 32],
                ("fresh" | "nonce" | "stamp" | "loss" | "id" | "quorum", _) => vec![u.int_in_range(1..=3)?; 16],
                ("body", 0..100) => answers::dynamodb(u, None)?.1,
                ("replies" | "bytes", 0..200) => resp(u)?,
                (_, _) => values::bytes(u, 60)?,
            })
        };
        Ok(self.dice.drawn(draw, Vec::new()))
    }

    fn items(&self) -> Result<Vec<Self>, Unfit> {
        let most = if self.depth > 6 { 0 } else { 3 };
        let count = self.dice.drawn(|u| u.int_in_range(0..=most), 0);
        Ok((0..count).map(|_| self.below(self.name)).collect())
    }

    fn field(&self, name: &'static str) -> Result<Self, Unfit> {
        Ok(self.below(name))
    }

    fn only(&self, _: &[&'static str]) -> Result<(), Unfit> {
        Ok(())
    }

    fn case(&self, _: &'static str, names: &[&'static str]) -> Result<usize, Unfit> {
        Ok(self.dice.drawn(|u| u.choose_index(names.len()), 0))
    }

    fn name(&self, names: &[&'static str]) -> Result<usize, Unfit> {
        Ok(self.dice.drawn(|u| u.choose_index(names.len()), 0))
    }

    fn tuple<const N: usize>(&self) -> Result<[Self; N], Unfit> {
        Ok(std::array::from_fn(|_| self.below(self.name)))
    }
}

/// A server's answer over its own protocol.
fn resp(u: &mut Unstructured<'_>) -> Drawn<Vec<u8>> {
    const PARTS: [&str; 10] = [
        "+OK\r\n",
        "$-1\r\n",
        ":1\r\n",
        "-NOSCRIPT No\r\n",
        "*3\r\n$7\r\ngranted\r\n:1700000000000000\r\n$1\r\n0\r\n",
        "*2\r\n$7\r\nrenewed\r\n$1\r\n1\r\n",
        "*2\r\n$8\r\nreleased\r\n$1\r\n2\r\n",
        "*1\r\n",
        "$5\r\nab",
        ">1\r\n+x\r\n",
    ];
    Ok(values::some(u, 3, |u| Ok(*u.choose(&PARTS)?))?.concat().into_bytes())
}

/// The target of answers: a tree that can be inspected.
struct Tree;

impl Sink for Tree {
    type Value = Json;

    fn nothing(&self) -> Json {
        Json::Null
    }

    fn flag(&self, flag: bool) -> Json {
        flag.into()
    }

    fn number(&self, number: u64) -> Json {
        number.into()
    }

    fn nanoseconds(&self, ns: u64) -> Json {
        ns.into()
    }

    fn text(&self, text: &str) -> Json {
        text.into()
    }

    fn name(&self, name: &'static str) -> Json {
        name.into()
    }

    fn bytes(&self, bytes: &[u8]) -> Json {
        json!(bytes)
    }

    fn items(&self, items: Vec<Json>) -> Json {
        items.into()
    }

    fn record(&self, _: &'static str, fields: Vec<(&'static str, Json)>) -> Json {
        Json::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn case(&self, _: &'static str, name: &'static str, fields: Vec<(&'static str, Json)>) -> Json {
        json!({ "case": name, "of": self.record(name, fields) })
    }
}

/// The answer of a call. A call that fails must give a reason, and only one that it may give.
fn answer(call: Result<Json, Problem>) -> Option<Json> {
    match call {
        Ok(value) => Some(value),
        Err(Problem::Broken(why)) => panic!("{why}"),
        // A value is only ever of the wrong kind where it is not there, or does not fit into fewer bits.
        Err(Problem::Unfit(unfit)) => {
            let said = unfit.to_string();
            assert!(said.contains("above the largest") || said.contains("is missing"), "{said}");
            None
        }
        Err(problem @ (Problem::Config(_) | Problem::Command(_) | Problem::Rejected(_) | Problem::Malformed(_))) => {
            let _ = problem.reason(&Tree);
            None
        }
    }
}

fn clients(dice: &Dice<'_>) {
    let with_stores = dice.drawn(|u| u.arbitrary(), true);
    let made = if with_stores {
        client::Client::make("create-wired", &dice.values(["config", "stores", "seed", "now"]))
    } else {
        client::Client::make("create", &dice.values(["config", "seed", "now"]))
    };
    let client = match made {
        Ok(client) => client,
        Err(problem) => return drop(answer(Err(problem))),
    };
    while !dice.is_empty() {
        let (name, names): (_, &[&'static str]) = *dice.drawn(|u| u.choose(&CALLS), &CALLS[0]);
        let args: Vec<Value<'_>> = names.iter().map(|name| dice.value(name)).collect();
        let answered = answer(client.call(name, &args, &Tree));
        if let Some(value) = answered {
            looked_at(name, &value);
        }
        let stats = answer(client.call::<Value<'_>, _>("stats", &[], &Tree)).expect("stats are always there");
        let count = |name: &str| stats[name].as_u64().expect("a count");
        assert!(count("held") <= count("locks"), "{stats}");
        let is_idle = answer(client.call::<Value<'_>, _>("is-idle", &[], &Tree)) == Some(json!(true));
        assert!(!is_idle || (count("locks") == 0 && count("orphans") == 0 && count("undrained") == 0), "{stats}");
    }
}

const CALLS: [(&str, &[&str]); 17] = [
    ("step", &["fresh", "now", "inputs"]),
    ("step", &["fresh", "now", "inputs"]),
    ("acquire", &["lock", "resource", "options", "fresh", "now"]),
    ("acquire", &["lock", "resource", "options", "fresh", "now"]),
    ("poll-output", &["now"]),
    ("poll-output", &["now"]),
    ("handle-response", &["id", "response", "now"]),
    ("handle-response", &["id", "response", "now"]),
    ("handle-timeout", &["fresh", "now"]),
    ("release", &["lock", "now"]),
    ("declare-lost", &["lock", "now"]),
    ("notified", &["resource", "now"]),
    ("set-credentials", &["node", "credentials", "now"]),
    ("node-votes", &["node", "loss", "now"]),
    ("reseed", &["seed"]),
    ("remaining-ns", &["lock", "now"]),
    ("close", &["now"]),
];

fn looked_at(call: &str, value: &Json) {
    match call {
        "step" => {
            let outputs = value["outputs"].as_array().expect("a list");
            assert!(outputs.len() <= 2_000 && value["wake-at-ns"].as_u64().is_none_or(|at| at < u64::MAX), "{value}");
            let waits = |output: &Json| output["case"] == "wake-at";
            assert!(!outputs.iter().any(waits), "{value}");
        }
        "remaining-ns" => assert!(value.as_u64().is_some_and(|ns| ns <= 86_400_000_000_000), "{value}"),
        _ => {}
    }
}

/// Tokens of a guard never fall.
fn guarded(dice: &Dice<'_>) {
    for name in ["redis", "dynamodb"] {
        assert!(answer(fence::call::<Value<'_>, _>(name, &[], &Tree)).is_some());
    }
    let guard = match fence::Guard::make("create", &dice.values(["high-water"])) {
        Ok(guard) => guard,
        Err(problem) => return drop(answer(Err(problem))),
    };
    let mark = || answer(guard.call::<Value<'_>, _>("high-water", &[], &Tree)).expect("a mark").as_u64();
    while !dice.is_empty() {
        let before = mark();
        let _ = match dice.drawn(|u| u.int_in_range(0..=2), 0) {
            0 => answer(guard.call("claim", &dice.values(["token"]), &Tree)),
            1 => answer(guard.call("check", &dice.values(["token"]), &Tree)),
            _ => answer(guard.call("check-in-order", &dice.values(["token", "write"]), &Tree)),
        };
        assert!(mark() >= before && mark().is_none_or(|mark| mark < 1 << 53));
    }
}

/// Checks that a stream is cut into replies, and that they contain nothing that was not in it.
fn connected(dice: &Dice<'_>) {
    let _ = answer(redis::call("encode", &dice.values(["commands"]), &Tree));
    let _ = answer(redis::call("channel", &dice.values(["resource"]), &Tree));
    let _ = answer(redis::call("released-by", &dice.values(["channel", "message"]), &Tree));
    let reader = match redis::Reader::make("create", &dice.values(["max-reply-bytes"])) {
        Ok(reader) => reader,
        Err(problem) => return drop(answer(Err(problem))),
    };
    while !dice.is_empty() {
        let _ = answer(reader.call("push", &dice.values(["bytes"]), &Tree));
        let _ = answer(reader.call("take", &dice.values(["replies"]), &Tree));
    }
}
