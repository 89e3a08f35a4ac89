//! Looking at what a node of a quorum remembers of its membership, and writing it: for `leasehold quorum` and for
//! clients that connect.

use alloc::string::{String, ToString};

use alloc::vec::Vec;

use super::{Command, info_by_script, keys, scripts};
use crate::redis::error_outcome;
use crate::resp::Value;
use leasehold_core::RequestId;
use leasehold_core::member::{Marker, RunId};
use leasehold_core::op::Outcome;

/// The result of a look at the marker.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct FoundMarker {
    /// The marker, if there is one that this version understands.
    pub marker: Option<Marker>,
    /// The marker as it is written, empty where there is none. [`mark`] wants it back.
    pub text: Vec<u8>,
    /// The server's run; `None` where it does not tell.
    pub run: Option<RunId>,
    /// Why the run could not be asked, in the server's words.
    pub run_refused: Option<String>,
}

/// To be sent in order; [`found`] reads the replies.
pub fn look() -> [Command; 2] {
    [Command::new([&b"GET"[..], keys::MARKER]), Command::new(["INFO", "server"])]
}

/// As [`look`], where `INFO` is told as it is only to scripts: see [`info_by_script`].
pub fn look_by_script() -> [Command; 2] {
    let [get, _] = look();
    [get, info_by_script(Some("server"))]
}

/// Reads the replies to [`look`].
///
/// # Errors
/// The marker could not be read.
pub fn found(replies: &[Value]) -> Result<FoundMarker, Outcome> {
    let [marker, info] = replies else {
        return Err(super::replies::protocol("another number of replies than commands"));
    };
    if let Value::Error(error) = marker {
        return Err(error_outcome(error));
    }
    let text = if *marker == Value::Nil { Some(&[][..]) } else { marker.as_bytes() };
    let text = text.ok_or_else(|| super::replies::protocol("GET was answered with no text"))?.to_vec();
    let run_refused = if let Value::Error(error) = info { Some(super::said(error).to_string()) } else { None };
    // In RESP3 it comes with its format in front.
    let info = if let Value::Verbatim(text) = info { Some(text.as_slice()) } else { info.as_bytes() };
    let run = info.and_then(|info| core::str::from_utf8(info).ok()).and_then(run_of);
    Ok(FoundMarker { marker: Marker::parse(&text), text, run, run_refused })
}

/// Writes a marker in the place of the one that was found, if that is still there, or none; [`marked`] reads the reply.
pub fn mark(id: RequestId, found: &[u8], marker: Option<&Marker>) -> Command {
    let text = marker.map(Marker::text).unwrap_or_default();
    Command::new([
        &b"EVAL"[..],
        scripts::MARK.text.as_bytes(),
        b"1",
        keys::MARKER,
        found,
        text.as_bytes(),
        id.get().to_string().as_bytes(),
    ])
}

/// Tells if that was done; not where another marker has come meanwhile.
///
/// # Errors
/// It was not, or nobody knows.
pub fn marked(id: RequestId, reply: &Value) -> Result<bool, Outcome> {
    let parts = super::replies::answer_to(id, reply)?;
    match parts {
        [word] if word.as_bytes() == Some(b"marked") => Ok(true),
        [word] if word.as_bytes() == Some(b"changed") => Ok(false),
        _ => Err(super::replies::protocol("the reply does not fit the request")),
    }
}

fn run_of(info: &str) -> Option<RunId> {
    let line = info.lines().find_map(|line| line.trim_end().strip_prefix("run_id:"))?;
    let hex = line.bytes().all(|byte| byte.is_ascii_hexdigit());
    RunId::new(line).filter(|_| hex)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use leasehold_core::member::{LossId, Phase, QuorumId};

    fn marker() -> Marker {
        Marker {
            quorum: QuorumId([1; 16]),
            max_ttl_ms: 60_000,
            stamp: LossId([2; 16]),
            phase: Phase::Member,
            run: RunId::new("abc1"),
        }
    }

    #[test]
    fn a_look_reads_marker_and_run() {
        let info = Value::Bulk(b"# Server\r\nredis_version:7.0.15\r\nrun_id:abc1\r\nuptime:1\r\n".to_vec());
        let text = marker().text().into_bytes();
        let seen = found(&[Value::Bulk(text.clone()), info.clone()]).unwrap();
        assert_eq!((seen.marker, seen.text, seen.run), (Some(marker()), text, RunId::new("abc1")));
        let nothing = found(&[Value::Nil, info]).unwrap();
        assert!(nothing.marker.is_none() && nothing.text.is_empty());
        let odd = found(&[Value::Bulk(b"mine".to_vec()), Value::Error("NOPERM no".into())]).unwrap();
        assert!(odd.marker.is_none() && odd.text == b"mine" && odd.run.is_none() && odd.run_refused.is_some());
        assert!(found(&[Value::Error("WRONGTYPE x".into()), Value::Nil]).is_err());
        assert!(found(&[Value::Integer(1), Value::Nil]).is_err());
        assert!(found(&[Value::Nil]).is_err());
    }

    #[test]
    fn a_marker_is_written_where_it_was_found() {
        let id = RequestId::new(5);
        let command = mark(id, b"", Some(&marker()));
        assert_eq!(
            command.words().skip(2).collect::<Vec<_>>(),
            [b"1", keys::MARKER, b"", marker().text().as_bytes(), b"5"]
        );
        let reply = |word: &str, id: &str| Value::Array(vec![Value::Bulk(word.into()), Value::Bulk(id.into())]);
        assert_eq!(marked(id, &reply("marked", "5")), Ok(true));
        assert_eq!(marked(id, &reply("changed", "5")), Ok(false));
        for odd in [reply("marked", "4"), reply("granted", "5"), Value::Nil, Value::Error("NOPERM x".into())] {
            assert!(marked(id, &odd).is_err(), "{odd:?}");
        }
    }
}
