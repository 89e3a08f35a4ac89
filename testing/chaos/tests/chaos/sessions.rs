//! The judge of `cargo xtask chaos sessions` against evidence written by hand: each broken promise is found, and what breaking
//! a lock allows is allowed.

use std::time::Duration;

use leasehold_chaos::chaos::by_lock::Journals;
use leasehold_chaos::chaos::faults::{Fault, Kind, Target};
use leasehold_chaos::chaos::guarded_counter::CounterLog;
use leasehold_chaos::sessions::Act;
use leasehold_chaos::sessions::judge::{Burial, Evidence, Verdict};

/// Everything below is in milliseconds.
const MS: u64 = 1_000_000;
const TTL: u64 = 5_000;

/// A line: the process, when, what, the lock, its token, and the end of the lease or 1 for a refused one that was valid.
type Line = (usize, u64, &'static str, u64, u64, u64);

/// Each worker takes lock 0 and releases it, and the first one has lock 1 beside it.
const CORRECT: [Line; 8] = [
    (0, 0, "asked", 0, 0, 0),
    (0, 10, "granted", 0, 7, 900),
    (0, 20, "granted", 1, 3, 6_000),
    (0, 700, "valid", 0, 7, 1_600),
    (0, 900, "releasing", 0, 7, 0),
    (1, 850, "asked", 0, 0, 0),
    (1, 910, "granted", 0, 8, 1_900),
    (0, 5_000, "releasing", 1, 3, 0),
];

fn evidence(lines: &[Line]) -> Evidence {
    let mut journals = Journals::default();
    let processes = ["w0-0", "w1-1"].map(|name| journals.open(name.to_owned(), 0));
    for (process, at, what, lock, token, until) in lines {
        let (at, until, valid) = (at * MS, until * MS, *until > 0);
        let line = format!(
            r#"{{"at":{at},"what":"{what}","permit":{lock},"token":{token},"until":{until},"watched":true,"valid":{valid}}}"#
        );
        journals.hear(processes[*process], &line);
    }
    Evidence { ttl: TTL * MS, margin: 60 * MS, journals, ..Evidence::default() }
}

fn with(more: &[Line]) -> Evidence {
    evidence(&[&CORRECT[..], more].concat())
}

fn act(what: &str, lock: usize, token: impl Into<Option<u64>>, from: u64, to: u64) -> Act {
    let (what, least) = (what.to_owned(), 1);
    Act { what, lock: Some(lock), session: None, from: from * MS, to: to * MS, token: token.into(), least }
}

fn broken(change: impl FnOnce(&mut Evidence), mut evidence: Evidence) -> Vec<String> {
    change(&mut evidence);
    Verdict::of(&evidence).broken
}

#[track_caller]
fn complains(complaint: &str, evidence: Evidence, change: impl FnOnce(&mut Evidence)) {
    let broken = broken(change, evidence);
    assert!(broken.len() == 1 && broken[0].contains(complaint), "{broken:?}");
}

#[track_caller]
fn accepts(evidence: Evidence, change: impl FnOnce(&mut Evidence)) {
    assert_eq!(broken(change, evidence), Vec::<String>::new());
}

/// Another worker has lock 1 long before its holder's time is over.
const RIVAL: Line = (1, 2_000, "granted", 1, 4, 3_000);
/// The first worker is told that it has lost lock 1.
const TOLD: Line = (0, 3_000, "notified", 1, 3, 0);

#[test]
fn correct_evidence_passes() {
    accepts(with(&[]), |_| {});
    let verdict = Verdict::of(&with(&[]));
    assert_eq!((verdict.grants, verdict.losses), (3, 0));
}

#[test]
fn two_holders_are_found() {
    complains("two holders: w0-0 with token 3 and w1-1 with token 4", with(&[RIVAL]), |_| {});
}

#[test]
fn two_holders_are_allowed_only_after_a_break_of_just_this_lease() {
    for breaks in ["break", "release_if"] {
        accepts(with(&[RIVAL]), |evidence| evidence.acts = vec![act(breaks, 1, 3, 1_500, 1_600)]);
    }
    let of = |act: Act| complains("two holders", with(&[RIVAL]), |evidence| evidence.acts = vec![act]);
    of(act("revoke", 1, 3, 1_500, 1_600));
    of(act("break", 1, 3, 2_100, 2_200));
    of(act("break", 0, 3, 1_500, 1_600));
    of(act("break", 1, 2, 1_500, 1_600));
}

#[test]
fn an_act_without_an_answer_may_have_hit_who_was_there_and_nobody_later() {
    accepts(with(&[RIVAL]), |evidence| evidence.acts = vec![act("break", 1, None, 1_500, 1_600)]);
    complains("two holders", with(&[RIVAL]), |evidence| evidence.acts = vec![act("break", 1, None, 5, 15)]);
    complains("two holders", with(&[RIVAL]), |evidence| {
        evidence.acts = vec![Act { least: 4, ..act("break", 1, None, 1_500, 1_600) }];
    });
}

#[test]
fn a_holder_who_believes_for_too_long_after_it_was_broken_or_revoked_is_found() {
    let believes = || with(&[(0, 4_900, "valid", 1, 3, 9_000), (0, 7_000, "checked", 1, 3, 0)]);
    for what in ["break", "revoke"] {
        complains("too long after", believes(), |evidence| evidence.acts = vec![act(what, 1, 3, 1_500, 1_600)]);
        accepts(believes(), |evidence| evidence.acts = vec![act(what, 1, 3, 2_500, 2_600)]);
    }
}

#[test]
fn tokens_that_are_granted_twice_or_fall_are_found() {
    complains("1 tokens were granted twice", with(&[(1, 2_000, "granted", 0, 8, 2_500)]), |_| {});
    let fallen = [(1, 6_100, "asked", 1, 0, 0), (1, 6_200, "granted", 1, 2, 7_000)];
    complains("1 tokens fell", with(&fallen), |_| {});
}

#[test]
fn stale_writes_and_lost_updates_are_found() {
    let counters = |value, tokens: &[u64]| vec![CounterLog { value, tokens: tokens.to_vec() }];
    accepts(with(&[]), |evidence| evidence.counters = counters(3, &[7, 7, 8]));
    complains("1 writes were accepted after", with(&[]), |evidence| evidence.counters = counters(3, &[7, 8, 7]));
    complains("1 updates were lost", with(&[]), |evidence| evidence.counters = counters(2, &[7, 7, 8]));
}

#[test]
fn a_loss_that_nobody_caused_is_found_and_an_act_on_another_lock_of_the_session_causes_none() {
    complains("which nobody had touched", with(&[TOLD]), |_| {});
    complains("which nobody had touched", with(&[TOLD]), |evidence| {
        evidence.acts = vec![act("break", 0, 7, 800, 850), act("revoke", 0, 7, 800, 850)];
    });
    accepts(with(&[TOLD]), |evidence| evidence.acts = vec![act("revoke", 1, 3, 2_000, 2_100)]);
    let session =
        |name: &str| Act { session: Some(name.to_owned()), lock: None, ..act("revoke_session", 0, None, 2_000, 2_100) };
    accepts(with(&[TOLD]), |evidence| evidence.acts = vec![session("w0")]);
    complains("which nobody had touched", with(&[TOLD]), |evidence| evidence.acts = vec![session("w1")]);
    let fault = |to| Fault { kind: Kind::Freeze, target: Target::Store(0), from: 0, to, has_hit: true };
    // Without its release.
    let mut lines = CORRECT[..7].to_vec();
    lines.extend([(0, 5_900, "valid", 1, 3, 8_000), (0, 7_000, "notified", 1, 3, 0)]);
    let later = || evidence(&lines);
    accepts(later(), |evidence| evidence.faults = vec![fault(2_000 * MS)]);
    accepts(later(), |evidence| evidence.slow = vec![(1_500 * MS, 2_000 * MS)]);
    complains("which nobody had touched", later(), |evidence| evidence.slow = vec![(0, 500 * MS)]);
    complains("which nobody had touched", later(), |evidence| evidence.faults = vec![fault(500 * MS)]);
}

#[test]
fn a_loss_that_is_told_late_is_found_unless_the_process_could_not_run() {
    // Without its release.
    let mut lines = CORRECT[..7].to_vec();
    lines.push((0, 8_000, "notified", 1, 3, 0));
    complains("w0-0 ran for 2000 ms after the end of token 3", evidence(&lines), |_| {});
    let (kind, target) = (Kind::Stop, Target::Worker("w0-0".to_owned()));
    let stop = Fault { kind, target, from: 5_000 * MS, to: 7_950 * MS, has_hit: true };
    accepts(evidence(&lines), |evidence| evidence.faults = vec![stop]);
    lines.pop();
    complains("before it was told", evidence(&lines), |evidence| evidence.journals.end(0, 8_000 * MS));
}

#[test]
fn leases_that_revive_or_whose_loss_is_never_told_or_that_the_guard_contradicts_are_found() {
    let revoked = |evidence: &mut Evidence| evidence.acts = vec![act("revoke", 1, 3, 2_000, 2_100)];
    complains("was valid 100.0 ms later", with(&[TOLD, (0, 3_100, "checked", 1, 3, 0)]), revoked);
    complains("never told that token 3", with(&[(0, 3_100, "not_notified", 1, 3, 0)]), |_| {});
    let refused = || with(&[(0, 3_100, "refused", 1, 3, 1)]);
    complains("the guard refused token 3", refused(), |_| {});
    accepts(refused(), |evidence| evidence.acts = vec![act("break", 1, 3, 2_000, 2_100)]);
}

#[test]
fn a_dead_holder_that_stays_in_the_way_is_found() {
    let burial = |took| Burial { lock: 1, token: 3, took, bound: Duration::from_secs(9) };
    accepts(with(&[]), |evidence| evidence.burials = vec![burial(Some(Duration::from_secs(8)))]);
    complains("nobody was granted it for 9.0s", with(&[]), |evidence| evidence.burials = vec![burial(None)]);
}

#[test]
fn a_run_that_has_not_tried_something_proves_nothing() {
    let blind = Verdict::of(&with(&[])).blind();
    assert!(blind.iter().any(|why| why.contains("no locks were broken: run it for longer")), "{blind:?}");
    let mut evidence = with(&[]);
    evidence.acts = vec![act("break", 0, 7, 800, 850), act("revoke", 1, 3, 4_000, 4_100)];
    let verdict = Verdict::of(&evidence);
    assert_eq!((verdict.acts, verdict.spared), ([1, 1, 0], 1), "lock 1 lived on beside lock 0");
    complains("a worker told: no line", with(&[]), |evidence| evidence.journals.hear(0, "no line"));
}

#[test]
fn lines_of_acts_are_read() {
    let line = r#"{"act":"break","permit":1,"session":null,"from":1500000000,"at":1600000000,"token":3,"least":1}"#;
    assert_eq!(Act::parse(line), Some(act("break", 1, 3, 1_500, 1_600)));
    assert_eq!(Act::parse(r#"{"at":1,"what":"asked","permit":1}"#), None);
}
