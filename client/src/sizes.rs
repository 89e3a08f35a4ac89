//! The number of permits, readers or shards, which all clients have to agree on.
//!
//! It is the label of the completion of a run, so that it needs no record of its own kind. The first client writes it. Clients read
//! it while they hold a permit, and it is changed only by a client that holds all of them.

use std::time::Duration;

use leasehold_core::Resource;
use leasehold_core::config::{MAX_KEEP, RunOptions};
use leasehold_core::op::{Holder, Holding, Seen};
use leasehold_core::quorum::majority;

use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::locks::all::Leases;
use crate::locks::lease::Lease;
use crate::locks::permits::MAX_PERMITS;
use crate::runs::completion::Completion;
use crate::runs::once::{Once, Run, RunRequest};

/// How long the record stands in the way of others after its writer died. A living one renews it.
const RECORD_TTL: Duration = Duration::from_secs(3);
/// The ttl of the locks that are held while the number is changed.
const LOCKS_TTL: Duration = Duration::from_secs(10);
/// How long to wait for another client that writes the number: long enough to take over from several that died, one after the
/// other, also where that takes observation; or from one in a session with the ttl that locks have unless they set one.
const PATIENCE: Duration = Duration::from_secs(40);
/// How often to look for a number that counts. Each look waits for the writer; more than one only follow where others write again.
const ROUNDS: u32 = 4;

/// The number of locks that a semaphore or a lock for readers and writers consists of.
#[derive(Clone, Debug)]
pub(crate) struct Size {
    name: String,
    kind: Kind,
    count: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Permits,
    Readers,
    Shards,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Permits => "permits",
            Self::Readers => "readers",
            Self::Shards => "shards",
        }
    }

    /// How the number is changed.
    const fn change(self) -> &'static str {
        match self {
            Self::Permits | Self::Readers => "`leasehold permits set` changes it while nobody holds any",
            Self::Shards => "`set_shards` changes it while no worker runs",
        }
    }
}

impl Size {
    pub(crate) const fn of_permits(name: String, count: usize) -> Self {
        Self { name, kind: Kind::Permits, count }
    }

    pub(crate) const fn of_readers(name: String, count: usize) -> Self {
        Self { name, kind: Kind::Readers, count }
    }

    pub(crate) const fn of_shards(name: String, count: usize) -> Self {
        Self { name, kind: Kind::Shards, count }
    }

