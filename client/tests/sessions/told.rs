//! Tells that come late, or again and again: they shorten nothing, and keep nobody alive.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use leasehold_servers::proxy::Proxy;

use crate::common::{eventually, ms, on_dynamodb};
use crate::delayed::{deliver, hold_back, is_write, names};
use crate::{Store, client, lease};

/// Revocations of a dead holder, at the least.
const TIMES: usize = 13;

/// On DynamoDB a tell is a write that no read has to precede, so it lands however late it comes.
#[test]
fn a_late_tell_does_not_shorten_what_a_session_has_promised_since() {
    let server = on_dynamodb::server();
    let store = Store::Dynamodb { server: &server, url: on_dynamodb::new_table(&server) };
    let url = &store.url();
    let row = |name: &str| on_dynamodb::row(&server, url, name);
    let session = |attribute: &str| on_dynamodb::attribute(&row("session:worker-7"), attribute).to_owned();
    let holder = client(url, Some("worker-7"));
    let broken = lease(&holder, "x", ms(3_000));
    assert_eq!(session("leaseDuration"), "3000");

    let proxy = Proxy::to(store.address());
    let name = names(&store, "session:worker-7");
    let tells = hold_back(&proxy, move |request| is_write(request) && request.contains(&name));
    std::thread::scope(|scope| {
        let breaks = scope.spawn(|| client(&store.url_at(proxy.address()), None).break_lock("x").map(drop));
        eventually("the tell is held back", || !tells.lock().unwrap().is_empty());
        let kept = lease(&holder, "y", ms(20_000));
        eventually("its session lasts as long", || session("leaseDuration") == "20000");
        deliver(store.address(), &tells);
        assert_ne!(session("holderTold"), "", "it has landed");
        assert_eq!(session("leaseDuration"), "20000");
        let rival = client(url, Some("rival"));
        assert_eq!(rival.inspect("y").unwrap().unwrap().ttl, Some(ms(20_000)), "so long a rival waits");
        eventually("the holder is told", || broken.is_lost());
        assert_eq!(session("leaseDuration"), "20000", "after its renewals, too");
        kept.check(ms(1)).unwrap();
        proxy.pass();
        let _ = breaks.join().unwrap();
    });
}

pub(crate) fn revoking_a_dead_holder_again_keeps_nobody_out(store: &Store<'_>) {
    let proxy = Proxy::to(store.address());
    let holder = client(&store.url_at(proxy.address()), Some("dead"));
    // Long enough for that many revocations on a server that is busy.
    let held = lease(&holder, "a", ms(9_000));
    proxy.black_hole();
    let (is_taken, revoked) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let revoking = scope.spawn(|| {
            let admin = client(&store.url(), None);
            while !is_taken.load(Ordering::SeqCst) {
                match admin.revoke("a", held.token()).unwrap() {
                    leasehold::RevokeOutcome::Revoked(_) => revoked.fetch_add(1, Ordering::SeqCst),
                    _ => break,
                };
            }
        });
        let rival = client(&store.url(), Some("rival"));
        eventually("it is revoked", || revoked.load(Ordering::SeqCst) > 0);
        // A rival waits for its ttl once, if nothing that it observes moves meanwhile.
        let taken = rival.lock("a").ttl(ms(60_000)).wait(crate::common::PATIENCE).acquire();
        is_taken.store(true, Ordering::SeqCst);
        assert!(taken.expect("it is taken over while it is revoked").token() > held.token());
        revoking.join().unwrap();
    });
    let revoked = revoked.into_inner();
    assert!(revoked >= TIMES, "revoked {revoked} times only");
    assert!(held.is_lost());
}
