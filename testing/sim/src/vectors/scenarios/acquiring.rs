//! From the wish for a lock to its grant, or to the end of the attempt.

use leasehold_core::Wait;
use leasehold_core::op::{DenialKind, Fault, FaultKind, TransportFault};
use std::time::Duration;

use crate::format::Vector;
use crate::vectors::scenario::Answer::*;
use crate::vectors::scenario::Scenario;

pub(super) fn granted_renewed_released() -> Vector {
    let mut s = Scenario::new(
        "granted_renewed_released",
        "The plain life of a lease, with every option in use: granted, renewed twice, given back. The token is what \
         the store minted; validity counts from before the request left; a released lock is free to be acquired again \
         under another nonce.",
    );
    let all = |o: leasehold_core::config::LockOptionsBuilder| {
        o.ttl(Duration::from_secs(12))
            .renew_every(Duration::from_secs(5))
            .lock_delay(Duration::from_secs(2))
            .max_hold(Duration::from_secs(60))
            .wait(Wait::For(Duration::from_secs(3)))
            .owner("host-a:1")
            .data(b"phone 2041")
    };
    s.acquire(1, "invoice/42", all).clock(20).say(0, Granted(1_700_000_000_000_000));
    s.wake_until_sent().say(0, Renewed);
    s.wake_until_sent().say(0, Renewed);
    s.release(1).release(1).say(0, Released);
    s.acquire(1, "invoice/42", |o| o).say(0, Granted(1_700_000_020_000_000));
    s.release(1).say(0, Released);
    s.about(&[
        "IdleStarted",
        "AcquiringGranted",
        "HeldRenewed",
        "HeldConfirmed",
        "HeldReleased",
        "ReleasingSent",
        "ReleasingConfirmed",
    ])
}

pub(super) fn acquire_reply_lost() -> Vector {
    let mut s = Scenario::new(
        "acquire_reply_lost",
        "A request without a reply may have landed, so it is sent again under the same nonce with the next number. A \
         conflict that shows our own record is the grant after all, and its validity counts from the send that the \
         record names: the first one where the store keeps no numbers. A record that names a send we never made grants \
         nothing.",
    );
    s.acquire(1, "first", |o| o).wake();
    s.clock(520).say(0, Ours(1));
    s.clock(530).acquire(2, "second", |o| o).fail(0, TransportFault::Unknown(Fault::of(FaultKind::Reset)));
    s.wake_until_sent().say(0, Ours(0));
    s.clock(1_000)
        .acquire(3, "no-numbers", |o| o)
        .clock(1_100)
        .say(0, Unknown(FaultKind::Timeout))
        .say(0, OursUncounted);
    s.clock(1_200).acquire(4, "odd", |o| o).say(0, OursAsOf(9)).wake_until_sent().say(0, Granted(9));
    s.declare_lost(1).declare_lost(2).declare_lost(3).declare_lost(4);
    s.about(&["AcquiringUnknown", "AcquiringResent", "AcquiringRecovered", "HeldLost"])
}

pub(super) fn acquire_never_answered() -> Vector {
    let mut s = Scenario::new(
        "acquire_never_answered",
        "An attempt sends three times, then it is given up; what may have landed is released in the background, and \
         asked for once more after 'not ours', since a delayed send may land in between. When the wait ends, nothing \
         is sent again.",
    );
    let once = |o: leasehold_core::config::LockOptionsBuilder| o.wait(Wait::Once);
    s.acquire(1, "silent", once).wake().wake().wake();
    s.say(0, Gone).wake_until_sent().say(0, Gone);
    s.acquire(2, "wait-ends", |o| o.wait(Wait::For(Duration::from_millis(700)))).wake().wake();
    s.say(0, Unknown(FaultKind::Reset)).wake_until_sent().say(0, Released);
    s.acquire(3, "unsent", once).fail(0, TransportFault::NotSent(Fault::of(FaultKind::Unreachable)));
    s.about(&["AcquiringUnknown", "AcquiringResent", "AcquiringFailed", "ReleasingOpen", "ReleasingConfirmed"])
}

pub(super) fn acquire_refused() -> Vector {
    let mut s = Scenario::new(
        "acquire_refused",
        "What a retry does not mend ends the acquisition at once, however long it would wait, and is told in the \
         store's words: no permission, a record that no honest client wrote, tokens used up. A refusal speaks for its \
         own send only: an earlier one that may have landed is released.",
    );
    let kinds = [
        DenialKind::Permission,
        DenialKind::Schema,
        DenialKind::CorruptRecord,
        DenialKind::TokensExhausted,
        DenialKind::StorageFull,
        DenialKind::Other,
    ];
    for (lock, kind) in (1..).zip(kinds) {
        s.acquire(lock, "refused", |o| o).say(0, Denied(kind));
    }
    s.acquire(9, "refused-later", |o| o).say(0, Unknown(FaultKind::Timeout)).say(0, Denied(DenialKind::Permission));
    s.say(0, Released);
    s.about(&["AcquiringDenied"])
}

pub(super) fn acquire_cancelled() -> Vector {
    let mut s = Scenario::new(
        "acquire_cancelled",
        "A cancel takes effect at once. The request in flight may still land: its record is released, and a grant that \
         arrives afterwards is nobody's. Where the release was faster and found nothing, the grant has it sent again at \
         once. Nothing is released where nothing can have landed.",
    );
    s.acquire(1, "in-flight", |o| o).release(1);
    s.say_to(0, Granted(7));
    s.say(0, Released);
    s.acquire(2, "unsure", |o| o).fail(0, TransportFault::Unknown(Fault::new(FaultKind::Cancelled, "gone away")));
    s.release(2).say(0, Unknown(FaultKind::Timeout)).wake_until_sent().say(0, Released);
    s.release(2);
    s.acquire(3, "overtaken", |o| o).release(3).say(0, Gone).say_to(5, Granted(8)).say(0, Released);
    s.about(&["AcquiringCancelled", "ReleasingSent", "ReleasingOpen", "ReleasingLanded"])
}