    pub(crate) fn with_count(self, count: usize) -> Self {
        Self { count, ..self }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The lock that a writer holds, and that each reader passes through.
    pub(crate) fn gate(&self) -> String {
        format!("{}#gate", self.name)
    }

    /// The locks of which each holder has one.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a number or a name that cannot be.
    pub(crate) fn resources(&self) -> Result<Vec<String>, Error> {
        let (word, count) = (self.kind.word(), self.count);
        if !(1..=MAX_PERMITS).contains(&count) {
            let message = format!("{word} is {count}; it can be 1 to {MAX_PERMITS}");
            return Err(Error::config(message).on(&self.name));
        }
        Resource::new(&self.name)?;
        let before = match self.kind {
            Kind::Permits => "#",
            Kind::Readers => "#reader",
            Kind::Shards => "#shard",
        };
        Ok(self.numbered(before))
    }

    /// The locks of which each worker that shares the shards has one.
    pub(crate) fn seats(&self) -> Vec<String> {
        self.numbered("#member")
    }

    fn numbered(&self, before: &str) -> Vec<String> {
        (0..self.count).map(|index| format!("{}{before}{index}", self.name)).collect()
    }

    /// All locks, as somebody takes them who lets nobody in.
    fn all_resources(&self) -> Result<Vec<String>, Error> {
        let mut all = self.resources()?;
        match self.kind {
            Kind::Permits => {}
            Kind::Readers => all.push(self.gate()),
            Kind::Shards => all.extend(self.seats()),
        }
        Ok(all)
    }

    /// The name of the run whose completion is the record.
    fn record(&self) -> String {
        format!("{}#{}", self.name, self.kind.word())
    }

    /// The record as it is named in the store.
    fn resource(&self) -> Result<Resource, Error> {
        Resource::of_run(&self.record(), None).map_err(|error| Error::config(error.to_string()).on(&self.name))
    }

    fn label(&self) -> String {
        format!("{}={}", self.kind.word(), self.count)
    }

    /// The number in a record, `None` if it is not ours.
    fn recorded(&self, completion: &Completion) -> Option<usize> {
        completion.owner.as_deref()?.strip_prefix(self.kind.word())?.strip_prefix('=')?.parse().ok()
    }

    /// # Errors
    /// [`ErrorKind::Config`]: the record has another number.
    fn check(&self, completion: &Completion) -> Result<(), Error> {
        let word = self.kind.word();
        match self.recorded(completion) {
            Some(recorded) if recorded == self.count => Ok(()),
            Some(recorded) => Err(Error::config(format!(
                "{word} is {} here, and {recorded} in the store: all clients must name the same number; {}",
                self.count,
                self.kind.change()
            ))
            .on(&self.name)),
            None => Err(Error::config(format!(
                "the record of the number of {word}, the completion of the run {:?}, is not one of leasehold's: forget it with \
                 `leasehold once --forget`",
                self.record()
            ))
            .on(&self.name)),
        }
    }
}

/// One node of a quorum, or the only store, as far as the number goes.
struct Node {
    is_held: bool,
    completion: Option<Completion>,
}

/// The number as the store shows it.
#[derive(Debug, PartialEq, Eq)]
enum Shown {
    /// It counts: nobody can change it without the lock that the reader holds. `lacks` says that a node does not have it, or not
    /// for long any more.
    Settled { completion: Completion, lacks: bool },
    /// A majority has none, and nobody is writing one there. The one left on a few nodes is of a finish that did not get further,
    /// or all that is left after others were emptied.
    None { left: Option<Completion> },
    /// Somebody is writing one or died of it, or the nodes of a quorum show different ones.
    Unsettled,
}

/// The number that the nodes together show. A number counts where a majority shows the same one while nobody holds its record there: a finish
/// that is still under way cannot arrive at those nodes any more.
fn shown(nodes: &[Option<Node>], renew_below: Duration) -> Shown {
    let enough = majority(nodes.len());
    let free = || nodes.iter().flatten().filter(|node| !node.is_held);
    let completions = || free().filter_map(|node| node.completion.as_ref());
    let like = |one: &Completion| completions().filter(|other| other.owner == one.owner).count();
    let settled =
        completions().filter(|completion| like(completion) >= enough).min_by_key(|completion| completion.left);
    if let Some(completion) = settled {
        let lacks = like(completion) < free().count() || completion.left <= renew_below;
        return Shown::Settled { completion: completion.clone(), lacks };
    }
    let left = completions().max_by_key(|completion| completion.token);
    let is_one = left.is_none_or(|left| like(left) == completions().count());
    let is_none = free().filter(|node| node.completion.is_none()).count() >= enough;
    if is_none && is_one { Shown::None { left: left.cloned() } } else { Shown::Unsettled }
}

/// Compares the number with the one in the store, and writes it where there is none. The caller holds some of the locks.
///
/// A number is only counted where nobody is writing one, in the same answer. The client that changes it has begun to write while all
/// locks were held, so a client that got one of them since sees that, however late the new number arrives.
///
/// # Errors
/// [`ErrorKind::Config`] where they differ, and as a run.
pub(crate) async fn agree(client: &Client, size: &Size, held: &[Lease]) -> Result<(), Error> {
    for _ in 0..ROUNDS {
        let begun = match look(client, size, None).await? {
            Shown::Settled { completion, lacks } => {
                size.check(&completion)?;
                if lacks {
                    // The number counts without it, and the next client tries again.
                    let _ = write_again(client, size, held, Duration::ZERO).await;
                }
                return Ok(());
            }
            Shown::None { left: Some(completion) } => {
                size.check(&completion)?;
                if write_again(client, size, held, PATIENCE).await? {
                    return Ok(());
                }
                continue;
            }
            Shown::None { left: None } => {
                let begun = writing(client, size).wait(RECORD_TTL).begin().await;
                if let Once::Run(run) = begun.map_err(|error| unvouched(client, size, error))? {
                    return finish(client, run, held).await;
                }
                continue;
            }
            // To wait for the record is to wait for its writer, and to take over from the dead.
            Shown::Unsettled => writing(client, size).even_if_done().begin().await?,
        };
        match begun {
            Once::Run(run) => run.release_by(client.caller).await?,
            Once::Done(_) => {}
            // Attempts at it are not counted.
            Once::Running(_) | Once::Later(_) | Once::Replaced => break,
        }
    }
    if let Shown::Settled { completion, .. } = look(client, size, None).await? {
        return size.check(&completion);
    }
    let (word, record) = (size.kind.word(), size.resource()?);
    let message = format!(
        "the number of {word} is in doubt: another client holds the record {record:?} while it writes the number, or the nodes of \
         the quorum show different ones. While `leasehold inspect {record}` shows a holder, try again; if it shows none, {}",
        size.kind.change()
    );
    Err(Error::new(ErrorKind::StoreUnavailable, message).on(&size.name))
}

/// The error where no first number can be written: on a quorum it is the number that an operator vouches for, and not the run.
fn unvouched(client: &Client, size: &Size, error: Error) -> Error {
    if client.shared.quorum().is_none() || error.kind() != ErrorKind::StoreUnavailable {
        return error;
    }
    let message = format!(
        "no node shows the number of {}, and it cannot be written: {error}. If nodes were emptied, it may have been lost, and {}",
        size.kind.word(),
        size.kind.change()
    );
    Error::new(ErrorKind::StoreUnavailable, message).on(&size.name)
}

/// Writes the number that stands once more, on the nodes that lack it. `false` where somebody else writes, or has written another.
async fn write_again(client: &Client, size: &Size, held: &[Lease], wait: Duration) -> Result<bool, Error> {
    let request = writing(client, size).even_if_done().wait(wait);
    let Once::Run(run) = request.begin().await? else { return Ok(false) };
    let looked = look(client, size, Some(&run)).await;
    if let Ok(Shown::Settled { completion, .. } | Shown::None { left: Some(completion) }) = &looked
        && size.check(completion).is_ok()
    {
        return finish(client, run, held).await.map(|()| true);
    }
    // The caller is told of the look that failed, and not of this release.
    let _ = run.release_by(client.caller).await;
    looked.map(|_| false)
}

/// Writes the number, if the locks are held *after* the record was taken. Checked before, they could be lost while the request for
/// the record is on its way, and others could count the old number before it arrives.
async fn finish(client: &Client, run: Run, held: &[Lease]) -> Result<(), Error> {
    if let Err(lost) = held.iter().try_for_each(|lease| lease.check(Duration::ZERO)) {
        // The caller is told of the loss, and not of this release.
        let _ = run.release_by(client.caller).await;
        return Err(lost);
    }
    run.finish_by(None, client.caller).await
}

/// Changes the number.
///
/// # Errors
/// [`ErrorKind::Busy`] while somebody holds one of the locks.
pub(crate) async fn set(client: &Client, size: &Size) -> Result<(), Error> {
    size.resources()?;
    // Those of the old number, since only they are held, and the new ones in case the record was lost.
    let mut in_use = largest(client, size, None).await?;
    for _ in 0..ROUNDS {
        let locked = size.clone().with_count(in_use.max(size.count));
        let leases = hold_all(client, &locked).await?;
        let changed = change(client, size, &locked, &leases).await;
        let released = leases.release().await;
        match changed? {
            Changed::Written => return released,
            Changed::MoreInUse(more) => in_use = more,
        }
        released?;
    }
    let message = format!("somebody else changed the number of {} at the same time; look again", size.kind.word());
    Err(Error::new(ErrorKind::Busy, message).on(&size.name))
}

async fn hold_all(client: &Client, size: &Size) -> Result<Leases, Error> {
    let locks = client.lock_all(size.all_resources()?).ttl(ttl(client, LOCKS_TTL)).wait(Duration::ZERO);
    locks.acquire().await
}

/// The result of a change.
#[derive(Debug, PartialEq, Eq)]
enum Changed {
    Written,
    /// The number in use is larger than was known when the locks were chosen: somebody else has changed it, or the read was behind.
    MoreInUse(usize),
}

async fn change(client: &Client, size: &Size, locked: &Size, leases: &Leases) -> Result<Changed, Error> {
    let request = writing(client, size).even_if_done();
    let Once::Run(run) = request.begin().await? else {
        let message = format!("somebody else is writing the number of {}; try again", size.kind.word());
        return Err(Error::new(ErrorKind::Busy, message).on(&size.name));
    };
    // Nobody else writes from here on, until the number is written or the record is lost, and with it the right to write.
    match largest(client, size, Some(&run)).await {
        Ok(largest) if largest <= locked.count => finish(client, run, leases).await.map(|()| Changed::Written),
        looked => {
            // The caller is told of what was seen, and not of this release.
            let _ = run.release_by(client.caller).await;
            looked.map(Changed::MoreInUse)
        }
    }
}

/// The largest number that may be in use, 0 where there is none.
async fn largest(client: &Client, size: &Size, own: Option<&Run>) -> Result<usize, Error> {
    let nodes = nodes(client, size, own).await?;
    // Nodes that are silent or were emptied may have had any.
    if nodes.len() > 1 && !matches!(shown(&nodes, Duration::ZERO), Shown::Settled { .. }) {
        return Ok(MAX_PERMITS);
    }
    let completions = nodes.iter().flatten().filter_map(|node| node.completion.as_ref());
    Ok(completions.filter_map(|completion| size.recorded(completion)).max().unwrap_or(0).min(MAX_PERMITS))
}

async fn look(client: &Client, size: &Size, own: Option<&Run>) -> Result<Shown, Error> {
    Ok(shown(&nodes(client, size, own).await?, keep(client) / 2))
}

/// The nodes as they answer; a record that `own` holds is held by nobody else.
///
/// # Errors
/// The only store does not show that `own` holds the record: what it shows is from before.
async fn nodes(client: &Client, size: &Size, own: Option<&Run>) -> Result<Vec<Option<Node>>, Error> {
    let own = own.and_then(|run| run.nonce());
    let is_own = |holding: &Holding| matches!(holding.holder, Holder::Lease { nonce, .. } if Some(nonce) == own);
    for _ in 0..ROUNDS {
        let seen = client.inspect_nodes(size.resource()?.as_str()).await?;
        if let ([Some(only)], Some(_)) = (seen.as_slice(), own)
            && !only.held().is_some_and(is_own)
        {
            continue;
        }
        let node = |seen: Seen| Node {
            is_held: seen.held().is_some_and(|held| !is_own(held)),
            completion: seen.done.as_deref().map(Completion::shown),
        };
        return Ok(seen.into_iter().map(|seen| seen.map(node)).collect());
    }
    let message = format!(
        "the store does not show that this client holds {:?}: its reads are behind its writes, or the record was lost; try again",
        size.record()
    );
    Err(Error::new(ErrorKind::StoreUnavailable, message).on(&size.name))
}

fn writing(client: &Client, size: &Size) -> RunRequest {
    let request = client.once(size.record()).owner(size.label()).ttl(ttl(client, RECORD_TTL));
    request.keep(keep(client)).wait(PATIENCE)
}

/// As long as the store allows. On a quorum the record is written again by those who use it.
fn keep(client: &Client) -> Duration {
    if client.shared.quorum().is_some() { RunOptions::default().keep } else { MAX_KEEP }
}

fn ttl(client: &Client, ttl: Duration) -> Duration {
    client.shared.quorum().map_or(ttl, |quorum| quorum.max_ttl().min(ttl))
}

#[cfg(test)]
mod search;

#[cfg(test)]
mod tests {
    use leasehold_core::config::{Drift, Ttl};
    use leasehold_core::time::takeover_bound;

