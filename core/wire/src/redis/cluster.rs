//! Which node of a cluster serves which slot, as the nodes tell it.

use alloc::vec::Vec;

use super::{Address, SLOTS};
use crate::resp::Value;

const NOBODY: u16 = u16::MAX;

/// The map of all slots, as one node knew it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map {
    /// For each slot the place of its master in `shards`; empty where nothing is known yet.
    owners: Vec<u16>,
    shards: Vec<Shard>,
}

/// A master that has slots, and who follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The node that takes writes.
    pub master: Address,
    /// Nodes that may take over.
    pub replicas: Vec<Address>,
}

impl Map {
    /// From the reply to `CLUSTER SLOTS`. `asked` is the node that gave it, which need not know its own name.
    ///
    /// # Errors
    /// Which part is none of such a reply.
    pub fn read(reply: &Value, asked: &Address) -> Result<Self, &'static str> {
        let Value::Array(ranges) = reply else { return Err("no list of slots") };
        let mut map = Self { owners: alloc::vec![NOBODY; SLOTS.into()], shards: Vec::new() };
        for range in ranges {
            let Value::Array(parts) = range else { return Err("a range of slots that is no list") };
            let [Value::Integer(first), Value::Integer(last), master, replicas @ ..] = parts.as_slice() else {
                return Err("a range of slots without bounds or master");
            };
            let slots = match (usize::try_from(*first), usize::try_from(*last)) {
                (Ok(first), Ok(last)) if first <= last => map.owners.get_mut(first..=last),
                (_, _) => None,
            };
            let slots = slots.ok_or("slots that there are not")?;
            let master = node(master, asked).ok_or("a master without address")?;
            let place = match map.shards.iter().position(|shard| shard.master == master) {
                Some(place) => place,
                None => {
                    let replicas = replicas.iter().filter_map(|replica| node(replica, asked)).collect();
                    map.shards.push(Shard { master, replicas });
                    map.shards.len() - 1
                }
            };
            slots.fill(u16::try_from(place).map_err(|_| "more masters than slots")?);
        }
        Ok(map)
    }

    /// The node to ask about a slot.
    pub fn master_of(&self, slot: u16) -> Option<&Address> {
        let owner = self.owners.get(usize::from(slot))?;
        self.shards.get(usize::from(*owner)).map(|shard| &shard.master)
    }

    /// All masters that have slots.
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// How many slots somebody serves.
    pub fn covered(&self) -> usize {
        self.owners.iter().filter(|owner| **owner != NOBODY).count()
    }

    /// Masters first.
    pub fn everybody(&self) -> impl Iterator<Item = &Address> {
        let masters = self.shards.iter().map(|shard| &shard.master);
        masters.chain(self.shards.iter().flat_map(|shard| &shard.replicas))
    }

    /// Masters of `earlier` whose slots a replica of theirs serves now, and which one. Slots that were moved from one
    /// master to another are nothing of the kind: their keys were moved as well.
    pub fn failovers_since(&self, earlier: &Self) -> Vec<(Address, Address)> {
        let mut found: Vec<(Address, Address)> = Vec::new();
        for (before, after) in earlier.owners.iter().zip(&self.owners) {
            let before = earlier.shards.get(usize::from(*before));
            let after = self.shards.get(usize::from(*after));
            if let (Some(before), Some(after)) = (before, after)
                && before.master != after.master
                && (before.replicas.contains(&after.master) || after.replicas.contains(&before.master))
                && !found.iter().any(|(from, to)| *from == before.master && *to == after.master)
            {
                found.push((before.master.clone(), after.master.clone()));
            }
        }
        found
    }
}

/// Without a name of its own a node is where the one is that was asked.
fn node(entry: &Value, asked: &Address) -> Option<Address> {
    let Value::Array(parts) = entry else { return None };
    let [host, Value::Integer(port), ..] = parts.as_slice() else { return None };
    let host = if *host == Value::Nil { "" } else { core::str::from_utf8(host.as_bytes()?).ok()? };
    let host = if host.is_empty() || host == "?" { &asked.host } else { host };
    Address::told(host, *port)
}

/// Another node that a command is to be sent to.
#[derive(Debug, PartialEq, Eq)]
pub enum Redirection {
    /// For good.
    Moved {
        /// The slot that moved.
        slot: u16,
        /// Where it is.
        to: Address,
    },
    /// This once, with ASKING before it.
    Ask {
        /// Where it is.
        to: Address,
    },
}

impl Redirection {
    /// From an error reply of the node `from`; `None` if it is no redirection.
    pub fn of(reply: &Value, from: &Address) -> Option<Self> {
        let Value::Error(error) = reply else { return None };
        let mut words = error.split_ascii_whitespace();
        let (code, slot, to) = (words.next()?, words.next()?, words.next()?);
        let slot = slot.parse().ok().filter(|slot| *slot < SLOTS)?;
        let (host, port) = to.rsplit_once(':')?;
        let host = host.trim_matches(['[', ']']);
        let host = if host.is_empty() || host == "?" { &from.host } else { host };
        let to = Address::told(host, port.parse::<u16>().ok()?)?;
        match code {
            "MOVED" => Some(Self::Moved { slot, to }),
            "ASK" => Some(Self::Ask { to }),
            _ => None,
        }
    }
}

