use super::*;
use alloc::string::ToString;

#[test]
fn details_are_cut_and_stripped_of_control_characters() {
    for detail in [
        &Denial::new(DenialKind::Other, "\u{1b}[2J\nroot#\0\u{85}").detail,
        &Fault::new(FaultKind::Protocol, &"\u{85}".repeat(600)).detail.expect("it has one"),
    ] {
        assert!(!detail.chars().any(char::is_control) && detail.len() <= 512, "{detail:?}");
    }
}

#[test]
fn fault_shows_its_kind_and_detail() {
    assert_eq!(Fault::of(FaultKind::Timeout).to_string(), "no reply in time");
    let fault = Fault::new(FaultKind::Server, "LOADING the dataset");
    assert_eq!(fault.to_string(), "store failure: LOADING the dataset");
}

#[test]
fn record_ttl_above_48_hours_is_corrupt() {
    let lasting = |record_ttl| {
        let nonce = Nonce::from_bytes([1; 16]);
        let holder = Holder::Lease { nonce, seq: None };
        let version = Version::of(&nonce, Seq::new(1));
        let holding = Holding { record_ttl: Some(record_ttl), ..Holding::of(holder, version) };
        Seen { holding: Some(holding.into()), done: None }.checked()
    };
    assert!(lasting(Duration::from_secs(48 * 3600)).is_ok());
    assert!(lasting(Duration::from_secs(48 * 3600) + Duration::from_nanos(1)).is_err());
}
