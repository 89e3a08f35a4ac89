//! Runs that broke an earlier design, or this one before it was mended, each a small script in `traces/`.
//!
//! Each test shows that the promises hold, and that what makes the run interesting really happens in it: a trace that
//! has become harmless proves nothing. Where the mistake is one that a host can make, the same script with that mistake
//! switched on must break the promise.

mod run;

use std::collections::BTreeSet;
use std::time::Duration;

use leasehold_core::op::{Acquire, Op, Outcome, Renew};
use leasehold_core::store::{BootId, StoreNow};
use leasehold_core::{Monotonic, Nonce, Owner, Resource, Seq};
use leasehold_sim::clock::TrueTime;
use leasehold_sim::counts::{Sometimes, Struck};
use leasehold_sim::fault_schedule::FaultSchedule;
use leasehold_sim::promise::Promise;
use leasehold_sim::script::{Script, Way};
use leasehold_sim::store::{Answer, Ask, Form, Kind, Spec, Store};
use leasehold_sim::timeline::ArrowKind;
use leasehold_sim::world;

use run::Run;

/// Each trace with a test of its own.
macro_rules! traces {
    ($($name:ident),* $(,)?) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        mod trace {
            use super::run::{Run, script};

            $(
                #[test]
                fn $name() {
                    let run = Run::of(script(stringify!($name)));
                    run.keeps_every_promise();
                    super::$name(&run);
                }
            )*
        }
    };
}

traces!(
    acquire_resent_under_the_same_version,
    delayed_send_that_overwrites_a_heartbeat,
    token_computed_from_an_earlier_read,
    late_renewal_after_a_check_said_lost,
    seed_copied_by_a_fork,
    retried_write_within_one_lease,
    row_deleted_and_written_by_a_stale_holder,
    refusal_of_one_send_taken_for_all,
    renewal_with_a_shorter_ttl,
    now_read_before_the_replies,
    wake_ups_by_its_own_releases,
    credentials_renewed_without_end,
    orphaned_releases_that_pile_up,
    run_forgotten_before_its_finish,
);

const MS: u64 = 1_000_000;

fn acquire_resent_under_the_same_version(run: &Run) {
    let asked = run.asked(0, ArrowKind::Acquire);
    let [first, second] = &asked[..] else { panic!("two sends, not {asked:?}") };
    assert_eq!(first.answer, Some("granted, token 1767225600000000"), "the first one landed");
    assert!(first.label.contains("send 1") && second.label.contains("send 2"), "{asked:?}");
    assert_eq!((second.sent_ms, second.answer), (500, Some("held by another")), "by its own first send");
    assert_eq!((run.struck(Struck::ReplyLost), run.seen(Sometimes::RecoveredAcquire)), (1, 1));

    let leases = run.leases();
    let [holder, observer] = &leases[..] else { panic!("two leases, not {leases:?}") };
    // 3 s after the first send left, less the margin of 62 ms.
    assert_eq!((holder.host, holder.to_ms, &*holder.end), (0, 2_938, "expired"));
    // An answer to the second send would have counted until here, and the observer could not have known.
    assert!(observer.host == 1 && observer.from_ms < 500 + 2_938, "{observer:?}");
}

fn delayed_send_that_overwrites_a_heartbeat(run: &Run) {
    let asked = run.requests(0);
    let heartbeat = asked.iter().find(|request| request.kind == ArrowKind::Renew).unwrap();
    assert_eq!(heartbeat.answer, Some("renewed"));
    let late = asked.iter().find(|request| request.arrived_ms == Some(1_103)).unwrap();
    assert!(late.kind == ArrowKind::Acquire && late.arrived_ms > heartbeat.arrived_ms, "{late:?}");
    assert_eq!(late.answer, None, "a copy is refused by the heartbeat, and nobody hears of that");
    assert_eq!((run.struck(Struck::RequestCopied), run.seen(Sometimes::SecondForm)), (1, 1));

    // The observer has seen the version that the late send would have brought back, and did not look while another
    // stood there.
    let looks = run.requests(1);
    let arrived: Vec<_> =
        looks.iter().filter_map(|look| look.arrived_ms).filter(|at| (150..3_900).contains(at)).collect();
    let (before, between): (Vec<u64>, Vec<u64>) =
        arrived.iter().copied().filter(|at| *at < 1_103).partition(|at| Some(*at) < heartbeat.arrived_ms);
    assert!(before.len() >= 3 && between.is_empty(), "{arrived:?}");

    let leases = run.leases();
    let [_, holder, observer] = &leases[..] else { panic!("three leases, not {leases:?}") };
    assert_eq!((holder.host, &*holder.end, observer.host), (0, "expired", 1));
    assert!(holder.to_ms > before[0] + 3_030 + 100, "there would be two holders: {leases:?}");
    assert!(observer.token > holder.token);
}

