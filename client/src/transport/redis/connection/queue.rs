//! The requests of one connection: what is to be sent, and who waits for which reply.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use leasehold_core::Monotonic;
use leasehold_core::op::{Fault, FaultKind};
use leasehold_wire::redis::{Command, cas};
use leasehold_wire::resp::{self, Value};
use tokio::sync::oneshot;

use super::io::Sink;
use crate::host::clock;
use crate::host::sync::Mutex;
use crate::host::sync::atomic::{AtomicBool, Ordering};

/// The most bytes that wait to be sent. A server that takes no more for so long has stopped.
const MOST_UNSENT: usize = 16 << 20;

/// The limit for the reply to any command, such as `INFO` of a server with many modules.
pub(super) const FOR_A_COMMAND: usize = 64 << 10;
/// The limit for the map of a cluster, which repeats its nodes for every range of slots. There may be thousands of
/// those.
const FOR_A_MAP: usize = 4 << 20;
/// The limit for an item of compare-and-set: the longest value in Base64, and room to spare.
const FOR_AN_ITEM: usize = 1 << 20;
/// The addition for each argument of a command. A holder with the longest data and name takes less than 16 KiB in a
/// reply, and its command has at least four arguments.
const FOR_AN_ARGUMENT: usize = 4 << 10;

/// The end of a connection, or of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Broken {
    /// No byte of the request has left.
    NotSent(Fault),
    /// The request may have been carried out.
    Unknown(Fault),
}

/// The replies to the commands of one request, in their order.
pub(in super::super) type Replies = Result<Vec<Value>, Broken>;

/// The requests of a connection, shared by callers and the thread or task that reads and writes.
pub(in super::super) struct Queue {
    state: Mutex<State>,
    /// It takes no more requests. The state says so as well; this is read without a lock.
    is_closed: AtomicBool,
}

struct State {
    /// Encoded requests that the writer has not taken.
    out: Vec<u8>,
    /// All bytes that were ever put there, except those of requests that were taken back.
    submitted: u64,
    /// Requests without all of their replies, oldest first.
    waiting: VecDeque<Waiting>,
    /// How many of those, the last ones, the writer has not taken.
    unsent: usize,
    /// No deadline of those is earlier.
    earliest: Monotonic,
    /// It takes no more requests, and closes with the last reply that is awaited.
    is_left: bool,
    over: Option<Fault>,
    /// The writer looks here again before it sleeps.
    is_awake: bool,
    writer: Option<Waker>,
}

struct Waiting {
    /// `None` once nobody waits any more. The replies still have to be read.
    answer: Option<oneshot::Sender<Replies>>,
    replies: Vec<Value>,
    missing: usize,
    /// All bytes that were submitted before it, except those of requests that were taken back.
    start: u64,
    length: usize,
    deadline: Monotonic,
    /// The most bytes of one reply.
    allowance: usize,
}

/// The writer's rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// There is more to send.
    None,
    /// Until it is woken, or the earliest deadline of the requests that wait.
    Until(Option<Monotonic>),
    /// The connection was left, and nobody waits for it.
    Over,
}

/// A request that was queued.
pub(super) struct Submitted {
    pub(super) reply: Reply,
    /// The task that writes, if it was asleep and has to be woken.
    pub(super) writer: Option<Waker>,
    /// As many requests wait to be sent as are under way, so that the server would soon have nothing to do.
    pub(super) is_urgent: bool,
}

