//! The nodes of a quorum: their identities, what they remember of their membership, and marking them.
//!
//! A client checks all of this when it connects, and refuses what cannot work. [`Quorum`] is the same check without a client,
//! for administration: `leasehold quorum init`, `status` and `join` are made of it.

mod answers;
mod check;
mod doctor;
pub(crate) mod identity;
mod init;
mod join;
pub(crate) mod nodes;
mod status;

pub use self::answers::Quorum;
pub(crate) use self::check::{announce, check, refuse_node};
pub use self::init::{Force, Init};
pub use self::join::{Join, JoinProgress};
pub use self::status::{NodeStatus, Standing};
