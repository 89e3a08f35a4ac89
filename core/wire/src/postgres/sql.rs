//! The texts of statements, made by what they do: whatever writes is on disk before it is answered.

use alloc::string::String;

/// Has the transaction of the statement answered once it is on disk. What is set ends with that transaction.
macro_rules! on_disk {
    () => {
        "CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true) END"
    };
}

/// The beginning of a statement that writes. A server leaves out a part to which nothing refers, so what writes is
/// `FROM c`.
const DURABLY: &str = concat!("WITH c AS MATERIALIZED (SELECT ", on_disk!(), ")");

/// The same for a statement that also waits for a locked row no longer than its sender, which its first parameter says.
const PATIENTLY: &str =
    concat!("WITH c AS MATERIALIZED (SELECT set_config('lock_timeout', $1::text, true), ", on_disk!(), ")");

/// The beginning of statements of users, which may have a `c` of their own.
const IN_TRANSACTIONS: &str = concat!("WITH leasehold_on_disk AS MATERIALIZED (SELECT ", on_disk!(), ")");

/// A command before those that make tables, in one transaction with them.
pub(super) const BEFORE: &str = concat!("SELECT ", on_disk!());

/// A text that the server understands.
///
/// There is no other way to a [`Statement`](super::Statement) than these few, so none can forget what its kind needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sql(String);

impl Sql {
    /// One that changes nothing. It begins with `SELECT`, behind which PostgreSQL allows nothing that does.
    pub(super) fn reads(text: String) -> Self {
        debug_assert!(text.starts_with("SELECT "), "this may write: {text}");
        Self(text)
    }

    /// One that writes for good, `FROM c`.
    pub(super) fn writes(text: &str) -> Self {
        Self::behind(DURABLY, text)
    }

    /// The same where somebody else may have the row locked. Its first parameter is its patience in milliseconds.
    pub(super) fn writes_in_time(text: &str) -> Self {
        Self::behind(PATIENTLY, text)
    }

    /// One that writes in a transaction of the user's, `FROM leasehold_on_disk`.
    pub(super) fn writes_in_theirs(text: &str) -> Self {
        Self::behind(IN_TRANSACTIONS, text)
    }

    /// One that writes what a crash may take back: a table that is emptied by it anyway.
    pub(super) const fn writes_for_now(text: String) -> Self {
        Self(text)
    }

    /// `text` is the statement, or begins with a comma and more parts.
    fn behind(settings: &str, text: &str) -> Self {
        let space = if text.starts_with(',') { "" } else { " " };
        Self(alloc::format!("{settings}{space}{text}"))
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }
}
