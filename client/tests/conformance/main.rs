//! Behaviours required of every store, with one suite of tests for all: a failure names the store and the behaviour.
//!
//! A new store is one line in `suite!` and one function beside it; a new behaviour is one function that takes a
//! [`Store`] and one line in `behaviours!`. Where stores differ, they say so in what they [`Can`] do. A store whose server
//! is too heavy for one in each test has all behaviours in one test, see [`on_tables`].

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

#[path = "../common/mod.rs"]
mod common;

mod attempts;
mod bounds;
mod crowds;
mod grants;
mod holding;
mod items;
mod late_finish;
mod listing;
mod losses;
#[cfg(any(feature = "dynamodb", feature = "etcd", feature = "postgres"))]
mod on_tables;
mod permits;
mod processes;
mod queues;
mod replace;
mod results;
mod revoke;
mod runs;
mod sessions;
mod shards;
mod waiting;

use std::any::Any;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use leasehold::LockInfo;
use leasehold::blocking::{Client, Lease};
use leasehold_servers::redis::Server as RedisServer;

/// A store of one test's own, and what it can do.
pub(crate) struct Store {
    url: String,
    can: &'static [Can],
    /// Servers and folders, which end with it.
    _behind: Box<dyn Any>,
}

/// Abilities that some stores have and others lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Can {
    /// A release wakes those who wait through other clients; where it does not, they poll.
    WakeOtherClients,
    /// Keeps a line of those who wait, through whatever clients.
    KeepQueue,
    /// Shows the length of a lease to others.
    ShowTtl,
    /// Shows how much is left of it; elsewhere only those know who have watched it.
    ShowLeft,
    /// Names the holder's token to a caller that is refused; elsewhere `inspect` does.
    NameTokenInErrors,
    /// Is the same store for all processes that know its url.
    ServeSeveralProcesses,
    /// Ends a completion on time; elsewhere it stands a minute longer, since the clocks of clients decide.
    EndCompletionsOnTime,
    /// Keeps items of compare-and-set.
    KeepItems,
    /// Takes locks in sessions. Cosmos DB with the consistency of most accounts may show a session late.
    HaveSessions,
}

impl Store {
    fn memory() -> Self {
        // The name is the store as long as anybody uses it; tests of one process must not meet.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let url = format!("memory:conformance-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let open = Client::connect(&url).unwrap();
        Self {
            url,
            can: &[
                Can::HaveSessions,
                Can::KeepItems,
                Can::WakeOtherClients,
                Can::KeepQueue,
                Can::ShowTtl,
                Can::ShowLeft,
                Can::NameTokenInErrors,
                Can::EndCompletionsOnTime,
            ],
            _behind: Box::new(open),
        }
    }

    fn sqlite() -> Self {
        // In memory where that can be had: a busy disk takes seconds to confirm hundreds of writes.
        let memory = std::path::Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let url = common::url(&folder.path().join("locks.db"));
        let can = &[
            Can::HaveSessions,
            Can::KeepItems,
            Can::WakeOtherClients,
            Can::KeepQueue,
            Can::ShowTtl,
            Can::ShowLeft,
            Can::NameTokenInErrors,
            Can::ServeSeveralProcesses,
            Can::EndCompletionsOnTime,
        ];
        Self { url, can, _behind: Box::new(folder) }
    }

    fn redis() -> Self {
        let server = RedisServer::start();
        let can = &[
            Can::HaveSessions,
            Can::KeepItems,
            Can::WakeOtherClients,
            Can::KeepQueue,
            Can::ShowLeft,
            Can::NameTokenInErrors,
            Can::ServeSeveralProcesses,
            Can::EndCompletionsOnTime,
        ];
        Self { url: server.url(), can, _behind: Box::new(server) }
    }

    #[cfg(feature = "http")]
    fn webdis() -> Self {
        let redis = RedisServer::start();
        let server = leasehold_servers::webdis::Server::start(&redis);
        let url = format!("webdis+http://{}", server.address());
        Self {
            url,
            can: &[
                Can::HaveSessions,
                Can::KeepItems,
                Can::ShowLeft,
                Can::NameTokenInErrors,
                Can::ServeSeveralProcesses,
                Can::EndCompletionsOnTime,
            ],
            _behind: Box::new((server, redis)),
        }
    }

    #[cfg(feature = "http")]
    fn upstash() -> Self {
        let redis = RedisServer::start();
        let server = leasehold_servers::rest::Server::start(&redis);
        let url = format!("upstash+http://:{}@{}", server.token(), server.address());
        Self {
            url,
            can: &[
                Can::HaveSessions,
                Can::KeepItems,
                Can::ShowLeft,
                Can::NameTokenInErrors,
                Can::ServeSeveralProcesses,
                Can::EndCompletionsOnTime,
            ],
            _behind: Box::new((server, redis)),
        }
    }

