//! The meaning of an error reply: certainly not applied, and why, or unknown.
//!
//! The first word of an error is its code. Redis 6 and older wrap the error of a command within a script into one of
//! the script, `ERR Error running script (...): @user_script: 5: -READONLY ...`; there the code is looked for inside. Which
//! errors pass is in [`KNOWN`].

use alloc::string::String;

use crate::errors::{Known, Means, known};
use crate::resp::Value;
use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Outcome, Refusal};

/// The meaning of an error reply for the operation that it answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// The server does not know the script by its digest: not applied; send the text.
    UnknownScript,
    /// Certainly not applied.
    Refused(Refusal),
    /// May have been applied.
    Unknown(Fault),
}

/// The errors that are known: by their code, or in small letters by words in their text.
pub(crate) const KNOWN: [Known; 32] = [
    known("READONLY", Means::Elsewhere, "this is a replica, which takes no writes: connect to the master"),
    known("MOVED", Means::Elsewhere, "another node of the cluster serves this name now: the slots must be read again"),
    known("ASK", Means::Elsewhere, "this name is on its way to another node of the cluster"),
    known("CLUSTERDOWN", Means::Elsewhere, "the cluster does not serve this name: look at CLUSTER INFO"),
    known("MASTERDOWN", Means::Elsewhere, "this replica has lost its master: connect to the master"),
    known(
        "NOREPLICAS",
        Means::Mended(FaultKind::Server),
        "fewer replicas than min-replicas-to-write are connected: look at the replicas",
    ),
    known(
        "TRYAGAIN",
        Means::Passes(FaultKind::Busy),
        "the cluster is moving this name between nodes: this is temporary",
    ),
    known("LOADING", Means::Passes(FaultKind::Busy), "the server is reading its data from disk: this is temporary"),
    known(
        "BUSY",
        Means::Mended(FaultKind::Busy),
        "a script of another client runs without end: stop it with SCRIPT KILL",
    ),
    known(
        "MISCONF",
        Means::Mended(FaultKind::Server),
        "the server cannot save to disk and so takes no writes: look at its log",
    ),
    known(
        "OOM",
        Means::Mended(FaultKind::Server),
        "the server is at its maxmemory: raise it, or give locks a server that has room",
    ),
    known(
        "NOSCRIPT",
        Means::Mended(FaultKind::Server),
        "the server keeps no scripts, not even one that it was just sent",
    ),
    known(
        MANY_REQUESTS[0],
        Means::TooMany,
        "the plan's number of requests is used up: choose a larger plan, or wait for its next period",
    ),
    known(
        MANY_REQUESTS[1],
        Means::TooMany,
        "the plan's number of requests is used up: choose a larger plan, or wait for its next period",
    ),
    known(
        "max number of clients",
        Means::Mended(FaultKind::Busy),
        "the server has no connection left: raise its maxclients, or close some",
    ),
    known(
        "WRONGPASS",
        Means::Login,
        "authentication failed: wrong user name, password or token, or the user is disabled",
    ),
    known("err invalid password", Means::Login, "the server expects another password, or none"),
    known("no password is set", Means::Login, "the server expects another password, or none"),
    known("without any password configured", Means::Login, "the server expects another password, or none"),
    known("NOAUTH", Means::Final(DenialKind::Permission), "the server requires a password: put it into the url"),
    known("NOPERM", Means::Final(DenialKind::Permission), GRANT),
    known("the user executing the script can't", Means::Final(DenialKind::Permission), GRANT),
    known("has no permissions to", Means::Final(DenialKind::Permission), GRANT),
    known("acl failure in script", Means::Final(DenialKind::Permission), GRANT),
    known(
        "DENIED",
        Means::Final(DenialKind::Permission),
        "the server is in protected mode: set a password, or bind it to an address",
    ),
    known("CROSSSLOT", Means::Final(DenialKind::Other), "this is a Redis Cluster: say so in the settings"),
    known(
        "WRONGTYPE",
        Means::Final(DenialKind::CorruptRecord),
        "a key of this lock holds a value of another type, which another program wrote: delete that key, or use \
         another name",
    ),
    known("EXECABORT", Means::Final(DenialKind::Other), "locks cannot be used inside of a transaction"),
    known("unknown command", Means::Final(DenialKind::Other), OLD),
    known("unknown redis command", Means::Final(DenialKind::Other), OLD),
    known("db index is out of range", Means::Final(DenialKind::Other), NO_DATABASE),
    known("invalid db index", Means::Final(DenialKind::Other), NO_DATABASE),
];

const MANY_REQUESTS: [&str; 2] = ["max daily request limit", "max requests limit exceeded"];

