//! Redis, over a connection and over HTTP.

use leasehold_core::config::Wait;
use leasehold_core::member::RETENTION;
use leasehold_wire::client::{Access, Plaintext, RedisHttpStore, RedisStore, Store};
use leasehold_wire::redis::Replicas;
use leasehold_wire::rest::Dialect;
use serde_json::{Value as Json, json};

use super::scenario::Scenario;
use crate::format::{Credentials, WireVector};

pub(super) const ALL: &[fn() -> WireVector] = &[
    redis_connection,
    redis_replicas,
    redis_errors,
    upstash_requests,
    upstash_errors,
    webdis_requests,
    webdis_errors,
    quorum_of_kinds,
];

const HELD: &str = "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee@host-b;1699999990000";
const NOSCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";

fn connection() -> Store {
    Store::Redis(RedisStore::default())
}

fn http(dialect: Dialect, access: Access) -> Store {
    Store::RedisHttp(RedisHttpStore {
        dialect,
        url: "https://redis.example.com/base/".to_owned(),
        access,
        retention: RETENTION,
        plaintext: Plaintext::Refused,
    })
}

/// The form of a server's replies.
#[derive(Clone, Copy)]
enum Form {
    Resp,
    Upstash,
    Webdis,
}

impl Scenario {
    /// A list that ends with the name of the request.
    fn says(&mut self, form: Form, parts: &[&str]) -> &mut Self {
        let name = self.named();
        let parts: Vec<&str> = parts.iter().copied().chain([name.as_str()]).collect();
        match form {
            Form::Resp => {
                let texts = parts.iter().map(|part| format!("${}\r\n{part}\r\n", part.len()));
                let text = format!("*{}\r\n{}", parts.len(), texts.collect::<String>());
                self.resp(&text)
            }
            Form::Upstash => self.json(200, &json!({ "result": parts })),
            Form::Webdis => self.json(200, &json!({ "EVALSHA": parts })),
        }
    }

    /// The number of the request alone, as to a release.
    fn frees(&mut self, form: Form) -> &mut Self {
        let name = self.named();
        match form {
            Form::Resp => self.resp(&format!("${}\r\n{name}\r\n", name.len())),
            Form::Upstash => self.json(200, &json!({ "result": name })),
            Form::Webdis => self.json(200, &json!({ "EVALSHA": name })),
        }
    }

    fn fails(&mut self, form: Form, error: &str) -> &mut Self {
        match form {
            Form::Resp => self.resp(&format!("-{error}\r\n")),
            Form::Upstash => self.json(400, &json!({ "error": error })),
            Form::Webdis => self.json(200, &json!({ "EVALSHA": [false, error] })),
        }
    }

    /// The whole life of a lease, and of one that somebody else has.
    fn lives(&mut self, form: Form) -> &mut Self {
        self.acquire(1, "invoice/42", Wait::Forever);
        self.fails(form, NOSCRIPT).says(form, &["granted", "1700000000000000"]);
        self.wake_until_sent().says(form, &["renewed", "", "", ""]);
        self.release(1).frees(form);
        self.acquire(2, "invoice/42", Wait::Once).says(form, &["held", HELD, "8000", "1700000000000001"]);
        self.acquire(3, "größe {x}", Wait::Once).says(form, &["foreign", "string", "-1"])
    }

    /// One attempt for each of these errors.
    fn refused(&mut self, form: Form, errors: &[&str]) -> &mut Self {
        for (lock, error) in (1..).zip(errors) {
            self.acquire(lock, &format!("lock {lock}"), Wait::Once).fails(form, error);
            self.settled(form, lock);
        }
        self
    }

    /// Asks again for a record that may have been written, and releases it.
    fn settled(&mut self, form: Form, lock: u64) -> &mut Self {
        if !self.is_over(lock) {
            self.wake_until_sent().says(form, &["granted", "1700000000000000"]);
            self.release(lock).frees(form);
        }
        self
    }
}

fn redis_connection() -> WireVector {
    let mut s = Scenario::new(
        "redis_connection",
        "Commands for a Redis over a connection: scripts by their digest, and whole where the server does not know them; \
         a lease granted, renewed and released; a lock that another client holds, and one of another library.",
        &[connection()],
    );
    s.lives(Form::Resp);
    s.told()
}

fn redis_replicas() -> WireVector {
    let replicas = Some(Replicas { count: 2 });
    let mut s = Scenario::new(
        "redis_replicas",
        "Where replicas have to confirm, the script comes whole at once and `WAIT` follows: one confirmation too few is no \
         grant. Another number of replies than commands says nothing.",
        &[Store::Redis(RedisStore { replicas, ..RedisStore::default() })],
    );
    let granted = |s: &Scenario, confirmed: u32| {
        let name = s.named();
        let length = name.len();
        format!("*3\r\n$7\r\ngranted\r\n$16\r\n1700000000000000\r\n${length}\r\n{name}\r\n:{confirmed}\r\n")
    };
    s.acquire(1, "a", Wait::Forever);
    let text = granted(&s, 1);
    s.resp(&text).wake_until_sent().resp(":1\r\n").wake_until_sent();
    let text = granted(&s, 2);
    s.resp(&text);
    s.told()
}

