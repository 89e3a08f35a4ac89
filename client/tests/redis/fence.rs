//! Guards for Redis against holders that do not know that they are too late, on a real server.

use crate::common;
use leasehold::ErrorKind;
use leasehold::fence::{Error, RedisGuard};
use leasehold_servers::redis::Server;
use leasehold_servers::resp::{Connection, Reply};

const KEY: &str = "invoice:42";
const OLD: u64 = 33;
const NEW: u64 = 34;
const MAX: u64 = (1 << 53) - 1;

fn eval(db: &mut Connection, script: &str, keys: &[&str], args: &[&str]) -> Reply {
    let count = keys.len().to_string();
    let words: Vec<&str> = [&["EVAL", script, &count], keys, args].concat();
    db.command(&words).unwrap()
}

#[track_caller]
fn integer(reply: Reply) -> i64 {
    match reply {
        Reply::Integer(reply) => reply,
        other => panic!("no integer but {other:?}"),
    }
}

fn mark(key: &str) -> String {
    RedisGuard::mark_key(key).unwrap()
}

fn claim(db: &mut Connection, key: &str, token: u64) -> Result<(), Error> {
    let reply = eval(db, RedisGuard::claim_script(), &[&mark(key)], &[&token.to_string()]);
    RedisGuard::outcome(key, token, integer(reply))
}

fn check(db: &mut Connection, key: &str, token: u64) -> Result<(), Error> {
    let reply = eval(db, RedisGuard::check_script(), &[&mark(key)], &[&token.to_string()]);
    RedisGuard::outcome(key, token, integer(reply))
}

fn set(db: &mut Connection, key: &str, token: u64, value: &str) -> Result<(), Error> {
    let reply = eval(db, RedisGuard::check_and_set_script(), &[&mark(key), key], &[&token.to_string(), value]);
    RedisGuard::outcome(key, token, integer(reply))
}

fn delete(db: &mut Connection, key: &str, token: u64) -> Result<(), Error> {
    let script = format!(
        "{}local passed, reply = leasehold_check(KEYS[1], ARGV[1])
         if not passed then return reply end
         redis.call('DEL', KEYS[2])
         return reply",
        RedisGuard::CHECK
    );
    RedisGuard::outcome(key, token, integer(eval(db, &script, &[&mark(key), key], &[&token.to_string()])))
}

fn get(db: &mut Connection, key: &str) -> Option<String> {
    match db.command(&["GET", key]).unwrap() {
        Reply::Nil => None,
        Reply::Bulk(value) => Some(String::from_utf8(value).unwrap()),
        other => panic!("{other:?}"),
    }
}

fn total(db: &mut Connection, key: &str) -> i64 {
    get(db, key).unwrap().parse().unwrap()
}

#[track_caller]
fn assert_stale(result: Result<(), Error>) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StaleToken, "{error}");
    let message = error.to_string();
    assert!(message.contains("33") && message.contains("34"), "{message}");
}

#[test]
fn a_holder_writes_repeatedly_until_its_successor_claims() {
    let server = Server::start();
    let db = &mut server.connect();
    claim(db, KEY, OLD).unwrap();
    claim(db, KEY, OLD).unwrap();
    for value in ["110", "120"] {
        set(db, KEY, OLD, value).unwrap();
    }
    claim(db, KEY, NEW).unwrap();
    set(db, KEY, NEW, "130").unwrap();
    assert_stale(set(db, KEY, OLD, "999"));
    assert_stale(check(db, KEY, OLD));
    assert_stale(claim(db, KEY, OLD));
    assert_eq!(get(db, KEY).unwrap(), "130");
    check(db, KEY, NEW).unwrap();
    set(db, KEY, NEW, "140").unwrap();
    assert_eq!(get(db, &mark(KEY)).unwrap(), "34");
    assert_eq!(db.command(&["PTTL", &mark(KEY)]).unwrap(), Reply::Integer(-1), "a mark does not expire");
}

#[test]
fn a_claim_before_the_read_keeps_a_late_write_from_being_written_over() {
    let server = Server::start();
    let (old, new) = (&mut server.connect(), &mut server.connect());
    old.command(&["SET", KEY, "100"]).unwrap();
    claim(old, KEY, OLD).unwrap();
    let stale = total(old, KEY) + 1;
    // The old holder sleeps with its sum in hand; the new one claims, reads, and has not written yet.
    claim(new, KEY, NEW).unwrap();
    let fresh = total(new, KEY) + 10;
    assert_stale(set(old, KEY, OLD, &stale.to_string()));
    set(new, KEY, NEW, &fresh.to_string()).unwrap();
    assert_eq!(total(old, KEY), 110);
}

#[test]
fn an_item_that_a_later_holder_deleted_is_not_brought_back() {
    let server = Server::start();
    let db = &mut server.connect();
    claim(db, KEY, OLD).unwrap();
    set(db, KEY, OLD, "100").unwrap();
    claim(db, KEY, NEW).unwrap();
    delete(db, KEY, NEW).unwrap();
    assert_stale(set(db, KEY, OLD, "999"));
    assert_stale(delete(db, KEY, OLD));
    assert_stale(claim(db, KEY, OLD));
    assert_eq!(get(db, KEY), None);
}

