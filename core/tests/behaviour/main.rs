//! The behaviour of the core, one file for each, stepped by hand with time as a number.

mod common;

mod acquire_and_release;
mod local_line;
mod loss_by_the_clock;
mod lost_reply_of_renewal;
mod recovered_reply;
mod release_and_cancel;
mod renewal;
mod takeover;
mod unknown_acquire_given_up;
mod waiting;
