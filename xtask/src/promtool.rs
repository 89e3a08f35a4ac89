//! The alert rules of `docs/monitoring`, by the tool of Prometheus.

use crate::run::{self, Failure, Result};
use crate::steps::Steps;
use std::path::PathBuf;
use std::process::Command;

const TOOL: &str = "promtool";
/// The Debian package is unpacked and not installed: installed, it would start a server.
const PACKAGE: &str = "prometheus";
const CHECKS: [[&str; 3]; 2] = [["check", "rules", "alerts.yml"], ["test", "rules", "alerts-test.yml"]];

pub fn check_alerts(steps: &mut Steps) -> Result {
    let tool = tool(steps)?;
    for arguments in CHECKS {
        let mut check = Command::new(&tool);
        check.args(arguments).current_dir(run::root().join("docs/monitoring"));
        steps.run(&format!("{TOOL} {}", arguments.join(" ")), check)?;
    }
    Ok(())
}

/// The program on the path, or else from Debian's package.
fn tool(steps: &mut Steps) -> Result<PathBuf> {
    if Command::new(TOOL).arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Ok(TOOL.into());
    }
    let folder = run::target()?.join(TOOL);
    let tool = folder.join("usr/bin").join(TOOL);
    if tool.exists() {
        return Ok(tool);
    }
    let made = std::fs::create_dir_all(&folder);
    made.map_err(|error| Failure::new(format!("cannot make {}: {error}", folder.display())))?;
    let mut unpack = Command::new("sh");
    unpack.args(["-c", &format!("apt-get download -q {PACKAGE} && dpkg -x {PACKAGE}_*.deb .")]).current_dir(&folder);
    steps.run(&format!("unpack {PACKAGE}"), unpack).map_err(|failure| {
        Failure::new(format!("{failure}\n  `{TOOL}` checks the alerts: install it where apt-get cannot download it"))
    })?;
    Ok(tool)
}
