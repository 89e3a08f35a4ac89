//! The program of `testing/servers` that starts servers for tests in other languages.

use crate::interop::Peers;
use crate::run::{self, Result};
use crate::steps::Steps;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

pub const PACKAGE: &str = "leasehold-servers";
/// The variable in which tests find the program.
pub const PROGRAM: &str = "LEASEHOLD_SERVERS";

/// Builds the program, and tells the tests that `command` runs where it is.
pub fn tell(steps: &mut Steps, command: &mut Command) -> Result {
    let mut build = run::cargo_ci("build");
    build.args(["-p", PACKAGE, "--bin", PACKAGE]);
    steps.build("build servers", build)?;
    command.env(PROGRAM, program()?);
    Ok(())
}

fn program() -> Result<PathBuf> {
    Ok(run::built()?.join(PACKAGE))
}

/// One DynamoDB Local for all test programs of a run: each would spend seconds of a processor to start its own.
pub struct Dynamodb {
    child: Child,
    port: String,
}

impl Dynamodb {
    /// Starts it, once everything is built.
    pub fn start(peers: &Peers) -> Result<Self> {
        let mut command = Command::new(program()?);
        peers.tell(&mut command);
        command.arg("dynamodb").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| run::failed("DynamoDB Local", &command, &error.to_string()))?;
        let mut facts = String::new();
        if let Some(output) = child.stdout.take() {
            let _ = BufReader::new(output).read_line(&mut facts);
        }
        let Some(port) = port(&facts) else {
            let _ = child.kill();
            return Err(run::failed("DynamoDB Local", &command, "it prints no port"));
        };
        Ok(Self { child, port })
    }

    /// Tells the tests that `command` runs where it is.
    pub fn tell(&self, command: &mut Command) {
        command.env("LEASEHOLD_DYNAMODB_PORT", &self.port);
    }
}

impl Drop for Dynamodb {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.child.stdin.take());
        let _ = run::wait(&mut self.child);
    }
}

/// The port in the JSON object that the program prints.
fn port(facts: &str) -> Option<String> {
    let (_, rest) = facts.split_once("\"port\":")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    (!digits.is_empty()).then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_read_from_what_the_program_prints() {
        assert_eq!(port(r#"{"port":15000,"url":"http://127.0.0.1:15000"}"#).as_deref(), Some("15000"));
        assert_eq!(port(r#"{"url":"http://127.0.0.1:15000"}"#), None);
        assert_eq!(port(""), None);
    }
}
