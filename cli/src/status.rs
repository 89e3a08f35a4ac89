//! Every exit status of the program, in one place. The numbers above 63 are those of `sysexits.h` where it has one.

use leasehold::ErrorKind;

/// Done; for `inspect`, the lock is held or the run is done; for `doctor`, all is good; for `once`, it was done before,
/// unless `--done-status` is given.
pub const DONE: u8 = 0;
/// `inspect` and `break`: the lock is free. `doctor`: nothing worse than warnings. `quorum init`: nothing was done,
/// because the quorum comes up by itself. `quorum status`: no majority votes. `quorum join`: not all nodes that answer
/// vote. `once --forget`: there is no completion.
pub const NOTHING: u8 = 1;
/// `break`: not confirmed, or not broken because the lock changed hands. `doctor`: a problem.
pub const NOT_DONE: u8 = 2;
/// The arguments, the store's url or the resource's name are wrong.
pub const USAGE: u8 = 64;
/// The store cannot be reached, or does not answer.
pub const UNAVAILABLE: u8 = 69;
/// An internal error: no thread could be started, or there is a bug in leasehold.
pub const INTERNAL: u8 = 70;
/// The operating system refuses a thread, a pipe or a process.
pub const SYSTEM: u8 = 71;
/// `once`: the command has succeeded, and no answer of the store says that this is written down.
pub const UNCONFIRMED: u8 = 73;
/// The answer cannot be written.
pub const OUTPUT: u8 = 74;
/// `exec`: the lock could not be acquired, unless `--busy-status` is given. `once`: somebody else runs it, unless
/// `--running-status` is given.
pub const BUSY: u8 = 75;
/// `exec`, `once` and `elect`: the lease was lost or in danger, unless `--lost-status` is given.
pub const LOST: u8 = 76;
/// `once --save-output`: the command has done the work and its completion stands, without its output.
pub const RESULT_NOT_KEPT: u8 = 74;
/// The store refuses: permissions, a missing table, a record that cannot be read.
pub const REFUSED: u8 = 77;
/// `once`: the job was begun as often as allowed and never finished, unless `--given-up-status` is given.
pub const GIVEN_UP: u8 = 79;
/// `once --replace`: a newer start has taken the place of this one, unless `--replaced-status` is given.
pub const REPLACED: u8 = 80;
/// `exec` and `once`: the command was found and cannot be run.
pub const NOT_EXECUTABLE: u8 = 126;
/// `exec` and `once`: the command was not found.
pub const NOT_FOUND: u8 = 127;
/// `exec` and `once`: added to the number of the signal that ended the command or the wait for the lock.
pub const SIGNAL: u8 = 128;

/// The status for an error of the client.
pub const fn of(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Busy | ErrorKind::TimedOut => BUSY,
        ErrorKind::Lost => LOST,
        ErrorKind::FinishUnconfirmed => UNCONFIRMED,
        ErrorKind::ResultNotKept => RESULT_NOT_KEPT,
        ErrorKind::GivenUp => GIVEN_UP,
        ErrorKind::StoreUnavailable => UNAVAILABLE,
        ErrorKind::StoreRefused => REFUSED,
        ErrorKind::Config => USAGE,
        ErrorKind::NotOwned
        | ErrorKind::Cancelled
        | ErrorKind::Closed
        | ErrorKind::StaleToken
        | ErrorKind::Done
        | ErrorKind::Internal
        | _ => INTERNAL,
    }
}

/// The status after the end by a signal, as shells show it.
pub const fn of_signal(signal: i32) -> u8 {
    // Signals are numbered from 1 to 64.
    SIGNAL | (signal as u8 & 0x7f)
}