    use super::*;
    use crate::exec::block_on;

    fn node(number: Option<usize>, is_held: bool) -> Option<Node> {
        let completion = |number| Completion {
            token: 1,
            owner: Some(format!("permits={number}")),
            at_unix_ms: 0,
            left: Duration::from_secs(10),
            result: None,
            result_unsettled: false,
            began_unix_ms: None,
        };
        Some(Node { is_held, completion: number.map(completion) })
    }

    fn free(number: usize) -> Option<Node> {
        node(Some(number), false)
    }

    fn held(number: usize) -> Option<Node> {
        node(Some(number), true)
    }

    /// The number that counts, and if a node lacks it.
    fn settled(nodes: &[Option<Node>]) -> Option<(String, bool)> {
        match shown(nodes, Duration::from_secs(5)) {
            Shown::Settled { completion, lacks } => Some((completion.owner.unwrap(), lacks)),
            Shown::None { .. } | Shown::Unsettled => None,
        }
    }

    #[test]
    fn a_number_counts_where_nobody_writes_one() {
        let three = || "permits=3".to_owned();
        assert_eq!(settled(&[free(3)]), Some((three(), false)));
        assert_eq!(shown(&[held(3)], Duration::ZERO), Shown::Unsettled);
        assert_eq!(shown(&[node(None, true)], Duration::ZERO), Shown::Unsettled);
        assert_eq!(shown(&[node(None, false)], Duration::ZERO), Shown::None { left: None });
    }

