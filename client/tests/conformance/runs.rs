//! Runs: work that is done once, by the completion that its finish leaves behind.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use leasehold::blocking::{Client, Once, Run, RunRequest};
use leasehold::{Completion, ErrorKind};

use crate::Store;
use crate::common::{PATIENCE, eventually, ms, paced, with_shortest_ttl};

const DAY: Duration = Duration::from_secs(86_400);
const WEEK: Duration = Duration::from_secs(7 * 86_400);

fn modulo(length: Duration, period: Duration) -> Duration {
    Duration::from_secs(length.as_secs() % period.as_secs())
}

fn monday(client: &Client) -> RunRequest {
    report(client, "monday")
}

fn report(client: &Client, key: &str) -> RunRequest {
    client.once("report").key(key)
}

#[track_caller]
pub(crate) fn begun(request: RunRequest) -> Run {
    match request.begin().unwrap() {
        Once::Run(run) => run,
        other => panic!("it is to be done: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn done(request: RunRequest) -> Completion {
    match request.begin().unwrap() {
        Once::Done(completion) => completion,
        other => panic!("it is done: {other:?}"),
    }
}

pub(crate) fn finished_work_is_not_done_again(store: &Store) {
    let (one, two) = store.two_clients();
    let run = begun(monday(&one).owner("one").keep(DAY));
    assert_eq!((run.resource(), run.owner()), ("report@monday", "one"));
    run.check(ms(1)).unwrap();
    run.finish().unwrap();
    assert!(run.remaining().is_zero());
    for client in [&one, &two, &store.client()] {
        let completion = done(monday(client));
        assert_eq!((completion.token, completion.owner.as_deref()), (run.token(), Some("one")));
        assert!(completion.at_unix_ms > 1_700_000_000_000);
        // Where clients read their own clocks, a completion stands a minute longer.
        assert!(DAY - PATIENCE < completion.left && completion.left <= DAY + ms(61_000), "{completion:?}");
    }
    assert!(one.inspect("report@monday").unwrap().is_none(), "its lock is free");
}

pub(crate) fn keys_are_done_once_each(store: &Store) {
    let (one, two) = store.two_clients();
    // No period begins within two days.
    let middle = modulo(SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + DAY * 3, WEEK);
    let requests = |client: &Client| {
        let once = |name: &str| client.once(name);
        [
            monday(client),
            once("report").key("tuesday"),
            once("report").keep(WEEK),
            once("other").key("monday"),
            once("report@monday").keep(WEEK),
            once("report").every(WEEK).offset(middle),
            once("report").every(WEEK).offset(modulo(middle + DAY, WEEK)),
        ]
    };
    let mut last = 0;
    for request in requests(&one) {
        let run = begun(request);
        run.finish().unwrap();
        last = last.max(run.token());
    }
    for request in requests(&two) {
        let resource = request.resource().unwrap();
        assert!(done(request).token > 0, "{resource}");
    }
}

pub(crate) fn work_that_was_not_finished_is_done_by_the_next(store: &Store) {
    let (one, two) = store.two_clients();
    let released = begun(monday(&one));
    released.release().unwrap();
    let dropped = begun(monday(&two));
    let token = dropped.token();
    assert!(token > released.token());
    drop(dropped);
    let next = begun(monday(&one).wait(PATIENCE));
    assert!(next.token() > token);
    next.finish().unwrap();
    done(monday(&two));
}

pub(crate) fn the_run_of_another_is_left_alone(store: &Store) {
    let (one, two) = store.two_clients();
    let run = begun(monday(&one).owner("one").data(b"step 3"));
    for request in [monday(&one), monday(&two), monday(&two).wait(paced(50))] {
        let Once::Running(holder) = request.begin().unwrap() else { panic!("somebody runs it") };
        assert_eq!(holder.and_then(|holder| holder.owner).as_deref(), Some("one"));
    }
    run.finish().unwrap();
}

pub(crate) fn who_stands_by_learns_that_it_is_done(store: &Store) {
    let (one, two) = store.two_clients();
    let run = begun(monday(&one));
    std::thread::scope(|scope| {
        let standing_by = scope.spawn(|| done(monday(&two).wait(PATIENCE)));
        let here = scope.spawn(|| done(monday(&one).wait(PATIENCE)));
        assert!(matches!(monday(&two).wait(paced(100)).begin().unwrap(), Once::Running(_)));
        run.finish().unwrap();
        for standing_by in [standing_by, here] {
            assert_eq!(standing_by.join().unwrap().token, run.token());
        }
    });
}

pub(crate) fn who_stands_by_takes_over_when_the_runner_is_gone(store: &Store) {
    let (one, two) = store.two_clients();
    // Nothing renews it beyond that, as if its process had died.
    let once =
        with_shortest_ttl(paced(1_000), |ttl| monday(&one).ttl(ttl).max_hold(ttl).keep(DAY).wait(PATIENCE / 8).begin());
    let Once::Run(run) = once else { panic!("it is to be done: {once:?}") };
    let next = begun(monday(&two).wait(PATIENCE));
    assert!(next.token() > run.token());
    let late = run.finish().unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Lost, "{late}");
    next.finish().unwrap();
    assert_eq!(done(monday(&one)).token, next.token());
}

pub(crate) fn a_run_is_finished_once_and_only_while_it_is_held(store: &Store) {
    let (one, two) = store.two_clients();
    let broken = begun(monday(&one));
    two.break_lock("report@monday").unwrap().expect("it is held");
    let refused = broken.finish().unwrap_err().kind();
    // A slow node of a quorum may still have the lock, and now the completion, when the others have freed it.
    let is_left = store.is_a_quorum() && refused == ErrorKind::FinishUnconfirmed;
    assert!(refused == ErrorKind::Lost || is_left, "{refused:?}");
    let (key, name) = if is_left { ("tuesday", "report@tuesday") } else { ("monday", "report@monday") };
    let rivals = begun(report(&one, key).ttl(DAY));
    two.break_lock(name).unwrap().expect("it is held");
    let next = begun(report(&two, key));
    let late = rivals.finish().unwrap_err().kind();
    assert!(late == ErrorKind::Lost || store.is_a_quorum() && late == ErrorKind::FinishUnconfirmed, "{late:?}");
    assert_eq!(two.inspect(name).unwrap().and_then(|info| info.token), Some(next.token()));
    next.release().unwrap();
    assert_eq!(next.finish().unwrap_err().kind(), ErrorKind::NotOwned, "after a release");
    let run = begun(report(&two, "friday"));
    run.finish().unwrap();
    for error in [run.finish().unwrap_err(), run.release().unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::NotOwned, "twice: {error}");
    }
    let left = begun(two.once("other").cooldown(DAY));
    two.close().unwrap();
    let closed = left.finish().unwrap_err();
    assert!(matches!(closed.kind(), ErrorKind::Lost | ErrorKind::Closed | ErrorKind::NotOwned), "{closed:?}");
    begun(one.once("other").cooldown(DAY).wait(PATIENCE)).release().unwrap();
}

