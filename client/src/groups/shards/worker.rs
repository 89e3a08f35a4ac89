//! The worker's thread: it joins, looks at the others, and acquires and lets go of shards.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::slice;
use std::task::{Context, Poll};
use std::time::Duration;

use leasehold_core::config::Drift;
use leasehold_core::time::{Format, fraction_of, observed_until};
use leasehold_core::{Monotonic, Resource, Version};

use super::Shard;
use super::holder::Shared;
use super::share::{Move, decide, share};
use crate::client::Client;
use crate::driver::Caller;
use crate::error::{Error, LockInfo};
use crate::exec::Alarm;
use crate::groups::term;
use crate::host::sync::Arc;
use crate::locks::any;
use crate::locks::lease::Lease;
use crate::locks::request::{LockRequest, Until};
use crate::sizes::{self, Size};

/// How often the number of shards is compared with the record, which quorums do not keep forever.
const AGREE_EVERY: Duration = Duration::from_secs(3_600);

type Acquiring<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

pub(super) struct Worker {
    client: Client,
    size: Size,
    shards: Vec<String>,
    seats: Vec<Resource>,
    request: LockRequest,
    every: Duration,
    shared: Arc<Shared>,
    seat: Option<Seat>,
    /// The seats that were taken at the last look; `None` where it failed, or was before this worker had its own.
    members: Option<BTreeSet<usize>>,
    look_at: Monotonic,
    /// Of each seat, where the store does not tell how much is left: its record, and since when it has stood still.
    observed: Vec<Option<(Version, Monotonic)>>,
    joining: Option<Acquiring<(usize, Lease)>>,
    seeking: Vec<(usize, Acquiring<Lease>)>,
}

/// The worker's own lock among those of the members.
struct Seat {
    index: usize,
    lease: Arc<Lease>,
    ended: Pin<Box<dyn Future<Output = Option<Error>> + Send>>,
    agree_at: Monotonic,
}

/// The reason why the worker's thread goes on.
enum News {
    Something,
    Joined(Result<(usize, Lease), Error>),
    Granted(usize, Result<Lease, Error>),
    SeatLost,
}

impl Worker {
    pub(super) fn new(
        client: Client,
        size: Size,
        shards: Vec<String>,
        request: LockRequest,
        every: Duration,
        shared: Arc<Shared>,
    ) -> Result<Self, Error> {
        let seats = size.seats().iter().map(|name| Resource::new(name)).collect::<Result<Vec<_>, _>>()?;
        let (observed, look_at) = (vec![None; seats.len()], client.time().monotonic());
        Ok(Self {
            client,
            size,
            shards,
            seats,
            request,
            every,
            shared,
            seat: None,
            members: None,
            look_at,
            observed,
            joining: None,
            seeking: Vec::new(),
        })
    }

    pub(super) async fn run(mut self, alarm: Alarm) {
        while !self.shared.is_stopping() && !self.client.driver().is_closing() {
            if self.now() >= self.look_at {
                self.look().await;
            }
            let (resting, rested_at) = self.shared.resting();
            if self.has_failed_its_share(&resting) {
                self.stand_by().await;
            } else {
                self.balance(&resting);
            }
            match self.wait(&alarm, rested_at).await {
                Some(News::Joined(result)) => self.joined(result),
                Some(News::Granted(index, result)) => self.granted(index, result),
                Some(News::SeatLost) => self.leave(),
                Some(News::Something) | None => {}
            }
        }
        // The others may wait for the shards before these are free.
        self.seeking.clear();
        self.stand_by().await;
        self.shared.let_go_of_all().await;
    }

    /// Tells if the callbacks of as many shards have failed as it should work on, and it has no other.
    fn has_failed_its_share(&self, resting: &BTreeSet<usize>) -> bool {
        let others = |members: &BTreeSet<usize>| {
            members.iter().filter(|member| self.seat.as_ref().is_none_or(|seat| seat.index != **member)).count()
        };
        let members = self.members.as_ref().map_or(0, others) + 1;
        resting.len() >= share(self.shards.len(), members, 0) && self.shared.kept().is_empty()
    }

    fn now(&self) -> Monotonic {
        self.client.time().monotonic()
    }