    /// Three Redis servers, of which a majority decides.
    fn quorum() -> Self {
        let servers = [(); 3].map(|()| RedisServer::start());
        let url = servers.iter().map(RedisServer::url).collect::<Vec<_>>().join(" ");
        Client::connect_with(patient(&url).create_quorum(), &url).unwrap().close().unwrap();
        let can = &[
            Can::HaveSessions,
            Can::WakeOtherClients,
            Can::ShowLeft,
            Can::ServeSeveralProcesses,
            Can::EndCompletionsOnTime,
        ];
        Self { url, can, _behind: Box::new(servers) }
    }

    /// One more table of a server that outlives it.
    #[cfg(feature = "dynamodb")]
    fn dynamodb(server: &leasehold_servers::dynamodb::Server) -> Self {
        let url = common::on_dynamodb::new_table(server);
        Self {
            url,
            can: &[Can::HaveSessions, Can::KeepItems, Can::ShowTtl, Can::NameTokenInErrors, Can::ServeSeveralProcesses],
            _behind: Box::new(()),
        }
    }

    /// One more prefix of a server that outlives it.
    #[cfg(feature = "etcd")]
    fn etcd(server: &leasehold_servers::etcd::Server) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let url = format!("{}?prefix=test-{}/", server.url(), NEXT.fetch_add(1, Ordering::Relaxed));
        let can = &[
            Can::HaveSessions,
            Can::KeepItems,
            Can::WakeOtherClients,
            Can::ShowTtl,
            Can::NameTokenInErrors,
            Can::ServeSeveralProcesses,
        ];
        Self { url, can, _behind: Box::new(()) }
    }

    /// One more prefix of an Azurite.
    #[cfg(feature = "objects")]
    fn azure_blob(server: &leasehold_servers::objects::Server) -> Self {
        Self::objects(
            server,
            &[Can::HaveSessions, Can::KeepItems, Can::ShowTtl, Can::NameTokenInErrors, Can::ServeSeveralProcesses],
        )
    }

    /// One more prefix of a moto.
    #[cfg(feature = "objects")]
    fn s3(server: &leasehold_servers::objects::Server) -> Self {
        Self::objects(
            server,
            &[Can::HaveSessions, Can::KeepItems, Can::ShowTtl, Can::NameTokenInErrors, Can::ServeSeveralProcesses],
        )
    }

    /// One more prefix of a fake-gcs-server.
    #[cfg(feature = "objects")]
    fn gcs(server: &leasehold_servers::objects::Server) -> Self {
        Self::objects(
            server,
            &[Can::HaveSessions, Can::KeepItems, Can::ShowTtl, Can::NameTokenInErrors, Can::ServeSeveralProcesses],
        )
    }

    /// One more prefix of an emulator of Cosmos DB.
    #[cfg(feature = "objects")]
    fn cosmos(server: &leasehold_servers::objects::Server) -> Self {
        Self::objects(server, &[Can::KeepItems, Can::ShowTtl, Can::NameTokenInErrors, Can::ServeSeveralProcesses])
    }

    #[cfg(feature = "objects")]
    fn objects(server: &leasehold_servers::objects::Server, can: &'static [Can]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let url = server.url(&format!("test-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        Self { url, can, _behind: Box::new(()) }
    }

    /// A quorum of DynamoDB, Azure and Google.
    #[cfg(feature = "objects")]
    fn clouds(dynamodb: &leasehold_servers::dynamodb::Server, objects: &[leasehold_servers::objects::Server]) -> Self {
        let mut nodes = vec![common::on_dynamodb::new_table(dynamodb)];
        nodes.extend(objects.iter().map(|server| Self::objects(server, &[]).url));
        let url = nodes.join(" ");
        Client::connect_with(patient(&url).create_quorum(), &url).unwrap().close().unwrap();
        Self { url, can: &[Can::HaveSessions, Can::ShowTtl, Can::ServeSeveralProcesses], _behind: Box::new(()) }
    }

    /// One more schema of a server that outlives it.
    #[cfg(feature = "postgres")]
    fn postgres(server: &leasehold_servers::postgres::Server) -> Self {
        let can = &[
            Can::HaveSessions,
            Can::KeepItems,
            Can::WakeOtherClients,
            Can::KeepQueue,
            Can::ShowTtl,
            Can::ShowLeft,
            Can::NameTokenInErrors,
            Can::ServeSeveralProcesses,
            Can::EndCompletionsOnTime,
        ];
        let url = common::on_postgres::new_table(server, server.port());
        Self { url: format!("{url}&listen=yes"), can, _behind: Box::new(()) }
    }

    /// The same through a pooler in transaction mode, without notifications.
    #[cfg(feature = "postgres")]
    fn pgbouncer(server: &leasehold_servers::postgres::Server, port: u16) -> Self {
        let can = &[
            Can::HaveSessions,
            Can::KeepItems,
            Can::KeepQueue,
            Can::ShowTtl,
            Can::ShowLeft,
            Can::NameTokenInErrors,
            Can::ServeSeveralProcesses,
            Can::EndCompletionsOnTime,
        ];
        Self { url: common::on_postgres::new_table(server, port), can, _behind: Box::new(()) }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn can(&self, what: Can) -> bool {
        self.can.contains(&what)
    }

    /// Returns the rest of a lease, as others see it; where they cannot, as its holder does.
    pub(crate) fn left_of(&self, shown: &LockInfo, lease: &Lease) -> Duration {
        assert_eq!(shown.left.is_some(), self.can(Can::ShowLeft), "{shown:?}");
        shown.left.unwrap_or_else(|| lease.remaining())
    }

    /// Checks that an error names that holder.
    pub(crate) fn expect_named(&self, error: &leasehold::Error, owner: &str, token: u64) {
        let holder = error.holder().expect("the holder is named");
        assert_eq!((holder.owner.as_deref(), holder.foreign), (Some(owner), false));
        let may_be_open = !self.can(Can::NameTokenInErrors);
        assert!(holder.token == Some(token) || may_be_open && holder.token.is_none(), "{holder:?}");
    }

    pub(crate) fn is_a_quorum(&self) -> bool {
        self.url.contains(' ')
    }

    /// A client with connections of its own.
    pub(crate) fn client(&self) -> Client {
        Client::connect_with(patient(&self.url), &self.url).unwrap_or_else(|error| panic!("{}: {error}", self.url))
    }

    pub(crate) fn two_clients(&self) -> (Client, Client) {
        (self.client(), self.client())
    }
}

