//! Settings from JavaScript. Lengths of time are milliseconds.

use std::time::Duration;

use leasehold::ffi::Composed;
use leasehold::{ClientBuilder, ElectionRequest, HolderMatch, LockAllRequest, LockRequest, ShardsRequest};
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;

use crate::failure::Failure;

/// Settings of a client.
#[napi(object, object_to_js = false)]
pub struct ConnectOptions {
    /// See `ClientBuilder::owner`.
    pub owner: Option<String>,
    /// See `ClientBuilder::session`.
    pub session: Option<String>,
    /// See `ClientBuilder::drift_ppm`.
    pub drift_ppm: Option<f64>,
    /// See `ClientBuilder::request_timeout`.
    pub request_timeout: Option<f64>,
    /// See `ClientBuilder::max_ttl`.
    pub max_ttl: Option<f64>,
    /// See `ClientBuilder::quorum_id`.
    pub quorum_id: Option<String>,
    /// See `ClientBuilder::create_quorum`.
    pub create_quorum: Option<bool>,
}

/// Settings of one lock.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct LockOptions {
    /// See `LockRequest::ttl`.
    pub ttl: Option<f64>,
    /// See `LockRequest::wait`; infinity is forever.
    pub wait: Option<f64>,
    /// See `LockRequest::owner`.
    pub owner: Option<String>,
    /// See `LockRequest::data`.
    pub data: Option<Uint8Array>,
    /// See `LockRequest::lock_delay`.
    pub lock_delay: Option<f64>,
    /// See `LockRequest::max_hold`.
    pub max_hold: Option<f64>,
    /// See `LockRequest::renew_every`.
    pub renew_every: Option<f64>,
    /// The default is true; `renew: false` turns renewals off.
    pub renew: Option<bool>,
    /// See `LockRequest::fair`.
    pub fair: Option<bool>,
    /// See `LockRequest::watch_holder`.
    pub watch_holder: Option<bool>,
}

/// A description of what is made of locks.
#[napi(object, object_to_js = false)]
pub struct Composition {
    /// `any`, `permit`, `read` or `write`.
    pub kind: String,
    /// The names of the locks, or the name that all of them begin with.
    pub names: Vec<String>,
    /// The number of permits or readers.
    pub count: Option<f64>,
}

impl Composition {
    pub(crate) fn of(self, request: LockRequest) -> Result<Composed, Failure> {
        let name = self.names.first().cloned().unwrap_or_default();
        let count = self.count.map(|number| count("a number of permits or readers", number)).transpose()?;
        Ok(match self.kind.as_str() {
            "permit" => Composed::permit(request, name, count.unwrap_or_default()),
            "read" => Composed::read(request, name, count),
            "write" => Composed::write(request, name, count),
            _ => Composed::any(request, self.names),
        })
    }
}

/// Settings of several locks that are taken together.
#[napi(object, object_to_js = false)]
pub struct AllOptions {
    /// See `LockAllRequest::ttl`.
    pub ttl: Option<f64>,
    /// See `LockAllRequest::wait`; infinity is forever.
    pub wait: Option<f64>,
    /// See `LockAllRequest::owner`.
    pub owner: Option<String>,
    /// See `LockAllRequest::max_hold`.
    pub max_hold: Option<f64>,
}

/// Settings of a candidacy.
#[napi(object, object_to_js = false)]
pub struct ElectOptions {
    /// See `ElectionRequest::ttl`.
    pub ttl: Option<f64>,
    /// See `ElectionRequest::owner`.
    pub owner: Option<String>,
}

/// Settings of a worker on shards.
#[napi(object, object_to_js = false)]
pub struct ShardsOptions {
    /// See `ShardsRequest::count`.
    pub count: Option<f64>,
    /// See `ShardsRequest::ttl`.
    pub ttl: Option<f64>,
    /// See `ShardsRequest::owner`.
    pub owner: Option<String>,
    /// See `ShardsRequest::look_every`.
    pub look_every: Option<f64>,
}

/// The holder that is meant.
#[napi(object, object_to_js = false)]
pub struct HolderOptions {
    /// See `HolderMatch::token`.
    pub token: Option<f64>,
    /// See `HolderMatch::owner`.
    pub owner: Option<String>,
}

impl HolderOptions {
    pub(crate) fn meant(self) -> Result<HolderMatch, Failure> {
        let mut meant = HolderMatch::default();
        if let Some(token) = self.token {
            meant = meant.token(natural("token", token)?);
        }
        if let Some(owner) = self.owner {
            meant = meant.owner(owner);
        }
        Ok(meant)
    }
}

impl ConnectOptions {
    pub(crate) fn builder(self) -> Result<ClientBuilder, Failure> {
        let mut builder = ClientBuilder::default();
        if let Some(owner) = self.owner {
            builder = builder.owner(owner);
        }
        if let Some(session) = self.session {
            builder = builder.session(session);
        }
        if let Some(ppm) = self.drift_ppm {
            builder = builder.drift_ppm(parts_per_million(ppm)?);
        }
        if let Some(timeout) = self.request_timeout {
            builder = builder.request_timeout(length("requestTimeout", timeout)?);
        }
        if let Some(max_ttl) = self.max_ttl {
            builder = builder.max_ttl(length("maxTtl", max_ttl)?);
        }
        if let Some(id) = self.quorum_id {
            builder = builder.quorum_id(id);
        }
        if self.create_quorum == Some(true) {
            builder = builder.create_quorum();
        }
        Ok(builder)
    }
}

