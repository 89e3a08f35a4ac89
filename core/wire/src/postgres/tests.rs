use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use leasehold_core::config::MAX_KEEP;
use leasehold_core::member::{Bootstrap, Durability, LossId, Marker, Membership, Phase, QuorumId, RETENTION, RunId};
use leasehold_core::op::{
    Acquire, Applied, DenialKind, Fault, FaultKind, Finish, LockOp, Op, Outcome, Raise, Refusal, Release, Renew,
};
use leasehold_core::queue::{ClientId, Ticket};
use leasehold_core::{LockId, Nonce, Owner, Resource, Seq, Token};

use super::*;
use crate::Progress;

mod results;

const OURS: Nonce = Nonce::from_bytes([7; 16]);
const THEIRS: Nonce = Nonce::from_bytes([9; 16]);
const TTL: Duration = Duration::from_secs(30);
const STAMP: LossId = LossId([3; 16]);
const NOW: i64 = 1_700_000_000_000;

fn acquire(member: Option<Membership>) -> Acquire {
    Acquire {
        floor: Token::new(5).unwrap(),
        owner: Owner::new("worker").unwrap(),
        member,
        ..Acquire::new(OURS, Seq::new(2), TTL)
    }
}

fn op(op: Op) -> LockOp {
    LockOp { lock: LockId::new(1), resource: Resource::new("a").unwrap(), op }
}

fn begin(ops: &[LockOp]) -> Exchange {
    Codec::new(&Settings::default()).begin(ops, Duration::from_secs(1))
}

fn acquiring() -> Exchange {
    begin(&[op(Op::Acquire(Box::new(acquire(None))))])
}

fn renewal(name: &str) -> LockOp {
    let renew = Renew { nonce: OURS, seq: Seq::new(3), record_ttl: TTL, quorum: None };
    LockOp { resource: Resource::new(name).unwrap(), ..op(Op::Renew(renew)) }
}

fn releasing() -> Exchange {
    begin(&[op(Op::Release(Release { nonce: OURS, quorum: None }))])
}

fn finishing() -> Exchange {
    let owner = Owner::default();
    begin(&[op(Op::Finish(Box::new(Finish {
        nonce: OURS,
        token: Token::ZERO,
        counter: Token::ZERO,
        keep: TTL,
        owner,
        about: None,
        quorum: None,
    })))])
}

fn text(text: &str) -> Field {
    Field::Text(text.to_string())
}

/// The row of a lock, held for 10 s more, as `read` shows it behind marker, run and clock.
struct Shown {
    nonce: Nonce,
    seq: i64,
    released: bool,
    left_us: i64,
    counter: i64,
    completion: Option<(Nonce, i64)>,
}

const HELD: Shown = Shown { nonce: THEIRS, seq: 1, released: false, left_us: 10_000_000, counter: 8, completion: None };

impl Shown {
    fn row(&self) -> Vec<Field> {
        let mut row = vec![Field::Null, Field::Null, Field::Int(NOW)];
        row.extend([text("a"), Field::Int(self.counter), Field::Bytes(self.nonce.as_bytes().to_vec())]);
        row.extend([Field::Int(self.seq), Field::Bool(self.released), Field::Int(30_000_000)]);
        row.extend([Field::Int(self.left_us), Field::Int(NOW), text("them"), Field::Null, Field::Null]);
        row.extend(match self.completion {
            None => vec![Field::Null; 7],
            Some((nonce, left)) => vec![
                Field::Bytes(nonce.as_bytes().to_vec()),
                Field::Int(8),
                text("them"),
                Field::Int(NOW),
                Field::Int(left),
                Field::Int(60_000_000),
                Field::Null,
            ],
        });
        row
    }
}

/// The row where there is no lock.
fn nothing() -> Vec<Field> {
    let mut row = vec![Field::Null, Field::Null, Field::Int(NOW)];
    row.resize(21, Field::Null);
    row
}