fn run_forgotten_before_its_finish(run: &Run) {
    assert_eq!((run.seen(Sometimes::Finished), run.seen(Sometimes::FinishUnconfirmed)), (0, 1));
    let asked = run.requests(3);
    let last = asked.iter().rfind(|request| request.kind == ArrowKind::Release);
    assert_eq!(last.and_then(|request| request.answer), Some("abstains"), "a node that has forgotten marks nothing");
    assert!(asked.iter().all(|request| !request.label.starts_with("finish")), "{asked:?}");
}

fn token_computed_from_an_earlier_read(run: &Run) {
    let tokens: Vec<_> = run.leases().iter().map(|lease| (lease.host, lease.token)).collect();
    let first = tokens[0].1;
    assert_eq!(tokens, [(2, first), (1, first + 1), (1, first + 2), (0, first + 3)]);
    // It asked for the token after the first, which was given out while it was on its way.
    let late = run.requests(0).into_iter().find(|request| request.arrived_ms == Some(651)).unwrap();
    assert!(late.kind == ArrowKind::Acquire && late.sent_ms == 350, "{late:?}");
    assert_eq!(run.seen(Sometimes::SecondForm), 2, "and the newcomer's, whose clock is behind as well");
    assert_eq!(run.seen(Sometimes::TimedOut), 2, "a holder that asked for a token had seen the one before");
}

fn late_renewal_after_a_check_said_lost(run: &Run) {
    assert_eq!((run.struck(Struck::StalledDriver), run.seen(Sometimes::DeclaredLost)), (1, 1));
    let confirmed: Vec<_> =
        run.asked(0, ArrowKind::Renew).into_iter().filter(|renewal| renewal.answer.is_some()).collect();
    let [renewal] = &confirmed[..] else { panic!("one renewal, not {confirmed:?}") };
    assert_eq!(renewal.answer, Some("renewed"));
    let leases = run.leases();
    let [holder, next] = &leases[..] else { panic!("two leases, not {leases:?}") };
    // The renewal was confirmed before the deadline, and would have been published after it.
    let (confirmed_ms, published_ms) = (renewal.arrived_ms.unwrap() + 1, renewal.arrived_ms.unwrap() + 801);
    assert!(confirmed_ms < 2_938 && published_ms > 2_938, "{renewal:?}");
    assert!(holder.host == 0 && (2_938..published_ms).contains(&holder.to_ms), "{holder:?}");
    assert_eq!((next.host, holder.token < next.token), (1, true));
    // It went on writing without asking, and only the guard kept it out.
    let last_own = run.register().iter().rposition(|(_, what, _)| what.contains(&holder.token.to_string())).unwrap();
    assert!(run.seen(Sometimes::RefusedStale) > 50 && !run.register()[last_own].2);
}