const ERRORS: [&str; 12] = [
    "READONLY You can't write against a read only replica.",
    "MOVED 3999 127.0.0.1:6381",
    "LOADING Redis is loading the dataset in memory",
    "BUSY Redis is busy running a script.",
    "MISCONF Redis is configured to save RDB snapshots",
    "OOM command not allowed when used memory > 'maxmemory'.",
    "NOAUTH Authentication required.",
    "WRONGPASS invalid username-password pair or user is disabled.",
    "NOPERM this user has no permissions to run the 'evalsha' command",
    "WRONGTYPE Operation against a key holding the wrong kind of value",
    "ERR max requests limit exceeded. Limit: 500000, Usage: 500000.",
    "ERR max number of clients reached",
];

fn redis_errors() -> WireVector {
    let mut s = Scenario::new(
        "redis_errors",
        "What a Redis refuses was not done, whatever the reason; each reason has its own answer for the caller.",
        &[connection()],
    );
    s.refused(Form::Resp, &ERRORS);
    s.told()
}

fn upstash_requests() -> WireVector {
    let mut s = Scenario::new(
        "upstash_requests",
        "Commands as JSON for Upstash's REST interface. A request waits for the token; renewals of several locks are one \
         request.",
        &[http(Dialect::Upstash, Access::WithCredentials)],
    );
    s.acquire(9, "first", Wait::Once).pass(20);
    s.give(0, Credentials::Token { token: "the-token".to_owned(), expires_unix_ms: None });
    s.says(Form::Upstash, &["granted", "1700000000000000"]).release(9).frees(Form::Upstash);
    s.lives(Form::Upstash);
    s.acquire(4, "a", Wait::Forever).says(Form::Upstash, &["granted", "5"]);
    s.acquire(5, "b", Wait::Forever).says(Form::Upstash, &["granted", "6"]);
    s.wake_until_sent().says(Form::Upstash, &["renewed", "", "", "", "free", "", "", ""]);
    s.told()
}

fn upstash_errors() -> WireVector {
    let mut s = Scenario::new(
        "upstash_errors",
        "Statuses and bodies of a REST server that are no reply: each ends the attempt as refused, throttled or \
         unavailable, and what may have been done is released.",
        &[http(Dialect::Upstash, Access::Anonymous)],
    );
    let page = "<html><body>Bad Gateway</body></html>";
    for (lock, (status, headers, body)) in (1..).zip([
        (401, &[][..], r#"{"error":"WRONGPASS invalid or missing auth token"}"#),
        (403, &[], r#"{"error":"NOPERM read only"}"#),
        (404, &[], "no such page"),
        (405, &[], ""),
        (413, &[], ""),
        (429, &[], r#"{"error":"ERR max daily request limit exceeded."}"#),
        (307, &[("Location", "https://user:secret@elsewhere.example.com/?token=x")], ""),
        (400, &[], r#"{"error":"OOM command not allowed"}"#),
        (400, &[], "{}"),
        (502, &[("Content-Type", "text/html")], page),
        (200, &[("Content-Type", "text/html")], page),
        (200, &[], r#"{"result":["granted","17"#),
        (200, &[], r#"{"result":["granted","1700000000000000","999999"]}"#),
        (200, &[], r#"{"result":1.5}"#),
    ]) {
        s.acquire(lock, &format!("lock {lock}"), Wait::Once).http(status, headers, body).settled(Form::Upstash, lock);
    }
    s.told()
}

fn webdis_requests() -> WireVector {
    let mut s = Scenario::new(
        "webdis_requests",
        "Commands as paths for Webdis, with a user and a password.",
        &[http(Dialect::Webdis, Access::WithCredentials)],
    );
    s.give(0, Credentials::Password { user: "Aladdin".to_owned(), password: "open sesame".to_owned() });
    s.lives(Form::Webdis);
    s.told()
}

fn webdis_errors() -> WireVector {
    let mut s = Scenario::new(
        "webdis_errors",
        "Webdis says with status 200 what a Redis refuses, and with status 503 that there is none.",
        &[http(Dialect::Webdis, Access::Anonymous)],
    );
    s.refused(Form::Webdis, &ERRORS[..3]);
    s.acquire(9, "no redis", Wait::Once).http(503, &[], "").settled(Form::Webdis, 9);
    s.acquire(10, "not json", Wait::Once).json(200, &Json::Null).settled(Form::Webdis, 10);
    s.told()
}

fn quorum_of_kinds() -> WireVector {
    let mut s = Scenario::new(
        "quorum_of_kinds",
        "Three nodes, each in its own format. A majority grants; the one that is behind is raised; the third was not \
         reached.",
        &[connection(), http(Dialect::Upstash, Access::Anonymous), http(Dialect::Webdis, Access::Anonymous)],
    );
    s.acquire(1, "a", Wait::Forever);
    s.says(Form::Resp, &["granted", "1700000000000000"]);
    s.says(Form::Upstash, &["granted", "1700000000000007"]).not_sent();
    s.says(Form::Resp, &["raised", "1700000000000007"]);
    s.close();
    s.frees(Form::Resp).lost();
    s.told()
}
