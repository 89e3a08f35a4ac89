//! The only place where leasehold reads a clock.
//!
//! Leases need a clock that goes on counting while the machine is suspended. Rust's `Instant` does not on Linux and
//! macOS, so it is not used anywhere.

#![allow(clippy::disallowed_methods, reason = "every other file asks this one for the time")]

use leasehold_core::store::BootId;
#[cfg(feature = "sqlite")]
use leasehold_core::store::StoreNow;

#[cfg(leasehold_concurrency)]
pub(crate) use leasehold_scheduler::clock::{monotonic, unix_ms};
#[cfg(not(leasehold_concurrency))]
pub(crate) use system::{monotonic, unix_ms};

#[cfg(not(any(unix, windows)))]
compile_error!("leasehold runs on Unix and Windows: it knows no clock of this system that counts suspended time");

/// The operating system's clocks.
#[cfg(all(unix, not(leasehold_concurrency)))]
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

/// The operating system's clocks.
#[cfg(all(windows, not(leasehold_concurrency)))]
mod system {
    use std::sync::OnceLock;
    use std::time::{SystemTime, UNIX_EPOCH};

    use leasehold_core::Monotonic;
    use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};

    /// Counts suspended time, from the start of the system on, the same for all processes.
    pub(crate) fn monotonic() -> Monotonic {
        static FREQUENCY: OnceLock<u64> = OnceLock::new();
        // SAFETY: each call writes one number, to a place that is valid for it. Neither fails since Windows XP.
        let read = |call: unsafe extern "system" fn(*mut i64) -> i32| unsafe {
            let mut value = 0;
            call(&raw mut value);
            u64::try_from(value).unwrap_or(0)
        };
        let per_second = (*FREQUENCY.get_or_init(|| read(QueryPerformanceFrequency))).max(1);
        let ticks = read(QueryPerformanceCounter);
        let rest = u128::from(ticks % per_second) * 1_000_000_000 / u128::from(per_second);
        let whole = (ticks / per_second).saturating_mul(1_000_000_000);
        Monotonic::from_ns(whole.saturating_add(u64::try_from(rest).unwrap_or(0)))
    }

    /// Milliseconds since 1970; 0 when the wall clock stands before that.
    pub(crate) fn unix_ms() -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

/// The clocks of an embedded store on this machine.
#[cfg(feature = "sqlite")]
pub(crate) fn store_now(boot: BootId) -> StoreNow {
    StoreNow { boot, uptime: monotonic(), unix_ms: unix_ms() }
}

/// Names the stretch of time in which this process's [`monotonic`] values are comparable with another process's: the
/// kernel's boot, and the time namespace, since a container may have its clock shifted.
#[cfg(unix)]
pub(crate) fn boot_id() -> std::io::Result<BootId> {
    let namespace = std::fs::read_link("/proc/self/ns/time").map(|link| link.into_os_string()).unwrap_or_default();
    let offset = std::fs::read_to_string("/proc/self/timens_offsets").ok().and_then(|text| boot_offset(&text));
    Ok(shifted(in_namespace(read_boot_id()?, namespace.as_encoded_bytes()), offset))
}

