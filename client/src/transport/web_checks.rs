//! Checks of the doctor that are the same for every store behind HTTP.

use crate::admin::doctor::{Check, Finding};
use crate::url::Exposure;

/// A slower answer is reported, in milliseconds: a renewal needs one.
#[cfg(any(feature = "etcd", feature = "objects"))]
const SLOW_MS: u128 = 500;

/// The exposure of requests: `harm` is what a listener can do with them.
pub(super) fn way(check: Check, reach: Exposure, harm: &str, advice: &str) -> Finding {
    match reach {
        Exposure::Tls => check.passes("TLS"),
        Exposure::Loopback => check.passes("the server is on this machine"),
        Exposure::Plaintext => check.fails(
            format!("nothing is encrypted: everybody on the network path can read requests, and {harm}"),
            format!("{advice}, or keep to a network that you trust"),
        ),
    }
}

/// The time that a read took, in milliseconds.
#[cfg(any(feature = "etcd", feature = "objects"))]
pub(super) fn latency(check: Check, took: u128, advice: &str) -> Finding {
    let what = format!("a read took {took} ms");
    if took <= SLOW_MS {
        return check.passes(what);
    }
    check.fails(what, format!("each operation takes at least as long: {advice}"))
}
