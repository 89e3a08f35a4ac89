//! The completion of a run in the transaction of its work.

use leasehold::blocking::{Client, Once, Run, RunRequest};
use leasehold::{ErrorKind, RunResult};
use postgres::Transaction;

use crate::common::{PATIENCE, Role, eventually, ms, role_args, say, stay};
use crate::{Rig, patient};

fn job(client: &Client) -> RunRequest {
    client.once("bill").key("monday").ttl(ms(20_000)).renew_every(ms(200))
}

#[track_caller]
fn begun(request: RunRequest) -> Run {
    match request.begin().unwrap() {
        Once::Run(run) => run,
        other => panic!("it is to be done: {other:?}"),
    }
}

fn work(rig: &Rig, change: &mut Transaction<'_>) {
    change.execute(&format!("INSERT INTO {}.bills VALUES ('monday')", rig.schema()), &[]).unwrap();
}

/// # Errors
/// What the user's driver says.
fn completion(run: &Run, change: &mut Transaction<'_>) -> Result<(), postgres::Error> {
    let completion = run.completion_in().unwrap();
    change.execute(&completion.sql, &[&completion.parameter]).map(drop)
}

fn with_bills() -> Rig {
    let rig = Rig::new();
    rig.server.run(&format!("CREATE TABLE {}.bills (key text)", rig.schema()));
    rig
}

fn bills(rig: &Rig) -> i64 {
    rig.server.value(&format!("SELECT count(*) FROM {}.bills", rig.schema()))
}

#[test]
fn the_result_that_was_committed_first_stays() {
    let rig = with_bills();
    let (one, two) = (patient(&rig.url), patient(&rig.url));
    let seen = || {
        let Once::Done(seen) = job(&two).begin().unwrap() else { panic!("it is done") };
        seen.result
    };
    let [first, second] = ["first", "second"].map(|text| RunResult::Bytes(text.into()));
    let run = begun(job(&one));
    let mut db = rig.server.connect();
    for result in [&first, &second] {
        let mut change = db.transaction().unwrap();
        let completion = run.completion_in_with(result).unwrap();
        change.execute(&completion.sql, &[&completion.parameter]).unwrap();
        change.commit().unwrap();
        assert_eq!(seen(), Some(first.clone()));
    }
    assert_eq!(run.finish_with(second).unwrap_err().kind(), ErrorKind::ResultNotKept);
    assert_eq!(seen(), Some(first));
}

#[test]
fn work_and_mark_are_committed_together() {
    let rig = with_bills();
    let (one, two) = (patient(&rig.url), patient(&rig.url));
    let run = begun(job(&one).keep(ms(3_600_000)).owner("biller"));
    let mut db = rig.server.connect();
    let mut change = db.transaction().unwrap();
    work(&rig, &mut change);
    completion(&run, &mut change).unwrap();
    assert!(two.inspect_run("bill", Some("monday")).unwrap().done.is_none(), "it is not committed");
    change.commit().unwrap();
    // Nobody need wait for the finish, which a killed process would not send.
    let Once::Done(seen) = job(&two).begin().unwrap() else { panic!("it is done") };
    assert_eq!((seen.token, seen.owner.as_deref()), (run.token(), Some("biller")));
    assert!(seen.left <= ms(3_600_000) && seen.left > ms(3_000_000), "{seen:?}");
    run.finish().unwrap();
    assert!(rig.column::<bool>("released", "bill@monday"));
    assert!(matches!(job(&two).begin().unwrap(), Once::Done(again) if again.token == run.token()));
    assert_eq!(bills(&rig), 1);
}

#[test]
fn a_rolled_back_transaction_leaves_no_completion() {
    let rig = with_bills();
    let (one, two) = (patient(&rig.url), patient(&rig.url));
    let run = begun(job(&one));
    let mut db = rig.server.connect();
    let mut change = db.transaction().unwrap();
    work(&rig, &mut change);
    completion(&run, &mut change).unwrap();
    change.rollback().unwrap();
    assert!(matches!(job(&two).begin().unwrap(), Once::Running(_)));
    run.release().unwrap();
    let next = begun(job(&two));
    assert!(next.token() > run.token() && bills(&rig) == 0);
}