/// Hands in answers, all but the last of which lead to another statement; the outcome of the only operation.
#[track_caller]
fn outcome(mut exchange: Exchange, answers: impl IntoIterator<Item = Vec<Vec<Field>>>) -> Outcome {
    let mut answers = answers.into_iter().peekable();
    while let Some(answer) = answers.next() {
        match exchange.answer(Ok(answer)) {
            Progress::Done(outcomes) if answers.peek().is_none() => return outcomes.into_iter().next().unwrap(),
            Progress::Again if answers.peek().is_some() => {}
            other => panic!("{other:?} after {} more answers", answers.count()),
        }
    }
    panic!("no answers")
}

fn is_conflict(outcome: &Outcome, with: Option<Nonce>) -> bool {
    let Outcome::NotApplied(Refusal::Conflict(seen)) = outcome else { return false };
    match (&seen.holding, with) {
        (Some(holding), Some(nonce)) => holding.is_of(&nonce),
        (None, None) => true,
        _ => false,
    }
}

fn is_busy(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::NotApplied(Refusal::Unavailable(fault)) if fault.kind == FaultKind::Busy)
}

#[test]
fn an_acquire_is_one_statement_with_these_parameters() {
    let exchange = acquiring();
    let Statement { sql, params } = exchange.statement();
    assert!(sql.contains("INSERT INTO \"public\".\"leasehold\"") && sql.contains("ON CONFLICT (resource) DO UPDATE"));
    let (nonce, owner) = (Param::Bytea(Some(OURS.as_bytes().to_vec())), Param::Text(Some("worker".into())));
    let expected = [
        Param::Text(Some("750".into())),
        Param::Text(Some("a".into())),
        Param::Int8(5),
        nonce,
        Param::Int8(2),
        Param::Int8(30_000_000),
        owner,
        Param::Bytea(None),
        Param::Bool(false),
    ];
    assert!(*params == expected);
    let granted = Outcome::Applied(Applied::Acquired { counter: Token::new(9).unwrap() });
    assert_eq!(outcome(exchange, [grant(9)]), granted);
}

/// The answer to an acquire that took the lock.
fn grant(counter: i64) -> Vec<Vec<Field>> {
    vec![vec![Field::Int(counter), Field::Bool(false)]]
}

#[test]
#[should_panic(expected = "this may write")]
fn a_statement_that_writes_is_none_that_reads() {
    sql::Sql::reads("WITH d AS (DELETE FROM t RETURNING 1) SELECT 1 FROM d".to_string());
}

#[test]
fn the_first_grant_of_a_name_forgets_old_neighbours() {
    for is_new in [false, true] {
        let mut exchange = acquiring();
        let granted = exchange.answer(Ok(vec![vec![Field::Int(9), Field::Bool(is_new)]]));
        assert!(matches!(granted, Progress::Done(_)));
        let afterwards = exchange.afterwards();
        assert_eq!(afterwards.is_some(), is_new);
        assert!(afterwards.is_none_or(|it| it.sql.contains("DELETE") && it.params == [Param::Text(Some("a".into()))]));
    }
}

#[test]
fn a_refused_acquire_shows_what_stands_in_its_way() {
    assert!(is_conflict(&outcome(acquiring(), [vec![], vec![HELD.row()]]), Some(THEIRS)));
    for (seq, released) in [(2, false), (3, false), (1, true)] {
        let own = Shown { nonce: OURS, seq, released, ..HELD };
        assert!(is_conflict(&outcome(acquiring(), [vec![], vec![own.row()]]), Some(OURS)), "{seq} {released}");
    }
    let full = Shown { released: true, counter: (1 << 53) - 1, ..HELD };
    let Outcome::NotApplied(Refusal::Denied(denial)) = outcome(acquiring(), [vec![], vec![full.row()]]) else {
        panic!("no token is left")
    };
    assert_eq!(denial.kind, DenialKind::TokensExhausted);
}

