//! `leasehold sessions` and `leasehold revoke --session`: the locks of whole clients.

use std::io::{IsTerminal, stdin};

use leasehold::SessionInfo;
use serde_json::{Value, json};

use crate::args::{RevokeArgs, SessionsArgs};
use crate::break_lock::agreed;
use crate::output::{Failure, ago, answer, answer_line, lock_json, say, utc};
use crate::status;
use crate::store::{Target, shown};

pub(crate) fn run(args: &SessionsArgs, target: &Target) -> Result<u8, Failure> {
    let client = target.connect()?;
    let sessions = client.sessions()?;
    for session in &sessions {
        let line = if args.json { session_json(session).to_string() } else { line(session) };
        if !answer_line(&line)? {
            return Ok(status::DONE);
        }
    }
    if !sessions.is_empty() {
        return Ok(status::DONE);
    }
    if !args.json {
        say(format_args!("no client has a session in {}", shown(client.stores())));
    }
    Ok(status::NOTHING)
}

/// Revokes all sessions of a name, after asking.
pub(crate) fn revoke(label: &str, args: &RevokeArgs, target: &Target) -> Result<u8, Failure> {
    let client = target.connect()?;
    if !args.yes {
        if !stdin().is_terminal() {
            return Err(Failure::usage(format!(
                "there is no terminal to ask on; add --yes to revoke the sessions {label}, which `leasehold sessions` shows"
            )));
        }
        let question = "Their holders are notified at their next renewal, and their locks become free when their work \
                        has ended.\nRevoke them? Type yes:";
        let meant = client.sessions()?.into_iter().filter(|session| session.is_called(label));
        let meant: String = meant.map(|session| line(&session) + "\n").collect();
        if meant.is_empty() {
            return Ok(nobody(label));
        }
        if !agreed(format_args!("{meant}{question}"))? {
            say("nothing was changed");
            return Ok(status::NOT_DONE);
        }
    }
    let revoked = client.revoke_session(label)?;
    if args.json {
        let lines: String = revoked.iter().map(|session| format!("{}\n", session_json(session))).collect();
        answer(&lines)?;
    } else {
        let told = |session: &SessionInfo| {
            let free = if session.locks.is_empty() { "" } else { "; free when the work has ended, or after the ttl" };
            format!("{}{free}\n", line(session))
        };
        answer(&revoked.iter().map(told).collect::<String>())?;
    }
    Ok(if revoked.is_empty() { nobody(label) } else { status::DONE })
}

fn nobody(label: &str) -> u8 {
    say(format_args!(
        "no session {label:?} has locks; `leasehold sessions` shows those that do, and * stands for any characters"
    ));
    status::NOTHING
}

fn session_json(session: &SessionInfo) -> Value {
    json!({
        "session": session.label,
        "since": session.since_unix_ms.and_then(utc),
        "since_unix_ms": session.since_unix_ms,
        "revoked": session.revoked,
        "locks": session.locks.iter().map(lock_json).collect::<Vec<_>>(),
    })
}

/// One session on one line. Its name has no blanks.
fn line(session: &SessionInfo) -> String {
    let locks = match session.locks.len() {
        1 => "1 lock".to_owned(),
        locks => format!("{locks} locks"),
    };
    let since = session.since_unix_ms.map(|since| format!(", since {}", ago(since))).unwrap_or_default();
    let revoked = if session.revoked { ", revoked" } else { "" };
    format!("{}: {locks}{since}{revoked}", session.label)
}
