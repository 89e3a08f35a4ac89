//! Runs, asynchronously and from processes that are killed.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use crate::common::{self, PATIENCE, Role, eventually, ms, role_args, say, stay};
use leasehold::blocking;
use leasehold::{Client, ErrorKind, Once, Run, RunRequest};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

fn stores(test: impl AsyncFn(&str)) {
    let folder = tempfile::tempdir().unwrap();
    for store in ["memory:runs", &common::url(&folder.path().join("locks.db"))] {
        runtime().block_on(test(store));
    }
}

async fn begun(request: RunRequest) -> Run {
    match tokio::time::timeout(PATIENCE, request.into_future()).await.unwrap().unwrap() {
        Once::Run(run) => run,
        other => panic!("it is to be done: {other:?}"),
    }
}

#[test]
fn a_run_awaited_is_done_once() {
    stores(async |store| {
        let (client, other) = (Client::connect(store).await.unwrap(), Client::connect(store).await.unwrap());
        let run = begun(client.once("job").key("monday").owner("one")).await;
        let Once::Running(holder) = other.once("job").key("monday").await.unwrap() else { panic!("it runs") };
        assert_eq!(holder.and_then(|holder| holder.token), Some(run.token()));
        let standing_by = other.once("job").key("monday").wait(PATIENCE).into_future();
        let (answer, finished) = tokio::join!(standing_by, run.finish());
        finished.unwrap();
        let Once::Done(completion) = answer.unwrap() else { panic!("it is done") };
        assert_eq!((completion.token, completion.owner.as_deref()), (run.token(), Some("one")));
        assert!(completion.to_string().starts_with(&format!("by one, token {}, ", run.token())), "{completion}");
        assert_eq!(run.finish().await.unwrap_err().kind(), ErrorKind::NotOwned);

        let seen = other.inspect_run("job", Some("monday")).await.unwrap();
        assert_eq!((seen.holder, seen.done.map(|completion| completion.token)), (None, Some(run.token())));
        assert!(other.forget_run("job", Some("monday")).await.unwrap().is_some());
        assert!(other.forget_run("job", Some("monday")).await.unwrap().is_none());
        begun(client.once("job").key("monday")).await.release().await.unwrap();
    });
}

#[test]
fn a_run_that_asks_for_no_mark_replaces_it() {
    stores(async |store| {
        let client = Client::connect(store).await.unwrap();
        let finished = begun(client.once("job").key("monday")).await;
        finished.finish().await.unwrap();
        let again = || client.once("job").key("monday").no_renewal().even_if_done();
        let run = begun(again().owner("again")).await;
        assert!(run.token() > finished.token());
        assert!(matches!(again().await.unwrap(), Once::Running(_)), "one at a time");
        run.finish().await.unwrap();
        let Once::Done(completion) = client.once("job").key("monday").await.unwrap() else { panic!("it is done") };
        assert_eq!((completion.token, completion.owner.as_deref()), (run.token(), Some("again")));
        begun(again()).await.release().await.unwrap();
        assert!(matches!(client.once("job").key("monday").await.unwrap(), Once::Done(_)), "the completion stands");
        begun(again().keep(Duration::ZERO)).await.finish().await.unwrap();
        begun(client.once("job").key("monday").wait(PATIENCE)).await.release().await.unwrap();
    });
}

