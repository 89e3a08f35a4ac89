//! Stores that several processes share, and one that they do not.

use leasehold::ErrorKind;
use leasehold::blocking::Client;

use crate::common::{PATIENCE, Role, paced, role_args, say, stay};
use crate::{Can, Store};

/// Takes the lock, and keeps it until the process ends.
#[test]
#[ignore = "the part of another process"]
fn role_holder() {
    let Some(url) = role_args() else { return };
    let client = Client::connect_with(crate::patient(&url), url).unwrap();
    let lease = client.lock("job").ttl(paced(2_500)).owner("another process").wait(PATIENCE).acquire().unwrap();
    say(lease.token());
    stay();
}

pub(crate) fn a_process_that_dies_is_replaced(store: &Store) {
    let client = store.client();
    let mut role = Role::start("processes::role_holder", store.url());
    let token: u64 = role.says().parse().unwrap();
    if !store.can(Can::ServeSeveralProcesses) {
        let lease = client.lock("job").try_acquire().unwrap();
        assert!(lease.is_some(), "each process has a store of its own");
        return;
    }
    let error = client.lock("job").wait(paced(50)).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    store.expect_named(&error, "another process", token);
    role.kill();
    role.wait();
    let lease = client.lock("job").wait(PATIENCE).acquire().unwrap();
    assert!(lease.token() > token);
}
