//! Starts a DynamoDB Local for all test programs of a run, prints its port, and stops it when standard input ends.

#![allow(clippy::print_stdout, reason = "the port is its output")]

use std::io;

use leasehold_servers::dynamodb::Server;

fn main() -> io::Result<()> {
    let server = Server::start();
    println!("{}", server.port());
    io::copy(&mut io::stdin(), &mut io::sink()).map(drop)
}
