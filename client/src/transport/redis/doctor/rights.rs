//! Tries the permissions of this user: each command on unused names, then a whole lock.
//!
//! A server checks the command, then the key, then the channel. So a user of other names still learns about each
//! command.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::op::{Acquire, Applied, Finish, LockOp, Op, Outcome, Release, Renew};
use leasehold_core::{LockId, Nonce, Owner, RequestId, Resource, Seq, Token};
use leasehold_wire::Progress;
use leasehold_wire::redis::{ClientId, Codec, Command, Replicas, Settings, look};
use leasehold_wire::resp::Value;

use super::super::access::RedisAccess;
use super::lack::Lack;
use super::server::Role;
use super::{Asker, Part, command, items, queue, refused, words};
use crate::admin::checks::redis as check;
use crate::admin::doctor::Finding;
use crate::host::clock;
use crate::transport::deadline::until;
use crate::transport::info::{Fields, items as elements, printable, text};
use crate::url::redis::RedisUrl;

/// `?` stands for the byte 0x1F, which an ACL file cannot have.
const MARKER_RULE: &str = "~leasehold?quorum";
/// The commands that the scripts of locks run on a key.
const ON_KEYS: [&str; 7] = ["getrange", "exists", "pttl", "type", "set", "pexpire", "del"];
/// Those that the scripts of runs run on a completion.
const ON_MARKS: [&str; 4] = ["getrange", "pttl", "set", "del"];
/// Even if only one slot of 16384 is allowed, a name in it is found.
const MOST_NAMES: u64 = 1 << 18;
/// The keys of the trial expire soon if this process ends in the middle.
const TRIAL: Duration = Duration::from_secs(10);
const TRIAL_COUNTER: Duration = Duration::from_secs(60);
/// The time limit for each step of the trial. Replicas that do not confirm take most of it, twice where a script is
/// new.
const STEP: Duration = Duration::from_secs(2);
/// The time limit for removing the keys of the trial, even after the time for questions is over.
const REMOVAL: Duration = Duration::from_secs(1);
/// A published message arrives at once.
const MESSAGE_PATIENCE: Duration = Duration::from_secs(2);

/// The keys and the channel of one name.
struct Names {
    resource: Resource,
    fence: Vec<u8>,
    trust: Vec<u8>,
    completion: Vec<u8>,
    channel: Vec<u8>,
}

impl Names {
    fn new(name: &str) -> Result<Self, String> {
        let resource = Resource::new(name).map_err(|error| error.to_string())?;
        let (fence, trust) = (Codec::counter_key(&resource), Codec::trust_key(&resource));
        let (completion, channel) = (Codec::completion_key(&resource), Codec::channel(&resource));
        Ok(Self { fence, trust, completion, channel, resource })
    }
}

/// The target of a probe's command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum About {
    Lock,
    Fence,
    Completion,
    Trust,
    Marker,
    Channel,
    Transaction,
    Process,
    Nothing,
}

/// Commands, keys and channels that are refused.
#[derive(Debug, Default)]
struct Missing {
    /// Rules that locks need.
    commands: Vec<String>,
    /// Commands that the server does not have.
    unknown: Vec<String>,
    /// Rules that only wake-ups need.
    wake_ups: Vec<String>,
    /// Rules that only transactions need.
    transactions: Vec<String>,
    /// Rules that spare votes the question for the run of the server.
    processes: Vec<String>,
    /// Keys and channels.
    places: BTreeSet<About>,
}

