//! Groups of clients: sessions, the election of a leader, shares of work.

pub(crate) mod elect;
pub(crate) mod session_news;
pub(crate) mod sessions;
pub(crate) mod shards;
pub(crate) mod term;
