//! Notifications of releases, on a connection of their own to the server itself.
//!
//! A pooler in transaction mode forgets that somebody listens, so this connection goes past it. It is a convenience: while
//! there is none, waiters poll.

use std::sync::Arc;

use leasehold_core::Resource;
use leasehold_wire::postgres::CHANNEL;
use tokio_postgres::AsyncMessage;
use tracing::Level;

use super::connection::{Access, Told};
use super::link::no_rows;
use crate::reports;
use crate::transport::pauses::Pauses;
use crate::transport::readiness::NoServer;
use crate::transport::wakeups::Wakeups;
use crate::url::postgres::PostgresPlace;

/// Listens for as long as the runtime runs, and connects again after each failure.
pub(super) async fn listen(access: Arc<Access>, place: PostgresPlace, wakeups: Arc<Wakeups>) {
    let mut pauses = Pauses::CONNECTING;
    loop {
        match listen_once(&access, &place, &wakeups).await {
            Ok(()) => pauses = Pauses::CONNECTING,
            Err(why) => {
                let access = Arc::clone(&access);
                reports::queue(Level::DEBUG, move || {
                    tracing::debug!(target: "leasehold", store = %access.url(), why = %why, "no notifications");
                });
            }
        }
        tokio::time::sleep(pauses.next()).await;
    }
}

async fn listen_once(access: &Access, place: &PostgresPlace, wakeups: &Arc<Wakeups>) -> Result<(), NoServer> {
    let hub = Arc::clone(wakeups);
    let told: Told = Box::new(move |message| {
        if let AsyncMessage::Notification(release) = message
            && release.channel() == CHANNEL
            && let Ok(resource) = Resource::new(release.payload())
        {
            hub.released(&resource);
        }
    });
    let mut connection = access.connect_to(place, Some(told)).await?;
    connection.run(&format!("LISTEN {CHANNEL}")).await.map_err(no_rows)?;
    connection.ended().await;
    Ok(())
}