fn seed_copied_by_a_fork(run: &Run) {
    assert_eq!(run.struck(Struck::Forked), 1);
    let leases = run.leases();
    let [parent, child] = &leases[..] else { panic!("two leases, not {leases:?}") };
    assert_eq!((parent.host, child.host), (0, 1));
    assert!(parent.to_ms <= child.from_ms && parent.token < child.token, "{leases:?}");
    let first = run.asked(1, ArrowKind::Acquire).into_iter().next().unwrap();
    assert!(first.sent_ms < parent.to_ms && first.answer == Some("held by another"), "{first:?}");

    let mut twin = run.script.clone();
    twin.hosts.iter_mut().for_each(|host| host.own_entropy = true);
    let twin = Run::of(twin);
    assert!(twin.falls(Promise::OneHolder).text.contains("same nonce"));
    // The child was taken for its parent; only the token follows its own floor.
    let leases = twin.leases();
    let [parent, child] = &leases[..] else { panic!("two leases, not {leases:?}") };
    assert!(child.from_ms < parent.to_ms && parent.token < child.token, "{leases:?}");
}

fn retried_write_within_one_lease(run: &Run) {
    assert_eq!(run.struck(Struck::RequestCopied), 2);
    assert_eq!((run.seen(Sometimes::Written), run.seen(Sometimes::RefusedStale)), (2, 2));
    let writes: Vec<_> = run.register().into_iter().map(|(at, what, done)| (at, what[..7].to_owned(), done)).collect();
    let write = |at, n, done| (at, format!("write {n}"), done);
    let expected = [write(5, 1, true), write(338, 2, true), write(438, 2, false), write(505, 1, false)];
    assert_eq!(writes[1..], expected, "after the claim");
}

fn row_deleted_and_written_by_a_stale_holder(run: &Run) {
    let said = run.register();
    let (deleted, what, done) = said.iter().find(|(_, what, _)| what.starts_with("delete")).unwrap();
    assert!(*done, "{what}");
    let leases = run.leases();
    let (at, what, done) = said.last().unwrap();
    assert!(at > deleted && what == &format!("write 1 with token {}", leases[0].token) && !done, "{said:?}");
    assert_eq!((run.seen(Sometimes::Written), run.seen(Sometimes::RefusedStale)), (2, 1));
    assert!(leases[0].host == 0 && leases[0].token < leases[1].token, "{leases:?}");

    // Only that a check needs a mark stands between a stale holder and a row that was deleted: a claim of it that
    // arrives as late brings the completion back.
    let mut twin = run.script.clone();
    let claim = Way { copy_ns: Some(3_900 * MS), ..Way::default() };
    twin.messages.push(leasehold_sim::script::Message { request: claim, n: 1, ..twin.messages[0] });
    let twin = Run::of(twin);
    let text = &twin.falls(Promise::Fencing).text;
    assert!(text.contains(&format!("a write with token {}", leases[0].token)), "{text}");
}

fn refusal_of_one_send_taken_for_all(run: &Run) {
    let asked = run.asked(0, ArrowKind::Acquire);
    let [first, second] = &asked[..] else { panic!("two sends, not {asked:?}") };
    assert_eq!((second.arrived_ms, second.answer), (Some(511), Some("held by another")));
    assert!(first.arrived_ms == Some(711) && first.answer.unwrap().starts_with("granted"), "{first:?}");
    assert_eq!((run.struck(Struck::Zombie), run.seen(Sometimes::GivenUp), run.seen(Sometimes::TimedOut)), (1, 1, 1));
    let answers: Vec<_> = run.asked(0, ArrowKind::Release).iter().map(|release| release.answer).collect();
    assert_eq!(answers, [Some("held by another"), Some("released")], "once more, since the first send may yet land");

    assert!(run.seen(Sometimes::Orphan) >= 1, "what landed stood in the way");
    let leases = run.leases();
    assert_eq!(leases.iter().map(|lease| lease.host).collect::<Vec<_>>(), [1, 2], "{leases:?}");
    assert!((1_015..2_000).contains(&leases[1].from_ms), "not after a whole ttl: {leases:?}");
}