impl LockOptions {
    pub(crate) fn request(self, mut request: LockRequest) -> Result<LockRequest, Failure> {
        if let Some(ttl) = self.ttl {
            request = request.ttl(length("ttl", ttl)?);
        }
        if let Some(wait) = patience(self.wait)? {
            request = request.wait(wait);
        }
        if let Some(owner) = self.owner {
            request = request.owner(owner);
        }
        if let Some(data) = self.data {
            request = request.data(&data);
        }
        if let Some(lock_delay) = self.lock_delay {
            request = request.lock_delay(length("lockDelay", lock_delay)?);
        }
        if let Some(max_hold) = self.max_hold {
            request = request.max_hold(length("maxHold", max_hold)?);
        }
        if let Some(fair) = self.fair {
            request = request.fair(fair);
        }
        if self.watch_holder == Some(true) {
            request = request.watch_holder();
        }
        renewal(self.renew, self.renew_every, request, LockRequest::renew_every, LockRequest::no_renewal)
    }
}

impl AllOptions {
    pub(crate) fn request(self, mut request: LockAllRequest) -> Result<LockAllRequest, Failure> {
        if let Some(ttl) = self.ttl {
            request = request.ttl(length("ttl", ttl)?);
        }
        if let Some(wait) = patience(self.wait)? {
            request = request.wait(wait);
        }
        if let Some(owner) = self.owner {
            request = request.owner(owner);
        }
        if let Some(max_hold) = self.max_hold {
            request = request.max_hold(length("maxHold", max_hold)?);
        }
        Ok(request)
    }
}

impl ElectOptions {
    pub(crate) fn request(self, mut request: ElectionRequest) -> Result<ElectionRequest, Failure> {
        if let Some(ttl) = self.ttl {
            request = request.ttl(length("ttl", ttl)?);
        }
        if let Some(owner) = self.owner {
            request = request.owner(owner);
        }
        Ok(request)
    }
}

impl ShardsOptions {
    pub(crate) fn request(self, mut request: ShardsRequest) -> Result<ShardsRequest, Failure> {
        if let Some(number) = self.count {
            request = request.count(count("count", number)?);
        }
        if let Some(ttl) = self.ttl {
            request = request.ttl(length("ttl", ttl)?);
        }
        if let Some(owner) = self.owner {
            request = request.owner(owner);
        }
        if let Some(every) = self.look_every {
            request = request.look_every(length("lookEvery", every)?);
        }
        Ok(request)
    }
}

/// Sets how a request's lease is renewed.
pub(crate) fn renewal<R>(
    renew: Option<bool>,
    every: Option<f64>,
    request: R,
    renew_every: fn(R, Duration) -> R,
    no_renewal: fn(R) -> R,
) -> Result<R, Failure> {
    match (renew, every) {
        (None | Some(true), None) => Ok(request),
        (None | Some(true), Some(every)) => Ok(renew_every(request, length("renewEvery", every)?)),
        (Some(false), None) => Ok(no_renewal(request)),
        (Some(false), Some(_)) => {
            Err(Failure::config("renew: false and renewEvery contradict each other: leave one out".to_owned()))
        }
    }
}

/// `None` is forever.
pub(crate) fn patience(wait: Option<f64>) -> Result<Option<Duration>, Failure> {
    wait.filter(|wait| *wait != f64::INFINITY).map(|wait| length("wait", wait)).transpose()
}

pub(crate) fn length(name: &str, ms: f64) -> Result<Duration, Failure> {
    if ms == f64::INFINITY {
        return Err(Failure::config(format!("{name} cannot be infinite")));
    }
    Duration::try_from_secs_f64(ms / 1_000.0)
        .map_err(|_| Failure::config(format!("{name}: {ms} is not a duration: give milliseconds, 0 or more")))
}

pub(crate) fn milliseconds(length: Duration) -> f64 {
    length.as_secs_f64() * 1_000.0
}

/// A whole number from 0 on, such as a token: JavaScript has no such type.
pub(crate) fn natural(name: &str, number: f64) -> Result<u64, Failure> {
    let most = 9_007_199_254_740_991.0;
    if (0.0..=most).contains(&number) && number.fract() == 0.0 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, and within bounds")]
        return Ok(number as u64);
    }
    Err(Failure::config(format!("{name}: {number} is not a safe integer of 0 or more")))
}

/// A number of permits, readers or shards; the client checks its limits.
pub(crate) fn count(name: &str, number: f64) -> Result<usize, Failure> {
    natural(name, number).map(|number| usize::try_from(number).unwrap_or(usize::MAX))
}

fn parts_per_million(ppm: f64) -> Result<u32, Failure> {
    // The client checks the bounds; larger numbers are beyond them too.
    natural("driftPpm", ppm).map(|ppm| u32::try_from(ppm).unwrap_or(u32::MAX))
}
