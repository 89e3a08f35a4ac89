//! The table as a whole: its description, and creating it.

use std::thread::sleep;
use std::time::Duration;

use leasehold_core::op::{DenialKind, Outcome, Refusal};
use leasehold_wire::dynamodb::table::{self, Billing, Description, LockScope, Status};
use tracing::Level;

use super::Dynamodb;
use crate::error::{Error, ErrorKind};
use crate::host::clock;
use crate::reports;
use crate::transport::Transport;
use crate::transport::pauses::Pauses;
use crate::url::dynamodb::{DynamodbUrl, Replicas};

/// DynamoDB takes seconds to create a table, and sometimes a minute.
const CREATION: Duration = Duration::from_secs(300);
/// The time for which a new table, or the permission to read its description, may not be known everywhere.
const RUMOUR: Duration = Duration::from_secs(30);

/// The id of the table, for a client that connects; `None` where the permission to read it is missing.
///
/// # Errors
/// The table cannot keep locks, or it cannot be reached.
pub(super) fn check(store: &Dynamodb) -> Result<Option<String>, Error> {
    let url = &store.url;
    let Some(description) = description(store)? else {
        if url.replicas == Replicas::MustAgree {
            return Err(Error::new(
                ErrorKind::StoreRefused,
                format!(
                    "{url}: the consistency of the table's replicas cannot be read: allow dynamodb:DescribeTable, or \
                     remove require_strong"
                ),
            ));
        }
        // Without that permission, reading a row that need not exist shows as much of the schema as possible.
        return store.look().map(|_| None);
    };
    match judge(store, &description)? {
        LockScope::OneRegion | LockScope::AllRegions => Ok(description.id),
        LockScope::EachRegionAlone { regions } => {
            let what = format!(
                "{url}: the table has replicas that lag behind, in {}: clients of different Regions can hold the same \
                 lock at the same time. Let all clients use one Region, or use a table with strong consistency across \
                 Regions",
                regions.join(", ")
            );
            if url.replicas == Replicas::MustAgree {
                return Err(Error::new(ErrorKind::StoreRefused, what));
            }
            reports::make_or_queue(Level::WARN, move || {
                tracing::warn!(name: "dynamodb.replicas", target: "leasehold", "{what}");
            });
            Ok(description.id)
        }
    }
}

/// The table's description; `None` where the permission to read it is missing.
///
/// # Errors
/// The table does not exist, or cannot be reached.
pub(super) fn description(store: &Dynamodb) -> Result<Option<Description>, Error> {
    let settings = store.codec.settings();
    let response = store.ask(table::describe(settings)).map_err(|why| store.to_error(&why))?;
    match table::described(settings, &response) {
        Ok(description) => Ok(Some(description)),
        Err(Outcome::NotApplied(Refusal::Denied(denial))) if denial.kind == DenialKind::Permission => Ok(None),
        Err(outcome) => Err(store.judged(outcome)),
    }
}

/// # Errors
/// The table cannot keep locks, or is not ready.
fn judge(store: &Dynamodb, description: &Description) -> Result<LockScope, Error> {
    let url = &store.url;
    let reach = table::judge(store.codec.settings(), description);
    let reach = reach.map_err(|denial| Error::new(ErrorKind::StoreRefused, format!("{url}: {denial}")))?;
    if description.status == Status::Creating {
        let what = format!("{url}: the table is being created; try again in a few seconds");
        return Err(Error::new(ErrorKind::StoreUnavailable, what));
    }
    Ok(reach)
}

/// The result of creating a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// The table was created.
    New,
    /// The table existed, and can keep locks.
    Before,
}

/// Creates the table that the url names, and waits until it can be used. Enables its time to live where the url names
/// an attribute for that. Returns the attribute that is in use.
///
/// # Errors
/// There is a table with another schema, or DynamoDB refuses to create it.
pub(crate) fn create(
    url: &DynamodbUrl,
    billing: Billing,
    tags: &[(String, String)],
) -> Result<(Made, Description, Option<String>), Error> {
    let store = Dynamodb::unchecked(url)?;
    let settings = store.codec.settings();
    let request = table::create(settings, billing, tags).map_err(|denial| Error::config(format!("{url}: {denial}")))?;
    let response = store.ask(request).map_err(|why| store.to_error(&why))?;
    let made = match table::described(settings, &response) {
        Ok(_) => Made::New,
        Err(outcome) => match description(&store) {
            Ok(Some(_)) => Made::Before,
            Ok(None) | Err(_) => return Err(store.judged(outcome)),
        },
    };
    let description = wait_until_usable(&store, made)?;
    if let Some(request) = table::expire(settings) {
        switch_expiry_on(&store, request)?;
    }
    let expires = match (&url.expires, made) {
        (Some(name), Made::New | Made::Before) => Some(name.clone()),
        (None, Made::New) => None,
        (None, Made::Before) => expires(&store),
    };
    Ok((made, description, expires))
}

/// The description of the table that the url names.
///
/// # Errors
/// The table does not exist, cannot be reached, or its description may not be read.
pub(crate) fn describe(url: &DynamodbUrl) -> Result<(Description, Option<String>), Error> {
    let store = Dynamodb::unchecked(url)?;
    let forbidden = || {
        let what = format!("{url}: not allowed to describe the table: allow dynamodb:DescribeTable");
        Error::new(ErrorKind::StoreRefused, what)
    };
    let description = description(&store)?.ok_or_else(forbidden)?;
    Ok((description, expires(&store)))
}

/// The attribute of the table's time to live; `None` also where it may not be read.
pub(super) fn expires(store: &Dynamodb) -> Option<String> {
    let settings = store.codec.settings();
    let response = store.ask(table::describe_expiry(settings)).ok()?;
    table::expires(settings, &response).ok()?
}

fn wait_until_usable(store: &Dynamodb, made: Made) -> Result<Description, Error> {
    let began = clock::monotonic();
    let deadline = began.plus(CREATION);
    let known_by = match made {
        Made::New => began.plus(RUMOUR),
        Made::Before => began,
    };
    let mut pauses = Pauses::CONNECTING;
    loop {
        let looked = match description(store) {
            Ok(Some(description)) => judge(store, &description).map(|_| description),
            Ok(None) => {
                let what = format!(
                    "{}: the table was created; dynamodb:DescribeTable is needed to see when it can be used",
                    store.url
                );
                return Err(Error::new(ErrorKind::StoreRefused, what));
            }
            Err(error) => Err(error),
        };
        match looked {
            Ok(description) => return Ok(description),
            Err(error) if clock::monotonic() >= deadline => return Err(error),
            Err(error) if error.kind() == ErrorKind::StoreUnavailable => sleep(pauses.next()),
            Err(_) if clock::monotonic() < known_by => sleep(pauses.next()),
            Err(error) => return Err(error),
        }
    }
}

fn switch_expiry_on(store: &Dynamodb, request: leasehold_wire::dynamodb::Request) -> Result<(), Error> {
    let settings = store.codec.settings();
    if expires(store).as_deref() == settings.expires_name() {
        return Ok(());
    }
    let response = store.ask(request).map_err(|why| store.to_error(&why))?;
    table::expiring(settings, &response).map_err(|outcome| store.judged(outcome))
}
