//! Sequences in which stores once differed from the reference, as short as they can be.

use std::time::Duration;

use leasehold_differential::measure::follow;
use leasehold_differential::run::Side;
use leasehold_differential::script::{Edit, Near, Step, What, Who};
use leasehold_differential::stores::real::Real;
use leasehold_differential::stores::rows::Redis;
use leasehold_servers::redis;

fn acquire(attempt: u8, floor: Near) -> What {
    What::Acquire {
        who: Who::Attempt(attempt),
        seq: 1,
        ttl: Duration::from_secs(600),
        floor,
        expect: Near::Nothing,
        unless_done: false,
        in_queue: false,
        member: None,
    }
}

fn acquire_in_queue(attempt: u8) -> What {
    let What::Acquire { who, seq, ttl, floor, expect, unless_done, member, .. } = acquire(attempt, Near::Nothing)
    else {
        unreachable!("it is one")
    };
    What::Acquire { who, seq, ttl, floor, expect, unless_done, member, in_queue: true }
}

fn release(attempt: u8) -> What {
    What::Release { who: Who::Attempt(attempt), quorum: None }
}

/// Clients that take steps, all on one resource.
fn check(side: &mut dyn Side, name: u8, steps: impl IntoIterator<Item = (u8, What)>) {
    let step = |(id, (client, what))| Step { id, client, name, what };
    let script: Vec<_> = (1..).zip(steps).map(step).collect();
    follow(&script, side).unwrap_or_else(|failure| panic!("{failure}"));
}

/// A transaction counts also where it finds the lock taken, and at the very top it counts above it.
#[test]
fn counter_of_redis_above_the_top_is_the_top() {
    let server = redis::Server::start();
    let rows = Redis(&server);
    // Grants in a row are followed by transactions.
    let in_a_row = (0..3).flat_map(|attempt| [(0, acquire(attempt, Near::Nothing)), (0, release(attempt))]);
    let above = [(1, acquire(3, Near::Top)), (0, acquire(0, Near::Nothing))];
    let ends = [(1, release(3)), (1, acquire(1, Near::Nothing)), (0, acquire(2, Near::Nothing))];
    let mut side = Real::new("redis", &server.url(), &rows, false);
    check(&mut side, 2, in_a_row.clone().chain(above.clone()).chain([(0, What::Read)]).chain(ends));
    let finish = What::Finish { who: Who::Attempt(3), keep: Duration::from_secs(600), quorum: None };
    let mut side = Real::new("redis", &server.url(), &rows, false);
    check(&mut side, 0, in_a_row.chain(above).chain([(1, finish)]));
}

/// A later send may be a grant, and has to wait; a late copy of the first one waits for nothing.
#[test]
fn only_a_later_send_of_what_has_run_out_joins_the_line_of_postgres() {
    super::on_postgres(|new| {
        for later in [1, 2] {
            let mut again = acquire_in_queue(0);
            if let What::Acquire { seq, .. } = &mut again {
                *seq = later;
            }
            let steps = [
                (1, acquire(0, Near::Nothing)),
                (0, acquire_in_queue(3)),
                (0, What::Edit(Edit::Expire)),
                (1, again),
                (0, acquire(1, Near::Nothing)),
            ];
            check(&mut *new(), 0, steps);
        }
    });
}