#[test]
fn an_acquire_whose_refusal_has_no_reason_is_sent_again_a_few_times() {
    let free = || [vec![], vec![Shown { released: true, ..HELD }.row()]];
    let granted = outcome(acquiring(), free().into_iter().chain([grant(9)]));
    assert!(matches!(granted, Outcome::Applied(Applied::Acquired { .. })));
    assert!(is_busy(&outcome(acquiring(), free().into_iter().chain(free()).chain([vec![], vec![nothing()]]))));
}

#[test]
fn a_completion_that_stands_refuses_a_run_and_no_lock() {
    let run = || begin(&[op(Op::Acquire(Box::new(Acquire { unless_done: true, ..acquire(None) })))]);
    let marked = |left| Shown { released: true, completion: Some((THEIRS, left)), ..HELD };
    let Outcome::NotApplied(Refusal::Done(completion)) = outcome(run(), [vec![], vec![marked(7).row()]]) else {
        panic!()
    };
    assert_eq!((completion.token.get(), completion.left), (8, Duration::from_micros(7)));
    let granted = grant(9);
    assert!(matches!(outcome(run(), [vec![], vec![marked(-7).row()], granted.clone()]), Outcome::Applied(_)));
    assert!(matches!(outcome(acquiring(), [vec![], vec![marked(7).row()], granted]), Outcome::Applied(_)));
}

#[test]
fn the_longest_mark_is_read_though_the_clock_goes_on_while_it_is_written() {
    let read = |kept_us| {
        let run = begin(&[op(Op::Acquire(Box::new(Acquire { unless_done: true, ..acquire(None) })))]);
        let mut row = Shown { released: true, completion: Some((THEIRS, 7)), ..HELD }.row();
        let kept = row.len() - 2;
        row[kept] = Field::Int(kept_us);
        outcome(run, [vec![], vec![row]])
    };
    let longest = i64::try_from(MAX_KEEP.as_micros()).unwrap();
    assert!(matches!(read(longest + 1), Outcome::NotApplied(Refusal::Done(_))));
    assert!(matches!(read(longest + 61_000_000), Outcome::NotApplied(Refusal::Denied(_))));
}

#[test]
fn renewals_are_one_statement_and_one_read() {
    let mut exchange = begin(&[renewal("a"), renewal("b"), renewal("c")]);
    let row = |name: &str, nonce: Nonce| vec![text(name), Field::Bytes(nonce.as_bytes().to_vec())];
    assert_eq!(exchange.answer(Ok(vec![row("b", OURS), row("c", THEIRS)])), Progress::Again);
    assert!(exchange.statement().params == [Param::TextArray(vec!["a".into(), "c".into()])]);
    let locked = Shown { nonce: OURS, seq: 2, ..HELD };
    let Progress::Done(outcomes) = exchange.answer(Ok(vec![locked.row()])) else { panic!() };
    assert!(is_busy(&outcomes[0]), "a transaction holds its row");
    assert_eq!(outcomes[1], Outcome::Applied(Applied::Renewed));
    assert!(is_conflict(&outcomes[2], None), "its row is gone");
}

#[test]
fn a_renewal_that_a_newer_one_overtook_shows_that_one() {
    let newer = Shown { nonce: OURS, seq: 4, ..HELD };
    assert!(is_conflict(&outcome(begin(&[renewal("a")]), [vec![], vec![newer.row()]]), Some(OURS)));
    let expired = Shown { nonce: OURS, left_us: -1, ..HELD };
    assert!(is_conflict(&outcome(begin(&[renewal("a")]), [vec![], vec![expired.row()]]), None));
}

