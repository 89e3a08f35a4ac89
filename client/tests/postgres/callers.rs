//! Async callers have connections of their own, for as long as their runtime lasts.

use leasehold_servers::postgres::Server;

use crate::common::eventually;
use crate::common::on_postgres::new_table;

/// More than the connections that a process has in runtimes of callers.
const RUNTIMES: usize = 6;

#[test]
fn a_connection_in_the_runtime_of_a_caller_ends_with_it() {
    let server = Server::start();
    let url = new_table(&server, server.port());
    let connections =
        || server.value::<i64>("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'leasehold'");
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = runtime().block_on(leasehold::Client::connect(&url)).unwrap();
    let pair = async || client.lock("a").await.unwrap().release().await.unwrap();
    // Too few requests for a connection here; they make those of the background.
    runtime().block_on(pair());
    let behind = connections();
    for _ in 0..RUNTIMES {
        let runtime = runtime();
        let mut pairs = 0;
        while connections() == behind {
            pairs += 1;
            assert!(pairs < 100, "requests go through the background");
            runtime.block_on(pair());
        }
        runtime.block_on(pair());
        drop(runtime);
        eventually("it ends with its runtime", || connections() == behind);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn closing_ends_connections_and_threads() {
    let rig = crate::Rig::new();
    crate::common::closing::closing_ends_connections_and_threads(|| rig.client());
}
