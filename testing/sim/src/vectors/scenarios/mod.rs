//! The scenarios. Each is about some rows of the lease machine's table, and ends by naming them.

mod acquiring;
mod client;
mod holding;
mod memory;
mod quorum;
mod runs;
mod waiting;

use crate::format::Vector;

/// Every scenario; a file for each.
pub(super) const ALL: &[fn() -> Vector] = &[
    acquiring::granted_renewed_released,
    acquiring::acquire_reply_lost,
    acquiring::acquire_never_answered,
    acquiring::acquire_refused,
    acquiring::acquire_cancelled,
    waiting::held_by_another,
    waiting::store_in_the_way,
    waiting::wait_ends,
    waiting::wake_ups,
    waiting::look_before_write,
    waiting::takeover_by_observation,
    waiting::local_line,
    holding::renewal_delayed,
    holding::renewal_reply_lost,
    holding::lost_by_the_clock,
    holding::held_up_past_max_hold,
    holding::lost_to_others,
    holding::revoked,
    holding::renewals_travel_together,
    holding::release_unanswered,
    quorum::quorum_grant,
    quorum::quorum_renewals,
    quorum::quorum_node_down,
    quorum::quorum_late_nodes,
    quorum::quorum_lost_tally,
    quorum::quorum_raise_fails,
    quorum::quorum_grant_too_late,
    memory::quorum_birth,
    memory::quorum_restarted_node,
    memory::quorum_rejoined_node,
    memory::quorum_seen_to_vote,
    memory::quorum_bounds,
    runs::run_finished,
    runs::run_done,
    runs::run_joined,
    runs::run_finish_unanswered,
    runs::run_lost,
    runs::run_result,
    runs::quorum_run,
    runs::quorum_run_result,
    runs::quorum_run_in_doubt,
    client::credentials,
    client::bad_commands,
    client::closing,
    client::stray_responses,
    client::clocks,
    client::limits,
];
