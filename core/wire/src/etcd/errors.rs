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
    match fields.get("code").and_then(Json::as_u64) {
        Some(code) => of_code(code, message),
        None if contains(&response.body, b"CommonName of client") => Outcome::NotApplied(Refusal::Denied(Denial::new(
            DenialKind::Permission,
            "an etcd with users takes client certificates over its gateway only without a CommonName: issue one without, \
             and write user and password into the url",
        ))),
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

fn contains(body: &[u8], words: &[u8]) -> bool {
    body.windows(words.len()).any(|part| part == words)
}

/// Judges an error that names its gRPC code: `rpc error: code = PermissionDenied desc = ...`.
pub(super) fn of_reason(reason: &str) -> Outcome {
    let named = reason.split_once("code = ").map_or("", |(_, rest)| rest.split(' ').next().unwrap_or_default());
    let code = match named {
        "InvalidArgument" => code::INVALID,
        "PermissionDenied" => code::PERMISSION,
        "Unauthenticated" => code::UNAUTHENTICATED,
        _ => 0,
    };
    of_code(code, reason)
}

/// Judges an error by its gRPC code.
pub(super) fn of_code(code: u64, message: &str) -> Outcome {
    let denied = |kind, advice: &str| {
        let detail = format!("{advice} (etcd said: {})", said(message));
        Outcome::NotApplied(Refusal::Denied(Denial::new(kind, &detail)))
    };
    let fault = |kind, advice: &str| Fault::new(kind, &format!("{advice} (etcd said: {})", said(message)));
    match code {
        code::UNAUTHENTICATED => {
            Outcome::NotApplied(Refusal::NeedsCredentials(fault(FaultKind::Server, "the token has expired")))
        }
        code::INVALID if message.contains("revision of auth store") => {
            Outcome::NotApplied(Refusal::NeedsCredentials(fault(FaultKind::Server, "users or roles have changed")))
        }
        code::INVALID if message.contains("user name is empty") => {
            denied(DenialKind::Permission, "etcd wants a login: write user and password into the url")
        }
        code::INVALID if message.contains("authentication failed") => {
            denied(DenialKind::Permission, "user or password are wrong")
        }
        code::INVALID => denied(DenialKind::Other, "etcd does not accept the request"),
        code::PERMISSION => denied(
            DenialKind::Permission,
            "the user needs a role with readwrite on the prefix of the locks: `etcdctl role grant-permission ROLE \
             readwrite --prefix=true leasehold/`",
        ),
        code::EXHAUSTED if message.contains("space") => denied(
            DenialKind::StorageFull,
            "etcd is full and takes no writes: compact it, defragment it, then `etcdctl alarm disarm`",
        ),
        code::EXHAUSTED => {
            Outcome::NotApplied(Refusal::Throttled(fault(FaultKind::Busy, "etcd has too many requests")))
        }
        code::PRECONDITION if message.contains("not enabled") => {
            denied(DenialKind::Permission, "etcd has no users: write the url without user and password")
        }
        code::UNIMPLEMENTED => denied(DenialKind::Other, "this is no etcd of version 3.4 or newer"),
        _ => Outcome::Unknown(fault(FaultKind::Server, "etcd has failed")),
    }
}
