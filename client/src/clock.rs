//! The only place where leasehold reads a clock.
//!
//! Leases need a clock that goes on counting while the machine is suspended. Rust's `Instant` does not on Linux and
//! macOS, so it is not used anywhere.

#![allow(clippy::disallowed_methods, reason = "every other file asks this one for the time")]

use leasehold_core::Now;
use leasehold_core::store::{BootId, StoreNow};

#[cfg(leasehold_concurrency)]
pub(crate) use leasehold_scheduler::clock::{monotonic, unix_ms};
#[cfg(not(leasehold_concurrency))]
pub(crate) use system::{monotonic, unix_ms};

#[cfg(not(unix))]
compile_error!("leasehold runs on Unix only for now: its clock, fork handling and signals have no Windows form yet");

/// The operating system's clocks.
#[cfg(not(leasehold_concurrency))]
mod system {
    use leasehold_core::Monotonic;
    use rustix::time::{ClockId, clock_gettime};

    /// Counts suspended time: `CLOCK_BOOTTIME` on Linux. Elsewhere `CLOCK_MONOTONIC`, which on macOS counts it as well.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const MONOTONIC: ClockId = ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const MONOTONIC: ClockId = ClockId::Monotonic;

    /// The monotonic clock alone; a few nanoseconds.
    pub(crate) fn monotonic() -> Monotonic {
        let at = clock_gettime(MONOTONIC);
        let seconds = u64::try_from(at.tv_sec).unwrap_or(0);
        let ns = u64::try_from(at.tv_nsec).unwrap_or(0);
        Monotonic::from_ns(seconds.saturating_mul(1_000_000_000).saturating_add(ns))
    }

    /// Milliseconds since 1970; 0 when the wall clock stands before that.
    pub(crate) fn unix_ms() -> u64 {
        let at = clock_gettime(ClockId::Realtime);
        let seconds = u64::try_from(at.tv_sec).unwrap_or(0);
        let ms = u64::try_from(at.tv_nsec / 1_000_000).unwrap_or(0);
        seconds.saturating_mul(1_000).saturating_add(ms)
    }
}

/// Both clocks.
pub(crate) fn now() -> Now {
    Now { monotonic: monotonic(), unix_ms: unix_ms() }
}

/// The clocks of an embedded store on this machine.
pub(crate) fn store_now(boot: BootId) -> StoreNow {
    StoreNow { boot, uptime: monotonic(), unix_ms: unix_ms() }
}

/// Names the stretch of time in which this process's [`monotonic`] values are comparable with another process's: the
/// kernel's boot, and the time namespace, since a container may have its clock shifted.
#[cfg(feature = "sqlite")]
pub(crate) fn boot_id() -> std::io::Result<BootId> {
    let namespace = std::fs::read_link("/proc/self/ns/time").map(|link| link.into_os_string()).unwrap_or_default();
    Ok(in_namespace(read_boot_id()?, namespace.as_encoded_bytes()))
}

#[cfg(feature = "sqlite")]
fn in_namespace(mut boot: [u8; 16], namespace: &[u8]) -> BootId {
    for (at, byte) in namespace.iter().enumerate() {
        boot[at % 16] = boot[at % 16].rotate_left(1) ^ byte;
    }
    BootId(boot)
}

#[cfg(all(feature = "sqlite", any(target_os = "linux", target_os = "android")))]
fn read_boot_id() -> std::io::Result<[u8; 16]> {
    parse_uuid(&std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?)
}

#[cfg(all(feature = "sqlite", not(any(target_os = "linux", target_os = "android"))))]
fn read_boot_id() -> std::io::Result<[u8; 16]> {
    let output = std::process::Command::new("sysctl").args(["-n", "kern.bootsessionuuid"]).output()?;
    parse_uuid(&String::from_utf8_lossy(&output.stdout))
}

#[cfg(feature = "sqlite")]
fn parse_uuid(text: &str) -> std::io::Result<[u8; 16]> {
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let mut bytes = [0; 16];
    for (at, byte) in bytes.iter_mut().enumerate() {
        let pair = digits.get(2 * at..2 * at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        *byte = pair.ok_or_else(|| std::io::Error::other(format!("the boot id {:?} is no UUID", text.trim())))?;
    }
    Ok(bytes)
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_boot_has_the_id_that_the_kernel_gave_it() {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let read: String = read_boot_id().unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(read, kernel.trim().replace('-', ""));
        let namespace = std::fs::read_link("/proc/self/ns/time").unwrap();
        assert_eq!(boot_id().unwrap(), in_namespace(read_boot_id().unwrap(), namespace.as_os_str().as_encoded_bytes()));
    }

    #[test]
    fn another_boot_and_another_namespace_have_other_ids() {
        let id = in_namespace([1; 16], b"time:[4026531834]");
        assert_ne!(id, in_namespace([2; 16], b"time:[4026531834]"));
        assert_ne!(id, in_namespace([1; 16], b"time:[4026531835]"));
    }
}