    #[test]
    fn a_majority_of_free_nodes_decides_about_the_number() {
        let three = |lacks| Some(("permits=3".to_owned(), lacks));
        let empty = || node(None, false);
        assert_eq!(settled(&[free(3), free(3), free(3)]), three(false));
        assert_eq!(settled(&[free(3), free(3), None]), three(false));
        assert_eq!(settled(&[free(3), free(3), held(5)]), three(false), "the third node is being written");
        assert_eq!(settled(&[free(3), empty(), free(3)]), three(true), "a node was emptied");
        assert_eq!(settled(&[free(3), free(3), free(5)]), three(true), "a finish reached a minority");
        for doubtful in [
            [free(3), free(5), None],
            [free(3), empty(), None],
            [free(3), held(3), held(3)],
            [free(3), free(5), empty()],
        ] {
            assert_eq!(shown(&doubtful, Duration::ZERO), Shown::Unsettled);
        }
        let Shown::None { left: Some(left) } = shown(&[free(3), empty(), empty()], Duration::ZERO) else {
            panic!("a majority has none")
        };
        assert_eq!(left.owner.as_deref(), Some("permits=3"));
    }

    #[test]
    fn a_number_whose_writer_lost_its_locks_in_the_meantime_is_not_written() {
        let client = block_on(Client::connect("memory:late-number")).unwrap();
        let (two, five) = (Size::of_permits("license".to_owned(), 2), Size::of_permits("license".to_owned(), 5));
        let set_to = |size: &Size| block_on(set(&client, size)).unwrap();
        let stands = |size: &Size| {
            let seen = block_on(client.inspect_run(&size.record(), None)).unwrap();
            assert!(seen.holder.is_none(), "{seen:?}");
            assert_eq!(seen.done.unwrap().owner, Some(size.label()));
        };
        set_to(&five);
        let leases = block_on(hold_all(&client, &five)).unwrap();
        let Once::Run(run) = block_on(writing(&client, &two).even_if_done().begin()).unwrap() else {
            panic!("nobody else writes")
        };
        // The grant of the record was late: others may have the permits by now.
        block_on(leases.release()).unwrap();
        block_on(finish(&client, run, &leases)).unwrap_err();
        stands(&five);
        set_to(&two);
        stands(&two);
    }