pub(crate) fn a_completion_ends_when_it_was_kept_long_enough(store: &Store) {
    // Where the clocks of clients decide, a minute is added for their errors.
    if store.can(crate::Can::EndCompletionsOnTime) {
        let (one, two) = store.two_clients();
        let short = |client: &Client| client.once("sync").ttl(paced(1_000)).cooldown(paced(1_000));
        let run = begun(short(&one));
        run.finish().unwrap();
        let mut next = None;
        eventually("the completion is over", || match short(&two).begin().unwrap() {
            Once::Run(run) => next.insert(run).check(ms(0)).is_ok(),
            Once::Done(completion) => {
                assert_eq!(completion.token, run.token());
                assert!(completion.left <= paced(1_000), "{completion:?}");
                false
            }
            other => panic!("nobody runs it: {other:?}"),
        });
        assert!(next.expect("it was begun").token() > run.token());
    }
}

pub(crate) fn marks_are_shown_and_removed_by_people(store: &Store) {
    let (one, two) = store.two_clients();
    let key = Some("monday");
    let nothing = two.inspect_run("report", key).unwrap();
    assert_eq!((nothing.resource.as_str(), nothing.holder, nothing.done), ("report@monday", None, None));
    assert_eq!(two.forget_run("report", key).unwrap(), None);
    let run = begun(monday(&one).owner("one"));
    let running = two.inspect_run("report", key).unwrap();
    assert_eq!((running.holder.and_then(|holder| holder.token), running.done), (Some(run.token()), None));
    run.finish().unwrap();
    let shown = two.inspect_run("report", key).unwrap();
    assert!(shown.holder.is_none());
    let completion = shown.done.expect("it is done");
    assert_eq!((completion.token, completion.owner.as_deref()), (run.token(), Some("one")));
    assert_eq!(two.forget_run("report", key).unwrap().map(|completion| completion.token), Some(run.token()));
    // Redis keeps a key for a millisecond at least.
    eventually("it is gone", || one.inspect_run("report", key).unwrap().done.is_none());
    let again = begun(monday(&one));
    assert!(again.token() > run.token());
    again.finish().unwrap();
    done(monday(&two));
}

