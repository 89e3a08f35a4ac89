//! The meaning of an answer without success: certainly not applied, and why, or unknown.

use alloc::format;

use serde_json::Value as Json;

use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Outcome, Refusal};

use super::Response;
use crate::dynamodb::json::object;
use crate::redis::said;

/// The gRPC codes that the gateway shows.
mod code {
    pub(super) const INVALID: u64 = 3;
    pub(super) const PERMISSION: u64 = 7;
    pub(super) const EXHAUSTED: u64 = 8;
    pub(super) const PRECONDITION: u64 = 9;
    pub(super) const UNIMPLEMENTED: u64 = 12;
    pub(super) const UNAUTHENTICATED: u64 = 16;
}

/// Judges a response whose status is not 200. Credentials that are refused may be asked for again.
pub fn classify(response: &Response) -> Outcome {
    let fields = object(&response.body).unwrap_or_default();
    let text = |name| fields.get(name).and_then(Json::as_str);
    let message = text("message").or_else(|| text("error")).unwrap_or_default();
    let denied = |kind, advice: &str| {
        let detail = format!("{advice} (etcd said: {})", said(message));
        Outcome::NotApplied(Refusal::Denied(Denial::new(kind, &detail)))
    };
    let fault = |kind, advice: &str| Fault::new(kind, &format!("{advice} (etcd said: {})", said(message)));
    match fields.get("code").and_then(Json::as_u64) {
        Some(code::UNAUTHENTICATED) => {
            Outcome::NotApplied(Refusal::NeedsCredentials(fault(FaultKind::Server, "the token has expired")))
        }
        Some(code::INVALID) if message.contains("revision of auth store") => {
            Outcome::NotApplied(Refusal::NeedsCredentials(fault(FaultKind::Server, "users or roles have changed")))
        }
        Some(code::INVALID) if message.contains("user name is empty") => {
            denied(DenialKind::Permission, "etcd wants a login: write user and password into the url")
        }
        Some(code::INVALID) if message.contains("authentication failed") => {
            denied(DenialKind::Permission, "user or password are wrong")
        }
        Some(code::INVALID) => denied(DenialKind::Other, "etcd does not accept the request"),
        Some(code::PERMISSION) => denied(
            DenialKind::Permission,
            "the user needs a role with readwrite on the prefix of the locks: `etcdctl role grant-permission ROLE \
             readwrite --prefix=true leasehold/`",
        ),
        Some(code::EXHAUSTED) if message.contains("space") => denied(
            DenialKind::StorageFull,
            "etcd is full and takes no writes: compact it, defragment it, then `etcdctl alarm disarm`",
        ),
        Some(code::EXHAUSTED) => {
            Outcome::NotApplied(Refusal::Throttled(fault(FaultKind::Busy, "etcd has too many requests")))
        }
        Some(code::PRECONDITION) if message.contains("not enabled") => {
            denied(DenialKind::Permission, "etcd has no users: write the url without user and password")
        }
        Some(code::UNIMPLEMENTED) => denied(DenialKind::Other, "this is no etcd of version 3.4 or newer"),
        Some(_) => Outcome::Unknown(fault(FaultKind::Server, "etcd has failed")),
        // Never the body: a page of a proxy may show what was sent.
        None if response.status == 404 || (300..400).contains(&response.status) => {
            let detail = format!("there is no etcd of version 3.4 or newer here (HTTP status {})", response.status);
            Outcome::NotApplied(Refusal::Denied(Denial::new(DenialKind::Other, &detail)))
        }
        None => {
            let detail = format!("the answer is none of etcd's (HTTP status {})", response.status);
            Outcome::Unknown(Fault::new(FaultKind::Server, &detail))
        }
    }
}