/// The offset of the boot-time clock in this time namespace, as the kernel writes it; `None` without one.
///
/// The number of a namespace that has ended is given to another one, whose clock may be shifted differently.
#[cfg(unix)]
fn boot_offset(offsets: &str) -> Option<(i64, i64)> {
    let mut words = offsets.lines().find_map(|line| line.trim().strip_prefix("boottime"))?.split_whitespace();
    let offset: (i64, i64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    (offset != (0, 0)).then_some(offset)
}

#[cfg(unix)]
fn shifted(BootId(mut boot): BootId, offset: Option<(i64, i64)>) -> BootId {
    let Some((seconds, ns)) = offset else { return BootId(boot) };
    for (at, byte) in seconds.to_le_bytes().into_iter().chain(ns.to_le_bytes()).enumerate() {
        boot[at] ^= byte;
    }
    BootId(boot)
}

/// Names the system's start, by its number on this installation.
#[cfg(all(feature = "sqlite", windows))]
pub(crate) fn boot_id() -> std::io::Result<BootId> {
    let mut boot = [0_u8; 16];
    let (installation, counter) = boot.split_at_mut(12);
    let text = registry::text("SOFTWARE\\Microsoft\\Cryptography", "MachineGuid")?;
    for (at, byte) in text.iter().enumerate() {
        installation[at % 12] = installation[at % 12].rotate_left(1) ^ byte;
    }
    let memory = "SYSTEM\\CurrentControlSet\\Control\\Session Manager\\Memory Management\\PrefetchParameters";
    counter.copy_from_slice(&registry::number(memory, "BootId")?.to_le_bytes());
    Ok(BootId(boot))
}

/// Values of this machine in the registry.
#[cfg(all(feature = "sqlite", windows))]
mod registry {
    use std::io;

    use windows_sys::Win32::System::Registry::{HKEY_LOCAL_MACHINE, RRF_RT_REG_DWORD, RRF_RT_REG_SZ, RegGetValueW};

    pub(crate) fn number(key: &str, name: &str) -> io::Result<u32> {
        let mut bytes = [0; 4];
        value(key, name, RRF_RT_REG_DWORD, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// A short text, in 16-bit characters.
    pub(crate) fn text(key: &str, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = [0; 128];
        let length = value(key, name, RRF_RT_REG_SZ, &mut bytes)?;
        Ok(bytes[..length].to_vec())
    }

    fn value(key: &str, name: &str, kind: u32, bytes: &mut [u8]) -> io::Result<usize> {
        let wide = |text: &str| text.encode_utf16().chain([0]).collect::<Vec<u16>>();
        let (path, value) = (wide(key), wide(name));
        let mut length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        // SAFETY: both texts end with 0, the buffer has the length that is named, and nothing else is written to.
        let code = unsafe {
            RegGetValueW(
                HKEY_LOCAL_MACHINE,
                path.as_ptr(),
                value.as_ptr(),
                kind,
                std::ptr::null_mut(),
                bytes.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        match code {
            0 => Ok(length as usize),
            code => {
                let error = io::Error::from_raw_os_error(i32::try_from(code).unwrap_or(i32::MAX));
                Err(io::Error::new(error.kind(), format!("the registry has no HKLM\\{key}\\{name}: {error}")))
            }
        }
    }
}

#[cfg(unix)]
fn in_namespace(mut boot: [u8; 16], namespace: &[u8]) -> BootId {
    for (at, byte) in namespace.iter().enumerate() {
        boot[at % 16] = boot[at % 16].rotate_left(1) ^ byte;
    }
    BootId(boot)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn read_boot_id() -> std::io::Result<[u8; 16]> {
    parse_uuid(&std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?)
}

#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
fn read_boot_id() -> std::io::Result<[u8; 16]> {
    let output = std::process::Command::new("sysctl").args(["-n", "kern.bootsessionuuid"]).output()?;
    parse_uuid(&String::from_utf8_lossy(&output.stdout))
}

#[cfg(unix)]
fn parse_uuid(text: &str) -> std::io::Result<[u8; 16]> {
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let mut bytes = [0; 16];
    for (at, byte) in bytes.iter_mut().enumerate() {
        let pair = digits.get(2 * at..2 * at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        *byte = pair.ok_or_else(|| std::io::Error::other(format!("the boot id {:?} is no UUID", text.trim())))?;
    }
    Ok(bytes)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_boot_has_the_id_that_the_kernel_gave_it() {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let read: String = read_boot_id().unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(read, kernel.trim().replace('-', ""));
        let namespace = std::fs::read_link("/proc/self/ns/time").unwrap();
        let namespace = in_namespace(read_boot_id().unwrap(), namespace.as_os_str().as_encoded_bytes());
        let offsets = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
        assert_eq!(boot_id().unwrap(), shifted(namespace, boot_offset(&offsets)));
    }

    #[test]
    fn another_boot_and_another_namespace_have_other_ids() {
        let id = in_namespace([1; 16], b"time:[4026531834]");
        assert_ne!(id, in_namespace([2; 16], b"time:[4026531834]"));
        assert_ne!(id, in_namespace([1; 16], b"time:[4026531835]"));
    }

    #[test]
    fn a_namespace_with_a_shifted_clock_has_another_id() {
        let id = |offsets: &str| shifted(in_namespace([1; 16], b"time:[4026532177]"), boot_offset(offsets));
        let plain = in_namespace([1; 16], b"time:[4026532177]");
        for none in
            ["", "monotonic           0         0\nboottime            0         0\n", "boottime x y", "boottime 1"]
        {
            assert_eq!(id(none), plain, "{none:?}");
        }
        let far = id("monotonic           0         0\nboottime       500000         0\n");
        let back = id("monotonic           7         0\nboottime      -500000         5\n");
        assert!(far != plain && back != plain && far != back);
    }
}