#[test]
fn releases_and_raises_end_with_the_row() {
    let done = vec![vec![Field::Int(1), Field::Null]];
    assert_eq!(outcome(releasing(), [done]), Outcome::Applied(Applied::Released));
    assert!(is_conflict(&outcome(releasing(), [vec![], vec![HELD.row()]]), Some(THEIRS)));
    let raise = || begin(&[op(Op::Raise(Raise { nonce: OURS, token: Token::ZERO, loss: Some(STAMP) }))]);
    let raised = Outcome::Applied(Applied::Raised { counter: Token::new(4).unwrap() });
    assert_eq!(outcome(raise(), [vec![vec![Field::Int(4)]]]), raised);
    assert!(is_conflict(&outcome(raise(), [vec![], vec![nothing()]]), None));
}

#[test]
fn a_finish_that_meets_its_own_mark_has_succeeded() {
    let marked = |nonce, left| Shown { nonce: OURS, released: true, completion: Some((nonce, left)), ..HELD };
    let finished = Outcome::Applied(Applied::Finished);
    assert_eq!(outcome(finishing(), [vec![vec![Field::Int(1)]]]), finished);
    assert_eq!(outcome(finishing(), [vec![], vec![marked(OURS, 1).row()]]), finished);
    for other in [marked(THEIRS, 1), marked(OURS, -1)] {
        assert!(is_conflict(&outcome(finishing(), [vec![], vec![other.row()]]), Some(OURS)));
    }
}

fn asked() -> Membership {
    Membership {
        quorum: QuorumId([1; 16]),
        max_ttl_ms: 60_000,
        durability: Durability::NotDeclared,
        fresh: LossId([5; 16]),
        waited_out: None,
        bootstrap: Bootstrap::No,
        retention: RETENTION,
    }
}

fn voting(asked: Membership) -> Exchange {
    begin(&[op(Op::Acquire(Box::new(acquire(Some(asked)))))])
}

fn marker(phase: Phase) -> Marker {
    Marker { quorum: QuorumId([1; 16]), max_ttl_ms: 60_000, stamp: STAMP, phase, run: RunId::new("00000001") }
}

/// The answer to a vote.
fn vote(marker: &str, votes: bool, counter: Option<i64>, trust: Option<LossId>) -> Vec<Vec<Field>> {
    let null = |field: Option<Field>| field.unwrap_or(Field::Null);
    let marker = (!marker.is_empty()).then(|| text(marker));
    let trust = trust.map(|loss| text(&loss.to_string()));
    let (counter, run) = (counter.map(Field::Int), text("00000001"));
    vec![vec![null(marker), Field::Bool(votes), run, Field::Int(NOW), null(counter), null(trust), Field::Bool(false)]]
}

#[test]
fn a_member_votes_in_one_statement() {
    let exchange = voting(asked());
    let [.., expected, member] = exchange.statement().params.as_slice() else { panic!() };
    assert!(*expected == Param::Text(None));
    let Param::Text(Some(member)) = member else { panic!() };
    assert!(marker(Phase::Member).text().starts_with(member.as_str()));
    assert!(exchange.statement().sql.contains("FOR SHARE"));
    let granted = Outcome::Applied(Applied::Acquired { counter: Token::new(9).unwrap() });
    let member = marker(Phase::Member).text();
    assert_eq!(outcome(exchange, [vote(&member, true, Some(9), None)]), granted);
}

#[test]
fn a_node_without_marker_is_marked_and_abstains() {
    let mut exchange = voting(asked());
    assert_eq!(exchange.answer(Ok(vote("", false, None, None))), Progress::Again);
    let Statement { sql, params } = exchange.statement();
    let Param::Text(Some(written)) = &params[0] else { panic!() };
    let written = Marker::parse(written.as_bytes()).unwrap();
    assert!(sql.contains("DO NOTHING") && written.phase == Phase::Joining && written.run == RunId::new("00000001"));
    let abstains = Outcome::NotApplied(Refusal::Abstains { stamp: Some(written.stamp) });
    assert_eq!(outcome(exchange, [vec![vec![text("m")]]]), abstains);
}