#[test]
fn a_check_needs_a_claim() {
    let server = Server::start();
    let db = &mut server.connect();
    for result in [set(db, KEY, OLD, "1"), check(db, KEY, OLD), delete(db, KEY, OLD)] {
        let error = result.unwrap_err();
        assert!(error.kind() == ErrorKind::Config && error.to_string().contains("never claimed"), "{error}");
    }
    assert_eq!(db.command(&["DBSIZE"]).unwrap(), Reply::Integer(0), "nothing was written");
    claim(db, "another key", OLD).unwrap();
    assert_eq!(set(db, KEY, OLD, "1").unwrap_err().kind(), ErrorKind::Config);
}

#[test]
fn tokens_are_compared_exactly_up_to_the_largest() {
    let server = Server::start();
    let db = &mut server.connect();
    // From 10^14 on Lua writes numbers with an exponent if one lets it.
    for token in [0, 9, 10, 99_999_999_999_999, 100_000_000_000_000, 1_789_000_000_000_001, MAX - 1, MAX] {
        claim(db, KEY, token).unwrap();
        set(db, KEY, token, "x").unwrap();
        assert_eq!(get(db, &mark(KEY)).unwrap(), token.to_string());
    }
    let stale = set(db, KEY, MAX - 1, "y").unwrap_err();
    assert_eq!(stale.kind(), ErrorKind::StaleToken);
    assert!(
        stale.to_string().contains("9007199254740990") && stale.to_string().contains("9007199254740991"),
        "{stale}"
    );

    for token in [MAX + 1, MAX + 2, u64::MAX] {
        for result in [claim(db, KEY, token), check(db, KEY, token), set(db, KEY, token, "y")] {
            let error = result.unwrap_err();
            assert!(error.kind() == ErrorKind::Config && error.to_string().contains("9007199254740991"), "{error}");
        }
    }
    assert_eq!((get(db, KEY).unwrap(), get(db, &mark(KEY)).unwrap()), ("x".into(), MAX.to_string()));
}

#[test]
fn a_value_that_is_no_token_is_refused() {
    let server = Server::start();
    let db = &mut server.connect();
    for bad in ["", "-1", "1.5", "1e3", "0x10", " 7", "7 ", "seven", "nan", "inf", "7\0", "9007199254740993"] {
        for script in [RedisGuard::claim_script(), RedisGuard::check_script(), RedisGuard::check_and_set_script()] {
            let reply = integer(eval(db, script, &[&mark(KEY), KEY], &[bad, "value"]));
            let error = RedisGuard::outcome(KEY, OLD, reply).unwrap_err();
            assert!(error.kind() == ErrorKind::Config && error.to_string().contains("argument"), "{bad:?}: {error}");
        }
    }
    assert_eq!(db.command(&["DBSIZE"]).unwrap(), Reply::Integer(0));
    // An answer of some other script.
    assert_eq!(RedisGuard::outcome(KEY, OLD, 1).unwrap_err().kind(), ErrorKind::StoreRefused);
    assert_eq!(RedisGuard::outcome(KEY, OLD, i64::MIN).unwrap_err().kind(), ErrorKind::StoreRefused);
    assert_eq!(RedisGuard::outcome(KEY, OLD, i64::MAX).unwrap_err().kind(), ErrorKind::StoreRefused);
}

#[test]
fn a_mark_that_is_no_token_is_an_error_that_says_so() {
    let server = Server::start();
    let db = &mut server.connect();
    let mark = &mark(KEY);
    let spoils: [&[&str]; 7] = [
        &["SET", mark, "abc"],
        &["SET", mark, ""],
        &["SET", mark, "-1"],
        &["SET", mark, "1e3"],
        &["SET", mark, "9007199254740993"],
        &["RPUSH", mark, "33"],
        &["HSET", mark, "33", "33"],
    ];
    for spoil in spoils {
        db.command(spoil).unwrap();
        let before = db.command(&["DUMP", mark]).unwrap();
        for result in [claim(db, KEY, NEW), check(db, KEY, NEW), set(db, KEY, NEW, "x")] {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StoreRefused, "{spoil:?}: {error}");
            assert!(error.to_string().contains("not a token"), "{spoil:?}: {error}");
        }
        assert_eq!((db.command(&["DUMP", mark]).unwrap(), get(db, KEY)), (before, None), "{spoil:?}");
        db.command(&["DEL", mark]).unwrap();
    }
}

