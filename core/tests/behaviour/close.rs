//! Closing cancels pending acquisitions, releases leases, and accepts nothing new.

use crate::common::*;
use leasehold_core::{Error, Event, Failure};

fn close(world: &mut World) {
    let now = world.now(0);
    world.hosts[0].client.close(now);
    world.drain(0);
}

#[test]
fn close_ends_all_locks_and_cleans_up() {
    let mut world = World::new(2);
    world.hold(1, 1, "theirs", options());
    world.hold(0, 1, "held", options());
    world.acquire(0, 2, "held", options());
    world.acquire(0, 3, "held", options());
    world.acquire(0, 4, "theirs", options());
    world.deliver_all();
    world.acquire(0, 5, "asked", options());
    world.take_events(0);

    close(&mut world);
    let events = world.take_events(0);
    let cancelled: Vec<u64> = events
        .iter()
        .filter(|event| matches!(event, Event::Failed { failure: Failure::Cancelled, .. }))
        .map(|event| event.lock().get())
        .collect();
    assert_eq!(
        {
            let mut ids = cancelled.clone();
            ids.sort_unstable();
            ids
        },
        [2, 3, 4, 5]
    );
    assert_eq!(events.len(), 4);
    assert!(!world.hosts[0].client.is_idle(), "the releases are still to be driven");
    assert!(
        !world.on_the_wire(0).iter().skip(1).any(|kind| *kind == "acquire"),
        "no waiter takes the place of another"
    );

    world.pass(secs(2));
    assert_eq!(world.take_events(0), [Event::Released { lock: lock(1), confirmed: true }]);
    assert!(world.hosts[0].client.is_idle());
    assert!(!world.is_held(0, "held") && !world.is_held(0, "asked") && world.is_held(0, "theirs"));
}

/// The other nodes have decided both the grant and the release before the last node answers.
#[test]
fn slow_node_is_released_once_without_waiting() {
    for is_overtaken in [false, true] {
        let mut world = World::quorum(3, 1);
        world.acquire(0, 1, "r", options());
        world.deliver_to(0, 0);
        world.deliver_to(0, 1);
        let acquire = world.take_for(0, 2);
        close(&mut world);
        world.deliver_to(0, 0);
        world.deliver_to(0, 1);
        let release = world.take_for(0, 2);
        let early = is_overtaken.then(|| world.perform(&release));
        let landed = world.perform(&acquire);
        let released = early.unwrap_or_else(|| world.perform(&release));
        world.answer(0, acquire.id, Ok(landed));
        assert_eq!(world.on_the_wire(0), [""; 0], "a release is under way");
        world.answer(0, release.id, Ok(released));
        if is_overtaken {
            assert_eq!(world.on_the_wire(0), ["release"], "that one came too early");
            world.deliver(0);
        }
        assert!(!world.is_held(2, "r"));
        assert!(world.hosts[0].client.is_idle(), "no time has passed");
    }
}

#[test]
fn client_with_a_lease_is_not_idle() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    assert!(!world.hosts[0].client.is_idle());
    world.release(0, 1);
    world.deliver_all();
    world.take_events(0);
    assert!(world.hosts[0].client.is_idle());
}

#[test]
fn acquire_after_close_is_rejected() {
    let mut world = World::new(1);
    close(&mut world);
    let (now, fresh) = (world.now(0), world.fresh());
    let refused = world.hosts[0].client.acquire(lock(1), resource("r"), options(), &fresh, now);
    assert_eq!(refused, Err(Error::Closed));
    assert!(world.hosts[0].client.is_idle());
}

#[test]
fn second_close_does_nothing() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    close(&mut world);
    let before = world.hosts[0].client.clone();
    close(&mut world);
    assert_eq!(world.hosts[0].client, before);
    assert_eq!(world.on_the_wire(0), ["release"]);
}

#[test]
fn close_ends_even_if_the_store_is_down() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    close(&mut world);
    world.pass_cut_off(secs(30));
    assert_eq!(world.take_events(0), [Event::Released { lock: lock(1), confirmed: false }]);
    assert!(world.hosts[0].client.is_idle());
}

#[test]
fn lease_expired_before_close_is_lost_and_not_released() {
    let mut world = World::new(1);
    world.hold(0, 1, "r", options());
    world.jump(secs(60));
    close(&mut world);
    loss(&world.take_events(0));
    assert_eq!(world.on_the_wire(0), [""; 0]);
}