fn renewal_with_a_shorter_ttl(run: &Run) {
    assert_eq!((run.seen(Sometimes::Renewed), run.struck(Struck::Partitioned)), (1, 1));
    let renewals = run.asked(0, ArrowKind::Renew);
    assert!(renewals[0].answer == Some("renewed") && renewals[1..].iter().all(|lost| lost.arrived_ms.is_none()));
    let leases = run.leases();
    let [holder, observer] = &leases[..] else { panic!("two leases, not {leases:?}") };
    assert_eq!((holder.host, &*holder.end, observer.host), (0, "expired", 1));
    // An observer that looked at once, and had to wait for a third less, would have been too early.
    assert!(renewals[0].arrived_ms.unwrap() + 2_020 < holder.to_ms, "{leases:?}");
    assert!(observer.from_ms >= renewals[0].arrived_ms.unwrap() + 3_030, "{leases:?}");
}

fn now_read_before_the_replies(run: &Run) {
    let first = run.requests(1).into_iter().next().unwrap();
    let leases = run.leases();
    let [holder, observer] = &leases[..] else { panic!("two leases, not {leases:?}") };
    // It left before the record was there, and found it.
    assert!((first.sent_ms, first.answer) == (0, Some("held by another")) && holder.from_ms > 0, "{first:?}");
    assert!((holder.host, &*holder.end, observer.host) == (0, "expired", 1), "{leases:?}");
    assert!(holder.to_ms > first.sent_ms + 3_030, "an observation from there would be too short: {leases:?}");
    assert!(observer.from_ms >= first.arrived_ms.unwrap() + 1 + 3_030, "{leases:?}");

    let mut twin = run.script.clone();
    twin.hosts[1].stale_now = true;
    let twin = Run::of(twin);
    assert_eq!(twin.falls(Promise::Backed).host, Some(0), "its record is overwritten while it believes");
    assert!(twin.falls(Promise::OneHolder).text.contains("both hold the lock"));
    assert!(twin.leases()[1].from_ms < holder.to_ms, "both believe");
}

fn wake_ups_by_its_own_releases(run: &Run) {
    let failing = 6_000;
    let asked = run.asked(0, ArrowKind::Acquire);
    let vain = asked.iter().filter(|acquire| acquire.answer == Some("store failure")).count();
    // Attempts land and are released again, each of which is a wake-up for the waiter that made them.
    let landed = run.records().iter().filter(|(_, to)| *to < failing).count();
    assert!(landed >= 5, "{:?}", run.records());
    assert!(vain <= 3 * (landed + 1) && vain < 40, "{vain} sends in vain");
    assert!(run.leases()[0].from_ms > failing, "{:?}", run.leases());
}

fn credentials_renewed_without_end(run: &Run) {
    let vain =
        run.asked(0, ArrowKind::Acquire).iter().filter(|acquire| acquire.answer == Some("store failure")).count();
    // Fresh credentials come after 20 ms, so that heeding all of them would be some 170 tries.
    assert!((5..20).contains(&vain), "{vain} tries in vain");
    assert_eq!(run.struck(Struck::NoCredentials), 1);
    assert!((4_000..6_000).contains(&run.leases()[0].from_ms), "{:?}", run.leases());
}

fn orphaned_releases_that_pile_up(run: &Run) {
    let silent = |sent_ms: u64| (20_000..40_000).contains(&sent_ms);
    let attempts = run.asked(0, ArrowKind::Acquire).len() / 3;
    assert!(attempts >= 20, "{attempts} attempts, each of which leaves a release behind");
    let late = run.asked(0, ArrowKind::Release).into_iter().filter(|release| silent(release.sent_ms)).count();
    assert!((100..300).contains(&late), "{late} releases in the second half of the silence");
    assert!(run.leases()[0].from_ms > 40_000, "{:?}", run.leases());
}