pub(crate) fn a_plain_lock_does_not_look_at_marks(store: &Store) {
    let (one, two) = store.two_clients();
    begun(monday(&one)).finish().unwrap();
    let lease = two.lock("report@monday").acquire().unwrap();
    // Its record takes nothing from the completion.
    done(monday(&one));
    lease.release().unwrap();
    done(monday(&one));
}

pub(crate) fn bad_settings_of_runs_are_refused_alike_everywhere(store: &Store) {
    let client = store.client();
    let once = || client.once("job");
    let long = "s".repeat(1_025);
    for (request, words) in [
        (client.once(""), "no name"),
        (once(), "say when the work may be done again: key"),
        (once().ttl(DAY).even_if_done(), "say when the work may be done again: key"),
        (once().key(""), "key is empty"),
        (once().key("a\nb"), "control character U+000A"),
        (once().key(long.as_str()), "1025 bytes"),
        (once().key("s").cooldown(DAY), "key or a cooldown, not both"),
        (once().every(DAY).cooldown(DAY), "key or a cooldown, not both"),
        (once().cron("0 2 * * *").tz("UTC").cooldown(DAY), "key or a cooldown, not both"),
        (once().key("s").every(DAY), "one of key, every and cron, not two"),
        (once().key("s").cron("0 2 * * *").tz("UTC"), "one of key, every and cron, not two"),
        (once().every(DAY).cron("0 2 * * *").tz("UTC"), "one of key, every and cron, not two"),
        (once().key("s").tz("UTC"), "leave tz out"),
        (once().tz("UTC").keep(DAY), "leave tz out"),
        (once().keep(DAY).at("02:00").tz("UTC"), "add every"),
        (once().every(DAY).at("02:00"), "add tz"),
        (once().every(DAY).at("2 am").tz("UTC"), "\"2 am\" is no time of day"),
        (once().every(DAY / 2).at("02:00").tz("UTC"), "whole days"),
        (once().every(DAY).tz("Europe/Berln"), "\"Europe/Berln\" is no zone"),
        (once().cron("0 2 * * *"), "add tz"),
        (once().cron("0 2 * * *").tz("UTC").offset(ms(1)), "offset moves the start of the periods"),
        (once().cron("0 2 * *").tz("UTC"), "5 fields, not 4"),
        (once().cron("0 0 30 2 *").tz("UTC"), "never comes"),
        (once().cooldown(DAY).keep(DAY), "leave keep out"),
        (once().key("s").offset(ms(1)), "offset moves the start of the periods"),
        (once().every(Duration::ZERO), "must be at least 1 s"),
        (once().every(DAY).offset(DAY), "below the period"),
        (once().keep(ms(29_999)), "less than the ttl of 30 s"),
        (once().every(DAY).keep(DAY - ms(1)), "shorter than the period"),
        (once().keep(DAY * 36_501), "must be at most"),
        (once().cooldown(Duration::ZERO), "less than the ttl of 30 s"),
    ] {
        let error = request.begin().expect_err(words);
        assert!(error.kind() == ErrorKind::Config && error.to_string().contains(words), "no {words:?}: {error}");
    }
    assert!(client.inspect_run("job", Some("")).is_err() && client.forget_run("", None).is_err());
}