/// Replies under way. Dropping it gives up waiting.
pub(in super::super) struct Reply {
    answer: oneshot::Receiver<Replies>,
    queue: Arc<Queue>,
    deadline: Monotonic,
    is_done: bool,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                out: Vec::new(),
                submitted: 0,
                waiting: VecDeque::new(),
                unsent: 0,
                earliest: Monotonic::FAR,
                is_left: false,
                over: None,
                is_awake: false,
                writer: None,
            }),
            is_closed: AtomicBool::new(false),
        }
    }

    /// Queues commands, one reply each.
    ///
    /// # Errors
    /// The connection takes no more requests.
    pub(super) fn submit(self: &Arc<Self>, commands: &[Command], deadline: Monotonic) -> Result<Submitted, Broken> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state.lock();
        if let Some(fault) = &state.over {
            return Err(Broken::NotSent(fault.clone()));
        }
        if state.is_left && state.waiting.is_empty() {
            // It is about to close.
            return Err(Broken::NotSent(Fault::of(FaultKind::Cancelled)));
        }
        if state.out.len() > MOST_UNSENT {
            let detail = "the server takes no more requests";
            return Err(Broken::NotSent(Fault::new(FaultKind::Unreachable, detail)));
        }
        let start = state.submitted;
        let length = state.encode(commands);
        state.earliest = if state.waiting.is_empty() { deadline } else { state.earliest.min(deadline) };
        state.waiting.push_back(Waiting {
            answer: Some(sender),
            replies: Vec::with_capacity(commands.len()),
            missing: commands.len(),
            start,
            length,
            deadline,
            allowance: commands.iter().map(allowance).max().unwrap_or(FOR_A_COMMAND),
        });
        state.unsent += 1;
        let is_urgent = state.unsent >= state.waiting.len() - state.unsent;
        let was_awake = std::mem::replace(&mut state.is_awake, true);
        let writer = if was_awake { None } else { state.writer.clone() };
        drop(state);
        let reply = Reply { answer: receiver, queue: Arc::clone(self), deadline, is_done: false };
        Ok(Submitted { reply, writer, is_urgent })
    }

    /// Queues a command whose replies do not count.
    pub(super) fn push(&self, command: &Command) {
        self.state.lock().encode(std::slice::from_ref(command));
    }

    /// Wakes the task that writes.
    pub(super) fn wake(&self) {
        let writer = self.state.lock().writer.clone();
        if let Some(writer) = writer {
            writer.wake();
        }
    }

    /// Sets the task to wake, which is awake now.
    pub(super) fn set_writer(&self, waker: &Waker) {
        let mut state = self.state.lock();
        state.is_awake = true;
        if !state.writer.as_ref().is_some_and(|writer| writer.will_wake(waker)) {
            state.writer = Some(waker.clone());
        }
    }

    /// Exchanges the bytes to send for an empty buffer. Requests whose deadline has passed are not among them.
    pub(super) fn take(&self, empty: &mut Vec<u8>) {
        if !self.state.lock().out.is_empty() {
            self.expire(clock::monotonic());
        }
        let mut state = self.state.lock();
        state.unsent = 0;
        std::mem::swap(&mut state.out, empty);
    }

    /// Checks that no request whose deadline has passed is among the bytes that have not left. `written` is the number of those that
    /// have.
    ///
    /// # Errors
    /// One is: the connection has to end, or it would leave yet.
    pub(super) fn check_rest(&self, written: u64) -> Result<(), Fault> {
        let now = clock::monotonic();
        self.expire(now);
        let state = self.state.lock();
        let is_late = |waiting: &Waiting| waiting.deadline <= now && waiting.end() > written;
        if state.is_left && state.waiting.iter().any(is_late) {
            return Err(Fault::new(
                FaultKind::Timeout,
                "the server has taken no more for longer than a request may last",
            ));
        }
        Ok(())
    }

    /// The writer has nothing left to do, as far as it knows. A socket that takes no more wakes it.
    pub(super) fn rest(&self, is_blocked: bool) -> Rest {
        let mut state = self.state.lock();
        if !state.out.is_empty() && !is_blocked {
            return Rest::None;
        }
        if state.over.is_some() || (state.is_left && state.waiting.iter().all(Waiting::is_abandoned)) {
            return Rest::Over;
        }
        state.is_awake = false;
        Rest::Until((!state.waiting.is_empty()).then_some(state.earliest))
    }

    /// Gives up the requests whose deadline has passed. Those that the writer has not taken never leave: a release that was sent after
    /// the deadline counts on it. Replies to the others may still come, so the connection takes no more.
    pub(super) fn expire(&self, now: Monotonic) {
        let mut state = self.state.lock();
        if state.earliest > now {
            return;
        }
        let unsent = state.take_back(now);
        let mut expired = Vec::new();
        let mut earliest = Monotonic::FAR;
        let mut has_expired = false;
        for waiting in &mut state.waiting {
            if waiting.deadline <= now {
                has_expired = true;
                expired.extend(waiting.answer.take());
            } else {
                earliest = earliest.min(waiting.deadline);
            }
        }
        if has_expired {
            self.close(&mut state);
        }
        state.earliest = earliest;
        drop(state);
        let timeout = || Fault::of(FaultKind::Timeout);
        for answer in expired {
            let _ = answer.send(Err(Broken::Unknown(timeout())));
        }
        for answer in unsent {
            let _ = answer.send(Err(Broken::NotSent(timeout())));
        }
    }

    /// Takes no more requests. Others may still wait for answers; it closes with the last of them.
    pub(super) fn leave(&self) {
        self.close(&mut self.state.lock());
        self.wake();
    }

    /// Gives up all requests: replies may reach others than their own.
    pub(super) fn condemn(&self, fault: &Fault) {
        let writer = self.state.lock().writer.clone();
        self.end(fault, u64::MAX);
        if let Some(writer) = writer {
            writer.wake();
        }
    }

    /// Tells if it can take a request, as far as is known.
    pub(super) fn is_usable(&self) -> bool {
        !self.is_closed.load(Ordering::Acquire)
    }

    fn close(&self, state: &mut State) {
        state.is_left = true;
        self.is_closed.store(true, Ordering::Release);
    }

    /// The earliest deadline of the requests that wait.
    pub(super) fn deadline(&self) -> Option<Monotonic> {
        let state = self.state.lock();
        (!state.waiting.is_empty()).then_some(state.earliest)
    }

    /// Tells if several requests wait for their replies.
    pub(super) fn has_several(&self) -> bool {
        self.state.lock().waiting.len() > 1
    }

    /// Tells if a request waits for its replies.
    pub(super) fn is_busy(&self) -> bool {
        !self.state.lock().waiting.is_empty()
    }

    /// Ends everything. `written` is the number of bytes that have left: requests behind them have not.
    pub(super) fn end(&self, fault: &Fault, written: u64) {
        let mut state = self.state.lock();
        state.over.get_or_insert_with(|| fault.clone());
        self.is_closed.store(true, Ordering::Release);
        state.out = Vec::new();
        state.unsent = 0;
        state.writer = None;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        for Waiting { answer, start, .. } in waiting {
            let broken = if start < written { Broken::Unknown } else { Broken::NotSent };
            if let Some(answer) = answer {
                let _ = answer.send(Err(broken(fault.clone())));
            }
        }
    }
}

