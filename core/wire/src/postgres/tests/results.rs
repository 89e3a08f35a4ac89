//! Completions of runs, in transactions of users, and with results.

use leasehold_core::{About, RunResult};

use super::*;

#[test]
fn a_result_is_that_of_the_completion_that_it_stands_beside() {
    let result = RunResult::json("[1]").unwrap();
    let about = |nonce| About::new(&nonce, 1, 0, Some(&result));
    for (column, expected) in [
        (text(&rows::about_text(&about(THEIRS))), Some(about(THEIRS))),
        (text(&rows::about_text(&about(OURS))), None),
        (text("no record"), None),
        (Field::Int(1), None),
    ] {
        let run = begin(&[op(Op::Acquire(Box::new(Acquire { unless_done: true, ..acquire(None) })))]);
        let mut row = Shown { released: true, completion: Some((THEIRS, 7)), ..HELD }.row();
        *row.last_mut().unwrap() = column;
        let Outcome::NotApplied(Refusal::Done(completion)) = outcome(run, [vec![], vec![row]]) else { panic!("done") };
        assert_eq!(completion.about, expected);
    }
}

#[test]
fn only_a_finish_with_a_result_names_the_column_that_old_tables_lack() {
    let (owner, token) = (Owner::default(), Token::new(7).unwrap());
    let bare = Finish { nonce: OURS, token, counter: token, keep: TTL, owner, about: None, quorum: None };
    let with = Finish { about: Some(About::new(&OURS, 1, 0, None)), ..bare.clone() };
    for (finish, has_column) in [(bare, false), (with, true)] {
        let (sql, run) = Codec::new(&Settings::default()).completion_in(&Resource::new("a@b").unwrap(), &finish);
        assert_eq!((sql.contains("about ="), run.len()), (has_column, 6 + usize::from(has_column)));
        let exchange = begin(&[op(Op::Finish(Box::new(finish)))]);
        let Statement { sql, params } = exchange.statement();
        assert_eq!((sql.contains("about ="), params.len()), (has_column, 7 + usize::from(has_column)));
    }
}

#[test]
fn a_completion_for_a_transaction_is_one_statement_with_one_parameter() {
    let codec = Codec::new(&Settings { schema: "shop".into(), ..Settings::default() });
    let owner = Owner::new("biller").unwrap();
    let token = Token::new(7).unwrap();
    let finish = Finish {
        nonce: OURS,
        token,
        counter: token,
        keep: Duration::from_millis(1_500),
        owner,
        about: None,
        quorum: None,
    };
    let (sql, run) = codec.completion_in(&Resource::new("bill@monday").unwrap(), &finish);
    assert!(
        sql.contains("\"shop\".\"leasehold\"") && sql.contains("NOT l.released AND l.expires_at > clock_timestamp()")
    );
    assert!(
        sql.contains("$1") && !sql.contains("$2") && !sql.contains('%'),
        "drivers write parameters in ways of their own"
    );
    let nonce = alloc::format!("{:032x}", u128::from_be_bytes(*OURS.as_bytes()));
    assert_eq!(run, ["bill@monday", nonce.as_str(), "7", "biller", "1500000", "7"]);
}