#[test]
fn a_lost_lease_fails_the_transaction() {
    let rig = with_bills();
    let (one, two) = (patient(&rig.url), patient(&rig.url));
    // Its lease is taken between the making of the statement and its use, as a long pause would do.
    let run = begun(job(&one));
    let late = run.completion_in().unwrap();
    assert!(!format!("{late:?}").contains(&late.parameter[1]), "it is enough to end the run");
    two.break_lock("bill@monday").unwrap();
    assert!(rig.server.connect().execute(&late.sql, &[&late.parameter]).is_err(), "it is free, and nobody's");
    let next = begun(job(&two).wait(PATIENCE));
    for is_done in [false, true] {
        if is_done {
            next.finish().unwrap();
        }
        let mut db = rig.server.connect();
        let mut change = db.transaction().unwrap();
        work(&rig, &mut change);
        let error = change.execute(&late.sql, &[&late.parameter]).unwrap_err();
        let said = error.as_db_error().unwrap().message().to_owned();
        assert!(said.contains("the lease of this run is lost") && said.contains("roll back"), "{said}");
        assert!(change.execute("SELECT 1", &[]).is_err(), "nothing of it can be committed");
        drop(change);
        assert_eq!(bills(&rig), 0);
    }
    eventually("the first is told", || run.is_lost());
    assert_eq!(run.finish().unwrap_err().kind(), ErrorKind::Lost);
    assert!(run.completion_in().is_err());
    let Once::Done(completion) = job(&one).begin().unwrap() else { panic!("the second has done it") };
    assert_eq!(completion.token, next.token());
}

#[test]
fn an_expired_lease_fails_the_transaction() {
    let rig = with_bills();
    let one = patient(&rig.url);
    let run = begun(one.once("bill").key("monday").ttl(ms(500)).no_renewal());
    let late = run.completion_in().unwrap();
    eventually("it has expired", || rig.column::<bool>("expires_at < clock_timestamp()", "bill@monday"));
    let mut db = rig.server.connect();
    assert!(db.execute(&late.sql, &[&late.parameter]).is_err());
    assert_eq!(run.completion_in().unwrap_err().kind(), ErrorKind::Lost);
}

