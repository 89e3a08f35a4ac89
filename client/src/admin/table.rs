//! DynamoDB tables for locks: making one, and looking at one.
//!
//! ```no_run
//! use leasehold::table::{self, Made, NewTable};
//!
//! let url = "dynamodb://locks?region=eu-west-1";
//! if table::create(url, &NewTable::default())?.made == Made::New {
//!     println!("{} is made", table::describe(url)?.name);
//! }
//! # Ok::<(), leasehold::Error>(())
//! ```

use leasehold_wire::dynamodb::table as wire;

use crate::error::Error;
use crate::stores::Stores;
use crate::transport::dynamodb::table as whole;
use crate::url::dynamodb::DynamodbUrl;

pub use crate::transport::dynamodb::table::Made;
pub use leasehold_wire::dynamodb::table::{Billing, Consistency, KeyAttribute, Status};

/// Settings of a new table, in addition to the keys that the url names.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct NewTable {
    /// How it is paid for: by request unless set otherwise.
    pub billing: Billing,
    /// Names and values, for people and bills.
    pub tags: Vec<(String, String)>,
}

/// The result of [`create`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Creation {
    /// The step that was taken: the table was created, or it existed.
    pub made: Made,
    /// The table as it is now.
    pub table: Table,
}

/// The description of a table.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its state: whether it can be used.
    pub status: Status,
    /// Its primary key: the partition key first.
    pub keys: Vec<KeyAttribute>,
    /// How it is paid for; `None` where DynamoDB does not say.
    pub billing: Option<Billing>,
    /// The attribute that DynamoDB's time to live goes by; `None` also where we may not know.
    pub expires: Option<String>,
    /// Regions with replicas.
    pub replicas: Vec<String>,
    /// Its consistency across Regions.
    pub consistency: Consistency,
    /// Regions that take part in strong consistency without a replica.
    pub witnesses: Vec<String>,
    /// Its ARN.
    pub arn: Option<String>,
}

impl Table {
    fn of(description: wire::Description, expires: Option<String>) -> Self {
        let wire::Description { name, status, keys, billing, replicas, consistency, witnesses, arn, id: _ } =
            description;
        Self { name, status, keys, billing, expires, replicas, consistency, witnesses, arn }
    }
}

/// Makes the table that a single url names, with the keys that it names, and waits until it can be used: a few seconds, at most
/// 5 minutes. Where the url has the parameter `expires`, DynamoDB's time to live is switched on. Blocks.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) for a url of another store;
/// [`ErrorKind::StoreRefused`](crate::ErrorKind::StoreRefused) where there is a table with another key, or where we may
/// not; [`ErrorKind::StoreUnavailable`](crate::ErrorKind::StoreUnavailable) where DynamoDB is not reached.
pub fn create(store: &(impl Stores + ?Sized), new: &NewTable) -> Result<Creation, Error> {
    let url = parsed(store)?;
    let (made, description, expires) = whole::create(&url, new.billing, &new.tags)?;
    Ok(Creation { made, table: Table::of(description, expires) })
}

/// Describes the table that a url names. Blocks.
///
/// # Errors
/// As for [`create`].
pub fn describe(store: &(impl Stores + ?Sized)) -> Result<Table, Error> {
    let (description, expires) = whole::describe(&parsed(store)?)?;
    Ok(Table::of(description, expires))
}

fn parsed(store: &(impl Stores + ?Sized)) -> Result<DynamodbUrl, Error> {
    const FORM: &str = "write dynamodb://TABLE?region=eu-west-1";
    let urls = store.urls()?;
    let [url] = urls.as_slice() else {
        return Err(Error::config(format!(
            "{} stores are named, but a table is in one of them: name that one; {FORM}",
            urls.len()
        )));
    };
    let url = url.resolved()?;
    url.of().cloned().ok_or_else(|| Error::config(format!("{url} has no table; {FORM}")))
}
