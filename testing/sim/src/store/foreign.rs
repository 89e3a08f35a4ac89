//! Clients of other libraries that share our locks: their requests to a store, and the answers.

use std::time::Duration;

use leasehold_core::{Owner, Resource, Version};

use crate::store::dynamodb::{Dynamodb, Kept, Row, Rvn};
use crate::store::redis::{Redis, Value};
use crate::store::whole_ms;

/// The mark by which a foreign client recognises its own record.
///
/// A script must not use a mark twice: real ones are random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark {
    /// The client.
    pub by: u32,
    /// Which of its acquisitions and heartbeats.
    pub count: u32,
}

impl Mark {
    /// The version that observers see: 16 bytes, like a UUID.
    pub fn version(self) -> Option<Version> {
        Version::new(&((u128::from(self.by) << 64) | u128::from(self.count)).to_be_bytes())
    }

    /// The client's name, where a record has room for it.
    pub fn owner(self) -> Option<Owner> {
        Owner::new(&format!("java-{}", self.by)).ok()
    }

    /// The mark of its next write.
    #[must_use]
    pub const fn next(self) -> Self {
        Self { by: self.by, count: self.count + 1 }
    }
}

/// A step of a foreign client: on Redis of the many that do `SET NX PX` and compare before they delete, on DynamoDB of
/// the AWS lock client for Java.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ForeignAct {
    /// Shows the record.
    Read,
    /// `SET NX PX`; PutItem where no row is.
    AcquireNew {
        /// The mark to write.
        mark: Mark,
        /// For how long.
        ttl: Duration,
    },
    /// PutItem over a row that is marked as released. DynamoDB only.
    AcquireReleased {
        /// The mark to write.
        mark: Mark,
        /// For how long.
        ttl: Duration,
    },
    /// PutItem over a row whose version has not changed since it was seen. DynamoDB only.
    AcquireExpired {
        /// The mark to write.
        mark: Mark,
        /// For how long.
        ttl: Duration,
        /// The version that was seen.
        seen: Version,
    },
    /// Extends its own record: PEXPIRE, which may shorten it, or a new version in DynamoDB.
    Heartbeat {
        /// Its last mark.
        mark: Mark,
        /// For how long from now.
        ttl: Duration,
    },
    /// Compare and delete: the record is gone, and on DynamoDB the token counter with it.
    ReleaseDelete {
        /// Its last mark.
        mark: Mark,
    },
    /// Marks its own row as released. DynamoDB only.
    ReleaseKeep {
        /// Its last mark.
        mark: Mark,
    },
}

/// The answer to a foreign client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ForeignAnswer {
    /// It holds the lock, under this mark from now on.
    Held(Mark),
    /// It gave the lock back.
    Released,
    /// The condition did not hold, or this store knows no such step.
    Refused,
    /// The row.
    Read(Option<ForeignRow>),
}

/// As much of a record as foreign clients look at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ForeignRow {
    /// Changes with every write of a holder.
    pub version: Version,
    /// The time for which it must stand still: on DynamoDB the length in the row, on Redis the time left.
    pub ttl: Duration,
    /// Marked as released.
    pub released: bool,
}

impl Redis {
    pub(super) fn foreign(&mut self, resource: &Resource, act: &ForeignAct, now_ms: u64) -> ForeignAnswer {
        self.expire(resource, now_ms);
        match act {
            ForeignAct::Read => {
                let row = self.locks.get(resource).and_then(|lock| {
                    let ttl = Duration::from_millis(lock.expires_ms - now_ms);
                    Some(ForeignRow { version: lock.value.version()?, ttl, released: false })
                });
                ForeignAnswer::Read(row)
            }
            ForeignAct::AcquireNew { mark, ttl } if !self.locks.contains_key(resource) => {
                self.set(resource, Value::Foreign(*mark), now_ms, *ttl);
                ForeignAnswer::Held(*mark)
            }
            ForeignAct::Heartbeat { mark, ttl } if self.is_marked(resource, *mark) => {
                self.set(resource, Value::Foreign(*mark), now_ms, *ttl);
                ForeignAnswer::Held(*mark)
            }
            ForeignAct::ReleaseDelete { mark } if self.is_marked(resource, *mark) => {
                self.locks.remove(resource);
                ForeignAnswer::Released
            }
            ForeignAct::AcquireNew { .. }
            | ForeignAct::AcquireReleased { .. }
            | ForeignAct::AcquireExpired { .. }
            | ForeignAct::Heartbeat { .. }
            | ForeignAct::ReleaseDelete { .. }
            | ForeignAct::ReleaseKeep { .. } => ForeignAnswer::Refused,
        }
    }

