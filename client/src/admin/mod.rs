//! Looking at locks that others hold, and the work of operators.

pub(crate) mod checks;
pub(crate) mod doctor;
pub(crate) mod inspect;
pub(crate) mod list;
pub(crate) mod release_if;
pub(crate) mod revoke;
#[cfg(feature = "postgres")]
pub mod schema;
#[cfg(feature = "dynamodb")]
pub mod table;
pub(crate) mod watch;