#[test]
fn a_marker_that_others_wrote_meanwhile_is_looked_at_again() {
    let joining = marker(Phase::Joining).text();
    let abstains = Outcome::NotApplied(Refusal::Abstains { stamp: Some(STAMP) });
    let answers = [vote("", false, None, None), vec![], vote(&joining, false, None, None)];
    assert_eq!(outcome(voting(asked()), answers), abstains);
}

#[test]
fn a_promoted_node_abstains_unless_that_loses_nothing() {
    let of_another_run = Marker { run: RunId::new("00000009"), ..marker(Phase::Member) }.text();
    let answers = || [vote(&of_another_run, false, None, None), vec![vec![text("m")]]];
    let outcome_of = outcome(voting(asked()), answers());
    assert!(matches!(outcome_of, Outcome::NotApplied(Refusal::Abstains { stamp: Some(_) })));
    let declared = Codec::new(&Settings { durability: Durability::Declared, ..Settings::default() });
    let durable = Membership { durability: Durability::Declared, ..asked() };
    let exchange = declared.begin(&[op(Op::Acquire(Box::new(acquire(Some(durable)))))], TTL);
    assert!(!exchange.statement().sql.contains("pg_walfile_name"));
    let granted = outcome(exchange, [vote(&of_another_run, true, Some(9), None)]);
    assert!(matches!(granted, Outcome::Applied(Applied::Acquired { .. })));
}

#[test]
fn a_node_that_rejoined_votes_in_doubt_until_it_was_raised() {
    let rejoined = marker(Phase::Rejoined { trusted_from_unix_ms: u64::MAX }).text();
    let first = || vote(&rejoined, false, None, None);
    let waited = || Membership { waited_out: Some(STAMP), ..asked() };
    let counter = Token::new(9).unwrap();
    let doubted = outcome(voting(waited()), [first(), vote(&rejoined, true, Some(9), Some(LossId([8; 16])))]);
    assert_eq!(doubted, Outcome::Applied(Applied::AcquiredInDoubt { counter, stamp: STAMP }));
    let trusted = outcome(voting(waited()), [first(), vote(&rejoined, true, Some(9), Some(STAMP))]);
    assert_eq!(trusted, Outcome::Applied(Applied::Acquired { counter }));
    let run = Acquire { unless_done: true, ..acquire(Some(waited())) };
    let run = begin(&[op(Op::Acquire(Box::new(run)))]);
    let of_run = outcome(run, [first(), vote(&rejoined, true, Some(9), Some(STAMP))]);
    assert_eq!(of_run, Outcome::Applied(Applied::AcquiredInDoubt { counter, stamp: STAMP }), "marks are not counters");
}

#[test]
fn a_refused_vote_is_judged_by_what_one_read_shows() {
    let member = marker(Phase::Member).text();
    let with = |marker: &str, mut row: Vec<Field>| {
        row[0] = text(marker);
        row[1] = text("00000001");
        vec![row]
    };
    let refused = || vote(&member, true, None, None);
    let conflict = outcome(voting(asked()), [refused(), with(&member, HELD.row())]);
    assert!(is_conflict(&conflict, Some(THEIRS)));
    let joining = with(&marker(Phase::Joining).text(), HELD.row());
    let abstains = Outcome::NotApplied(Refusal::Abstains { stamp: Some(STAMP) });
    assert_eq!(outcome(voting(asked()), [refused(), joining]), abstains);
    let renew = Renew { nonce: OURS, seq: Seq::new(3), record_ttl: TTL, quorum: Some(Durability::NotDeclared) };
    let forgotten = outcome(begin(&[op(Op::Renew(renew))]), [vec![], vec![nothing()]]);
    assert_eq!(forgotten, Outcome::NotApplied(Refusal::Abstains { stamp: None }));
    assert!(is_conflict(&outcome(begin(&[op(Op::Renew(renew))]), [vec![], with(&member, nothing())]), None));
}

