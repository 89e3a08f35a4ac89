//! Leases and acquisitions when a store or the network fails.

use leasehold_servers::proxy::Proxy;
use leasehold_servers::rest::Misbehave;
use leasehold_servers::{answers, dynamodb, redis, rest, wait_until, webdis};

use super::{HOSTS, Host, Place, TTL, in_each, remaining};
use crate::program::Running;

/// The message about a lost lease. The program ends with it.
#[track_caller]
fn lost(lease: &mut Running) -> String {
    lease.say("check 0");
    lease.hear("lost:")
}

#[test]
fn a_lock_that_another_has_after_all_is_lost() {
    let redis = redis::Server::start();
    let server = webdis::Server::start(&redis);
    let place = Place::webdis(&server.url());
    for host in HOSTS {
        let name = format!("invoice/{host:?}");
        let mut lease = place.hold(host, &name, &[]);
        lease.token();
        // A store that forgets, so that another is let in.
        redis.command(&["FLUSHALL"]);
        let mut other = place.hold(host, &name, &[]);
        other.token();
        lease.say(&format!("tend {}", TTL / 2));
        lease.hear("tended");
        assert!(lost(&mut lease).contains("somebody else holds the lock now; the work it protected must stop"));
        assert_eq!(lease.status(), 3);
        other.end_input();
        other.hear("released");
    }
}

#[test]
fn a_server_that_falls_silent_ends_the_lease_in_time_and_no_call_hangs() {
    let redis = redis::Server::start();
    let server = webdis::Server::start(&redis);
    in_each(|host| {
        let proxy = Proxy::to(server.address());
        let place = Place::webdis(&format!("http://{}", proxy.address()));
        let mut lease = place.hold(host, &format!("invoice/{host:?}"), &[]);
        lease.token();
        proxy.black_hole();
        lease.say(&format!("tend {TTL}"));
        assert_eq!(lease.hear("tended"), "None", "nothing is held any more");
        assert_eq!(remaining(&mut lease), 0);
        let said = lost(&mut lease);
        assert!(said.contains("no renewal was confirmed in time (no reply in time)"), "{said}");
        assert_eq!(lease.status(), 3);

        let mut unlucky = place.hold(host, "invoice/43", &[]);
        assert!(unlucky.hear("store-unavailable:").contains("no reply in time"));
        assert_eq!(unlucky.status(), 1);
    });
}

#[test]
fn what_this_client_holds_is_busy_at_once() {
    let redis = redis::Server::start();
    let server = webdis::Server::start(&redis);
    in_each(|host| {
        let place = Place::webdis(&server.url());
        let mut lease = place.hold(host, &format!("invoice/{host:?}"), &["--ttl-ms", "86400000"]);
        let token = lease.token();
        for wait in ["0", "86400000"] {
            lease.say(&format!("again {wait}"));
            let said = lease.hear("again busy:");
            assert!(said.contains(&format!("this client already holds the lock, with token {token}")), "{said}");
        }
        lease.say("release");
        lease.hear("released");
        assert_eq!(lease.status(), 0);
    });
}

#[test]
fn an_acquisition_that_failed_without_an_answer_is_taken_back() {
    let redis = redis::Server::start();
    let server = rest::Server::start(&redis);
    let place = Place::rest(&server.url(), server.token());
    for host in HOSTS {
        let name = format!("invoice/{host:?}");
        // All sends of it.
        for _ in 0..3 {
            server.misbehave(Misbehave::CloseAfterApplying);
        }
        let mut unlucky = place.hold(host, &name, &["--ttl-ms", "86400000"]);
        unlucky.hear("store-unavailable:");
        assert_eq!(unlucky.status(), 1);
        assert_eq!(server.misbehaviours_left(), 0, "it was asked three times");
        let mut next = place.hold(host, &name, &["--wait-ms", "60000"]);
        next.token();
        next.end_input();
        next.hear("released");
        assert_eq!(next.status(), 0);
    }
}

#[test]
fn a_lease_that_nobody_tends_ends_by_the_clock_alone() {
    let redis = redis::Server::start();
    let server = webdis::Server::start(&redis);
    in_each(|host| {
        let mut lease = Place::webdis(&server.url()).hold(host, &format!("invoice/{host:?}"), &[]);
        lease.token();
        wait_until("the lease is over", || remaining(&mut lease) == 0);
        // What comes back now comes too late.
        lease.say("tend 0");
        lease.hear("tended");
        assert_eq!(remaining(&mut lease), 0);
        assert!(lost(&mut lease).contains("no renewal was confirmed in time"));
        assert_eq!(lease.status(), 3);
    });
}

#[test]
fn max_hold_ends_what_is_tended_for_ever() {
    let server = dynamodb::Server::shared();
    let place = Place::table(&server);
    in_each(|host| {
        let mut lease = place.hold(host, &format!("invoice/{host:?}"), &["--max-hold-ms", &TTL.to_string()]);
        lease.token();
        lease.say(&format!("tend {}", 2 * TTL));
        lease.hear("tended");
        assert!(lost(&mut lease).contains("max_hold has passed"));
        assert_eq!(lease.status(), 3);
    });
}

