//! Looks at locks: one, or all of them page by page.

use std::collections::HashSet;
use std::time::Duration;

use axum::extract::State;
use axum::http::Uri;
use axum::{Extension, Json};
use leasehold::{Error, LockInfo, ffi};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::api::{Answer, Caller, Shared, id};
use super::reply::{Reply, query};
use super::state::Service;
use crate::output::lock_json;

/// The most locks of one page.
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
    prefix: String,
    /// Where the store goes on.
    place: ffi::PageStart,
    /// The names of the store's next page that were given. A set, since a page of a table that shrinks may reach further when it
    /// is read again.
    given: HashSet<String>,
}

/// Some locks, and where the others are.
pub(super) struct Listing {
    pub(super) locks: Vec<LockInfo>,
    pub(super) rest: Option<Cursor>,
}

pub(super) async fn inspect(State(service): Shared, uri: Uri) -> Answer {
    let asked: Named = query(&uri)?;
    let holder = service.client.inspect(&asked.resource).await?;
    Ok(Json(holder.as_ref().map_or_else(|| json!({ "resource": asked.resource, "held": false }), lock_json)))
}

pub(super) async fn list(State(service): Shared, Extension(caller): Extension<Caller>, uri: Uri) -> Answer {
    let asked: Listed = query(&uri)?;
    let limit = asked.limit.unwrap_or(1_000);
    if !(1..=MOST_LISTED).contains(&limit) {
        return Err(Reply::bad(format!("limit must be 1 to {MOST_LISTED}")));
    }
    let from = match asked.cursor {
        None => Cursor { prefix: asked.prefix, ..Cursor::default() },
        Some(cursor) => {
            let known = service.table().cursors.get(&caller.0, &cursor).cloned();
            known.filter(|known| known.prefix == asked.prefix).ok_or_else(|| {
                Reply::bad(
                    "this cursor has expired, or belongs to a list with another prefix: begin again without a cursor",
                )
            })?
        }
    };
    let Listing { locks, rest } = listed(&service, from, limit).await?;
    let is_all = rest.is_none();
    let cursor = rest.map(|rest| {
        let cursor = id()?;
        service.table().cursors.put(&caller.0, cursor.clone(), rest, |_| true);
        Ok::<_, Reply>(cursor)
    });
    let locks: Vec<Value> = locks.iter().map(lock_json).collect();
    Ok(Json(json!({ "locks": locks, "complete": is_all, "cursor": cursor.transpose()? })))
}

/// The next locks.
pub(super) async fn listed(service: &Service, from: Cursor, limit: usize) -> Result<Listing, Error> {
    let Cursor { prefix, mut place, mut given } = from;
    let mut listing = ffi::list_from(&service.client, &prefix, place.clone());
    let mut locks = Vec::new();
    let over = sleep(LIST_PATIENCE);
    tokio::pin!(over);
    loop {
        let page = tokio::select! {
            page = listing.page() => page?,
            () = &mut over => return Ok(Listing { locks, rest: Some(Cursor { prefix, place, given }) }),
        };
        let Some(mut page) = page else { return Ok(Listing { locks, rest: None }) };
        page.sort_by(|one, other| one.resource.cmp(&other.resource));
        page.retain(|lock| !given.contains(&lock.resource));
        let room = limit - locks.len();
        if page.len() > room {
            page.truncate(room);
            given.extend(page.iter().map(|lock| lock.resource.clone()));
            locks.append(&mut page);
            return Ok(Listing { locks, rest: Some(Cursor { prefix, place, given }) });
        }
        locks.append(&mut page);
        place = ffi::place_of(&listing);
        given.clear();
    }
}
