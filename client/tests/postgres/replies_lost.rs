//! Statements whose answer never came: applied or not, each counts once.

use leasehold::ErrorKind;
use leasehold::blocking::{Client, Once, Run};
use leasehold_servers::proxy::{Loss, Proxy, Request};

use crate::common::eventually;
use crate::{Rig, client, lease};

/// Above every clock, so that counting tokens from here counts grants.
const HIGH: u64 = 1 << 52;

fn through(rig: &Rig, proxy: &Proxy) -> String {
    let (_, parameters) = rig.url.split_once('?').unwrap();
    format!("{}?{parameters}", rig.server.url_at(proxy.port()))
}

#[test]
fn an_acquisition_whose_answer_is_lost_is_one_grant() {
    let rig = Rig::new();
    for loss in Loss::ALL {
        let name = format!("{loss:?}");
        rig.count_grants_from(HIGH, &name);
        let proxy = Proxy::to(rig.server.address());
        let client = client(&through(&rig, &proxy));
        let fault = proxy.lose(loss, Request::containing("ON CONFLICT"));
        let held = lease(&client, &name);
        assert_eq!((fault.hits(), held.token()), (1, HIGH + 1), "{loss:?}");
        assert_eq!(rig.column::<i64>("counter", &name), i64::try_from(HIGH + 1).unwrap());
        held.release().unwrap();
    }
}

#[test]
fn a_renewal_whose_answer_is_lost_is_repeated() {
    let rig = Rig::new();
    for loss in Loss::ALL {
        let proxy = Proxy::to(rig.server.address());
        let client = client(&through(&rig, &proxy));
        let held = lease(&client, "a");
        let fault = proxy.lose(loss, Request::containing("SKIP LOCKED"));
        fault.wait_for_hits(1);
        let seq: i64 = rig.column("seq", "a");
        eventually("it is renewed again", || rig.column::<i64>("seq", "a") > seq);
        held.release().unwrap();
    }
}

#[test]
fn a_release_whose_answer_is_lost_is_a_release() {
    let rig = Rig::new();
    for loss in Loss::ALL {
        let proxy = Proxy::to(rig.server.address());
        let client = client(&through(&rig, &proxy));
        let held = lease(&client, "a");
        let fault = proxy.lose(loss, Request::containing("SET released = true FROM"));
        held.release().unwrap();
        assert_eq!((fault.hits(), rig.column::<bool>("released", "a")), (1, true), "{loss:?}");
    }
}

#[test]
fn a_finish_whose_answer_is_lost_leaves_one_completion() {
    let rig = Rig::new();
    for loss in Loss::ALL {
        let name = format!("{loss:?}");
        let proxy = Proxy::to(rig.server.address());
        let client = client(&through(&rig, &proxy));
        let run = begun(&client, &name).unwrap();
        let fault = proxy.lose(loss, Request::containing("done_nonce = l.nonce"));
        run.finish().unwrap();
        assert_eq!(fault.hits(), 1, "{loss:?}");
        assert!(begun(&client, &name).is_none(), "{loss:?}");
    }
}

#[test]
fn a_server_that_is_cut_off_costs_the_lease_by_the_clock() {
    let rig = Rig::new();
    let proxy = Proxy::to(rig.server.address());
    let client = client(&through(&rig, &proxy));
    let held = client.lock("a").ttl(crate::common::ms(1_500)).acquire().unwrap();
    proxy.black_hole();
    eventually("the lease is lost", || held.is_lost());
    let error = client.lock("b").wait(crate::common::ms(300)).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable);
}

fn begun(client: &Client, name: &str) -> Option<Run> {
    match client.once(name).key("monday").begin().unwrap() {
        Once::Run(run) => Some(run),
        _ => None,
    }
}