#[test]
fn another_quorum_is_refused() {
    let other = Marker { quorum: QuorumId([2; 16]), ..marker(Phase::Member) }.text();
    for marker in [other.as_str(), "leasehold/9 new"] {
        let Outcome::NotApplied(Refusal::Denied(denial)) = outcome(voting(asked()), [vote(marker, false, None, None)])
        else {
            panic!("{marker}")
        };
        assert_eq!(denial.kind, DenialKind::Membership);
    }
}

#[test]
fn a_marker_is_looked_at_and_replaced() {
    let codec = Codec::new(&Settings::default());
    let member = marker(Phase::Member);
    let found = codec.found(Ok(vec![vec![text(&member.text()), Field::Bool(true), Field::Bool(false)]])).unwrap();
    assert_eq!((&found.marker, found.has_queues, found.has_results), (&Some(member.clone()), true, false));
    let nothing = codec.found(Ok(vec![vec![Field::Null, Field::Bool(false), Field::Bool(true)]])).unwrap();
    assert!(nothing.text.is_empty() && !nothing.has_queues && nothing.has_results);
    for odd in [
        vec![],
        vec![vec![]],
        vec![vec![Field::Null, Field::Null]],
        vec![vec![Field::Int(1), Field::Bool(true), Field::Null]],
    ] {
        assert!(codec.found(Ok(odd)).is_err());
    }
    assert!(codec.mark(b"", Some(&member)).sql.contains("INSERT"));
    assert!(codec.mark(&found.text, Some(&member)).sql.contains("UPDATE"));
    assert!(codec.mark(&found.text, None).sql.contains("DELETE"));
    assert_eq!((codec.marked(Ok(vec![vec![]])), codec.marked(Ok(vec![]))), (Ok(true), Ok(false)));
}

#[test]
fn what_was_not_sent_was_not_applied() {
    let unknown = Outcome::Unknown(Fault::of(FaultKind::Timeout));
    let not_sent = |outcome: &Outcome| matches!(outcome, Outcome::NotApplied(Refusal::Unavailable(_)));
    let release = || op(Op::Release(Release { nonce: OURS, quorum: None }));
    let mut exchange = begin(&[release(), release()]);
    let Progress::Done(outcomes) = exchange.answer(Err(unknown.clone())) else { panic!() };
    assert!(outcomes[0] == unknown && not_sent(&outcomes[1]), "{outcomes:?}");
    let mut exchange = begin(&[release()]);
    assert_eq!(exchange.answer(Ok(vec![])), Progress::Again);
    let Progress::Done(outcomes) = exchange.answer(Err(unknown)) else { panic!() };
    assert!(not_sent(&outcomes[0]), "its refusal was answered: {outcomes:?}");
}

#[test]
fn rows_that_no_client_writes_are_never_free() {
    let columns = HELD.row().len() - 7;
    for at in 4..columns {
        let odd = if matches!(HELD.row()[at], Field::Null) { Field::Bool(true) } else { Field::Null };
        let mut row = HELD.row();
        row[at] = odd;
        let shown = outcome(acquiring(), [vec![], vec![row]]);
        // The last, the trust in a counter, is none where it cannot be read.
        let denied = matches!(shown, Outcome::NotApplied(Refusal::Denied(_)));
        assert!(denied || at == columns - 1 && is_conflict(&shown, Some(THEIRS)), "{at}: {shown:?}");
    }
    let long = Shown { left_us: 49 * 3_600_000_000, ..HELD };
    assert!(matches!(outcome(acquiring(), [vec![], vec![long.row()]]), Outcome::NotApplied(Refusal::Denied(_))));
}

#[test]
fn answers_that_do_not_fit_are_no_grants() {
    for odd in [vec![vec![]], vec![vec![Field::Null; 2]], grant(-1), [grant(1), grant(1)].concat()] {
        assert!(matches!(outcome(acquiring(), [odd]), Outcome::Unknown(_)));
    }
    let member = marker(Phase::Member).text();
    let joining = marker(Phase::Joining).text();
    for odd in [vote(&joining, true, Some(9), None), vote("", true, Some(9), None), vec![]] {
        assert!(matches!(outcome(voting(asked()), [odd]), Outcome::Unknown(_)));
    }
    let negative = vote(&member, true, Some(-1), None);
    assert!(matches!(outcome(voting(asked()), [negative]), Outcome::Unknown(_)));
}