const OLD: &str = "this is not Redis 5 or newer, or the command was renamed or switched off";
const NO_DATABASE: &str = "the server has no database of this number; on a cluster there is only 0";
const GRANT: &str = "the user needs the commands EVALSHA, EVAL, GETRANGE, EXISTS, PTTL, TYPE, TIME, SET, PEXPIRE, DEL, \
                     PUBLISH, SUBSCRIBE, UNSUBSCRIBE, for speed MULTI, INCR and EXEC, with replicas WAIT, on a cluster ASKING, CLUSTER|SLOTS and \
                     CLUSTER|INFO, on the locked names and on the keys that begin with {name}, and the \
                     channels that do; in a quorum also GET and INFO, for speed CLIENT|GETNAME and CLIENT|SETNAME, and the key leasehold\\x1fquorum";

/// Judges the text of an error reply.
pub fn classify(error: &str) -> ErrorClass {
    if code_of(error) == "NOSCRIPT" {
        return ErrorClass::UnknownScript;
    }
    match refusal(error) {
        Some(refusal) => ErrorClass::Refused(refusal),
        None => ErrorClass::Unknown(Fault::new(FaultKind::Server, &said(error))),
    }
}

/// Why the command that this error answers was certainly not carried out; `None` if it may have been.
///
/// For every command, not only for those of a lock: connecting meets errors too.
pub fn refusal(error: &str) -> Option<Refusal> {
    let known = of(error)?;
    known.means.refusal(&explained(known.advice, error))
}

/// The entry for an error.
fn of(error: &str) -> Option<&'static Known> {
    let code = code_of(error);
    let by_code = KNOWN.iter().find(|known| is_code(known) && known.answer == code);
    by_code.or_else(|| {
        // The rest has no code. Only what the server itself says counts, not what it repeats of a request.
        let text = without_arguments(error).to_ascii_lowercase();
        KNOWN.iter().find(|known| !is_code(known) && text.contains(known.answer))
    })
}

