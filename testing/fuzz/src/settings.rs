//! Settings: accepted ones keep their bounds, and errors name the bound.

use std::time::Duration;

use arbitrary::{Result, Unstructured};
use leasehold_core::config::{Drift, Limits, MAX_RECORD_TTL, Poll, Quorum, Ttl};
use leasehold_core::fence::Guard;
use leasehold_core::time::{deadline_of, observed_until, renew_at, request_timeout, takeover_bound};
use leasehold_core::{Config, LockOptions, Monotonic, NodeConfig, Owner, Payload, Resource, Wait, time};

use crate::{invariants, values};

// The parser of the command line, which needs nothing else of it.
#[path = "../../../cli/src/duration.rs"]
mod duration;

/// Text as names and lengths of time, and then settings from numbers.
pub fn run(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        named(text);
        typed(text);
    }
    let u = &mut Unstructured::new(bytes);
    // The run ends where the bytes end.
    let _ = options(u);
    let _ = config(u);
    let _ = guarded(u);
}

fn named(text: &str) {
    let is_plain = !text.chars().any(char::is_control);
    let resource = Resource::new(text);
    assert_eq!(resource.is_ok(), is_plain && (1..=Resource::MAX_BYTES).contains(&text.len()));
    assert!(resource.as_ref().is_ok_and(|resource| resource.as_str() == text) || resource.is_err());
    assert_eq!(Owner::new(text).is_ok(), is_plain && text.len() <= Owner::MAX_BYTES);
    assert_eq!(Payload::new(text.as_bytes()).is_ok(), text.len() <= Payload::MAX_BYTES);
    if let Err(error) = resource {
        invariants::short(&error.to_string());
    }
}

fn typed(text: &str) {
    match duration::parse(text) {
        Ok(length) => {
            let nanos = length.as_nanos();
            let (whole, part) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
            let written = format!("{whole}.{part:09}s");
            assert_eq!(duration::parse(&written), Ok(length), "{text:?} is {written}");
        }
        Err(said) => assert!(!said.is_empty()),
    }
}

fn options(u: &mut Unstructured<'_>) -> Result<()> {
    let drift = Drift::from_ppm(u.int_in_range(100..=100_000)?).expect("within its bounds");
    let (ttl, delay) = (values::length(u)?, if u.arbitrary()? { Duration::ZERO } else { values::length(u)? });
    let mut wanted = LockOptions::builder().ttl(ttl).lock_delay(delay);
    let wait = values::maybe(u, values::length)?;
    wanted = wanted.wait(wait.map_or(Wait::Forever, Wait::For));
    let (hold, every) = (values::maybe(u, values::length)?, values::maybe(u, values::length)?);
    wanted = hold.map_or(wanted.clone(), |hold| wanted.max_hold(hold));
    wanted = every.map_or(wanted.clone(), |every| wanted.renew_every(every));
    let made = match wanted.owner(&values::text(u, 300)?).data(&values::bytes(u, 60)?).build() {
        Ok(made) => made,
        Err(error) => {
            invariants::short(&error.to_string());
            return Ok(());
        }
    };
    let ttl_kept = made.ttl().get();
    assert!((Ttl::MIN..=Ttl::MAX).contains(&ttl_kept) && ttl_kept <= ttl && ttl - ttl_kept < Duration::from_millis(1));
    assert!(ttl_kept + made.lock_delay() <= MAX_RECORD_TTL && made.lock_delay() <= delay);
    assert!(made.renew_every().is_none_or(|every| every <= ttl_kept / 2 && every > Duration::ZERO));
    assert!(made.max_hold().is_none_or(|hold| hold >= ttl_kept));
    assert!(made.wait() != Wait::For(Duration::ZERO));
    formulas(made.ttl(), made.lock_delay(), drift, Monotonic::from_ns(values::number(u)?), u.arbitrary()?);
    Ok(())
}

/// The holder stops believing before anybody may start, wherever the clocks stand.
fn formulas(ttl: Ttl, delay: Duration, drift: Drift, at: Monotonic, jitter: u32) {
    let (deadline, record) = (deadline_of(at, ttl, drift), ttl.get() + delay);
    assert!(deadline >= at && deadline <= at.plus(ttl.get()));
    assert!(at.ns() > u64::MAX / 2 || deadline < at.plus(ttl.get()), "no margin");
    for format in [time::Format::Leasehold, time::Format::Foreign] {
        assert!(observed_until(at, record, drift, format) >= at.plus(record));
    }
    assert!(takeover_bound(ttl, delay, drift) >= record);
    assert!(
        renew_at(at, time::default_renew_every(ttl), jitter) <= deadline.max(at.plus(time::default_renew_every(ttl)))
    );
    assert!(request_timeout(ttl, Config::REQUEST_TIMEOUT) <= Config::REQUEST_TIMEOUT);
    assert!(time::danger_at(deadline, ttl) <= deadline);
}

fn config(u: &mut Unstructured<'_>) -> Result<()> {
    let node = |u: &mut Unstructured<'_>| {
        Ok(NodeConfig {
            poll: *u.choose(&[Poll::Acquire, Poll::Read])?,
            watch: u.arbitrary()?,
            batch: if values::chance(u, 20) { 0 } else { u.int_in_range(1..=100)? },
            durability: values::durability(u)?,
        })
    };
    let nodes = values::some(u, 33, node)?;
    let fits = (1..=Config::MAX_NODES).contains(&nodes.len()) && nodes.iter().all(|node| node.batch > 0);
    let made = Config::new(nodes);
    assert_eq!(made.is_ok(), fits);
    let Ok(config) = made else { return Ok(()) };
    if let Ok(quorum) = Quorum::new(values::quorum_id(u)?, values::length(u)?) {
        assert!((Ttl::MIN..=MAX_RECORD_TTL).contains(&quorum.max_ttl()));
        assert_eq!(config.clone().with_quorum(quorum).quorum().is_some(), config.nodes().len() > 1);
    }
    let timeout = values::length(u)?;
    let bounds = Duration::from_millis(10)..=Duration::from_secs(60);
    assert_eq!(config.clone().with_request_timeout(timeout).is_ok(), bounds.contains(&timeout));
    let limits = Limits { locks: u.arbitrary()?, orphans: u.arbitrary()?, observations: u.arbitrary()? };
    let positive = [limits.locks, limits.orphans, limits.observations].into_iter().all(|limit| limit > 0);
    assert_eq!(config.with_limits(limits).is_ok(), positive);
    let ppm = u.arbitrary()?;
    assert_eq!(Drift::from_ppm(ppm).is_ok(), (100..=100_000).contains(&ppm));
    Ok(())
}

/// A guard never lets an older token pass.
fn guarded(u: &mut Unstructured<'_>) -> Result<()> {
    let mut guard = Guard::with_high_water(values::maybe(u, values::token)?);
    while !u.is_empty() {
        let (before, token, write) = (guard.high_water(), values::token(u)?, values::number(u)?);
        let passed = match u.int_in_range(0..=2)? {
            0 => guard.claim(token).is_ok(),
            1 => guard.check(token).is_ok(),
            _ => guard.check_in_order(token, write).is_ok(),
        };
        assert!(!passed || before.is_none_or(|mark| token >= mark), "an older token passes");
        assert!(guard.high_water() >= before, "a mark that falls");
    }
    Ok(())
}