#[test]
fn errors_tell_what_was_applied_and_what_to_do() {
    let of = |code, ends_session| ServerError { code, message: "no", ends_session }.outcome();
    for code in ["40001", "40P01", "25006", "55P03", "57014", "53300", "53100", "40002", "55006"] {
        assert!(matches!(of(code, false), Outcome::NotApplied(Refusal::Unavailable(_))), "{code}");
    }
    for code in ["57P01", "57P02", "40003", "08006", "08P01", "58030", "XX000", ""] {
        assert!(matches!(of(code, false), Outcome::Unknown(_)), "{code}");
    }
    assert!(matches!(of("40001", true), Outcome::Unknown(_)), "the session has ended");
    for (code, kind, words) in [
        ("42P01", DenialKind::Schema, "store create"),
        ("42501", DenialKind::Permission, "SELECT, INSERT, UPDATE and DELETE"),
        ("23514", DenialKind::CorruptRecord, "by hand"),
        ("42883", DenialKind::Other, "42883 no"),
    ] {
        let Outcome::NotApplied(Refusal::Denied(denial)) = of(code, false) else { panic!("{code}") };
        assert!(denial.kind == kind && denial.detail.contains(words), "{code}: {denial}");
    }
    let login = ServerError { code: "28P01", message: "no", ends_session: true };
    assert!(matches!(login.refusal(), Refusal::Denied(denial) if denial.kind == DenialKind::Permission));
}

#[test]
fn names_are_quoted() {
    assert_eq!(schema::table("a\"b"), "\"a\"\"b\".\"leasehold\"");
    assert!(schema::create("x")[0].contains("\"x\".\"leasehold\"") && schema::grant("x", "y")[1].ends_with("TO \"y\""));
}

const TICKET: Ticket = Ticket { client: ClientId([4; 16]), lock: LockId::new(1) };

/// An acquire in a table with queues, by a client that was seen lately or not.
fn queueing(is_seen: bool, has_place: bool) -> Exchange {
    let codec = Codec::new(&Settings { queues: true, ..Settings::default() });
    let acquire = Acquire { in_queue: true, ..acquire(None) };
    let asker = Asker { client: TICKET.client, is_seen, has_place };
    codec.begin_in_queue(&[op(Op::Acquire(Box::new(acquire)))], TTL, asker)
}

/// The answer to one who joins a line: what a read shows, the first place, and the own number.
fn joined(shown: Vec<Field>, head: Option<(Ticket, bool)>, place: Option<i64>) -> Vec<Vec<Field>> {
    let head = head.map(|(ticket, is_reserved)| [queue::named(ticket), vec![0; 15], vec![is_reserved.into()]].concat());
    let extra = [head.map_or(Field::Null, Field::Bytes), place.map_or(Field::Null, Field::Int)];
    vec![[shown, extra.to_vec()].concat()]
}

#[test]
fn who_is_refused_joins_the_line_in_the_statement_that_shows_why() {
    let mut exchange = queueing(true, false);
    assert_eq!((exchange.statement().params.len(), exchange.answer(Ok(vec![]))), (9, Progress::Again));
    let params = exchange.statement().params.clone();
    let [_, _, Param::Bytea(Some(ticket)), Param::Bool(true), ..] = &params[..] else { panic!() };
    assert_eq!(*ticket, [[4; 16].to_vec(), 1_u64.to_be_bytes().to_vec()].concat());
    let Progress::Done(outcomes) = exchange.answer(Ok(joined(HELD.row(), Some((TICKET, false)), Some(3)))) else {
        panic!()
    };
    assert!(is_conflict(&outcomes[0], Some(THEIRS)));
    assert_eq!(exchange.told().places, [(Resource::new("a").unwrap(), LockId::new(1), 3)]);
}