fn is_code(known: &Known) -> bool {
    known.answer.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// Tells if this server takes no writes while another one may: what follows should go by a new connection.
pub fn leads_elsewhere(error: &str) -> bool {
    of(error).is_some_and(|known| known.means == Means::Elsewhere)
}

/// Returns true if the server rejects the credentials.
pub(crate) fn refuses_credentials(error: &str) -> bool {
    matches!(code_of(error), "NOAUTH" | "WRONGPASS")
}

/// Returns the outcome of the operation that an error reply answers.
pub fn error_outcome(error: &str) -> Outcome {
    match refusal(error) {
        Some(refusal) => Outcome::NotApplied(refusal),
        None => Outcome::Unknown(Fault::new(FaultKind::Server, &said(error))),
    }
}

/// For a client that was told of a single server: being directed to another one is no reply. `advice` says what to set
/// instead.
///
/// # Errors
/// The refusal of a node of a Redis Cluster to serve a name of another node.
pub fn of_one_server(reply: Value, advice: &str) -> Result<Value, Outcome> {
    if reply.as_error().is_some_and(|error| error.starts_with("MOVED ")) {
        return Err(Outcome::NotApplied(Refusal::Denied(Denial::new(DenialKind::Other, advice))));
    }
    Ok(reply)
}

/// The first word, or the code inside of what a script says of one of its commands.
fn code_of(error: &str) -> &str {
    let first = error.split_ascii_whitespace().next().unwrap_or("").trim_start_matches('-');
    let of_a_script = error.starts_with("ERR Error running script") || first.starts_with("@user_script");
    if !of_a_script {
        return first;
    }
    let is_known = |word: &&str| KNOWN.iter().any(|known| is_code(known) && known.answer == *word);
    let mut words = error.split_ascii_whitespace().map(|word| word.trim_start_matches('-'));
    words.find(is_known).unwrap_or(first)
}

/// An unknown command is answered with the arguments that it came with, and those may hold a nonce.
fn without_arguments(error: &str) -> &str {
    error.find(", with args").map_or(error, |end| &error[..end])
}

fn explained(advice: &str, error: &str) -> String {
    alloc::format!("{advice} (the server said: {})", said(error))
}

/// The server's words, bounded, on one line, and without what might be a nonce: anyone who knows it can free the lock.
pub(crate) fn said(error: &str) -> String {
    let mut text = String::new();
    let mut digits = 0;
    for c in without_arguments(error).trim().chars().take(300) {
        text.push(if c.is_control() { ' ' } else { c });
        digits = if c.is_ascii_hexdigit() { digits + 1 } else { 0 };
        if digits == 32 {
            text.truncate(text.len() - 32);
            text.push('*');
        } else if digits > 32 {
            text.pop();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn kind(error: &str) -> &'static str {
        match classify(error) {
            ErrorClass::UnknownScript => "script",
            ErrorClass::Unknown(_) => "unknown",
            ErrorClass::Refused(Refusal::Throttled(_)) => "throttled",
            ErrorClass::Refused(Refusal::Unavailable(_)) => "unavailable",
            ErrorClass::Refused(Refusal::Denied(denial)) => match denial.kind {
                DenialKind::Permission => "permission",
                DenialKind::Schema => "schema",
                DenialKind::CorruptRecord => "corrupt",
                DenialKind::TokensExhausted => "exhausted",
                DenialKind::StorageFull => "full",
                DenialKind::Membership => "membership",
                DenialKind::Other => "other",
            },
            ErrorClass::Refused(
                Refusal::Conflict(_) | Refusal::Done(_) | Refusal::Abstains { .. } | Refusal::NeedsCredentials(_),
            ) => "?",
        }
    }

    #[test]
    fn errors_are_told_apart() {
        for (error, expected) in [
            ("NOSCRIPT No matching script. Please use EVAL.", "script"),
            ("READONLY You can't write against a read only replica. script: 6e9c, on @user_script:1.", "unavailable"),
            ("MOVED 3999 127.0.0.1:6381", "unavailable"),
            ("ASK 3999 127.0.0.1:6381", "unavailable"),
            ("TRYAGAIN Multiple keys request during rehashing of slot", "unavailable"),
            ("CLUSTERDOWN The cluster is down", "unavailable"),
            ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "unavailable"),
            ("LOADING Redis is loading the dataset in memory", "unavailable"),
            ("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist", "unavailable"),
            ("NOREPLICAS Not enough good replicas to write.", "unavailable"),
            ("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", "unavailable"),
            ("ERR max number of clients reached", "unavailable"),
            ("OOM command not allowed when used memory > 'maxmemory'.", "unavailable"),
            ("NOAUTH Authentication required.", "permission"),
            ("WRONGPASS invalid username-password pair or user is disabled.", "permission"),
            ("NOPERM this user has no permissions to run the 'evalsha' command", "permission"),
            ("ERR this user has no permissions to run the 'select' command", "permission"),
            ("ERR The user executing the script can't run this command or subcommand script: 6e9c", "permission"),
            ("ERR invalid password", "permission"),
            ("ERR Client sent AUTH, but no password is set", "permission"),
            ("DENIED Redis is running in protected mode", "permission"),
            ("CROSSSLOT Keys in request don't hash to the same slot", "other"),
            ("ERR unknown command 'EVALSHA', with args beginning with: 'x' ", "other"),
            ("ERR DB index is out of range", "other"),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", "corrupt"),
            ("ERR max daily request limit exceeded. Limit: 10000, Usage: 10000.", "throttled"),
            ("ERR max requests limit exceeded. Limit: 500000, Usage: 500000.", "throttled"),
            ("ERR syntax error", "unknown"),
            ("ERR the code READONLY inside of another sentence", "unknown"),
            ("BUSYKEY Target key name already exists.", "unknown"),
            ("readonly in small letters", "unknown"),
            ("", "unknown"),
            ("-", "unknown"),
        ] {
            assert_eq!(kind(error), expected, "{error}");
        }
    }

    #[test]
    fn errors_of_older_servers_have_their_code_inside() {
        let wrapped = "ERR Error running script (call to f_6e9c): @user_script:30: @user_script: 30: ";
        for (error, expected) in [
            ("-READONLY You can't write against a read only replica.", "unavailable"),
            ("-OOM command not allowed when used memory > 'maxmemory'.", "unavailable"),
            ("-MISCONF Redis is configured to save RDB snapshots", "unavailable"),
            ("-NOREPLICAS Not enough good replicas to write.", "unavailable"),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", "corrupt"),
            ("The user executing the script can't run this command or subcommand", "permission"),
            ("Unknown Redis command called from Lua script", "other"),
            ("attempt to index a nil value", "unknown"),
        ] {
            assert_eq!(kind(&alloc::format!("{wrapped}{error}")), expected, "{error}");
            assert_eq!(kind(&alloc::format!("@user_script: 30: {error}")), expected, "{error}");
        }
    }

    #[test]
    fn advice_comes_with_the_servers_words() {
        let Outcome::NotApplied(refusal) = error_outcome("OOM command not allowed") else { panic!("not refused") };
        let said = refusal.to_string();
        assert!(said.contains("maxmemory") && said.contains("OOM command not allowed"), "{said}");
        assert!(matches!(error_outcome("ERR odd"), Outcome::Unknown(fault) if fault.to_string().contains("ERR odd")));
    }

    #[test]
    fn no_nonce_is_repeated() {
        let nonce = "0123456789abcdef0123456789abcdef";
        for error in [
            alloc::format!("ERR unknown command 'EVALSHA', with args beginning with: 'x' '2' 'a' '{nonce}@host;' "),
            alloc::format!("ERR odd {nonce}@host"),
            alloc::format!("ERR odd\r\n{nonce}{nonce}"),
        ] {
            let text = said(&error);
            assert!(!text.contains("89abcdef") && !text.contains(['\r', '\n']), "{text}");
        }
        assert_eq!(said("ERR odd 0123456789abcdef0123456789abcdef!"), "ERR odd *!");
        assert!(said(&"é".repeat(10_000)).len() < 1_000);
    }
}
