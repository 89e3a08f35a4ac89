//! The shares of the members, and what a member does about its own.

use std::collections::BTreeSet;

/// The reaction of a member to a look at the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Move {
    Stay,
    /// Acquires so many more.
    Seek(usize),
    LetGo(Vec<usize>),
}

/// The number of shards of the member with this rank, counted from 0. The shares of all members add up to all shards, and
/// differ by one at most. A member that joins makes no other share larger, one that leaves makes none smaller, whatever their
/// ranks, so no shard moves but those of the one who came or went.
pub(super) const fn share(shards: usize, members: usize, rank: usize) -> usize {
    if rank >= members { 0 } else { shards.saturating_sub(rank).div_ceil(members) }
}

/// Compares what a worker holds with its share. `seat` is its place among the members; `None` while it has none.
pub(super) fn decide(shards: usize, members: &BTreeSet<usize>, seat: Option<usize>, held: &BTreeSet<usize>) -> Move {
    let share = match seat {
        Some(seat) => {
            let others = members.iter().filter(|member| **member != seat);
            share(shards, others.clone().count() + 1, others.filter(|other| **other < seat).count())
        }
        // It may get a seat again, and keep what it holds.
        None if members.len() < shards => return Move::Stay,
        None => 0,
    };
    match share.checked_sub(held.len()) {
        Some(0) => Move::Stay,
        Some(missing) if seat.is_some() => Move::Seek(missing),
        Some(_) => Move::Stay,
        None => Move::LetGo(held.iter().skip(share).copied().collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The holder of each shard; `None` of one that is free.
    type World = Vec<Option<usize>>;

    fn held(world: &World, seat: usize) -> BTreeSet<usize> {
        (0..world.len()).filter(|shard| world[*shard] == Some(seat)).collect()
    }

    /// One member looks, and does what it decides, as far as shards are free.
    fn act(world: &mut World, members: &BTreeSet<usize>, seat: usize) -> usize {
        match decide(world.len(), members, Some(seat), &held(world, seat)) {
            Move::Stay => 0,
            Move::Seek(missing) => {
                let free: Vec<usize> = (0..world.len()).filter(|shard| world[*shard].is_none()).collect();
                free.iter().take(missing).for_each(|shard| world[*shard] = Some(seat));
                free.len().min(missing)
            }
            Move::LetGo(shards) => {
                shards.iter().for_each(|shard| world[*shard] = None);
                shards.len()
            }
        }
    }

    fn settle(world: &mut World, members: &BTreeSet<usize>) -> usize {
        (0..2).flat_map(|_| members.iter()).map(|seat| act(world, members, *seat)).sum()
    }

    fn assert_settled(world: &mut World, members: &BTreeSet<usize>) {
        let counts: Vec<usize> = members.iter().map(|seat| held(world, *seat).len()).collect();
        assert!(world.iter().all(|holder| holder.is_some_and(|seat| members.contains(&seat))), "{world:?} {members:?}");
        assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{world:?}");
        assert!(counts.iter().all(|count| *count > 0), "{world:?}");
        assert_eq!(settle(world, members), 0, "nothing moves any more");
    }

    fn sets_of_seats(shards: usize) -> impl Iterator<Item = BTreeSet<usize>> {
        (1_usize..1 << shards).map(move |bits| (0..shards).filter(|seat| bits >> seat & 1 == 1).collect())
    }

    #[test]
    fn every_small_world_settles_after_two_looks_of_each_member() {
        for shards in 1..=4 {
            for members in sets_of_seats(shards) {
                // Every way in which members, and nobody, hold the shards, however it came about.
                let holders: Vec<Option<usize>> = members.iter().copied().map(Some).chain([None]).collect();
                for number in 0..holders.len().pow(u32::try_from(shards).unwrap()) {
                    let digit =
                        |shard: usize| number / holders.len().pow(u32::try_from(shard).unwrap()) % holders.len();
                    let mut world: World = (0..shards).map(|shard| holders[digit(shard)]).collect();
                    settle(&mut world, &members);
                    assert_settled(&mut world, &members);
                }
            }
        }
    }

    #[test]
    fn shares_add_up_and_grow_for_nobody_when_a_member_joins() {
        for shards in 1..=64 {
            for members in 1..=shards {
                assert_eq!((0..members).map(|rank| share(shards, members, rank)).sum::<usize>(), shards);
                for place in 0..=members {
                    for rank in 0..members {
                        let after = share(shards, members + 1, rank + usize::from(rank >= place));
                        assert!(after <= share(shards, members, rank), "{shards} shards, member {members} at {place}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_join_moves_the_share_of_the_newcomer_and_a_leave_that_of_the_leaver() {
        for shards in 1..=8 {
            for members in sets_of_seats(shards) {
                let mut world: World = vec![None; shards];
                settle(&mut world, &members);
                assert_settled(&mut world, &members);
                for newcomer in (0..shards).filter(|seat| !members.contains(seat)) {
                    let (mut world, mut more) = (world.clone(), members.clone());
                    more.insert(newcomer);
                    settle(&mut world, &more);
                    let share = held(&world, newcomer).len();
                    assert_settled(&mut world, &more);
                    let before = world.clone();
                    world.iter_mut().filter(|holder| **holder == Some(newcomer)).for_each(|holder| *holder = None);
                    settle(&mut world, &members);
                    assert_settled(&mut world, &members);
                    assert_eq!(world.iter().zip(&before).filter(|(after, before)| after != before).count(), share);
                }
            }
        }
    }

    #[test]
    fn a_worker_lets_go_of_its_surplus_and_no_more() {
        let members = BTreeSet::from([0, 1, 2]);
        assert_eq!(decide(5, &members, Some(0), &BTreeSet::from([1, 3, 4])), Move::LetGo(vec![4]));
        assert_eq!(decide(5, &members, Some(2), &BTreeSet::from([1, 3])), Move::LetGo(vec![3]));
        assert_eq!(share(4, 2, 2), 0, "one who stands by has none");
    }

    #[test]
    fn a_worker_without_a_seat_keeps_its_shards_only_while_there_is_one_for_it() {
        let held = BTreeSet::from([1, 2]);
        assert_eq!(decide(3, &BTreeSet::from([0, 1]), None, &held), Move::Stay);
        assert_eq!(decide(3, &BTreeSet::from([0, 1, 2]), None, &held), Move::LetGo(vec![1, 2]));
        assert_eq!(decide(3, &BTreeSet::from([0, 1, 2]), None, &BTreeSet::new()), Move::Stay);
        // A look may be older than the own seat.
        assert_eq!(decide(3, &BTreeSet::new(), Some(2), &BTreeSet::new()), Move::Seek(3));
    }
}
