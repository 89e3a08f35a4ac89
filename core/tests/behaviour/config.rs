//! Settings that do not fit cannot be built, and the message names the value and the bound.

use std::time::Duration;

use crate::common::*;
use leasehold_core::config::{ConfigError, Drift, Limits, NodeConfig, Ttl};
use leasehold_core::member::QuorumId;
use leasehold_core::{Config, LockOptions, Nonce, Owner, Payload, Quorum, Resource, SessionLabel, Version, Wait};

fn refused(
    set: impl FnOnce(leasehold_core::config::LockOptionsBuilder) -> leasehold_core::config::LockOptionsBuilder,
) -> String {
    set(LockOptions::builder()).build().unwrap_err().to_string()
}

fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{message:?} should say {part:?}");
    }
}

#[test]
fn names_of_resources() {
    assert_eq!(Resource::new(""), Err(ConfigError::EmptyResource));
    says(&Resource::new("").unwrap_err().to_string(), &["no name", "1 to 1024"]);
    assert!(Resource::new(&"a".repeat(1_024)).is_ok());
    says(&Resource::new(&"a".repeat(1_025)).unwrap_err().to_string(), &["1025 bytes", "1024"]);
    says(&Resource::new(&"ü".repeat(513)).unwrap_err().to_string(), &["1026 bytes"]);
    says(&Resource::new("a\0b").unwrap_err().to_string(), &["U+0000", "byte 1"]);
    for (name, code) in [("a\nb", "U+000A"), ("ü\x1f", "U+001F"), ("\x7f", "U+007F"), ("a\u{85}", "U+0085")] {
        says(&Resource::new(name).unwrap_err().to_string(), &[code, "control character"]);
    }
    assert_eq!(Resource::new("invoice/42 ä漢 🔒").unwrap().as_str(), "invoice/42 ä漢 🔒");
    assert_ne!(Resource::new("e\u{301}"), Resource::new("\u{e9}"), "nothing is normalised");
    assert_ne!(Resource::new("a "), Resource::new("a"), "nothing is trimmed");
}