pub(super) async fn examine(
    asker: &Asker,
    access: &RedisAccess,
    url: &RedisUrl,
    part: Part,
    role: Role,
) -> Result<Vec<Finding>, String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| format!("no randomness: {error}"))?;
    let mut names = nobodys(asker, "", random)?;
    let mut missing = probe(asker, url, part, &names).await?;
    let mut patterns = None;
    if missing.lacks(About::Lock) {
        patterns = key_patterns(asker).await?;
        let prefix = patterns.as_deref().and_then(|patterns| patterns.iter().find_map(|pattern| prefix_of(pattern)));
        if let Some(prefix) = prefix
            && let Ok(inside) = nobodys(asker, prefix, random)
        {
            names = inside;
            missing = probe(asker, url, part, &names).await?;
        }
    }
    let mut findings = missing.judge(url, &names, patterns.as_deref());
    // The finding on the role already says why no lock is possible there.
    let can_run = !missing.lacks(About::Completion);
    let can_lock = missing.commands.is_empty()
        && missing.unknown.is_empty()
        && !missing.lacks(About::Lock)
        && !missing.lacks(About::Fence);
    let serves = match role {
        Role::Master | Role::Unknown => true,
        // A single store does not need all names.
        Role::ClusterNode => asker.home.is_some(),
        Role::Replica | Role::Sentinel => false,
    };
    let trial = (can_lock && serves).then_some(Trial { can_run });
    if can_lock && part == Part::Alone && access.queues().is_some() {
        let key = Codec::queue_key(&names.resource);
        findings.push(queue::examine(asker, url, &key, ClientId::new(random)).await?);
    }
    if can_lock && serves && part == Part::Alone {
        findings.push(items::examine(asker, &names.resource).await?);
    }
    findings.extend(wake_ups(asker, access, url, &names, missing, trial, Nonce::from_bytes(random)).await?);
    Ok(findings)
}

/// The parts of a trial.
#[derive(Clone, Copy)]
struct Trial {
    can_run: bool,
}

/// An unused name that the server would serve.
fn nobodys(asker: &Asker, prefix: &str, random: [u8; 16]) -> Result<Names, String> {
    let random = u64::try_from(u128::from_le_bytes(random) >> 64).unwrap_or_default();
    for other in 0..MOST_NAMES {
        let name = format!("{prefix}leasehold-doctor-{:016x}", random.wrapping_add(other));
        if asker.serves(name.as_bytes()) {
            return Names::new(&name);
        }
    }
    Err("no name for a trial was found in the slots of this node".to_owned())
}