    #[test]
    fn a_larger_number_that_arrived_after_the_locks_were_chosen_is_not_replaced() {
        let client = block_on(Client::connect("memory:larger-number")).unwrap();
        let (two, five) = (Size::of_permits("license".to_owned(), 2), Size::of_permits("license".to_owned(), 5));
        let leases = block_on(hold_all(&client, &two)).unwrap();
        let Once::Run(late) = block_on(writing(&client, &five).even_if_done().begin()).unwrap() else {
            panic!("nobody else writes")
        };
        block_on(late.finish()).unwrap();
        let changed = block_on(change(&client, &two, &two, &leases)).unwrap();
        assert_eq!(changed, Changed::MoreInUse(5));
        let seen = block_on(client.inspect_run(&two.record(), None)).unwrap();
        assert_eq!((seen.holder, seen.done.unwrap().owner), (None, Some(five.label())));
    }

    #[test]
    fn the_wait_is_long_enough_to_take_over_from_a_dead_writer() {
        let takeover =
            |ttl| takeover_bound(Ttl::new(ttl).unwrap(), Duration::ZERO, Drift::default()) + Duration::from_secs(2);
        assert!(4 * takeover(RECORD_TTL) < PATIENCE);
        assert!(takeover(Duration::from_secs(30)) < PATIENCE, "in a session");
    }
}