    fn is_marked(&self, resource: &Resource, mark: Mark) -> bool {
        self.locks.get(resource).is_some_and(|lock| lock.value == Value::Foreign(mark))
    }
}

impl Dynamodb {
    pub(super) fn foreign(&mut self, resource: &Resource, act: &ForeignAct) -> ForeignAnswer {
        let row = self.rows.get_mut(resource);
        match (act, row) {
            (ForeignAct::Read, Some(row)) => match (row.rvn.version(), row.lease_duration) {
                (Some(version), Some(ttl)) => {
                    ForeignAnswer::Read(Some(ForeignRow { version, ttl, released: row.released }))
                }
                // It throws an error for a row that it cannot read.
                (_, _) => ForeignAnswer::Refused,
            },
            (ForeignAct::Read, None) => ForeignAnswer::Read(None),
            (ForeignAct::AcquireNew { mark, ttl }, None) => self.put(resource, *mark, *ttl),
            (ForeignAct::AcquireReleased { mark, ttl }, Some(row)) if row.released => self.put(resource, *mark, *ttl),
            // The owner is not compared: the client that wrote the version is taken for dead.
            (ForeignAct::AcquireExpired { mark, ttl, seen }, Some(row)) if row.rvn.version().as_ref() == Some(seen) => {
                self.put(resource, *mark, *ttl)
            }
            // Whether the row is marked as released is not looked at.
            (ForeignAct::Heartbeat { mark, ttl }, Some(row)) if row.rvn == Rvn::Foreign(*mark) => {
                row.rvn = Rvn::Foreign(mark.next());
                row.lease_duration = Some(Duration::from_millis(whole_ms(*ttl)));
                ForeignAnswer::Held(mark.next())
            }
            (ForeignAct::ReleaseDelete { mark }, Some(row)) if row.rvn == Rvn::Foreign(*mark) => {
                self.rows.remove(resource);
                ForeignAnswer::Released
            }
            (ForeignAct::ReleaseKeep { mark }, Some(row)) if row.rvn == Rvn::Foreign(*mark) => {
                row.released = true;
                ForeignAnswer::Released
            }
            (
                ForeignAct::AcquireNew { .. }
                | ForeignAct::AcquireReleased { .. }
                | ForeignAct::AcquireExpired { .. }
                | ForeignAct::Heartbeat { .. }
                | ForeignAct::ReleaseDelete { .. }
                | ForeignAct::ReleaseKeep { .. },
                _,
            ) => ForeignAnswer::Refused,
        }
    }

    /// Replaces the whole row, so our token counter goes.
    fn put(&mut self, resource: &Resource, mark: Mark, ttl: Duration) -> ForeignAnswer {
        let row = Row {
            rvn: Rvn::Foreign(mark),
            owner: mark.owner(),
            lease_duration: Some(Duration::from_millis(whole_ms(ttl))),
            released: false,
            undone: false,
            freed_at: None,
            fencing_token: None,
            trust: None,
            granted_at: None,
            data: None,
            data_of: None,
            session: None,
            told: 0,
            done: None,
            kept: Kept::default(),
        };
        self.rows.insert(resource.clone(), row);
        ForeignAnswer::Held(mark)
    }
}