/// The store's own protection, should such a renewal ever arrive.
#[test]
fn stores_that_expire_records_never_shorten_one() {
    for kind in [Kind::Redis, Kind::Sqlite] {
        let mut store = Store::new(&Spec::of(kind));
        let resource = Resource::new("r").unwrap();
        let nonce = Nonce::from_bytes([1; 16]);
        let clocks = |at: TrueTime| StoreNow { boot: BootId([1; 16]), uptime: Monotonic::from_ns(at.0), unix_ms: 0 };
        let mut ask = |op: &Op, ms: u64| {
            let at = TrueTime(ms * MS);
            let ask = Ask { resource: &resource, op, form: Form::Floor, at, caller: clocks(at), ticket: None };
            let answer = store.ask(&ask);
            assert!(matches!(answer, Answer::Done(Outcome::Applied(_))), "{kind:?} {answer:?}");
        };
        let whole = Duration::from_secs(3);
        let acquire = Acquire { owner: Owner::new("somebody").unwrap(), ..Acquire::new(nonce, Seq::new(1), whole) };
        ask(&Op::Acquire(Box::new(acquire)), 0);
        ask(&Op::Renew(Renew { nonce, seq: Seq::new(2), record_ttl: whole / 3, quorum: None }), 500);
        let stands = |ms: u64| store.stored(&resource, TrueTime(ms * MS), &clocks(TrueTime(ms * MS))).is_some();
        assert!(stands(2_999) && !stands(3_000), "{kind:?}");
    }
}

#[test]
fn every_trace_has_a_test() {
    let files =
        std::fs::read_dir(run::folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<_> = files.collect();
    let tested: BTreeSet<_> = NAMES.iter().map(|name| format!("{name}.json")).collect();
    assert_eq!(files, tested);
    for name in NAMES {
        let script = run::script(name);
        assert_eq!(script.name, name.replace('_', " "));
        assert!(script.why.len() > 100, "{name} does not say why it is kept");
    }
}

#[test]
fn trace_replays_identically() {
    let mut digests = BTreeSet::new();
    for name in NAMES {
        let script = run::script(name);
        let replay = |with_timeline| world::run(&script, FaultSchedule::written(&script), with_timeline);
        let (first, second) = (replay(false), replay(true));
        assert_eq!((first.digest, &first.counts), (second.digest, &second.counts), "{name}");
        digests.insert(first.digest);
        let again = Script::from_json(&script.to_json()).unwrap();
        assert_eq!(again, script, "{name} is read as it was written");
    }
    assert_eq!(digests.len(), NAMES.len(), "the digest tells runs apart");
}

#[test]
fn invalid_script_is_rejected_with_the_reason() {
    let text = run::script("seed_copied_by_a_fork").to_json();
    let changed = |from: &str, to: &str| {
        assert!(text.contains(from), "{from} is not in {text}");
        Script::from_json(&text.replacen(from, to, 1)).expect_err(to)
    };
    for (from, to, words) in [
        ("\"format\": 1", "\"format\": 2", "the script has format 2, this program reads format 1"),
        ("\"format\": 1", "\"format\": 1, \"colour\": \"red\"", "unknown field `colour`"),
        ("\"resource\": 0", "\"resource\": 0, \"colour\": \"red\"", "unknown field `colour`"),
        ("\"resource\": 0", "\"resource\": 1", "there is no resource 1"),
        ("\"child\": 1", "\"child\": 2", "there is no host 2"),
        ("\"drift_ppm\": 10000", "\"drift_ppm\": 10", "world: drift of 10 ppm is outside 100 to 100000 ppm"),
        ("\"ttl_ns\": 3000000000,", "\"ttl_ns\": 3,", "a job of host 0: ttl is 3 ns, but must be at least 100 ms"),
        (
            "\"faults\"",
            "\"stalls\": [{\"host\": 7, \"n\": 1, \"place\": \"before\", \"for_ns\": 1}], \"faults\"",
            "there is no host 7",
        ),
        (
            "\"faults\"",
            "\"messages\": [{\"host\": 0, \"to\": \"store\", \"node\": 1, \"n\": 0}], \"faults\"",
            "there is no node 1",
        ),
        ("\"fork\"", "\"spoon\"", "unknown variant `spoon`"),
        ("\"ttl_ns\": 3000000000,", "", "missing field `ttl_ns`"),
    ] {
        let error = changed(from, to);
        assert!(error.contains(words), "{error}");
    }
    assert!(changed("\"fork\"", "\"spoon\"").contains("line"), "with the place");
}
