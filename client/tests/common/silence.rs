//! Connections that fall silent while nobody uses them.

use std::sync::Barrier;

use leasehold::blocking::Client;
use leasehold_servers::proxy::Proxy;

use super::{PATIENCE, eventually, ms};

/// Many callers have each had a connection, and then all of those are forgotten by a router between. The next
/// call loses a request or two to that, not one for each of the connections.
#[track_caller]
pub(crate) fn is_noticed_once(proxy: &Proxy, url: &str) {
    const CALLERS: usize = 12;
    let client = Client::connect_with(leasehold::Client::builder().request_timeout(ms(2_000)), url).unwrap();
    eventually("there are many connections", || {
        let all_hold = Barrier::new(CALLERS);
        std::thread::scope(|scope| {
            for caller in 0..CALLERS {
                let (client, all_hold) = (&client, &all_hold);
                scope.spawn(move || {
                    let held = client.lock(format!("warm/{caller}")).wait(PATIENCE).acquire().unwrap();
                    all_hold.wait();
                    held.release().unwrap();
                });
            }
        });
        proxy.open_connections() >= CALLERS / 2
    });
    proxy.silence_open();
    client.lock("a").wait(PATIENCE).acquire().unwrap().release().unwrap();
    let lost = proxy.swallowed();
    assert!((1..=3).contains(&lost), "{lost} requests went to connections that had fallen silent");
}