#[test]
fn a_refusal_of_redis_arrives_as_its_error() {
    let server = Server::start();
    let db = &mut server.connect();
    claim(db, KEY, OLD).unwrap();
    let user = &mut server.connect();
    let allow = ["ACL", "SETUSER", "blind", "on", "nopass", "~*", "+@all", "-get"];
    assert_eq!(db.command(&allow).unwrap(), Reply::Status("OK".into()));
    assert_eq!(user.command(&["AUTH", "blind", "any"]).unwrap(), Reply::Status("OK".into()));
    // Not to see the mark is not the same as to see none.
    for script in [RedisGuard::claim_script(), RedisGuard::check_script(), RedisGuard::check_and_set_script()] {
        let reply = eval(user, script, &[&mark(KEY), KEY], &["34", "x"]);
        let Reply::Error(message) = &reply else { panic!("{reply:?}") };
        assert!(["NOPERM", "can't run", "has no permissions"].iter().any(|words| message.contains(words)), "{message}");
    }
    assert_eq!((get(db, &mark(KEY)).unwrap(), get(db, KEY)), ("33".into(), None));
}

#[test]
fn a_replica_does_not_say_yes() {
    let (server, replica) = (Server::start(), Server::start());
    let (db, copy) = (&mut server.connect(), &mut replica.connect());
    claim(db, KEY, OLD).unwrap();
    copy.command(&["REPLICAOF", "127.0.0.1", &server.port().to_string()]).unwrap();
    common::eventually("the mark is on the replica", || get(copy, &mark(KEY)).is_some());
    for script in [RedisGuard::claim_script(), RedisGuard::check_script(), RedisGuard::check_and_set_script()] {
        let reply = eval(copy, script, &[&mark(KEY), KEY], &["33", "x"]);
        assert!(matches!(&reply, Reply::Error(message) if message.contains("READONLY")), "{reply:?}");
    }
}

/// Redis runs a script only if all its keys are in one slot, and says so if not.
#[test]
fn on_a_cluster_a_mark_is_in_the_slot_of_its_key() {
    let server = Server::builder().arg("--cluster-enabled", "yes").start();
    let db = &mut server.connect();
    let slots = ["CLUSTER", "ADDSLOTSRANGE", "0", "16383"];
    assert_eq!(db.command(&slots).unwrap(), Reply::Status("OK".into()));
    common::eventually(
        "the cluster is up",
        || matches!(db.command(&["CLUSTER", "INFO"]).unwrap(), Reply::Bulk(info) if info.starts_with(b"cluster_state:ok")),
    );
    let keys = [
        "a",
        "{a}",
        "{a}b",
        "b{a}c",
        "a{b",
        "{{a}}",
        "{a}{b}",
        "x{a}}",
        " ",
        "é '\"\\ \u{1f}\r\n",
        "{\0}",
        "{\"a\":1}",
    ];
    for key in keys {
        claim(db, key, OLD).unwrap();
        set(db, key, OLD, "x").unwrap();
        assert_eq!(get(db, key).unwrap(), "x", "{key:?}");
    }
    let mut marks: Vec<String> = keys.iter().map(|key| mark(key)).collect();
    marks.sort();
    marks.dedup();
    assert_eq!(marks.len(), keys.len(), "no two keys share a mark");
    for key in ["", "}", "a}b", "{}", "{}a", "a{}{b}", "}{a"] {
        let error = RedisGuard::mark_key(key).unwrap_err();
        assert!(error.kind() == ErrorKind::Config && error.to_string().contains("hash tag"), "{error}");
    }
}

#[test]
fn many_writers_with_growing_tokens_lose_no_update() {
    let server = Server::start();
    let next = std::sync::atomic::AtomicU64::new(1);
    server.connect().command(&["SET", KEY, "0"]).unwrap();
    let accepted: i64 = std::thread::scope(|scope| {
        // No lock at all: tokens in order, holders that overlap at will.
        let work = || {
            let db = &mut server.connect();
            let mut accepted = 0;
            for _ in 0..100 {
                let token = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                let increment = |db: &mut Connection| {
                    claim(db, KEY, token)?;
                    let sum = total(db, KEY) + 1;
                    std::thread::yield_now();
                    set(db, KEY, token, &sum.to_string())
                };
                match increment(db) {
                    Ok(()) => accepted += 1,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::StaleToken, "{error}"),
                }
            }
            accepted
        };
        let workers: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert_eq!(total(&mut server.connect(), KEY), accepted);
    assert!(accepted > 0);
}

#[test]
fn claims_in_any_order_leave_the_highest() {
    let server = Server::start();
    std::thread::scope(|scope| {
        for worker in 0..8_u64 {
            let server = &server;
            scope.spawn(move || {
                let db = &mut server.connect();
                // All numbers below 257, the workers' shares mixed, none in order.
                for step in 0..32 {
                    let token = (step * 8 + worker) * 101 % 257;
                    match claim(db, KEY, token) {
                        Ok(()) => {}
                        Err(error) => assert_eq!(error.kind(), ErrorKind::StaleToken, "{error}"),
                    }
                }
            });
        }
    });
    let highest = (0..256).map(|n| n * 101 % 257).max().unwrap();
    assert_eq!(get(&mut server.connect(), &mark(KEY)).unwrap(), highest.to_string());
}