impl State {
    /// Puts commands behind the bytes to send. Returns how many bytes these are.
    fn encode(&mut self, commands: &[Command]) -> usize {
        let before = self.out.len();
        for command in commands {
            resp::encode(command, &mut self.out);
        }
        let length = self.out.len() - before;
        self.submitted += length as u64;
        length
    }

    /// Removes the requests whose deadline has passed and of which the writer has taken nothing. Returns those who wait for them.
    fn take_back(&mut self, now: Monotonic) -> Vec<oneshot::Sender<Replies>> {
        let first = self.submitted - self.out.len() as u64;
        let is_late = |waiting: &Waiting| waiting.start >= first && waiting.deadline <= now;
        let mut taken_back = Vec::new();
        if !self.waiting.iter().any(is_late) {
            return taken_back;
        }
        let (out, mut done) = (std::mem::take(&mut self.out), 0);
        self.waiting.retain_mut(|waiting| {
            if waiting.start < first {
                return true;
            }
            let start = (waiting.start - first) as usize;
            self.out.extend_from_slice(&out[done..start]);
            done = start;
            if is_late(waiting) {
                done += waiting.length;
                self.unsent -= 1;
                taken_back.extend(waiting.answer.take());
                return false;
            }
            waiting.start = first + self.out.len() as u64;
            true
        });
        self.out.extend_from_slice(&out[done..]);
        self.submitted = first + self.out.len() as u64;
        taken_back
    }
}

impl Sink for &Queue {
    fn allowance(&self) -> usize {
        self.state.lock().waiting.front().map_or(FOR_A_COMMAND, |oldest| oldest.allowance)
    }

    /// # Errors
    /// Nobody has asked for one of them.
    fn settle(&mut self, replies: &mut Vec<Value>) -> Result<(), Fault> {
        let mut settled = Vec::new();
        let mut state = self.state.lock();
        let mut is_asked_for = true;
        for reply in replies.drain(..) {
            let Some(oldest) = state.waiting.front_mut() else {
                is_asked_for = false;
                break;
            };
            oldest.replies.push(reply);
            oldest.missing -= 1;
            if oldest.missing == 0
                && let Some(Waiting { answer: Some(answer), replies, .. }) = state.waiting.pop_front()
            {
                settled.push((answer, replies));
            }
        }
        drop(state);
        // Wakers are other people's code.
        for (answer, replies) in settled {
            let _ = answer.send(Ok(replies));
        }
        if is_asked_for { Ok(()) } else { Err(Fault::new(FaultKind::Protocol, "a reply without a request")) }
    }
}

impl Waiting {
    /// The bytes that were submitted up to its own last one.
    fn end(&self) -> u64 {
        self.start + self.length as u64
    }

    fn is_abandoned(&self) -> bool {
        self.answer.as_ref().is_none_or(oneshot::Sender::is_closed)
    }
}

impl Future for Reply {
    type Output = Replies;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Replies> {
        let polled = Pin::new(&mut self.answer).poll(context);
        self.is_done |= polled.is_ready();
        polled.map(|replies| replies.unwrap_or_else(|_| Err(gone())))
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        // The core has given up a request at its deadline, and may be earlier than the thread that reads.
        if !self.is_done {
            let now = clock::monotonic();
            if self.deadline <= now {
                self.queue.expire(now);
            }
        }
    }
}

fn gone() -> Broken {
    Broken::Unknown(Fault::of(FaultKind::Cancelled))
}

fn allowance(command: &Command) -> usize {
    let base = match command.name() {
        b"CLUSTER" => FOR_A_MAP,
        b"EVAL" if cas::is_read(command) => FOR_AN_ITEM,
        _ => FOR_A_COMMAND,
    };
    base + FOR_AN_ARGUMENT * command.len()
}
