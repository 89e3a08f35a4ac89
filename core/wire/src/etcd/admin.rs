//! Questions about the servers themselves.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::{Map, Value as Json};

use leasehold_core::op::Outcome;

use super::txn::misfit;
use super::{HttpResponse, Request, classify};
use crate::dynamodb::json::{digits, object};

/// The status of a member, by its own word.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Status {
    /// Such as `3.4.23`.
    pub version: String,
    /// The id of its cluster.
    pub cluster: u64,
    /// It knows a leader.
    pub has_leader: bool,
    /// The size of its file, in bytes.
    pub size: u64,
}

impl Status {
    /// Asks for it; [`Status::read`] reads the answer.
    pub fn ask() -> Request {
        question("/v3/maintenance/status", b"{}")
    }

    /// # Errors
    /// It was not told.
    pub fn read(response: &HttpResponse) -> Result<Self, Outcome> {
        let fields = fields(response)?;
        let text = |name: &str| fields.get(name).and_then(Json::as_str);
        let number = |name: &str| text(name).and_then(digits);
        let cluster = fields.get("header").and_then(|header| digits(header.get("cluster_id")?.as_str()?));
        Ok(Self {
            version: text("version").ok_or_else(misfit)?.chars().take(64).collect(),
            cluster: cluster.ok_or_else(misfit)?,
            has_leader: number("leader").is_some_and(|leader| leader != 0),
            size: number("dbSize").unwrap_or_default(),
        })
    }
}

/// Asks for the alarms; [`alarms`] reads the answer.
pub fn ask_alarms() -> Request {
    question("/v3/maintenance/alarm", br#"{"action":"GET"}"#)
}

/// The kinds of the alarms that are on, such as `NOSPACE`.
///
/// # Errors
/// They were not told.
pub fn alarms(response: &HttpResponse) -> Result<Vec<String>, Outcome> {
    let fields = fields(response)?;
    let alarms = fields.get("alarms").and_then(Json::as_array).into_iter().flatten();
    let mut kinds: Vec<String> =
        alarms.map(|alarm| alarm.get("alarm").and_then(Json::as_str).unwrap_or("NONE").to_string()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    Ok(kinds)
}

/// Asks for the members; [`members`] reads the answer.
pub fn ask_members() -> Request {
    question("/v3/cluster/member/list", b"{}")
}

/// The number of members that vote.
///
/// # Errors
/// It was not told.
pub fn members(response: &HttpResponse) -> Result<usize, Outcome> {
    let fields = fields(response)?;
    let members = fields.get("members").and_then(Json::as_array).ok_or_else(misfit)?;
    let votes = |member: &&Json| member.get("isLearner").and_then(Json::as_bool) != Some(true);
    Ok(members.iter().filter(votes).count())
}

fn question(path: &'static str, body: &[u8]) -> Request {
    Request { path, body: body.to_vec(), writes: false }
}

fn fields(response: &HttpResponse) -> Result<Map<String, Json>, Outcome> {
    match response.status {
        200 => object(&response.body).map_err(|_| misfit()),
        _ => Err(classify(response)),
    }
}
