//! Requests whose answer never came: applied or not, each counts once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::rig::Rig;
use crate::common::on_redis::{HIGH, count_grants, counter, digest, is_taken, request, wait_for_renewals};
use crate::common::{PATIENCE, eventually, ms};
use leasehold::ErrorKind;
use leasehold::blocking::{Client, Lease};
use leasehold_servers::proxy::{Loss, Request};

impl Rig {
    fn lease(&self, resource: &str) -> Lease {
        count_grants(&self.server, resource);
        self.client.lock(resource).ttl(ms(20_000)).renew_every(ms(200)).wait(PATIENCE).acquire().unwrap()
    }
}

#[test]
fn an_acquisition_whose_answer_is_lost_is_one_grant() {
    for loss in Loss::ALL {
        let rig = Rig::new();
        let lost = rig.proxy.lose(loss, request("acquire"));
        let lease = rig.lease("job");
        assert_eq!(lost.hits(), 1, "{loss:?}");
        assert_eq!(lease.token(), HIGH + 1, "{loss:?}: no second token is minted");
        assert_eq!(counter(&rig.server, "job"), HIGH + 1, "{loss:?}");
        lease.check(ms(1)).unwrap();
        lease.release().unwrap();
        assert!(!is_taken(&rig.server, "job"), "{loss:?}");
    }
}

#[test]
fn trying_once_with_a_lost_answer_is_a_grant_or_leaves_nothing() {
    for loss in Loss::ALL {
        let rig = Rig::new();
        count_grants(&rig.server, "job");
        let lost = rig.proxy.lose(loss, request("acquire"));
        match rig.client.lock("job").ttl(ms(60_000)).try_acquire() {
            Ok(lease) => {
                let lease = lease.expect("nobody else holds it");
                assert_eq!((lease.token(), counter(&rig.server, "job")), (HIGH + 1, HIGH + 1), "{loss:?}");
                lease.release().unwrap();
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{loss:?}: {error}"),
        }
        assert_eq!(lost.hits(), 1, "{loss:?}");
        eventually("nothing is left behind", || !is_taken(&rig.server, "job"));
    }
}

#[test]
fn an_acquisition_that_a_black_hole_swallows_is_repeated_elsewhere() {
    let rig = Rig::new();
    count_grants(&rig.server, "job");
    rig.proxy.black_hole();
    let before = rig.proxy.requests();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| rig.client.lock("job").wait(PATIENCE).acquire().unwrap());
        eventually("a request is swallowed", || rig.proxy.requests() > before);
        assert!(!is_taken(&rig.server, "job"));
        rig.proxy.pass();
        let lease = waiter.join().unwrap();
        assert_eq!((lease.token(), counter(&rig.server, "job")), (HIGH + 1, HIGH + 1));
        lease.release().unwrap();
    });
}

#[test]
fn giving_up_without_an_answer_leaves_no_orphan() {
    for loss in [Loss::ResetAfterwards, Loss::Silence] {
        let rig = Rig::new();
        count_grants(&rig.server, "job");
        // A waiter joins the queue with the next attempt.
        let asks = |request: &[u8]| {
            ["acquire", "join"]
                .map(digest)
                .iter()
                .any(|digest| request.windows(digest.len()).any(|part| part == digest.as_bytes()))
        };
        let lost = rig.proxy.lose(loss, Request::matching(asks).always());
        // Far longer than the test has patience: only a release can free it.
        let asked = rig.client.lock("job").ttl(ms(600_000)).wait(ms(700)).acquire();
        assert_eq!(asked.unwrap_err().kind(), ErrorKind::StoreUnavailable, "{loss:?}");
        assert!(lost.hits() >= 1, "{loss:?}");
        // Once, or several times if the time was enough to give up, release, and try again.
        assert!(counter(&rig.server, "job") > HIGH, "{loss:?}: it had been taken");
        eventually("what was taken is released", || !is_taken(&rig.server, "job"));
    }
}

#[test]
fn a_renewal_whose_answer_is_lost_costs_no_lease() {
    for loss in Loss::ALL {
        let rig = Rig::new();
        let lease = rig.lease("job");
        let is_lost = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_lost);
        lease.on_lost(move |_| told.store(true, Ordering::SeqCst));
        let lost = rig.proxy.lose(loss, request("renew"));
        lost.wait_for_hits(1);
        wait_for_renewals(&rig.server, 3);
        lease.check(ms(1)).unwrap();
        assert_eq!(counter(&rig.server, "job"), HIGH + 1, "{loss:?}: a renewal mints nothing");
        lease.release().unwrap();
        assert!(!is_lost.load(Ordering::SeqCst), "{loss:?}");
    }
}

#[test]
fn renewals_that_a_black_hole_swallows_go_on_afterwards() {
    let rig = Rig::new();
    let lease = rig.lease("job");
    rig.proxy.black_hole();
    let before = rig.proxy.requests();
    eventually("two renewals are swallowed", || rig.proxy.requests() >= before + 2);
    rig.proxy.pass();
    wait_for_renewals(&rig.server, 2);
    lease.check(ms(1)).unwrap();
    lease.release().unwrap();
}

#[test]
fn a_release_whose_answer_is_lost_is_confirmed_by_repetition() {
    for loss in Loss::ALL {
        let rig = Rig::new();
        let lease = rig.lease("job");
        let lost = rig.proxy.lose(loss, request("release"));
        lease.release().unwrap();
        assert_eq!(lost.hits(), 1, "{loss:?}");
        assert!(!is_taken(&rig.server, "job"), "{loss:?}: confirmed is gone");
        assert_eq!(counter(&rig.server, "job"), HIGH + 1, "{loss:?}");
        let next = rig.client.lock("job").try_acquire().unwrap().expect("it is free");
        assert_eq!(next.token(), HIGH + 2, "{loss:?}");
    }
}

#[test]
fn a_repeated_release_takes_nothing_from_the_next_holder() {
    let rig = Rig::new();
    let lease = rig.lease("job");
    let other = Client::connect(rig.server.url()).unwrap();
    let lost = rig.proxy.lose(Loss::Silence, request("release"));
    std::thread::scope(|scope| {
        let releasing = scope.spawn(|| lease.release());
        lost.wait_for_hits(1);
        let next = other.lock("job").ttl(ms(60_000)).wait(PATIENCE).acquire().unwrap();
        assert_eq!(next.token(), HIGH + 2);
        // What stands there now is another's, so ours is gone: that is as good as an answer.
        releasing.join().unwrap().unwrap();
        assert_eq!(other.inspect("job").unwrap().unwrap().token, Some(HIGH + 2));
        next.release().unwrap();
    });
}

#[test]
fn a_release_into_a_black_hole_is_carried_out_later() {
    let rig = Rig::new();
    let lease = rig.lease("job");
    rig.proxy.black_hole();
    assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::StoreUnavailable);
    assert!(lease.remaining().is_zero(), "for its holder it is over at once");
    assert!(is_taken(&rig.server, "job"));
    rig.proxy.pass();
    eventually("the release goes on in the background", || !is_taken(&rig.server, "job"));
}
