//! Looks at locks: one, or all of them page by page, and at runs.

use std::collections::HashSet;
use std::time::Duration;

use axum::extract::State;
use axum::http::Uri;
use axum::{Extension, Json};
use leasehold::{Client, Error, LockInfo, RunInfo, ffi};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::api::{Answer, Caller, Shared, id};
use super::reply::{Reply, query};
use super::state::Service;
use crate::output::lock_json;
use crate::runs;

/// The most of one page.
const MOST_LISTED: usize = 10_000;
/// The time after which a page ends, since the store keeps too many other things.
const LIST_PATIENCE: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    resource: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    #[serde(default)]
    prefix: String,
    limit: Option<usize>,
    cursor: Option<String>,
}

/// A place in a list.
#[derive(Clone, Default)]
pub(super) struct Cursor {
    of: &'static str,
    prefix: String,
    /// Where the store goes on.
    place: ffi::PageStart,
    /// The names of the store's next page that were given. A set, since a page of a table that shrinks may reach further when it
    /// is read again.
    given: HashSet<String>,
}

/// Some of a list, and where the others are.
pub(super) struct Listing<T> {
    pub(super) items: Vec<T>,
    pub(super) rest: Option<Cursor>,
}

/// The things that are listed.
pub(super) trait Item: Send + Sync + Sized + 'static {
    /// Two lists of one prefix do not share their cursors.
    const NAME: &str;

    fn from(client: &Client, prefix: &str, place: ffi::PageStart) -> ffi::Paged<Self>;
    fn resource(&self) -> &str;
    fn json(&self) -> Value;
}

impl Item for LockInfo {
    const NAME: &str = "locks";

    fn from(client: &Client, prefix: &str, place: ffi::PageStart) -> ffi::Paged<Self> {
        ffi::list_from(client, prefix, place)
    }

    fn resource(&self) -> &str {
        &self.resource
    }

    fn json(&self) -> Value {
        lock_json(self)
    }
}

impl Item for RunInfo {
    const NAME: &str = "runs";

    fn from(client: &Client, prefix: &str, place: ffi::PageStart) -> ffi::Paged<Self> {
        ffi::runs_from(client, prefix, place)
    }

    fn resource(&self) -> &str {
        &self.resource
    }

    fn json(&self) -> Value {
        runs::json(self)
    }
}

pub(super) async fn inspect(State(service): Shared, uri: Uri) -> Answer {
    let asked: Named = query(&uri)?;
    let holder = service.client.inspect(&asked.resource).await?;
    Ok(Json(holder.as_ref().map_or_else(|| json!({ "resource": asked.resource, "held": false }), lock_json)))
}

pub(super) async fn list<T: Item>(State(service): Shared, Extension(caller): Extension<Caller>, uri: Uri) -> Answer {
    let asked: Listed = query(&uri)?;
    let limit = asked.limit.unwrap_or(1_000);
    if !(1..=MOST_LISTED).contains(&limit) {
        return Err(Reply::bad(format!("limit must be 1 to {MOST_LISTED}")));
    }
    let from = match asked.cursor {
        None => Cursor { of: T::NAME, prefix: asked.prefix, ..Cursor::default() },
        Some(cursor) => {
            let known = service.table().cursors.get(&caller.0, &cursor).cloned();
            known.filter(|known| known.of == T::NAME && known.prefix == asked.prefix).ok_or_else(|| {
                Reply::bad(
                    "this cursor has expired, or belongs to a list with another prefix: begin again without a cursor",
                )
            })?
        }
    };
    let Listing { items, rest } = listed::<T>(&service, from, limit).await?;
    let is_all = rest.is_none();
    let cursor = rest.map(|rest| {
        let cursor = id()?;
        service.table().cursors.put(&caller.0, cursor.clone(), rest, |_| true);
        Ok::<_, Reply>(cursor)
    });
    let items: Vec<Value> = items.iter().map(Item::json).collect();
    Ok(Json(json!({ T::NAME: items, "complete": is_all, "cursor": cursor.transpose()? })))
}

/// The next of them.
pub(super) async fn listed<T: Item>(service: &Service, from: Cursor, limit: usize) -> Result<Listing<T>, Error> {
    let Cursor { of, prefix, mut place, mut given } = from;
    let mut listing = T::from(&service.client, &prefix, place.clone());
    let mut items = Vec::new();
    let over = sleep(LIST_PATIENCE);
    tokio::pin!(over);
    loop {
        let page = tokio::select! {
            page = listing.page() => page?,
            () = &mut over => return Ok(Listing { items, rest: Some(Cursor { of, prefix, place, given }) }),
        };
        let Some(mut page) = page else { return Ok(Listing { items, rest: None }) };
        page.sort_by(|one, other| one.resource().cmp(other.resource()));
        page.retain(|item| !given.contains(item.resource()));
        let room = limit - items.len();
        if page.len() > room {
            page.truncate(room);
            given.extend(page.iter().map(|item| item.resource().to_owned()));
            items.append(&mut page);
            return Ok(Listing { items, rest: Some(Cursor { of, prefix, place, given }) });
        }
        items.append(&mut page);
        place = listing.place();
        given.clear();
    }
}