/// The epoch of the cluster that a node knows of, from its reply to `CLUSTER INFO`; of two nodes the one with the lower
/// one is behind. `None` where it does not tell.
pub fn epoch(info: &Value) -> Option<u64> {
    // In RESP3 it comes with its format in front.
    let (Value::Bulk(text) | Value::Verbatim(text)) = info else { return None };
    let line = core::str::from_utf8(text).ok()?.lines().find_map(|line| line.strip_prefix("cluster_current_epoch:"))?;
    line.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::borrow::ToOwned;
    use alloc::vec;

    fn at(port: u16) -> Address {
        Address { host: "a".into(), port }
    }

    fn entry(port: u16) -> Value {
        Value::Array(vec![Value::Bulk(b"a".to_vec()), Value::Integer(port.into()), Value::Bulk(b"id".to_vec())])
    }

    fn range(first: i64, last: i64, nodes: &[u16]) -> Value {
        let bounds = [Value::Integer(first), Value::Integer(last)];
        Value::Array(bounds.into_iter().chain(nodes.iter().map(|port| entry(*port))).collect())
    }

    fn map(ranges: &[Value]) -> Result<Map, &'static str> {
        Map::read(&Value::Array(ranges.to_vec()), &at(9))
    }

    #[test]
    fn slots_are_read_and_gaps_stay_gaps() {
        let map = map(&[range(0, 99, &[1, 4]), range(200, 16_383, &[2]), range(100, 149, &[1, 4])]).unwrap();
        assert_eq!((map.master_of(0), map.master_of(149)), (Some(&at(1)), Some(&at(1))));
        assert_eq!((map.master_of(150), map.master_of(16_383)), (None, Some(&at(2))));
        assert_eq!((map.covered(), map.shards().len()), (16_384 - 50, 2));
        assert_eq!(map.everybody().cloned().collect::<Vec<_>>(), [at(1), at(2), at(4)]);
    }

    #[test]
    fn nodes_without_a_name_are_where_the_answer_came_from() {
        let nameless = |host: Value| {
            Value::Array(vec![Value::Integer(0), Value::Integer(0), Value::Array(vec![host, Value::Integer(5)])])
        };
        for host in [Value::Nil, Value::Bulk(Vec::new()), Value::Bulk(b"?".to_vec())] {
            assert_eq!(map(&[nameless(host)]).unwrap().master_of(0), Some(&at(5)));
        }
    }

    #[test]
    fn what_is_no_map_is_refused() {
        for reply in [
            Value::Nil,
            Value::Array(vec![Value::Nil]),
            Value::Array(vec![range(-1, 5, &[1])]),
            Value::Array(vec![range(5, 4, &[1])]),
            Value::Array(vec![range(0, 16_384, &[1])]),
            Value::Array(vec![range(0, 1, &[])]),
            Value::Array(vec![range(0, 1, &[0])]),
        ] {
            assert!(Map::read(&reply, &at(9)).is_err(), "{reply:?}");
        }
    }

    #[test]
    fn a_failover_is_told_from_slots_that_moved() {
        let before = map(&[range(0, 99, &[1, 4]), range(100, 199, &[2])]).unwrap();
        let moved = map(&[range(0, 49, &[1, 4]), range(50, 199, &[2])]).unwrap();
        assert_eq!(moved.failovers_since(&before), []);
        let promoted = map(&[range(0, 99, &[4]), range(100, 199, &[2])]).unwrap();
        assert_eq!(promoted.failovers_since(&before), [(at(1), at(4))]);
        let unseen = map(&[range(0, 99, &[1, 4]), range(100, 199, &[5, 2])]).unwrap();
        assert_eq!(unseen.failovers_since(&before), [(at(2), at(5))]);
        let both = map(&[range(0, 49, &[4]), range(50, 99, &[5, 1]), range(100, 199, &[2])]).unwrap();
        assert_eq!(both.failovers_since(&before), [(at(1), at(4)), (at(1), at(5))], "each took a part");
        assert_eq!(before.failovers_since(&Map::default()), []);
    }

    #[test]
    fn redirections_are_read() {
        let read = |error: &str| Redirection::of(&Value::Error(error.to_owned()), &at(9));
        assert_eq!(read("MOVED 3999 a:7"), Some(Redirection::Moved { slot: 3999, to: at(7) }));
        assert_eq!(read("ASK 3999 a:7"), Some(Redirection::Ask { to: at(7) }));
        assert_eq!(read("MOVED 3999 :7"), Some(Redirection::Moved { slot: 3999, to: at(7) }));
        let v6 = Address { host: "::1".into(), port: 7 };
        assert_eq!(read("ASK 1 ::1:7"), Some(Redirection::Ask { to: v6 }));
        for error in [
            "MOVED",
            "MOVED 16384 a:7",
            "MOVED 1 a",
            "MOVED 1 a:0",
            "MOVED x a:7",
            "TRYAGAIN 1 a:7",
            "MOVED 1 a\u{1b}b:7",
            "",
        ] {
            assert_eq!(read(error), None, "{error}");
        }
    }

    #[test]
    fn the_epoch_is_read() {
        let info = "cluster_state:ok\r\ncluster_current_epoch:17\r\ncluster_my_epoch:2\r\n";
        assert_eq!(epoch(&Value::Bulk(info.into())), Some(17));
        assert_eq!(epoch(&Value::Verbatim(info.into())), Some(17));
        for odd in [Value::Nil, Value::Bulk(b"cluster_my_epoch:2".to_vec()), Value::Error("NOPERM no".into())] {
            assert_eq!(epoch(&odd), None, "{odd:?}");
        }
    }
}