#[test]
fn a_client_says_that_it_is_alive_before_it_joins() {
    let mut exchange = queueing(false, false);
    assert_eq!(exchange.answer(Ok(vec![])), Progress::Again);
    assert!(exchange.statement().params == [Param::Bytea(Some(vec![4; 16]))]);
    assert_eq!(exchange.answer(Ok(vec![])), Progress::Again);
    assert!(exchange.told().is_seen);
    assert_eq!(exchange.statement().params.len(), 7);
}

#[test]
fn a_lock_that_is_free_may_be_kept_for_another() {
    let other = Ticket { lock: LockId::new(2), ..TICKET };
    let after = |head, place| {
        let mut exchange = queueing(true, true);
        assert_eq!((exchange.statement().params.len(), exchange.answer(Ok(vec![]))), (11, Progress::Again));
        let free = Shown { released: true, ..HELD };
        (exchange.answer(Ok(joined(free.row(), head, place))), exchange.told().places.len())
    };
    let (kept, places) = after(Some((other, true)), Some(1));
    let Progress::Done(outcomes) = kept else { panic!("{kept:?}") };
    assert!(is_conflict(&outcomes[0], None) && places == 1);
    assert_eq!(after(Some((TICKET, true)), None), (Progress::Again, 0), "it is its turn");
    assert_eq!(after(None, Some(1)), (Progress::Again, 0), "who is about to try again has no place to tell");
}

#[test]
fn a_release_tells_whose_turn_it_is() {
    let codec = Codec::new(&Settings { queues: true, ..Settings::default() });
    let asker = Asker { client: TICKET.client, is_seen: true, has_place: false };
    let told = |next: Field| {
        let release = [op(Op::Release(Release { nonce: OURS, quorum: None }))];
        let mut exchange = codec.begin_in_queue(&release, TTL, asker);
        assert!(exchange.statement().sql.contains("AND l.line IS NULL"));
        assert_eq!(exchange.answer(Ok(vec![])), Progress::Again);
        assert!(exchange.statement().sql.contains("SET released = true, line"));
        let Progress::Done(outcomes) = exchange.answer(Ok(vec![vec![Field::Int(1), next]])) else { panic!() };
        assert_eq!(outcomes, [Outcome::Applied(Applied::Released)]);
        exchange.told().turns
    };
    assert_eq!(told(Field::Bytes(queue::named(TICKET))), [(Resource::new("a").unwrap(), TICKET)]);
    for nobody in [Field::Null, Field::Bytes(vec![]), Field::Bytes(vec![1; 23]), Field::Int(1)] {
        assert_eq!(told(nobody), []);
    }
}

#[test]
fn turns_are_told_by_name_and_number() {
    assert_eq!(Codec::turns_channel(TICKET.client), alloc::format!("leasehold_{}", "04".repeat(16)));
    assert_eq!(Codec::turn_of("00000000000000ffa"), Some((Resource::new("a").unwrap(), LockId::new(255))));
    for odd in ["", "a", "00000000000000ff", "00000000000000fga", "000000000000000\u{e9}a", "00000000000000ff\0"] {
        assert_eq!(Codec::turn_of(odd), None, "{odd:?}");
    }
}

#[test]
fn without_queues_nothing_of_them_is_asked() {
    let asker = Asker { client: TICKET.client, is_seen: true, has_place: true };
    let codec = Codec::new(&Settings::default());
    let acquire = Acquire { in_queue: true, ..acquire(None) };
    let mut exchange = codec.begin_in_queue(&[op(Op::Acquire(Box::new(acquire)))], TTL, asker);
    assert!(!exchange.statement().sql.contains("line"));
    assert_eq!(exchange.answer(Ok(vec![])), Progress::Again);
    assert!(!exchange.statement().sql.contains("line") && !releasing().statement().sql.contains("line"));
}
