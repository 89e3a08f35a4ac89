//! Connections that the calling thread drives, for as long as it waits for their replies.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::Monotonic;
use leasehold_core::op::{Fault, FaultKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::io::{Io, Stalled};
use super::queue::{Queue, Rest};
use crate::exec::{self, Pause};
use crate::host::clock;
use crate::host::sync::Mutex;

/// `poll` does not count the time in which the machine is suspended, so the clock is looked at this often.
const LONGEST_NAP: Duration = Duration::from_secs(1);

/// A connection in the hands of the thread that uses it.
pub(super) struct ThreadSeat {
    pub(super) queue: Arc<Queue>,
    pub(super) io: Mutex<Io>,
}

thread_local! {
    /// The connections on which this thread has requests under way.
    static BUSY: RefCell<Vec<Arc<ThreadSeat>>> = const { RefCell::new(Vec::new()) };
}

/// Notes that this thread has queued a request.
pub(super) fn note(seat: &Arc<ThreadSeat>) {
    BUSY.with_borrow_mut(|busy| {
        if !busy.iter().any(|other| Arc::ptr_eq(other, seat)) {
            busy.push(Arc::clone(seat));
        }
    });
}

/// Reads what has come while no request waited: the end of an idle connection, or what nobody has asked for.
pub(super) fn look(seat: &ThreadSeat) {
    let mut io = seat.io.lock();
    if !seat.queue.is_busy()
        && let Err(fault) = io.read(&*seat.queue)
    {
        io.end(&seat.queue, &fault);
    }
}

/// Runs a future to its end on this thread, which drives its own connections, and else sleeps until it is woken.
pub(in super::super) fn block_on<F: Future>(future: F) -> F::Output {
    let drive_all = || match BUSY.with_borrow_mut(std::mem::take).as_slice() {
        [] => Pause::UntilWoken,
        busy => {
            busy.iter().for_each(|seat| drive(seat, busy.len() == 1));
            Pause::None
        }
    };
    let output = exec::block_on_until(future, drive_all).expect("invariant: only `GiveUp` ends it early");
    BUSY.with_borrow_mut(Vec::clear);
    output
}

/// Writes what is queued, and reads until a reply is settled.
fn drive(seat: &Arc<ThreadSeat>, is_alone: bool) {
    let mut io = seat.io.lock();
    if let Err(fault) = advance(&mut io, &seat.queue, is_alone) {
        io.end(&seat.queue, &fault);
    } else if seat.queue.is_busy() {
        note(seat);
    }
}

fn advance(io: &mut Io, queue: &Queue, is_alone: bool) -> Result<(), Fault> {
    // With several connections each is looked at in turn.
    let longest = if is_alone { LONGEST_NAP } else { Duration::from_millis(1) };
    let wants_to_write = io.write(queue)?.is_some();
    let deadline = match queue.rest(wants_to_write) {
        Rest::Until(deadline) => deadline.unwrap_or(Monotonic::FAR),
        Rest::None => clock::monotonic(),
        Rest::Over => return Err(Fault::of(FaultKind::Cancelled)),
    };
    let now = clock::monotonic();
    if deadline <= now {
        queue.expire(now);
        return Ok(());
    }
    let flags = if wants_to_write { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
    let mut sockets = [PollFd::from_borrowed_fd(io.stream().descriptor(), flags)];
    let nap = Timespec::try_from(deadline.since(now).min(longest)).ok();
    // A signal ends it early, which does no harm.
    let events = poll(&mut sockets, nap.as_ref()).map(|_| sockets[0].revents());
    if events.is_ok_and(|events| events.intersects(!PollFlags::OUT)) {
        while io.read(queue)? == Stalled::Yielding {}
    }
    Ok(())
}