    fn random(&self) -> Result<u32, Error> {
        let mut bytes = [0; 4];
        self.client.time().fill(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Leaves its place among the members to others, since it works on no shard now.
    async fn stand_by(&mut self) {
        self.joining = None;
        if let Some(seat) = self.seat.take() {
            self.leave();
            let _ = seat.lease.release_by(Caller::Blocking).await;
        }
        self.shared.set_members(0);
    }

    async fn look(&mut self) {
        let jitter = self.random().unwrap_or_default();
        self.look_at = self.now().plus(self.every - fraction_of(self.every / 4, jitter));
        let looked = match self.agree_again().await {
            Ok(()) => self.client.held_of(self.seats.clone()).await,
            Err(error) => Err(error),
        };
        match looked {
            Ok(found) => {
                let mut members = self.alive(&found);
                members.extend(self.seat.as_ref().map(|seat| seat.index));
                self.shared.set_members(if self.seat.is_some() { members.len() } else { 0 });
                self.members = Some(members);
                self.shared.note(None);
            }
            Err(error) => self.trouble(error),
        }
    }

    async fn agree_again(&mut self) -> Result<(), Error> {
        let now = self.now();
        let Some(seat) = self.seat.as_mut().filter(|seat| now >= seat.agree_at) else { return Ok(()) };
        sizes::agree(&self.client.by(Caller::Blocking), &self.size, slice::from_ref(&*seat.lease)).await?;
        seat.agree_at = now.plus(AGREE_EVERY);
        Ok(())
    }

    /// The seats whose holders are not known to be dead. To take a dead one for alive, or the other way round, makes shares
    /// uneven for a while, and nothing else.
    fn alive(&mut self, found: &[LockInfo]) -> BTreeSet<usize> {
        let now = self.now();
        let mut alive = BTreeSet::new();
        for (index, seat) in self.seats.iter().enumerate() {
            let Some(info) = found.iter().find(|info| info.resource == seat.as_str()) else {
                self.observed[index] = None;
                continue;
            };
            let is_alive = match (info.left, info.ttl) {
                (Some(left), _) => !left.is_zero(),
                (None, None) => true,
                (None, Some(ttl)) => {
                    let (version, since) = self.observed[index].get_or_insert_with(|| (info.version.clone(), now));
                    if *version != info.version {
                        (*version, *since) = (info.version.clone(), now);
                    }
                    now < observed_until(*since, ttl, Drift::default(), Format::Leasehold)
                }
            };
            if is_alive && info.is_shown_by_a_majority() {
                alive.insert(index);
            }
        }
        alive
    }

    fn balance(&mut self, resting: &BTreeSet<usize>) {
        if self.seat.is_none() && self.joining.is_none() && self.members.is_some() {
            self.joining = Some(self.join());
        }
        let Some(members) = &self.members else { return };
        let kept = self.shared.kept();
        let held: BTreeSet<usize> =
            kept.iter().filter(|(_, is_leaving)| !is_leaving).map(|(index, _)| *index).collect();
        let seat = self.seat.as_ref().map(|seat| seat.index);
        match decide(self.shards.len(), members, seat, &held) {
            Move::Stay => self.seeking.clear(),
            Move::LetGo(shards) => {
                self.seeking.clear();
                self.shared.let_go(&shards);
            }
            Move::Seek(_) => {
                let sought: BTreeSet<usize> = self.seeking.iter().map(|(index, _)| *index).collect();
                let count = self.shards.len();
                // Members begin at different shards, so that they do not all wait for the same one first.
                let first = seat.unwrap_or_default();
                for index in (first..count).chain(0..first) {
                    // What it lets go of belongs to another.
                    let is_taken = sought.contains(&index) || kept.iter().any(|(kept, _)| *kept == index);
                    if !is_taken && !resting.contains(&index) {
                        let request = self.request.clone().named(&self.shards[index]);
                        self.seeking.push((index, Box::pin(request.acquire())));
                    }
                }
            }
        }
    }

    fn join(&self) -> Acquiring<(usize, Lease)> {
        let (client, size, request) = (self.client.clone(), self.size.clone(), self.request.clone());
        Box::pin(async move {
            let (index, lease) = any::acquire(&size.seats(), &request, Until::Forever).await?;
            // Only a member can tell that the number is not being changed. An error drops the lease, which releases it.
            sizes::agree(&client, &size, slice::from_ref(&lease)).await?;
            Ok((index, lease))
        })
    }

    fn joined(&mut self, result: Result<(usize, Lease), Error>) {
        self.joining = None;
        match result {
            Ok((index, lease)) => {
                let lease = Arc::new(lease);
                let agree_at = self.now().plus(AGREE_EVERY);
                let ended = Box::pin(lease.ended());
                self.seat = Some(Seat { index, lease, ended, agree_at });
                self.members = None;
                self.look_at = self.now();
            }
            Err(error) => self.trouble(error),
        }
    }

    fn granted(&mut self, index: usize, result: Result<Lease, Error>) {
        match result.and_then(|lease| self.shared.hold(Shard { index, lease })) {
            Ok(()) => {}
            Err(error) => self.trouble(error),
        }
    }

    /// The seat is gone. What is held stays held, until others have all seats.
    fn leave(&mut self) {
        self.seat = None;
        self.seeking.clear();
        self.members = None;
        self.shared.set_members(0);
        self.look_at = self.now();
    }

    /// Nothing more is tried before the next look.
    fn trouble(&mut self, error: Error) {
        self.members = None;
        self.seeking.clear();
        self.shared.note(Some(error.clone()));
        term::report("shards could not be shared; it is tried again", error);
    }

    /// Waits until there is something to do; `None` when it is time for the next look, or a shard has rested.
    async fn wait(&mut self, alarm: &Alarm, rested_at: Option<Monotonic>) -> Option<News> {
        let until = rested_at.map_or(self.look_at, |rested_at| rested_at.min(self.look_at));
        poll_fn(|context| match self.poll(context) {
            Poll::Ready(news) => Poll::Ready(Some(news)),
            Poll::Pending => alarm.poll(until).map(|()| None),
        })
        .await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<News> {
        if self.shared.poll_news(context) {
            return Poll::Ready(News::Something);
        }
        if let Some(seat) = &mut self.seat
            && seat.ended.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(News::SeatLost);
        }
        if let Some(joining) = &mut self.joining
            && let Poll::Ready(result) = joining.as_mut().poll(context)
        {
            return Poll::Ready(News::Joined(result));
        }
        let granted = self.seeking.iter_mut().enumerate().find_map(|(place, (_, acquiring))| {
            let Poll::Ready(result) = acquiring.as_mut().poll(context) else { return None };
            Some((place, result))
        });
        let Some((place, result)) = granted else { return Poll::Pending };
        let (index, _) = self.seeking.swap_remove(place);
        Poll::Ready(News::Granted(index, result))
    }
}