#[test]
fn debug_output_shows_names_but_no_secrets() {
    let (name, owner) = (resource("invoice/42"), Owner::new("pod \"7\"").unwrap());
    assert_eq!(format!("{name} {name:?}"), "invoice/42 \"invoice/42\"");
    assert_eq!(format!("{owner} {owner:?}"), "pod \"7\" \"pod \\\"7\\\"\"");
    assert_eq!(format!("{:?}", Payload::new(b"bytes").unwrap()), "Payload(5 bytes)");
    assert_eq!(format!("{:?}", Version::new(b"bytes").unwrap()), "Version(5 bytes)");
    let nonce = Nonce::from_bytes([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
    assert_eq!(format!("{nonce:?}"), "Nonce(#c8fff2)", "three bytes of a hash");
}

#[test]
fn ttls() {
    says(&refused(|o| o.ttl(Duration::ZERO)), &["ttl is 0 s", "100 ms"]);
    says(&refused(|o| o.ttl(ms(50))), &["ttl is 50 ms", "100 ms"]);
    says(&refused(|o| o.ttl(ms(99))), &["ttl is 99 ms", "100 ms"]);
    says(&refused(|o| o.ttl(secs(10 * 365 * 86_400))), &["ttl is 315360000 s", "86400 s"]);
    says(&refused(|o| o.ttl(Duration::MAX)), &["ttl", "86400 s"]);
    assert_eq!(with(|o| o.ttl(ms(100))).ttl().get(), ms(100));
    assert_eq!(with(|o| o.ttl(secs(86_400))).ttl().get(), Ttl::MAX);
    assert_eq!(
        with(|o| o.ttl(Duration::from_micros(100_999))).ttl().get(),
        ms(100),
        "whole milliseconds, rounded down"
    );
    assert_eq!(options().ttl().get(), secs(30));
}

#[test]
fn renewal_intervals() {
    says(&refused(|o| o.ttl(secs(10)).renew_every(ms(5_001))), &["renewal interval", "5.001 s", "5 s"]);
    says(&refused(|o| o.ttl(secs(10)).renew_every(secs(10))), &["10 s", "5 s"]);
    says(&refused(|o| o.renew_every(Duration::ZERO)), &["renewal interval is 0 s", "10 ms"]);
    says(&refused(|o| o.renew_every(Duration::MAX)), &["renewal interval", "15 s"]);
    assert_eq!(with(|o| o.ttl(secs(10)).renew_every(secs(5))).renew_every(), Some(secs(5)));
    assert_eq!(with(|o| o.renew_every(ms(10))).renew_every(), Some(ms(10)));
    assert_eq!(options().renew_every(), Some(secs(10)));
    assert_eq!(with(|o| o.no_renewal()).renew_every(), None);
}

#[test]
fn delays_and_holds() {
    says(&refused(|o| o.lock_delay(secs(86_401))), &["lock_delay is 86401 s", "86400 s"]);
    with(|o| o.ttl(Ttl::MAX).lock_delay(secs(86_400)));
    says(&refused(|o| o.max_hold(secs(29))), &["max_hold is 29 s", "30 s"]);
    says(&refused(|o| o.max_hold(Duration::ZERO)), &["max_hold is 0 s", "30 s"]);
    assert_eq!(with(|o| o.max_hold(Duration::MAX)).max_hold(), Some(Duration::MAX));
    assert_eq!(options().max_hold(), None);
    let delay = with(|o| o.lock_delay(Duration::from_micros(1_234_999))).lock_delay();
    assert_eq!(delay, ms(1_234), "whole milliseconds, rounded down");
}

#[test]
fn waits_have_no_bound() {
    assert_eq!(with(|o| o.wait(Wait::For(Duration::MAX))).wait(), Wait::For(Duration::MAX));
    assert_eq!(with(|o| o.wait(Wait::For(Duration::ZERO))).wait(), Wait::Once, "0 means once");
    assert_eq!(options().wait(), Wait::Forever);
}

#[test]
fn labels_and_payloads() {
    with(|o| o.owner(&"x".repeat(Owner::MAX_BYTES)));
    says(&refused(|o| o.owner(&"x".repeat(Owner::MAX_BYTES + 1))), &["owner has 257 bytes", "256"]);
    says(&refused(|o| o.owner("a\tb")), &["owner", "U+0009", "byte 1"]);
    assert_eq!(with(|o| o.owner("")).owner().as_str(), "");
    assert_eq!(with(|o| o.data(b"bytes")).data().map(Payload::as_bytes), Some(&b"bytes"[..]));
    assert_eq!(options().data(), None);
    with(|o| o.data(&[0; Payload::MAX_BYTES]));
    says(&refused(|o| o.data(&[0; Payload::MAX_BYTES + 1])), &["data has 4097 bytes", "4096"]);
}

#[test]
fn labels_of_sessions() {
    for label in ["w", "worker-7", "eu/batch.1:worker_7@host", &"x".repeat(SessionLabel::MAX_BYTES)] {
        assert_eq!(SessionLabel::new(label).unwrap().as_str(), label);
    }
    for label in ["", "two words", "a\nb", "worker#7", "wörker", "a*", &"x".repeat(SessionLabel::MAX_BYTES + 1)] {
        let error = SessionLabel::new(label).unwrap_err();
        assert_eq!(error, ConfigError::SessionLabel { given: label.into() });
        says(&error.to_string(), &[&format!("{label:?}"), "1 to 64 letters, digits and -_.:@/ characters", "worker-7"]);
    }
    let Err(ConfigError::SessionLabel { given }) = SessionLabel::new(&"ü".repeat(1_000)) else { panic!("too long") };
    assert_eq!(*given, "ü".repeat(64), "an error repeats no more than the beginning");
}

#[test]
fn nodes() {
    let nodes = |count| vec![NodeConfig::default(); count];
    says(&Config::new(nodes(0)).unwrap_err().to_string(), &["0 nodes", "1 to 31"]);
    says(&Config::new(nodes(32)).unwrap_err().to_string(), &["32 nodes", "1 to 31"]);
    assert_eq!(Config::new(nodes(31)).unwrap().nodes().len(), 31);
    let batch = NodeConfig { batch: 0, ..NodeConfig::default() };
    says(&Config::new(vec![batch]).unwrap_err().to_string(), &["batch is 0", "1"]);
}

#[test]
fn drift_timeouts_and_limits() {
    let config = || Config::new(vec![NodeConfig::default()]).unwrap();
    for ppm in [0, 99, 100_001, u32::MAX] {
        says(&Drift::from_ppm(ppm).unwrap_err().to_string(), &[&ppm.to_string(), "100 to 100000"]);
    }
    for ppm in [100, 100_000] {
        assert_eq!(config().with_drift(Drift::from_ppm(ppm).unwrap()).drift().ppm(), ppm);
    }
    assert_eq!(config().drift().ppm(), 10_000, "1%");

    says(&config().with_request_timeout(ms(9)).unwrap_err().to_string(), &["request timeout is 9 ms", "10 ms"]);
    says(&config().with_request_timeout(secs(61)).unwrap_err().to_string(), &["request timeout is 61 s", "60 s"]);
    for timeout in [ms(10), secs(1), secs(60)] {
        assert_eq!(config().with_request_timeout(timeout).unwrap().request_timeout(), timeout);
    }
    assert_eq!(config().request_timeout(), ms(500));

    let zero = |limits| config().with_limits(limits).unwrap_err().to_string();
    says(&zero(Limits { locks: 0, ..Limits::default() }), &["locks is 0"]);
    says(&zero(Limits { orphans: 0, ..Limits::default() }), &["orphans is 0"]);
    says(&zero(Limits { observations: 0, ..Limits::default() }), &["observations is 0"]);
}

#[test]
fn quorums() {
    let quorum = |max_ttl| Quorum::new(QuorumId([1; 16]), max_ttl);
    says(&quorum(ms(99)).unwrap_err().to_string(), &["max_ttl is 99 ms", "100 ms"]);
    says(&quorum(secs(48 * 3_600 + 1)).unwrap_err().to_string(), &["max_ttl", "172800 s"]);
    assert_eq!(quorum(Duration::from_micros(1_500_900)).unwrap().max_ttl(), ms(1_500), "as nodes write it down");
    for (nodes, remembers) in [(1, false), (2, true)] {
        let config = Config::new(vec![NodeConfig::default(); nodes]).unwrap().with_quorum(quorum(secs(60)).unwrap());
        assert_eq!(config.quorum().is_some(), remembers, "a single store has nothing to agree on");
    }
}
