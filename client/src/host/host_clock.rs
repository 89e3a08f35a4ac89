//! Checks that this machine's clock keeps the rate that leases count on.

use std::path::Path;

use leasehold_core::config::Drift;

use crate::admin::checks::host as check;
use crate::admin::doctor::Finding;

/// The files of chrony's settings, by distribution.
const CHRONY: [(&str, &str); 2] =
    [("/etc/chrony/chrony.conf", "/etc/chrony/conf.d"), ("/etc/chrony.conf", "/etc/chrony.d")];
/// How fast chrony may move a clock unless it is told otherwise, in parts per million.
const CHRONY_DEFAULT: f64 = 83_333.333;

/// The clock as the kernel runs it now, and as fast as a time daemon may make it run.
pub(crate) fn examine(drift: Drift) -> Finding {
    let slew = CHRONY.iter().find_map(|(file, folder)| Some((*file, max_slew(&settings(file, folder)?))));
    judge(drift.ppm(), kernel_ppm(), slew)
}

fn judge(drift_ppm: u32, kernel: Option<f64>, slew: Option<(&str, f64)>) -> Finding {
    let bound = f64::from(drift_ppm);
    let lower = "maxslewrate 5000";
    match (kernel, slew) {
        (Some(ppm), _) if ppm.abs() > bound => check::CLOCK_RATE.fails(format!(
                "the kernel runs this machine's clock at {ppm:+.0} ppm, and leases count on at most {drift_ppm} ppm: \
                 two clients may believe that they hold the same lock"
            ),
            format!(
                "let the time daemon move the clock more slowly (chrony: {lower}), or give all clients a larger \
                 drift_ppm"
            ),
        ),
        (_, Some((file, ppm))) if ppm > bound => check::CLOCK_RATE.warns(format!(
                "chrony may move this machine's clock by {ppm:.0} ppm ({file}), and leases count on at most {drift_ppm} \
                 ppm"
            ),
            format!("write `{lower}` into {file}, on the machines of the stores too; see docs/reliability.md"),
        ),
        (Some(ppm), _) => check::CLOCK_RATE.passes(format!("{ppm:+.0} ppm now, within {drift_ppm} ppm")),
        (None, _) => {
            check::CLOCK_RATE.passes("the kernel does not tell, and no time daemon is known to move it too fast")
        }
    }
}

/// All of chrony's settings; `None` where it is not installed.
fn settings(file: &str, folder: &str) -> Option<String> {
    let mut text = std::fs::read_to_string(file).ok()?;
    let more = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_read = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "conf");
    for path in more.filter(is_read) {
        text.push('\n');
        text.push_str(&read(&path));
    }
    Some(text)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn max_slew(settings: &str) -> f64 {
    let value = |line: &str| {
        let mut words = line.split_whitespace();
        let is_it = words.next()?.eq_ignore_ascii_case("maxslewrate");
        is_it.then(|| words.next()?.parse().ok()).flatten()
    };
    settings.lines().filter_map(value).next_back().unwrap_or(CHRONY_DEFAULT)
}

/// By how much the kernel changes the rate of its clocks, in parts per million.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn kernel_ppm() -> Option<f64> {
    // SAFETY: all of its fields are integers, for which zero is a value.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: it points to a timex, and its modes are 0, so that nothing is set.
    if unsafe { libc::adjtimex(&raw mut timex) } < 0 {
        return None;
    }
    // A tick is 10 ms; the frequency has 16 bits behind the point.
    #[allow(clippy::cast_precision_loss, reason = "both are far below 2^52")]
    Some((timex.tick as f64 - 10_000.0) * 100.0 + timex.freq as f64 / 65_536.0)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn kernel_ppm() -> Option<f64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::doctor::Severity;

    #[test]
    fn settings_of_chrony_are_read_as_it_reads_them() {
        assert_eq!(max_slew("pool 2.debian.pool.ntp.org iburst\nmakestep 1 3\n"), CHRONY_DEFAULT);
        assert_eq!(max_slew("# maxslewrate 1\n  MaxSlewRate 5000 # calm\n"), 5_000.0);
        assert_eq!(max_slew("maxslewrate 100\nmaxslewrate 500.5\n!maxslewrate 9"), 500.5);
        assert_eq!(max_slew("maxslewrate\nmaxslewrate fast\nmaxslewrates 9"), CHRONY_DEFAULT);
        let folder = tempfile::tempdir().unwrap();
        let main = folder.path().join("chrony.conf");
        let (main, more) = (main.to_str().unwrap(), folder.path().to_str().unwrap());
        assert_eq!(settings(main, more), None);
        std::fs::write(main, "maxslewrate 7").unwrap();
        std::fs::write(folder.path().join("more.conf.off"), "maxslewrate 8").unwrap();
        assert_eq!(max_slew(&settings(main, "/nowhere").unwrap()), 7.0);
        assert_eq!(max_slew(&settings(main, more).unwrap()), 7.0);
        std::fs::remove_file(folder.path().join("more.conf.off")).unwrap();
        std::fs::write(folder.path().join("other.conf"), "maxslewrate 9").unwrap();
        std::fs::write(main, "").unwrap();
        assert_eq!(max_slew(&settings(main, more).unwrap()), 9.0);
    }

    #[test]
    fn a_clock_that_may_run_too_fast_is_reported() {
        let default = Some(("/etc/chrony.conf", CHRONY_DEFAULT));
        for (drift, kernel, slew, severity, words) in [
            (10_000, Some(12.0), None, Severity::Good, "+12 ppm"),
            (10_000, None, None, Severity::Good, "does not tell"),
            (10_000, Some(0.0), Some(("/etc/chrony.conf", 5_000.0)), Severity::Good, "within 10000 ppm"),
            (10_000, Some(0.0), default, Severity::Warning, "83333 ppm (/etc/chrony.conf)"),
            (100_000, Some(-90_000.0), default, Severity::Good, "-90000 ppm"),
            (10_000, Some(-83_000.0), default, Severity::Problem, "-83000 ppm"),
            (10_000, Some(10_500.0), None, Severity::Problem, "+10500 ppm"),
        ] {
            let finding = judge(drift, kernel, slew);
            assert!(finding.severity == severity && finding.what.contains(words), "{finding:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_reports_its_rate() {
        // No machine that tests run on is off by more than a time daemon may bring about.
        assert!(kernel_ppm().is_none_or(|ppm| ppm.abs() < 110_000.0));
    }
}