async fn probe(asker: &Asker, url: &RedisUrl, part: Part, names: &Names) -> Result<Missing, String> {
    let lock = names.resource.as_str().as_bytes();
    let mut probes: Vec<(About, &str, Command)> = vec![
        (About::Nothing, "evalsha", command(&["EVALSHA", &"0".repeat(40), "0"])),
        (About::Nothing, "eval", command(&["EVAL", "return 1", "0"])),
        (About::Nothing, "time", command(&["TIME"])),
    ];
    if asker.home.is_some() {
        probes.push((About::Nothing, "asking", command(&["ASKING"])));
    }
    if url.replicas.is_some() {
        probes.push((About::Nothing, "wait", command(&["WAIT", "0", "1"])));
    }
    let keys: [(About, &[u8], &[&'static str]); 3] = [
        (About::Lock, lock, &ON_KEYS),
        (About::Fence, &names.fence, &ON_KEYS),
        (About::Completion, &names.completion, &ON_MARKS),
    ];
    for (about, key, commands) in keys {
        probes.extend(commands.iter().map(|name| (about, *name, harmless(name, key))));
    }
    if part == Part::Node {
        probes.extend(votes(&names.trust));
    }
    probes.push((About::Channel, "publish", Command::new([b"PUBLISH", names.channel.as_slice(), lock])));

    let commands: Vec<Command> = probes.iter().map(|(_, _, command)| command.clone()).collect();
    let replies = asker.all(&commands).await?;
    let mut missing = Missing::default();
    for ((about, name, _), reply) in probes.iter().zip(&replies) {
        missing.note(*about, name, reply);
    }
    if part == Part::Alone && asker.home.is_none() && url.replicas.is_none() {
        probe_transactions(asker, names, &mut missing).await?;
    }
    if part == Part::Node {
        probe_process(asker, &mut missing).await?;
    }
    Ok(missing)
}

/// The command on a key that is not there, which it says, and changes nothing.
fn harmless(name: &str, key: &[u8]) -> Command {
    let rest: &[&[u8]] = match name {
        "getrange" => &[b"0", b"0"],
        "set" => &[b"", b"XX", b"PX", b"1"],
        "pexpire" => &[b"1"],
        _ => &[],
    };
    Command::new([&[name.as_bytes(), key], rest].concat())
}

/// Tries the commands of a transaction. `EXEC` comes first and alone: a transaction that cannot be ended would keep the
/// connection. The counter that is made here is deleted here.
async fn probe_transactions(asker: &Asker, names: &Names, missing: &mut Missing) -> Result<(), String> {
    missing.note(About::Transaction, "exec", &asker.one(&["EXEC"]).await?);
    if !missing.transactions.is_empty() || missing.lacks(About::Fence) {
        return Ok(());
    }
    let fence = names.fence.as_slice();
    let commands = [&[&b"MULTI"[..]][..], &[b"INCR", fence], &[b"DEL", fence], &[b"EXEC"]];
    let replies = asker.all(&commands.map(Command::new)).await?;
    for (name, reply) in ["multi", "incr"].iter().zip(&replies) {
        missing.note(About::Transaction, name, reply);
    }
    Ok(())
}

/// Tries the commands that tell a connection which process is behind it. `EXEC` comes first and alone, as for transactions.
async fn probe_process(asker: &Asker, missing: &mut Missing) -> Result<(), String> {
    missing.note(About::Process, "exec", &asker.one(&["EXEC"]).await?);
    if !missing.processes.is_empty() {
        return Ok(());
    }
    let commands = [&["MULTI"][..], &["CLIENT", "GETNAME"], &["CLIENT", "SETNAME", "leasehold-doctor"], &["EXEC"]];
    let replies = asker.all(&commands.map(Command::new)).await?;
    for (name, reply) in ["multi", "client|getname", "client|setname"].iter().zip(&replies) {
        missing.note(About::Process, name, reply);
    }
    Ok(())
}

/// The commands of a vote beside those of a lock. A probe cannot write a marker, which would begin or end a membership;
/// so it runs a script that is given the key and leaves it alone, which needs the same permissions, and tries `SET`
/// itself on the lock.
fn votes(trust: &[u8]) -> Vec<(About, &'static str, Command)> {
    let [get, info] = look();
    let given = |key: &[u8]| Command::new([b"EVAL", &b"return 1"[..], b"1", key]);
    let with_marker = given(get.words().last().unwrap_or_default());
    vec![
        (About::Marker, "get", get),
        (About::Marker, "eval", with_marker),
        (About::Trust, "get", Command::new([b"GET", trust])),
        (About::Trust, "eval", given(trust)),
        // For any durability in the url: a node without a marker is given one that names the run.
        (About::Nothing, "info", info),
    ]
}

impl Missing {
    fn note(&mut self, about: About, name: &str, reply: &Value) {
        let Some(lack) = Lack::of(reply) else { return };
        let rule = match lack {
            // A proxy says so. Scripts ask the server, which knows it.
            Lack::Command if name == "time" => return,
            Lack::Command => name.to_ascii_uppercase(),
            Lack::Place if about != About::Nothing => {
                self.places.insert(about);
                return;
            }
            Lack::Right | Lack::Place => format!("+{name}"),
        };
        let list = match about {
            About::Channel => &mut self.wake_ups,
            About::Transaction => &mut self.transactions,
            About::Process => &mut self.processes,
            About::Lock | About::Fence | About::Completion | About::Trust | About::Marker | About::Nothing => {
                match lack {
                    Lack::Command => &mut self.unknown,
                    Lack::Right | Lack::Place => &mut self.commands,
                }
            }
        };
        if !list.contains(&rule) {
            list.push(rule);
        }
    }

    /// Tells if the user may not use this key or channel.
    fn lacks(&self, place: About) -> bool {
        self.places.contains(&place)
    }

    fn judge(&self, url: &RedisUrl, names: &Names, patterns: Option<&[String]>) -> Vec<Finding> {
        let mut findings = Vec::new();
        if !self.unknown.is_empty() {
            findings.push(check::RIGHTS.fails(
                format!("the server has no command {}", self.unknown.join(", ")),
                "undo rename-command, or use a server with all commands of Redis 5",
            ));
        }
        if !self.commands.is_empty() {
            let rules = self.commands.join(" ");
            findings.push(check::RIGHTS.fails(format!("the user lacks {rules}"), grant(url, &rules)));
        }
        if !self.transactions.is_empty() {
            let rules = self.transactions.join(" ");
            findings.push(check::RIGHTS.warns(
                format!("the user lacks {rules}: every lock needs a script, which is slower for the server"),
                grant(url, &rules),
            ));
        }
        if !self.processes.is_empty() {
            let rules = self.processes.join(" ");
            findings.push(check::RIGHTS.warns(
                format!("the user lacks {rules}: every vote needs INFO, which is slower for the server"),
                grant(url, &rules),
            ));
        }
        if self.lacks(About::Marker) {
            findings.push(check::RIGHTS.fails(
                "the user may not use the key leasehold\\x1fquorum, which holds the membership record of a quorum's \
                 node: this node never votes",
                grant(url, MARKER_RULE),
            ));
        }
        if self.lacks(About::Trust) && !self.lacks(About::Lock) && !self.lacks(About::Fence) {
            findings.push(check::RIGHTS.fails(
                format!(
                    "for {:?} the user may not use the key {}: once this node has lost its data, it never counts fully \
                     again",
                    names.resource,
                    names.trust.escape_ascii()
                ),
                format!("locks named jobs/* need ~{{jobs/*: {}", grant(url, "~{jobs/*")),
            ));
        }
        if self.lacks(About::Completion) && !self.lacks(About::Lock) && !self.lacks(About::Fence) {
            findings.push(check::RIGHTS.warns(
                format!(
                    "for {:?} the user may not use the key {}, which holds the completion of a run: locks work, but \
                     runs fail",
                    names.resource,
                    names.completion.escape_ascii()
                ),
                format!("runs named jobs/* need ~{{jobs/*, as their locks do: {}", grant(url, "~{jobs/*")),
            ));
        }
        let shown = patterns.map(|patterns| printable(&patterns.join(" ")));
        match (self.lacks(About::Lock), self.lacks(About::Fence)) {
            (true, true) => findings.push(check::RIGHTS.warns(
                match shown {
                    Some(patterns) => format!("the user may use {patterns} only, and this check tried no name there"),
                    None => format!("names such as {:?} are refused; the allowed ones cannot be seen", names.resource),
                },
                "nothing, if that is intended: locks named jobs/* need ~jobs/* ~{jobs/* and, for wake-ups, &{jobs/*; \
                 `leasehold exec --no-wait NAME -- true` tries one",
            )),
            (false, true) => findings.push(check::RIGHTS.fails(
                format!("for {:?} the user may use the lock's key, but not the key of its counter", names.resource),
                format!("locks named jobs/* need ~{{jobs/* beside ~jobs/*: {}", grant(url, "~{jobs/*")),
            )),
            (true, false) => findings.push(check::RIGHTS.fails(
                format!("for {:?} the user may use the key of its counter, but not the lock's key", names.resource),
                format!("locks named jobs/* need ~jobs/* beside ~{{jobs/*: {}", grant(url, "~jobs/*")),
            )),
            (false, false) if findings.is_empty() => {
                let what = match shown {
                    Some(_) => {
                        format!("the user has all permissions that locks need, on names such as {:?}", names.resource)
                    }
                    None => "the user has all permissions that locks need".to_owned(),
                };
                findings.push(check::RIGHTS.passes(what));
            }
            (false, false) => {}
        }
        findings
    }
}

pub(super) fn grant(url: &RedisUrl, rules: &str) -> String {
    let user = url.username.as_deref().unwrap_or("default");
    format!("ACL SETUSER {} {rules}, and the same where the server keeps its users", printable(user))
}

/// The key patterns that the user may use; `None` if it may not read them.
async fn key_patterns(asker: &Asker) -> Result<Option<Vec<String>>, String> {
    let Some(user) = text(&asker.one(&["ACL", "WHOAMI"]).await?) else { return Ok(None) };
    let reply = asker.one(&["ACL", "GETUSER", &user]).await?;
    let split = |keys: &str| keys.split_whitespace().map(str::to_owned).collect();
    if let Some(keys) = Fields::of_pairs(&reply).get("keys") {
        return Ok(Some(split(keys)));
    }
    // Redis 6 returns a list of patterns.
    let keys = elements(&reply).chunks_exact(2).find(|pair| text(&pair[0]).as_deref() == Some("keys"));
    Ok(keys.map(|pair| elements(&pair[1]).iter().filter_map(text).collect()))
}

/// The prefix of the names that a pattern such as `~jobs/*` allows.
fn prefix_of(pattern: &str) -> Option<&str> {
    let pattern = pattern.strip_prefix("%RW").unwrap_or(pattern);
    let prefix = pattern.strip_prefix('~').unwrap_or(pattern).strip_suffix('*')?;
    (!prefix.starts_with(['{', '%']) && !prefix.contains(['*', '?', '[', '\\'])).then_some(prefix)
}

async fn wake_ups(
    asker: &Asker,
    access: &RedisAccess,
    url: &RedisUrl,
    names: &Names,
    mut missing: Missing,
    trial: Option<Trial>,
    nonce: Nonce,
) -> Result<Vec<Finding>, String> {
    let listen = async {
        let mut listener = access.listen().await.map_err(|why| words(&why))?;
        for name in ["unsubscribe", "subscribe"] {
            if let Err(said) = listener.change(name, vec![names.channel.clone()]).await {
                missing.note(About::Channel, name, &Value::Error(said));
            }
        }
        Ok(listener)
    };
    let listener = until(asker.until, listen).await.unwrap_or_else(|| Err("no answer in time".to_owned()));
    let mut findings = Vec::new();
    let tried = match trial {
        Some(trial) => Some(try_lock(asker, url, names, nonce, trial).await),
        None => None,
    };
    findings.extend(tried.as_ref().map(|tried| match tried {
        Ok(what) => check::TRIAL.passes(*what),
        Err(why) => check::TRIAL.fails(printable(why), "fix the cause named here: every lock fails in the same way"),
    }));
    let poll = "waiters poll at growing intervals instead of being woken";
    findings.extend(match listener {
        Err(why) => Some(check::WAKEUPS.fails(
            format!("no connection to listen on: {}; {poll}", printable(&why)),
            "check that the server allows enough connections (maxclients)",
        )),
        Ok(_) if !missing.wake_ups.is_empty() => {
            let rules = missing.wake_ups.join(" ");
            Some(check::WAKEUPS.fails(format!("the user lacks {rules}; {poll}"), grant(url, &rules)))
        }
        Ok(_) if missing.lacks(About::Channel) && !missing.lacks(About::Lock) => Some(check::WAKEUPS.fails(
            format!("the channel of {:?} is refused; {poll}", names.resource),
            format!("locks named jobs/* need &{{jobs/*: {}", grant(url, "&{jobs/*")),
        )),
        Ok(mut listener) if matches!(tried, Some(Ok(_))) => {
            let patience = asker.until.min(clock::monotonic().plus(MESSAGE_PATIENCE));
            let message = until(patience, listener.next()).await.and_then(Result::ok);
            let released = message.and_then(|(channel, payload)| Codec::released_by(&channel, &payload));
            Some(if released.as_ref() == Some(&names.resource) {
                check::WAKEUPS.passes("waiters are notified of a release")
            } else {
                let advice = "check that no proxy between here and the server drops PUBLISH";
                check::WAKEUPS.fails(format!("the notification of a release did not arrive; {poll}"), advice)
            })
        }
        // There was nothing to release.
        Ok(_) => None,
    });
    Ok(findings)
}

/// Acquires, renews and releases a lock, begins and finishes a run, and removes what remains. Returns what was done.
async fn try_lock(
    asker: &Asker,
    url: &RedisUrl,
    names: &Names,
    nonce: Nonce,
    trial: Trial,
) -> Result<&'static str, String> {
    let replicas = url.replicas.map(|count| Replicas { count });
    let codec = Codec::new(Settings { retention: TRIAL_COUNTER, replicas, ..Settings::default() });
    let owner = Owner::new("leasehold doctor").map_err(|error| error.to_string())?;
    let (record_ttl, token) = (TRIAL, Token::new(1).ok_or("no token")?);
    let runner = Nonce::from_bytes(nonce.as_bytes().map(|byte| !byte));
    let acquire = |nonce, unless_done| {
        Op::Acquire(Box::new(Acquire {
            floor: token,
            owner: owner.clone(),
            unless_done,
            ..Acquire::new(nonce, Seq::new(0), record_ttl)
        }))
    };
    let finish = |counter| {
        let (nonce, keep, owner) = (runner, TRIAL, owner.clone());
        Op::Finish(Box::new(Finish { nonce, token: counter, counter, keep, owner, about: None, quorum: None }))
    };
    let of_lock = [
        ("taking a lock", acquire(nonce, false)),
        ("renewing a lock", Op::Renew(Renew { nonce, seq: Seq::new(1), record_ttl, quorum: None })),
        ("releasing a lock", Op::Release(Release { nonce, quorum: None })),
    ];
    let begin = [("beginning a run", acquire(runner, true))].into_iter().filter(|_| trial.can_run);
    let mut tried = Ok(());
    let mut steps: VecDeque<_> = of_lock.into_iter().chain(begin).collect();
    while let Some((step, op)) = steps.pop_front() {
        let is_of_run = op.nonce() == Some(runner);
        let op = LockOp { lock: LockId::new(0), resource: names.resource.clone(), op };
        match perform(asker, &codec, op).await {
            Ok(Applied::Acquired { counter }) if is_of_run => steps.push_back(("finishing a run", finish(counter))),
            Ok(_) => {}
            Err(why) => {
                tried = Err(format!("{step} failed: {why}"));
                break;
            }
        }
    }
    // Of a completion that is refused nothing remains.
    let keys = [names.resource.as_str().as_bytes(), &names.fence, &names.completion];
    let remove = Command::new([&[&b"DEL"[..]], &keys[..if trial.can_run { 3 } else { 2 }]].concat());
    let until = asker.until.max(clock::monotonic().plus(REMOVAL));
    let asker = Asker { link: Arc::clone(&asker.link), until, home: None };
    let removed = asker.all(&[remove]).await;
    tried.and(removed.map(drop))?;
    Ok(if trial.can_run {
        "a lock was taken, renewed and released, and a run was begun and finished"
    } else {
        "a lock was taken, renewed and released"
    })
}

async fn perform(asker: &Asker, codec: &Codec, op: LockOp) -> Result<Applied, String> {
    let left = asker.until.since(clock::monotonic()).min(STEP);
    let mut exchange =
        codec.begin(RequestId::new(0), &[op], left, clock::unix_ms()).map_err(|denial| denial.to_string())?;
    loop {
        let replies = asker.all(exchange.commands()).await?;
        match exchange.replies(replies) {
            Progress::Again => {}
            Progress::Done(outcomes) => {
                return match outcomes.into_iter().next() {
                    Some(Outcome::Applied(applied)) => Ok(applied),
                    Some(Outcome::NotApplied(refusal)) => Err(refused(&refusal)),
                    Some(Outcome::Unknown(fault)) => Err(fault.to_string()),
                    None => Err("no outcome".to_owned()),
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_recognised_in_every_wording() {
        let note = |about, name, error: &str| {
            let mut missing = Missing::default();
            missing.note(about, name, &Value::Error(error.to_owned()));
            missing
        };
        for error in [
            "NOPERM this user has no permissions to run the 'type' command",
            "NOPERM this user has no permissions to run the 'type' command or its subcommand",
            "NOPERM User job has no permissions to run the 'type' command",
        ] {
            assert_eq!(note(About::Lock, "type", error).commands, ["+type"], "{error}");
        }
        for error in [
            "NOPERM this user has no permissions to access one of the keys used as arguments",
            "NOPERM No permissions to access a key",
        ] {
            assert!(
                note(About::Lock, "type", error).lacks(About::Lock)
                    && note(About::Fence, "type", error).lacks(About::Fence),
                "{error}"
            );
        }
        let channel = "NOPERM this user has no permissions to access one of the channels used as arguments";
        assert!(note(About::Channel, "publish", channel).lacks(About::Channel));
        let publish = "NOPERM this user has no permissions to run the 'publish' command";
        assert_eq!(note(About::Channel, "publish", publish).wake_ups, ["+publish"]);
        let unknown = note(About::Nothing, "eval", "ERR unknown command 'EVAL', with args beginning with: 'return 1'");
        assert_eq!(unknown.unknown, ["EVAL"]);
        let passing = note(About::Lock, "set", "OOM command not allowed");
        assert!(passing.commands.is_empty() && !passing.lacks(About::Lock));
    }

    #[test]
    fn a_name_is_found_under_a_plain_pattern_only() {
        for (pattern, prefix) in [
            ("~jobs/*", Some("jobs/")),
            ("jobs/*", Some("jobs/")),
            ("~*", Some("")),
            ("%RW~jobs/*", Some("jobs/")),
            ("%R~jobs/*", None),
            ("~{jobs/*", None),
            ("~jobs/?*", None),
            ("~jobs/*/x", None),
            ("~job", None),
            ("", None),
        ] {
            assert_eq!(prefix_of(pattern), prefix, "{pattern}");
        }
    }
}