/// Clients that take no slow answer for a lost one, however busy the machine is.
pub(crate) fn patient(url: &str) -> leasehold::ClientBuilder {
    let builder = leasehold::Client::builder().request_timeout(common::ms(20_000));
    // The nodes of a quorum agree on the longest lease; here it is the longest that there can be.
    if url.contains(' ') { builder.max_ttl(Duration::from_secs(48 * 3_600)) } else { builder }
}

/// One test for each behaviour, in a module with the name of the store.
macro_rules! suite {
    ($($store:ident)*) => {
        $(
            mod $store {
                behaviours!(tests $store);
            }
        )*
    };
}

/// Hands all behaviours to a macro, behind whatever else it is to be given.
macro_rules! behaviours {
    ($macro:ident $($store:ident)?) => {
        $macro! {
            $($store)?:
            bounds::the_shortest_and_the_longest_lease_are_granted
            bounds::any_name_is_a_lock_of_its_own
            bounds::labels_and_data_arrive_as_they_were_given
            bounds::bad_settings_are_refused_alike_everywhere
            crowds::many_locks_at_once
            crowds::increments_under_a_lock_are_never_lost
            crowds::several_locks_are_all_or_nothing
            crowds::opposite_orders_do_not_block_each_other
            crowds::one_candidate_leads_and_another_follows
            grants::one_holder_at_a_time
            grants::others_see_who_holds_it
            grants::a_free_lock_shows_nothing
            grants::tokens_grow_with_every_grant
            grants::a_release_frees_the_lock_once
            grants::trying_does_not_wait
            grants::an_administrator_breaks_a_lock
            grants::a_supervisor_releases_only_the_holder_it_means
            grants::closing_releases_everything
            grants::dropping_a_client_releases_everything
            grants::a_dropped_lease_is_released
            holding::renewals_outlast_the_ttl
            holding::without_renewal_a_lease_ends
            holding::max_hold_ends_renewal
            holding::a_lock_delay_keeps_the_lock_closed_after_expiry
            holding::a_lock_delay_ends_too
            holding::a_lock_delay_does_not_outlast_a_release
            holding::a_lost_lease_does_not_touch_its_successor
            holding::a_release_of_a_broken_lock_is_a_loss
            holding::a_release_of_a_lock_that_a_rival_took_is_a_loss
            holding::a_release_of_several_tells_that_one_was_broken
            items::an_item_is_made_changed_left_and_read
            items::values_and_names_have_the_same_bounds_everywhere
            items::too_many_conflicts_end_an_update_that_wrote_nothing
            items::no_update_of_several_writers_is_lost
            items::a_writer_that_is_killed_stops_nobody_and_loses_nothing
            late_finish::a_finish_counts_under_its_own_grant_alone
            queues::waiters_of_several_clients_are_served_in_order
            queues::the_queue_of_a_lock_can_be_looked_at
            queues::a_client_that_gives_up_leaves_the_queue
            queues::a_process_that_dies_in_the_queue_stops_nobody
            listing::the_held_locks_of_a_prefix_are_listed
            listing::more_locks_than_a_page_are_listed_once_each
            listing::a_prefix_is_taken_literally
            listing::bad_prefixes_are_refused_alike_everywhere
            listing::runs_are_listed_while_they_are_under_way_and_done
            losses::a_loss_has_the_reason_of_its_cause
            permits::any_of_several_locks_will_do
            permits::a_semaphore_has_as_many_holders_as_permits
            permits::all_clients_agree_on_the_number_of_permits
            permits::a_number_counts_only_while_nobody_writes_one
            permits::readers_share_and_writers_are_alone
            processes::a_process_that_dies_is_replaced
            revoke::a_revoked_holder_is_told_and_gives_the_lock_back
            revoke::only_the_lease_that_is_meant_is_revoked
            revoke::a_revoked_lock_of_a_holder_that_does_not_listen_runs_out
            revoke::a_revoke_races_renewals_and_a_release
            runs::finished_work_is_not_done_again
            runs::keys_are_done_once_each
            runs::work_that_was_not_finished_is_done_by_the_next
            runs::the_run_of_another_is_left_alone
            runs::who_stands_by_learns_that_it_is_done
            runs::who_stands_by_takes_over_when_the_runner_is_gone
            runs::a_run_is_finished_once_and_only_while_it_is_held
            runs::a_completion_ends_when_it_was_kept_long_enough
            runs::marks_are_shown_and_removed_by_people
            runs::a_plain_lock_does_not_look_at_marks
            runs::bad_settings_of_runs_are_refused_alike_everywhere
            attempts::work_that_always_fails_is_given_up
            attempts::an_attempt_counts_however_it_ends
            attempts::an_attempt_waits_for_its_pause
            attempts::attempts_begin_anew_once_the_work_was_done
            attempts::forgetting_a_run_forgets_its_attempts
            attempts::settings_of_attempts_that_cannot_be_are_refused
            replace::the_newest_request_replaces_the_runner
            replace::a_runner_that_does_not_listen_is_waited_for
            replace::an_older_request_steps_aside
            replace::the_newest_request_always_works_if_it_asks_for_that
            replace::requests_that_replace_one_another_take_turns
            replace::a_runner_of_the_same_client_is_replaced_too
            replace::what_cannot_be_replaced_is_refused
            results::the_second_caller_gets_the_first_ones_result
            results::a_run_without_a_result_shows_none
            results::a_result_that_is_too_long_is_dropped_and_the_work_counts
            results::a_result_goes_with_its_completion
            results::a_run_that_lost_its_lease_leaves_no_result
            sessions::the_locks_of_a_client_belong_to_its_session
            sessions::clients_of_one_name_have_sessions_of_their_own
            sessions::a_revoked_session_lets_go_of_all_its_locks
            sessions::bad_names_of_sessions_are_refused_alike_everywhere
            shards::shards_are_shared_evenly
            shards::the_shards_of_a_process_that_dies_are_taken_over
            waiting::a_wait_ends_and_names_the_holder
            waiting::a_release_ends_the_wait_of_another_client
            waiting::an_expiry_ends_the_wait_of_another_client
            waiting::waiters_of_a_client_are_served_in_order
            waiting::a_waiter_that_gives_up_leaves_the_queue
            waiting::many_clients_wait_for_one_lock
        }
    };
}

macro_rules! tests {
    ($store:ident: $($topic:ident::$behaviour:ident)*) => {
        $(
            #[test]
            fn $behaviour() {
                crate::$topic::$behaviour(&crate::Store::$store());
            }
        )*
    };
}

/// Names and functions.
#[cfg(any(feature = "dynamodb", feature = "etcd", feature = "postgres"))]
macro_rules! list {
    (: $($topic:ident::$behaviour:ident)*) => {
        [$((stringify!($behaviour), crate::$topic::$behaviour as fn(&crate::Store))),*]
    };
}
#[cfg(any(feature = "dynamodb", feature = "etcd", feature = "postgres"))]
pub(crate) use {behaviours, list};

suite!(memory sqlite redis quorum);
#[cfg(feature = "http")]
suite!(webdis upstash);
