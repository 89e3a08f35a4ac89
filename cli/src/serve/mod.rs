//! `leasehold serve`: the same locks over HTTP, for programs in any language.
//!
//! The daemon holds the leases and renews them in its store. A client keeps its lease by calls, or by the connection of its
//! request; one that dies loses it. By default it listens on this machine only.

#![allow(clippy::disallowed_types, reason = "the daemon listens on sockets of its own")]

mod access;
mod api;
mod keys;
mod leases;
mod list;
mod listen;
mod metrics;
mod page;
mod recent;
mod reply;
mod state;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::args::ServeArgs;
use crate::exec::{Event, Inbox, Signals};
use crate::output::{Failure, answer_line, say};
use crate::status;
use crate::store::{Target, must_be_shared, shown};
use crate::warnings;
use access::AllowedClients;
use listen::Door;
use state::Service;

/// How often leases are looked for whose clients are gone.
const SWEEP: Duration = Duration::from_millis(100);
/// How often the signals are looked at.
const GLANCE: Duration = Duration::from_millis(200);

pub(crate) fn run(args: &ServeArgs, target: &Target) -> Result<u8, Failure> {
    let access = AllowedClients::new(args)?;
    raise_open_files();
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::system("cannot start a runtime", &error))?;
    let settings = args.session.iter().fold(target.settings(), |settings, name| settings.session(name));
    let client = warnings::said(|| runtime.block_on(settings.connect(target)))?;
    must_be_shared(client.stores())?;
    let store = shown(client.stores());
    let service = Arc::new(Service::new(client, store.clone(), args.max_leases, args.max_connections));
    let inbox = Inbox::new();
    let signals = Signals::catch(inbox.sender()).map_err(|error| Failure::system("cannot catch signals", &error))?;
    let (told, stopped) = oneshot::channel();
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                if let Some(Event::Signal(_)) = inbox.next(GLANCE) {
                    let _ = told.send(());
                    return;
                }
            }
        });
        let served = runtime.block_on(serve(args, access, &service, &store, stopped));
        is_over.store(true, Ordering::Relaxed);
        served
    })?;
    drop(signals);
    Ok(status::DONE)
}

/// Each connection is an open file, of which the system often gives fewer than it would.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // Where it refuses, connections wait.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

async fn serve(
    args: &ServeArgs,
    access: AllowedClients,
    service: &Arc<Service>,
    store: &str,
    stopped: oneshot::Receiver<()>,
) -> Result<(), Failure> {
    let door = Door::open(args).await?;
    answer_line(&format!("listening on {}, with the locks of {store}", door.url()))?;
    let router = access::guarded(api::routes(Arc::clone(service)), access, Arc::clone(service));
    tokio::select! {
        () = door.serve(router) => {}
        () = sweep(service) => {}
        _ = stopped => say("stopping: what clients hold is released"),
    }
    // A client that comes now is refused at once, and may find another daemon.
    drop(door);
    service.drop_all();
    service.client.clone().close().await?;
    Ok(())
}

async fn sweep(service: &Service) {
    loop {
        tokio::time::sleep(SWEEP).await;
        service.drop_abandoned();
    }
}
