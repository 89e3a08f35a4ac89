//! Sessions: the locks of a client that was given a name, listed and revoked together.

use leasehold::blocking::{Client, Lease};
use leasehold::{ErrorKind, SessionInfo};

use crate::common::{eventually, ms, paced};
use crate::{Can, Store, patient};

fn of_session(store: &Store, label: &str) -> Client {
    Client::connect_with(patient(store.url()).session(label), store.url()).unwrap()
}

fn hold(client: &Client, name: &str) -> Lease {
    // Where the session is a record, its holder is told within a sixth of the ttl.
    client.lock(name).ttl(paced(24_000)).renew_every(ms(400)).acquire().unwrap()
}

fn names(session: &SessionInfo) -> Vec<&str> {
    session.locks.iter().map(|lock| lock.resource.as_str()).collect()
}

/// The sessions that have locks, and the names of those.
fn shown(client: &Client) -> Vec<(String, Vec<String>)> {
    let sessions = client.sessions().unwrap().into_iter().filter(|session| !session.locks.is_empty());
    sessions.map(|session| (session.label.clone(), names(&session).into_iter().map(str::to_owned).collect())).collect()
}

fn expected(sessions: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
    let owned =
        |(label, names): &(&str, &[&str])| ((*label).to_owned(), names.iter().map(|name| (*name).to_owned()).collect());
    sessions.iter().map(owned).collect()
}

pub(crate) fn the_locks_of_a_client_belong_to_its_session(store: &Store) {
    if !store.can(Can::HaveSessions) {
        let refused = Client::connect_with(patient(store.url()).session("worker-7"), store.url()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Config, "{refused}");
        return;
    }
    let (bare, one, two) = (store.client(), of_session(store, "worker-7"), of_session(store, "worker-9"));
    assert_eq!(shown(&bare), []);
    let [b, _a] = ["b", "a"].map(|name| hold(&one, name));
    let (_c, d) = (hold(&two, "c"), hold(&bare, "d"));
    for client in [&bare, &one] {
        assert_eq!(shown(client), expected(&[("worker-7", &["a", "b"]), ("worker-9", &["c"])]));
    }
    let holder = two.lock("b").try_acquire().unwrap().map_or_else(|| bare.inspect("b").unwrap().unwrap(), |_| panic!());
    assert_eq!((holder.session.as_deref(), holder.token), (Some("worker-7"), Some(b.token())));
    assert!(holder.to_string().contains(", session worker-7"), "{holder}");
    assert_eq!(bare.inspect("d").unwrap().unwrap().session, None);
    let session = bare.sessions().unwrap().remove(0);
    assert!(session.since_unix_ms.is_some() && !session.revoked, "{session:?}");

    b.release().unwrap();
    assert_eq!(shown(&bare), expected(&[("worker-7", &["a"]), ("worker-9", &["c"])]));
    one.close().unwrap();
    assert_eq!(shown(&bare), expected(&[("worker-9", &["c"])]));
    assert!(bare.lock("a").try_acquire().unwrap().is_some(), "closing has released it");
    d.release().unwrap();
}

pub(crate) fn clients_of_one_name_have_sessions_of_their_own(store: &Store) {
    if !store.can(Can::HaveSessions) {
        return;
    }
    let (one, two) = (of_session(store, "worker-7"), of_session(store, "worker-7"));
    let (_a, _b) = (hold(&one, "a"), hold(&two, "b"));
    let mut shown: Vec<_> = shown(&one).into_iter().map(|(_, names)| names).collect();
    shown.sort();
    // Each node of a quorum may have given the second its name.
    assert!(shown == [["a"], ["b"]] || store.is_a_quorum() && shown.concat() == ["a", "b"], "{shown:?}");
    let _mine = hold(&two, "session:mine");
    let mut listed: Vec<String> = one.list("").map(|lock| lock.unwrap().resource).collect();
    listed.sort();
    assert_eq!(listed, ["a", "b", "session:mine"], "the records of sessions are no locks");
    one.close().unwrap();
    assert!(two.lock("a").try_acquire().unwrap().is_some());
    assert!(one_lock_is_held(&two, "b"), "the other session is not touched");
}

fn one_lock_is_held(client: &Client, name: &str) -> bool {
    client.inspect(name).unwrap().is_some()
}

pub(crate) fn a_revoked_session_lets_go_of_all_its_locks(store: &Store) {
    if !store.can(Can::HaveSessions) {
        return;
    }
    let (admin, one, two) = (store.client(), of_session(store, "worker-7"), of_session(store, "other"));
    let another = of_session(store, "worker-7");
    let leases = [hold(&one, "a"), hold(&one, "b"), hold(&another, "c")];
    let kept = hold(&two, "d");
    for nobody in ["worker", "*-8", "worker-7/3"] {
        assert_eq!(admin.revoke_session(nobody).unwrap(), [], "{nobody}");
    }
    assert_eq!(admin.revoke_session("").unwrap_err().kind(), ErrorKind::Config);
    let revoked = admin.revoke_session("worker-7").unwrap();
    let mut locks: Vec<&str> = revoked.iter().flat_map(names).collect();
    locks.sort_unstable();
    assert_eq!(locks, ["a", "b", "c"], "of both clients of this name: {revoked:?}");
    assert!(revoked.iter().all(|session| session.revoked && session.label.starts_with("worker-7")), "{revoked:?}");
    for lease in &leases {
        assert_eq!(lease.lost().lost_reason(), Some("revoked"), "{}", lease.resource());
    }
    assert!(admin.lock("a").try_acquire().unwrap().is_none(), "not before its work has ended");
    drop(leases);
    for name in ["a", "b", "c"] {
        eventually("it is given back", || admin.lock(name).try_acquire().unwrap().is_some());
    }
    eventually("no revoked session is left", || admin.sessions().unwrap().iter().all(|session| !session.revoked));
    kept.check(ms(1)).unwrap();
    let again = hold(&one, "e");
    assert!(shown(&admin).iter().any(|(label, names)| label.starts_with("worker-7") && names == &["e"]));
    again.release().unwrap();
}

pub(crate) fn bad_names_of_sessions_are_refused_alike_everywhere(store: &Store) {
    for bad in ["", "two words", "a*", "é", "a\nb", &"x".repeat(65)] {
        let error = Client::connect_with(patient(store.url()).session(bad), store.url()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{bad:?}");
        assert!(!store.can(Can::HaveSessions) || error.to_string().contains("1 to 64 letters"), "{error}");
    }
}
