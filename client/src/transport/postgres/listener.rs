//! Notifications of releases and of turns in the queue, on a connection of their own to the server itself.
//!
//! A pooler in transaction mode forgets that somebody listens, so this connection goes past it. It is a convenience: while
//! there is none, waiters poll.

use std::sync::Arc;

use leasehold_core::Resource;
use leasehold_core::queue::{ClientId, Ticket};
use leasehold_wire::postgres::{CHANNEL, Codec};
use tokio_postgres::AsyncMessage;
use tracing::Level;

use super::connection::{PostgresAccess, Told};
use super::link::no_rows;
use crate::reports;
use crate::transport::pauses::Pauses;
use crate::transport::readiness::NoServer;
use crate::transport::wakeups::Wakeups;
use crate::url::postgres::PostgresPlace;

/// Listens for as long as the runtime runs, and connects again after each failure; for turns too, where the client may stand
/// in the queue.
pub(super) async fn listen(
    access: Arc<PostgresAccess>,
    place: PostgresPlace,
    wakeups: Arc<Wakeups>,
    client: Option<ClientId>,
) {
    let (mut pauses, mut is_warned) = (Pauses::CONNECTING, false);
    loop {
        match listen_once(&access, &place, &wakeups, client).await {
            Ok(()) => (pauses, is_warned) = (Pauses::CONNECTING, false),
            Err(why) => {
                let access = Arc::clone(&access);
                // Without notifications all works, but slower, so that nobody would see it.
                if std::mem::replace(&mut is_warned, true) {
                    reports::queue(Level::DEBUG, move || {
                        tracing::debug!(target: "leasehold", store = %access.url(), why = %why, "no notifications");
                    });
                } else {
                    reports::queue(Level::WARN, move || {
                        tracing::warn!(
                            name: "postgres.listen", target: "leasehold", store = %access.url(), why = %why,
                            "no notifications arrive, so waiters poll: the address in the parameter listen cannot be reached; \
                             it is tried again"
                        );
                    });
                }
            }
        }
        tokio::time::sleep(pauses.next()).await;
    }
}

/// Connects to the place of notifications as a listener does, for the doctor.
pub(super) async fn try_once(access: &PostgresAccess, place: &PostgresPlace) -> Result<(), NoServer> {
    let connection = access.connect_to(place, None).await?;
    connection.run(&format!("LISTEN {CHANNEL}")).await.map_err(no_rows)
}

async fn listen_once(
    access: &PostgresAccess,
    place: &PostgresPlace,
    wakeups: &Arc<Wakeups>,
    client: Option<ClientId>,
) -> Result<(), NoServer> {
    let hub = Arc::clone(wakeups);
    let told: Told = Arc::new(move |message| {
        let AsyncMessage::Notification(told) = message else { return };
        if told.channel() == CHANNEL {
            if let Ok(resource) = Resource::new(told.payload()) {
                hub.released(&resource);
            }
        } else if let Some(client) = client
            && let Some((resource, lock)) = Codec::turn_of(told.payload())
        {
            hub.reserved(&resource, Ticket { client, lock });
        }
    });
    let mut connection = access.connect_to(place, Some(told)).await?;
    let turns = client.map(|client| format!("; LISTEN {}", Codec::turns_channel(client))).unwrap_or_default();
    connection.run(&format!("LISTEN {CHANNEL}{turns}")).await.map_err(no_rows)?;
    connection.ended().await;
    Ok(())
}
