//! Listing: the locks that are held, by the beginning of their names.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use leasehold::blocking::{Client, Once};
use leasehold::{ErrorKind, LockInfo, RunInfo, RunResult};

use crate::{Can, Store};

const TTL: Duration = Duration::from_secs(300);

#[track_caller]
fn listed(client: &Client, prefix: &str) -> BTreeMap<String, LockInfo> {
    let locks: Vec<LockInfo> = client.list(prefix).map(Result::unwrap).collect();
    let by_name: BTreeMap<String, LockInfo> = locks.iter().map(|info| (info.resource.clone(), info.clone())).collect();
    assert_eq!(by_name.len(), locks.len(), "no name comes twice");
    by_name
}

fn names(client: &Client, prefix: &str) -> BTreeSet<String> {
    listed(client, prefix).into_keys().collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

pub(crate) fn the_held_locks_of_a_prefix_are_listed(store: &Store) {
    let (one, two) = store.two_clients();
    assert!(names(&two, "").is_empty());
    let lock = |name: &str| one.lock(name).ttl(TTL).owner("one").data(b"step 3").acquire().unwrap();
    let [first, second, third, other] = ["job/1", "job/2", "job/30", "other"].map(lock);
    for client in [&one, &two] {
        assert_eq!(names(client, ""), set(&["job/1", "job/2", "job/30", "other"]));
        assert_eq!(names(client, "job/"), set(&["job/1", "job/2", "job/30"]));
        assert_eq!(names(client, "job/3"), set(&["job/30"]));
        assert_eq!(names(client, "job/30"), set(&["job/30"]));
        assert!(names(client, "job/300").is_empty());
    }
    for (lease, info) in [&first, &second, &third].into_iter().zip(listed(&two, "job/").into_values()) {
        let inspected = two.inspect(lease.resource()).unwrap().unwrap();
        assert_eq!((info.token, info.owner.as_deref()), (Some(lease.token()), Some("one")));
        assert_eq!((info.data.as_deref(), info.foreign), (Some(b"step 3".as_slice()), false));
        assert_eq!(info.left.is_some(), store.can(Can::ShowLeft));
        assert_eq!(without_left(info), without_left(inspected));
    }
    second.release().unwrap();
    let run = one.once("job/4").cooldown(Duration::from_secs(600)).begin().unwrap();
    let leasehold::blocking::Once::Run(run) = run else { panic!("nobody has done it") };
    assert_eq!(names(&two, "job/"), set(&["job/1", "job/30", "job/4@"]), "runs are locks too");
    run.finish().unwrap();
    [first, third, other].iter().for_each(|lease| lease.release().unwrap());
    assert!(names(&two, "").is_empty(), "free locks are not listed, nor is finished work");
}

pub(crate) fn more_locks_than_a_page_are_listed_once_each(store: &Store) {
    let client = store.client();
    let expected: BTreeSet<String> = (0..260).map(|number| format!("crowd/{number}")).collect();
    let all = client.lock_all(&expected).ttl(TTL).acquire().unwrap();
    let rest = client.lock("crowd").ttl(TTL).acquire().unwrap();
    assert_eq!(names(&client, "crowd/"), expected);
    let mut pages = client.list("crowd/");
    let (mut shown, mut count) = (0, 0);
    while let Some(page) = pages.page().unwrap() {
        shown += page.len();
        count += 1;
    }
    assert_eq!(shown, expected.len());
    assert!(count > 1, "it comes in pages");
    rest.release().unwrap();
    // On a busy machine so many are not confirmed within two seconds.
    if let Err(error) = all.release() {
        assert_eq!(error.kind(), leasehold::ErrorKind::StoreUnavailable, "{error}");
    }
}

pub(crate) fn a_prefix_is_taken_literally(store: &Store) {
    let client = store.client();
    let odd = ["a*", "a*b", "a?", "a[b]", "a\\", "a%", "a_", "a'", "a\"", "é/1", "{a}/1", "🦀", "a b"];
    let leases: Vec<_> = odd.iter().map(|name| client.lock(*name).ttl(TTL).acquire().unwrap()).collect();
    for name in odd {
        let expected = if name == "a*" { set(&["a*", "a*b"]) } else { set(&[name]) };
        assert_eq!(names(&client, name), expected, "{name}");
    }
    assert_eq!(names(&client, "é"), set(&["é/1"]));
    assert_eq!(names(&client, ""), set(&odd));
    leases.iter().for_each(|lease| lease.release().unwrap());
}

pub(crate) fn bad_prefixes_are_refused_alike_everywhere(store: &Store) {
    let client = store.client();
    for bad in ["a\n", "\u{1f}", &"x".repeat(1025)] {
        let mut locks = client.list(bad);
        assert_eq!(locks.next().unwrap().unwrap_err().kind(), ErrorKind::Config, "{bad:?}");
        assert!(locks.next().is_none(), "an error ends it");
    }
}

fn without_left(mut info: LockInfo) -> LockInfo {
    info.left = None;
    info
}

pub(crate) fn runs_are_listed_while_they_are_under_way_and_done(store: &Store) {
    let (one, two) = store.two_clients();
    let runs = |prefix: &str| -> BTreeMap<String, RunInfo> {
        let runs: Vec<RunInfo> = two.runs(prefix).map(Result::unwrap).collect();
        let by_name: BTreeMap<_, _> = runs.iter().map(|run| (run.resource.clone(), run.clone())).collect();
        assert_eq!(by_name.len(), runs.len(), "no run comes twice");
        by_name
    };
    assert!(runs("").is_empty());
    let begin = |name: &str, key: Option<&str>| {
        let request = one.once(name).owner("night shift").ttl(TTL).keep(Duration::from_secs(600_000));
        let begun = key.into_iter().fold(request, leasehold::blocking::RunRequest::key).begin().unwrap();
        let Once::Run(run) = begun else { panic!("nobody has done it") };
        run
    };
    let _lock = one.lock("night/lock").ttl(TTL).acquire().unwrap();
    let [monday, tuesday, whole] =
        [("night", Some("mon")), ("night", Some("t@e")), ("{tag}night", None)].map(|(name, key)| begin(name, key));
    begin("night", Some("released")).release().unwrap();
    monday.finish_with(RunResult::Bytes(b"made".to_vec())).unwrap();
    whole.finish().unwrap();
    assert_eq!(runs("").into_keys().collect::<BTreeSet<_>>(), set(&["night@mon", "night@t%40e", "{tag}night@"]));
    let nights = runs("night@");
    let (done, under_way) = (&nights["night@mon"], &nights["night@t%40e"]);
    assert_eq!((nights.len(), done.name.as_str(), done.key.as_deref()), (2, "night", Some("mon")));
    assert_eq!((under_way.name.as_str(), under_way.key.as_deref()), ("night", Some("t@e")));
    let by = |run: &RunInfo| run.done.as_ref().map(|done| (done.token, done.owner.clone().unwrap_or_default()));
    let result = |run: &RunInfo| run.done.as_ref().and_then(|done| done.result.clone());
    assert_eq!((result(done), result(under_way)), (Some(RunResult::Bytes(b"made".to_vec())), None));
    assert_eq!((by(done), by(under_way)), (Some((monday.token(), "night shift".to_owned())), None));
    assert!(
        done.holder.is_none() && under_way.holder.as_ref().and_then(|holder| holder.token) == Some(tuesday.token())
    );
    let whole = runs("{tag}");
    assert_eq!((whole.len(), whole["{tag}night@"].key.as_deref()), (1, None));
    two.forget_run("night", Some("mon")).unwrap().unwrap();
    assert_eq!(runs("night@mon").len(), 0, "what was forgotten is not shown");
    // Told to give it back, its holder goes on until then.
    two.revoke("night@t%40e", tuesday.token()).unwrap();
    assert!(runs("night@t")["night@t%40e"].holder.as_ref().is_some_and(|holder| holder.revoked));
    drop(tuesday);
    let tuesday = begin("night", Some("t@e"));
    tuesday.finish().unwrap();
    assert_eq!(by(&runs("night@t")["night@t%40e"]).map(|(token, _)| token), Some(tuesday.token()));
    assert!(two.runs("a\nb").next().unwrap().is_err());
}