#[test]
fn a_bad_answer_is_asked_about_again() {
    let redis = redis::Server::start();
    let server = rest::Server::start(&redis);
    let place = Place::rest(&server.url(), server.token());
    for (n, misbehave) in [
        Misbehave::HalfBody,
        Misbehave::CloseAfterApplying,
        Misbehave::CloseBeforeAnswer,
        Misbehave::Status(503, "{}".into()),
        Misbehave::Html,
        Misbehave::Large(3 << 20),
        Misbehave::Hang,
    ]
    .into_iter()
    .enumerate()
    {
        for host in HOSTS {
            server.misbehave(misbehave.clone());
            let mut lease = place.hold(host, &format!("{host:?} {n}"), &["--wait-ms", "600000"]);
            lease.token();
            assert_eq!(server.misbehaviours_left(), 0, "{misbehave:?} was met");
            lease.end_input();
            lease.hear("released");
            assert_eq!(lease.status(), 0);
        }
    }
}

#[test]
fn nonsense_without_end_is_an_error_and_no_trap() {
    let header = |value: &str| vec![("Location".to_owned(), value.to_owned()), ("Date".to_owned(), value.to_owned())];
    let json = |headers: Vec<(String, String)>, body: Vec<u8>| answers::Reply::Answer { status: 200, headers, body };
    for reply in [
        json(Vec::new(), b"[1,2,{}]".to_vec()),
        json(Vec::new(), b"{\"EVALSHA\":[\"granted\",\"-1\",18446744073709551616]}".to_vec()),
        json(Vec::new(), vec![b'['; 100_000]),
        json(Vec::new(), vec![0xff; 4 << 20]),
        json(header(&"x".repeat(8_000)), b"{}".to_vec()),
        json(header("caf\u{e9}"), b"{}".to_vec()),
        answers::Reply::new(204, Vec::new()),
        answers::Reply::Half(b"{\"EVALSHA\":".repeat(1_000)),
        answers::Reply::Close,
    ] {
        let server = answers::Server::start({
            let reply = reply.clone();
            move |_| reply.clone()
        });
        in_each(|host| {
            let mut unlucky = Place::webdis(&server.url()).hold(host, "invoice/42", &[]);
            unlucky.hear("store-unavailable:");
            assert_eq!(unlucky.status(), 1, "{host:?}: {unlucky:?}");
        });
    }
}

#[test]
fn nobody_listens() {
    let gone = answers::Server::start(|_| answers::Reply::Close).url();
    for host in HOSTS {
        let mut unlucky = Place::webdis(&gone).hold(host, "invoice/42", &[]);
        assert!(unlucky.hear("store-unavailable:").contains("not reachable: ConnectionRefused"));
        assert_eq!(unlucky.status(), 1);
    }
}

#[test]
fn wrong_credentials_are_refused_and_not_shown() {
    let redis = redis::Server::start();
    let server = rest::Server::start(&redis);
    for host in HOSTS {
        let mut refused =
            Place::rest(&server.url(), "hunter2-of-another").hold(host, "invoice/42", &["--wait-ms", "5000"]);
        let said = refused.hear("store-refused:");
        assert!(said.contains("the store refuses: ") && !said.contains("hunter2"), "{said}");
        assert_eq!(refused.status(), 1);
    }
}

#[test]
fn settings_that_cannot_work_are_named() {
    let server = answers::Server::start(|_| answers::Reply::Close);
    let (url, two) = (server.url(), format!("{0},{0}", server.url()));
    let quorum = "00112233445566778899aabbccddeeff";
    for (urls, name, more, words) in [
        (url.as_str(), "a", &["--ttl-ms", "50"][..], "ttl is 50 ms, but must be at least 100 ms"),
        (&url, "a\nb", &[], "control character U+000A"),
        (&url, "", &[], "the resource has no name"),
        (&url, "a", &["--owner", "a\tb"], "owner has the control character"),
        (&url, "a", &["--quorum", quorum], "one node is no quorum"),
        (&two, "a", &[], "a quorum, which needs an id"),
        (&two, "a", &["--quorum", "0011"], "32 hexadecimal digits"),
        (&two, "a", &["--quorum", quorum], "is there twice"),
        ("ftp://127.0.0.1", "a", &[], "http"),
        ("http://u:hunter2@127.0.0.1", "a", &[], "url"),
    ] {
        for host in HOSTS {
            let mut wrong = Place::webdis(urls).hold(host, name, more);
            let said = wrong.hear("config:");
            assert!(said.contains(words) && !said.contains("hunter2"), "{words}: {said}");
            assert_eq!(wrong.status(), 2);
        }
    }
    assert_eq!(server.asked(), [], "nothing was asked for that");
    let far = Place::rest("http://203.0.113.1", "hunter2").hold(Host::Node, "a", &[]).hear("config:");
    assert!(far.contains("https") && !far.contains("hunter2"), "{far}");
}

#[test]
fn a_closed_client_has_given_everything_back() {
    let redis = redis::Server::start();
    let server = webdis::Server::start(&redis);
    let place = Place::webdis(&server.url());
    in_each(|host| {
        let name = format!("invoice/{host:?}");
        let mut lease = place.hold(host, &name, &[]);
        lease.token();
        lease.say("close");
        lease.hear("closed");
        let mut other = place.hold(host, &name, &[]);
        other.token();
        lease.say("check 0");
        assert!(lease.hear("not-owned:").contains("the client was closed, and the lease released with it"));
        assert_eq!(lease.status(), 2);
        other.end_input();
        other.hear("released");
    });
}