#[test]
fn what_is_dropped_leaves_the_work_to_others() {
    stores(async |store| {
        let client = Client::connect(store).await.unwrap();
        for times in 0..6 {
            let mut request = pin!(client.once("job").key("monday").into_future());
            for _ in 0..times {
                if request.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        drop(begun(client.once("job").key("monday").wait(PATIENCE)).await);
        begun(client.once("job").key("monday").wait(PATIENCE)).await.release().await.unwrap();
    });
}

#[test]
fn a_finish_that_is_not_awaited_to_its_end_is_sent_all_the_same() {
    stores(async |store| {
        let client = Client::connect(store).await.unwrap();
        let run = begun(client.once("job").key("monday")).await;
        {
            let mut finish = pin!(run.finish());
            let _ = finish.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        let answer = client.once("job").key("monday").wait(PATIENCE).await.unwrap();
        assert!(matches!(answer, Once::Done(_)), "{answer:?}");
    });
}

#[test]
fn a_run_that_is_lost_while_it_works_is_not_finished() {
    stores(async |store| {
        let client = Client::connect(store).await.unwrap();
        let run = begun(client.once("job").ttl(ms(300)).max_hold(ms(300)).cooldown(PATIENCE)).await;
        assert_eq!(tokio::time::timeout(PATIENCE, run.lost()).await.unwrap().kind(), ErrorKind::Lost);
        assert_eq!(run.finish().await.unwrap_err().kind(), ErrorKind::Lost);
        begun(client.once("job").cooldown(PATIENCE).wait(PATIENCE)).await.release().await.unwrap();
    });
}

/// A process that begins a run, finishes it if it is told to, and never ends by itself.
#[test]
#[ignore = "a role of other tests"]
fn role_runner() {
    let Some(arguments) = role_args() else { return };
    let (store, finishes) = arguments.split_once(' ').unwrap();
    let client = blocking::Client::connect(store).unwrap();
    let blocking::Once::Run(run) = client.once("job").key("monday").ttl(ms(2_000)).begin().unwrap() else {
        panic!("it is to be done")
    };
    if finishes == "true" {
        run.finish().unwrap();
    }
    say(run.token());
    stay();
}

#[test]
fn a_runner_that_is_killed_before_its_finish_is_replaced_and_after_it_is_not() {
    for finishes in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let store = common::url(&folder.path().join("locks.db"));
        let mut runner = Role::start("runs::role_runner", &format!("{store} {finishes}"));
        let token: u64 = runner.says().parse().unwrap();
        let client = blocking::Client::connect(&store).unwrap();
        runner.kill();
        runner.wait();
        let answer = client.once("job").key("monday").wait(PATIENCE).begin().unwrap();
        match answer {
            blocking::Once::Run(run) => assert!(!finishes && run.token() > token),
            blocking::Once::Done(completion) => assert!(finishes && completion.token == token),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn many_threads_run_each_slot_once() {
    use std::sync::atomic::{AtomicU32, Ordering};
    const SLOTS: usize = 20;

    let folder = tempfile::tempdir().unwrap();
    let store = common::url(&folder.path().join("locks.db"));
    let (finished, tried) = ([(); SLOTS].map(|()| AtomicU32::new(0)), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (store, finished, tried) = (&store, &finished, &tried);
            scope.spawn(move || {
                let client = blocking::Client::connect(store).unwrap();
                for (key, finished) in finished.iter().enumerate() {
                    let request = client.once("job").key(format!("key-{key}")).wait(PATIENCE);
                    if let blocking::Once::Run(run) = request.begin().unwrap() {
                        // Every third attempt fails.
                        if tried.fetch_add(1, Ordering::SeqCst) % 3 == 2 && thread != 0 {
                            continue;
                        }
                        finished.fetch_add(1, Ordering::SeqCst);
                        run.finish().unwrap();
                    }
                }
            });
        }
    });
    assert!(finished.iter().all(|times| times.load(Ordering::SeqCst) == 1), "{finished:?}");
}

#[test]
fn periods_follow_the_clock_of_this_machine() {
    let client = blocking::Client::connect("memory:").unwrap();
    let every = || client.once("job").every(Duration::from_secs(1)).keep(Duration::from_secs(3_600));
    let mut keys = Vec::new();
    eventually("three periods have had their run", || {
        if let blocking::Once::Run(run) = every().begin().unwrap() {
            keys.push(run.resource().to_owned());
            run.finish().unwrap();
        }
        keys.len() == 3
    });
    assert!(keys.is_sorted() && keys[0] != keys[1] && keys[1] != keys[2], "{keys:?}");
    assert!(keys[0].starts_with("job@20") && keys[0].ends_with('Z'), "{keys:?}");
}

#[test]
fn the_completion_of_a_period_outlasts_it() {
    const DAY: Duration = Duration::from_secs(86_400);
    let client = blocking::Client::connect("memory:").unwrap();
    for (days, kept) in [(1, 7), (7, 14), (30, 60), (36_500, 36_500)] {
        let every = || client.once(format!("in {days}")).every(DAY * days);
        let blocking::Once::Run(run) = every().begin().unwrap() else { panic!("it is to be done") };
        run.finish().unwrap();
        let blocking::Once::Done(completion) = every().begin().unwrap() else { panic!("it is done") };
        assert!(DAY * kept - PATIENCE < completion.left && completion.left <= DAY * kept, "{days}: {completion:?}");
    }
}

/// Finishes a run when its files may not grow any more, as on a full disk.
#[cfg(all(feature = "sqlite", unix))]
#[test]
#[ignore = "a role of other tests"]
fn role_out_of_space() {
    let Some(store) = role_args() else { return };
    let client = blocking::Client::connect(store).unwrap();
    let blocking::Once::Run(run) = client.once("job").key("monday").ttl(ms(2_000)).begin().unwrap() else { return };
    let limit = libc::rlimit { rlim_cur: 1, rlim_max: 1 };
    // SAFETY: `limit` is valid, and ignoring a signal installs no handler.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit), 0);
    }
    let error = run.finish().unwrap_err();
    say(format!("{:?} {error}", error.kind()));
}

#[cfg(all(feature = "sqlite", unix))]
#[test]
fn a_finish_that_a_full_disk_refuses_ends_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let role = Role::start("runs::role_out_of_space", &common::url(&folder.path().join("locks.db")));
    let said = role.says();
    assert!(said.starts_with("FinishUnconfirmed "), "{said}");
    assert!(said.contains("disk") && said.contains("it may be done again"), "{said}");
}
