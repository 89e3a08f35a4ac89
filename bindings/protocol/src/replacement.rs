//! The resource `replacement`: the steps of a request that replaces the runner.

use core::cell::RefCell;
use core::time::Duration;

use leasehold_core::{Monotonic, RecordLock, ReplaceAnswer, ReplaceStep, Replacing, Runner, Token, newest_beside};

use crate::ops::{all, ms_up};
use crate::outcomes::{completion, holding, nonce, optional};
use crate::runs::contents;
use crate::settings::now;
use crate::wit::ops::Seen;
use crate::wit::runs as wit;
use crate::wit::types::Now;

pub(crate) struct Replacement(RefCell<Replacing>);

impl wit::GuestReplacement for Replacement {
    fn create(even_if_done: bool, wait_ms: Option<u64>, at: Now) -> wit::Replacement {
        let until = wait_ms.map_or(Monotonic::FAR, |ms| now(at).monotonic.plus(Duration::from_millis(ms)));
        wit::Replacement::new(Self(RefCell::new(Replacing::new(even_if_done, until))))
    }

    fn next(&self, answer: wit::ReplaceAnswer, at: Now) -> wit::ReplaceStep {
        // An answer that cannot be read is one that fits no step.
        let answer = read(answer).unwrap_or(ReplaceAnswer::Failed { may_pass: false });
        shown(self.0.borrow_mut().next(answer, now(at).monotonic))
    }
}

fn read(answer: wit::ReplaceAnswer) -> Option<ReplaceAnswer> {
    let runner = |shown| holding(shown).map(|holding| Runner::from(&holding));
    Some(match answer {
        wit::ReplaceAnswer::Looked(Seen { holding, done }) => {
            ReplaceAnswer::Looked { runner: optional(holding, runner)?, done: done.is_some() }
        }
        wit::ReplaceAnswer::Numbered(number) => ReplaceAnswer::Numbered(Token::new(number.token)?),
        wit::ReplaceAnswer::Unconfirmed(number) => ReplaceAnswer::Unconfirmed(Token::new(number.token)?),
        wit::ReplaceAnswer::Granted => ReplaceAnswer::Granted,
        wit::ReplaceAnswer::Refused(shown) => ReplaceAnswer::Refused(optional(shown.holding, runner)?),
        wit::ReplaceAnswer::Newest(newest) => ReplaceAnswer::from(&completion(newest)?),
        wit::ReplaceAnswer::Counted(wit::ReplaceCount { read, holder }) => {
            let nodes = all(read, contents);
            ReplaceAnswer::Counted(newest_beside(nodes.iter().map(Option::as_ref), &nonce(&holder)?))
        }
        wit::ReplaceAnswer::Ended => ReplaceAnswer::Ended,
        wit::ReplaceAnswer::Failed(trouble) => ReplaceAnswer::Failed { may_pass: trouble.may_pass },
    })
}

fn shown(step: ReplaceStep) -> wit::ReplaceStep {
    match step {
        ReplaceStep::Look => wit::ReplaceStep::Look,
        ReplaceStep::TakeNumber(lock) => wit::ReplaceStep::TakeNumber(record(lock)),
        ReplaceStep::Ask { even_if_done, wait } => {
            wit::ReplaceStep::Ask(wit::ReplaceAsk { even_if_done, wait_ms: ms_up(wait) })
        }
        ReplaceStep::ReadNewest(lock) => wit::ReplaceStep::ReadNewest(record(lock)),
        ReplaceStep::CountNewest(lock) => wit::ReplaceStep::CountNewest(record(lock)),
        ReplaceStep::End(nonce) => wit::ReplaceStep::End(wit::ReplaceEnd { holder: nonce.as_bytes().to_vec() }),
        ReplaceStep::Begin => wit::ReplaceStep::Begin,
        ReplaceStep::Replaced => wit::ReplaceStep::Replaced,
        ReplaceStep::Done => wit::ReplaceStep::Done,
        ReplaceStep::Running => wit::ReplaceStep::Running,
        ReplaceStep::Unsettled => wit::ReplaceStep::Unsettled,
        ReplaceStep::Fail => wit::ReplaceStep::Fail,
    }
}

fn record(lock: RecordLock) -> wit::ReplaceRecord {
    wit::ReplaceRecord { ttl_ms: ms_up(lock.ttl), wait_ms: ms_up(lock.wait) }
}