/// The lease runs out while the transaction holds its row, so that no renewal gets through: nobody else gets the lock, and the
/// end of the transaction decides.
#[test]
fn a_transaction_that_outlasts_the_lease_excludes_others_and_decides() {
    for commits in [true, false] {
        let rig = with_bills();
        let (one, two) = (patient(&rig.url), patient(&rig.url));
        let run = begun(one.once("bill").key("monday").ttl(ms(3_000)));
        let mut db = rig.server.connect();
        let mut change = db.transaction().unwrap();
        work(&rig, &mut change);
        completion(&run, &mut change).unwrap();
        eventually("renewals do not get through", || run.is_lost());
        eventually("it has expired", || rig.column::<bool>("expires_at < clock_timestamp()", "bill@monday"));
        let next = std::thread::spawn(move || job(&two).wait(PATIENCE).begin().unwrap());
        eventually("it waits for the row", || {
            rig.server.value("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
        });
        assert!(!next.is_finished());
        if commits {
            change.commit().unwrap();
            run.finish().expect("its completion stands");
        } else {
            change.rollback().unwrap();
            assert_eq!(run.finish().unwrap_err().kind(), ErrorKind::Lost);
        }
        let next = next.join().unwrap();
        assert!(if commits { matches!(next, Once::Done(_)) } else { matches!(next, Once::Run(_)) }, "{next:?}");
        assert_eq!(bills(&rig), i64::from(commits));
    }
}

#[test]
fn others_are_renewed_while_a_transaction_holds_a_row() {
    let rig = with_bills();
    let one = patient(&rig.url);
    let run = begun(job(&one));
    let held = crate::lease(&one, "other");
    let mut db = rig.server.connect();
    let mut change = db.transaction().unwrap();
    completion(&run, &mut change).unwrap();
    let seq: i64 = rig.column("seq", "other");
    eventually("the other one is renewed twice", || rig.column::<i64>("seq", "other") > seq + 1);
    change.commit().unwrap();
    run.finish().unwrap();
    held.release().unwrap();
}

/// A renewal between its snapshot and the completion is a change that such a transaction must not overlook.
#[test]
fn stricter_transactions_mark_first() {
    let rig = with_bills();
    let one = patient(&rig.url);
    let run = begun(job(&one));
    let mut db = rig.server.connect();
    let mut change = db.build_transaction().isolation_level(postgres::IsolationLevel::RepeatableRead).start().unwrap();
    work(&rig, &mut change);
    let seq: i64 = rig.column("seq", "bill@monday");
    eventually("it is renewed", || rig.column::<i64>("seq", "bill@monday") > seq);
    let error = completion(&run, &mut change).unwrap_err();
    assert_eq!(error.code().map(|code| code.code()), Some("40001"), "run it again: {error}");
    change.rollback().unwrap();
    for level in [postgres::IsolationLevel::RepeatableRead, postgres::IsolationLevel::Serializable] {
        let mut change = db.build_transaction().isolation_level(level).start().unwrap();
        completion(&run, &mut change).unwrap();
        work(&rig, &mut change);
        change.commit().unwrap();
    }
    run.finish().unwrap();
}

#[test]
fn a_finish_before_the_commit_is_no_success() {
    let rig = with_bills();
    let one = Client::connect_with(leasehold::Client::builder().request_timeout(ms(300)), &rig.url).unwrap();
    let run = begun(one.once("bill").key("monday").ttl(ms(2_000)));
    let mut db = rig.server.connect();
    let mut change = db.transaction().unwrap();
    completion(&run, &mut change).unwrap();
    let error = run.finish().unwrap_err();
    // By then the record may be seen to have run out.
    assert!(matches!(error.kind(), ErrorKind::FinishUnconfirmed | ErrorKind::Lost), "{error}");
}

#[test]
fn other_stores_and_locks_have_no_such_mark() {
    let rig = Rig::new();
    let folder = tempfile::tempdir().unwrap();
    let quorum = format!("{} memory:other memory:third", rig.url);
    let builder = leasehold::Client::builder().max_ttl(ms(30_000)).create_quorum();
    let quorum = Client::connect_with(builder, quorum).unwrap();
    let file = Client::connect(crate::common::url(&folder.path().join("locks.db"))).unwrap();
    for (client, words) in [(&quorum, "quorum"), (&file, "PostgreSQL database of the work")] {
        let run = begun(job(client));
        let error = run.completion_in().unwrap_err();
        assert!(error.kind() == ErrorKind::Config && error.to_string().contains(words), "{error}");
        run.finish().unwrap();
    }
    let run = begun(job(&Rig::new().client()));
    run.release().unwrap();
    assert_eq!(run.completion_in().unwrap_err().kind(), ErrorKind::NotOwned);
}

/// Does the work, and stops where its second argument says.
#[test]
#[ignore = "a role of other tests"]
fn role_biller() {
    let Some(args) = role_args() else { return };
    let [url, address, schema, stop] = args.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let client = patient(url);
    let run = begun(client.once("bill").key("monday").ttl(ms(2_000)).wait(PATIENCE));
    let mut db = postgres::Client::connect(address, postgres::NoTls).unwrap();
    let mut change = db.transaction().unwrap();
    change.execute(&format!("INSERT INTO {schema}.bills VALUES ('monday')"), &[]).unwrap();
    if stop == "at_work" {
        say(stop);
        stay();
    }
    completion(&run, &mut change).unwrap();
    if stop == "marked" {
        say(stop);
        stay();
    }
    change.commit().unwrap();
    if stop == "committed" {
        say(stop);
        stay();
    }
    run.finish().unwrap();
    say("finished");
}

#[test]
fn work_of_killed_processes_exists_exactly_once() {
    for stop in ["at_work", "marked", "committed"] {
        let rig = with_bills();
        let start = |stop| {
            let args = format!("{} {} {} {stop}", rig.url, rig.server.url(), rig.schema());
            Role::start("completion_in::role_biller", &args)
        };
        let mut first = start(stop);
        assert_eq!(first.says(), stop);
        first.kill();
        first.wait();
        if stop == "committed" {
            let answer = job(&patient(&rig.url)).wait(PATIENCE).begin().unwrap();
            assert!(matches!(answer, Once::Done(_)), "{answer:?}");
        } else {
            assert_eq!(start("nowhere").says(), "finished", "{stop}");
        }
        assert_eq!(bills(&rig), 1, "{stop}");
    }
}

/// As in the recipes: the lock, the guard and the data in one database.
#[test]
fn a_guard_and_a_mark_share_one_transaction() {
    use leasehold::fence::PostgresGuard;

    let rig = with_bills();
    let one = patient(&rig.url);
    let guard = PostgresGuard::in_schema(&rig.schema(), "leasehold_fence").unwrap();
    rig.server.run(guard.create_sql());
    let run = begun(job(&one));
    let mut db = rig.server.connect();
    let mut change = db.transaction().unwrap();
    let (item, number) = PostgresGuard::parameters("bills", run.token()).unwrap();
    for sql in [guard.claim_sql(), guard.check_sql()] {
        let raised = change.query_opt(sql, &[&item, &number]).unwrap();
        PostgresGuard::outcome(item, run.token(), raised.map(|row| row.get(0))).unwrap();
    }
    work(&rig, &mut change);
    completion(&run, &mut change).unwrap();
    change.commit().unwrap();
    run.finish().unwrap();
    assert_eq!(bills(&rig), 1);
}
