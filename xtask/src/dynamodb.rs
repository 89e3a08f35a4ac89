//! One DynamoDB Local for all test programs of a run: each would spend seconds of a processor to start its own.

use crate::interop::Peers;
use crate::run::{self, Result};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Of `testing/servers`.
const PROGRAM: &str = "dynamodb-local";

/// A server that is stopped when it is dropped.
pub struct Server {
    child: Child,
    port: String,
}

impl Server {
    /// Starts it, once everything is built.
    pub fn start(peers: &Peers) -> Result<Self> {
        let mut command = Command::new(run::built()?.join(PROGRAM));
        peers.tell(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| run::failed("DynamoDB Local", &command, &error.to_string()))?;
        let mut port = String::new();
        if let Some(output) = child.stdout.take() {
            let _ = BufReader::new(output).read_line(&mut port);
        }
        let port = port.trim().to_owned();
        if port.is_empty() {
            let _ = child.kill();
            return Err(run::failed("DynamoDB Local", &command, "it prints no port"));
        }
        Ok(Self { child, port })
    }

    /// Tells the tests that `command` runs where it is.
    pub fn tell(&self, command: &mut Command) {
        command.env("LEASEHOLD_DYNAMODB_PORT", &self.port);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.child.stdin.take());
        let _ = run::wait(&mut self.child);
    }
}
