#![no_std]
#![doc = include_str!("../README.md")]
//! # Codecs and exchanges
//!
//! A *codec* knows how to speak to one kind of server and nothing of connections. From it the host
//! begins an *exchange* for each [`Transmit`](leasehold_core::Transmit), performs what the exchange asks for, hands in what came
//! back, and is given the outcomes, or is asked for one more round:
//!
//! ```
//! use leasehold_core::op::{Acquire, Applied, LockOp, Op, Outcome};
//! use leasehold_wire::Progress;
//! use leasehold_wire::redis::{Codec, Settings};
//! use leasehold_wire::resp::{Decoder, Limits, encode};
//! use leasehold_core::{LockId, Nonce, Owner, RequestId, Resource, Seq, Token};
//! use std::time::Duration;
//!
//! let acquire = Acquire::new(Nonce::from_bytes([7; 16]), Seq::new(1), Duration::from_secs(30));
//! let op = Op::Acquire(Box::new(Acquire { owner: Owner::new("docs")?, ..acquire }));
//! let ops = [LockOp { lock: LockId::new(1), resource: Resource::new("invoice/42")?, op }];
//!
//! // A server that does not know the script yet, then does as it is told.
//! let mut answers = ["-NOSCRIPT No matching script.\r\n", "*3\r\n$7\r\ngranted\r\n$13\r\n1700000000000\r\n$1\r\n1\r\n"].iter();
//! let mut decoder = Decoder::new(Limits::default());
//!
//! let codec = Codec::new(Settings::default());
//! let begun = codec.begin(RequestId::new(1), &ops, Duration::from_secs(5), 1_700_000_000_000);
//! let mut exchange = begun.expect("only a cluster refuses names");
//! let outcomes = loop {
//!     let mut sent = Vec::new();
//!     exchange.commands().iter().for_each(|command| encode(command, &mut sent));
//!     // Here a real host writes `sent` and reads until there is a reply to each command.
//!     decoder.push(answers.next().unwrap().as_bytes());
//!     let reply = decoder.next()?.unwrap();
//!     match exchange.replies(vec![reply]) {
//!         Progress::Done(outcomes) => break outcomes,
//!         Progress::Again => {}
//!     }
//! };
//! let counter = Token::new(1_700_000_000_000).unwrap();
//! assert_eq!(outcomes, [Outcome::Applied(Applied::Acquired { counter })]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | kind of server | how it is spoken to |
//! |---|---|
//! | Redis, Valkey | [`redis`] over [`resp`], or over HTTP by [`rest`] |
//! | DynamoDB | [`dynamodb`], signed by [`sigv4`] |
//! | etcd | [`etcd`]: its JSON gateway |
//! | S3, Azure Blob Storage, Google Cloud Storage | [`objects`]: conditional writes, for S3 signed by [`sigv4`] |
//! | PostgreSQL | [`postgres`]: statements for a driver of the host's |
//!
//! [`memory`] is a store for tests, without a format.
//!
//! [`client`] does all of that for a host that has no use for the parts: it is the core's own client with a codec for
//! each node, and hands out requests that are ready to be sent.
//!
//! An exchange that brings no replies (no connection, a timeout, a reset) is dropped, and its operations end as
//! [`TransportFault::outcome`](leasehold_core::op::TransportFault::outcome) says; so does a connection whose bytes make no sense.
//! Replies are not trusted: what does not fit the request is never a grant, and nothing that a server says makes this
//! code panic or take memory without bound.
#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test is about one of them"))]

extern crate alloc;

pub mod cas;
pub mod client;
mod decide;
pub mod dynamodb;
pub mod errors;
pub mod etcd;
mod exchange;
pub mod fence;
mod http;
pub mod listing;
pub mod memory;
pub mod objects;
pub mod postgres;
pub mod redis;
pub mod resp;
pub mod rest;
pub mod session_text;
pub mod sigv4;

pub use exchange::{Exchange, Progress, Repeat, Repeats};
pub use http::HttpResponse;
