//! A row of the table: what its attributes say, and whose it is if they say nothing that is understood.
//!
//! A row that cannot be read is never free. Who wrote it may hold the lock, by rules that are not ours.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::time::Duration;

use serde_json::{Map, Value as Json};

use super::Settings;
use super::json::{as_bytes, as_number, as_text, digits};
use crate::session_text;
use leasehold_core::config::MAX_KEEP;
use leasehold_core::member::LossId;
use leasehold_core::op::{Acquire, Completion, Denial, DenialKind, Holder, Holding, Seen, Session};
use leasehold_core::{About, Nonce, Owner, Payload, Seq, Token, Version};

pub(super) const OWNER: &str = "ownerName";
pub(super) const DURATION: &str = "leaseDuration";
pub(super) const RVN: &str = "recordVersionNumber";
pub(super) const RELEASED: &str = "isReleased";
pub(super) const DATA: &str = "data";
/// The attempt that wrote the data, if it is one of ours: another one of ours that wrote none leaves it, and has none.
pub(super) const DATA_OF: &str = "dataNonce";
/// The attempt that wrote it, its session's nonce, and the label: `<nonce>:<nonce>:<label>`. It says nothing of a row of another
/// attempt.
pub(super) const SESSION: &str = "leaseSession";
/// The number of tells of a session's record, which only a tell changes. So it says something where it has changed.
pub(super) const TOLD: &str = "holderTold";
pub(super) const COUNTER: &str = "fencingToken";
/// Java's clients drop it with the row, or leave it as it was: it says something of rows that are ours only.
pub(super) const GRANTED_AT: &str = "grantedAt";
/// Tells a release from one by somebody else: the time by the clock of its writer.
pub(super) const FREED_AT: &str = "freedAt";
pub(super) const TRUST: &str = "quorumTrust";
/// The version that was freed again because the node did not vote. It says nothing of a row that shows another version.
pub(super) const UNDONE: &str = "undoneVersion";
pub(super) const MARKER: &str = "quorumMarker";

pub(super) const DONE_TOKEN: &str = "doneToken";
pub(super) const DONE_OWNER: &str = "doneOwner";
pub(super) const DONE_NONCE: &str = "doneNonce";
pub(super) const DONE_AT: &str = "doneAt";
/// Decides whether the completion of finished work stands.
pub(super) const DONE_UNTIL: &str = "doneUntil";
/// The record of the run that wrote the completion: one of another attempt says nothing.
pub(super) const DONE_ABOUT: &str = "doneAbout";

/// Names that a table's keys cannot have.
pub(super) const OURS: [&str; 20] = [
    OWNER, DURATION, RVN, RELEASED, DATA, DATA_OF, SESSION, TOLD, COUNTER, GRANTED_AT, FREED_AT, TRUST, UNDONE, MARKER,
    DONE_TOKEN, DONE_OWNER, DONE_NONCE, DONE_AT, DONE_UNTIL, DONE_ABOUT,
];

/// A row as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) rvn: Rvn,
    pub(super) released: bool,
    /// The version that it shows was freed again because the node did not vote, and not by its holder.
    pub(super) undone: bool,
    /// Absent after a foreign client has replaced the row.
    pub(super) counter: Option<Token>,
    /// The loss of the node's memory since which the counter was raised.
    pub(super) trust: Option<LossId>,
    owner: Option<Owner>,
    record_ttl: Duration,
    granted_at: Option<u64>,
    /// Of the last release.
    pub(super) freed_at: Option<u64>,
    data: Option<Payload>,
    session: Option<Session>,
    /// The time from which DynamoDB may remove it; `Some(None)` where it will not.
    pub(super) expires: Option<Option<u64>>,
    /// The number of tells; 0 where there were none.
    pub(super) told: u64,
    /// The last completion of finished work, standing or not. Only runs care if it can be read.
    pub(super) done: Result<Option<Done>, Denial>,
}

/// The completion of finished work in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Done {
    /// As [`own`] writes the attempt.
    nonce: String,
    token: Token,
    owner: Owner,
    at_unix_ms: u64,
    until_unix_ms: u64,
    about: Option<About>,
}

impl Done {
    fn read(item: &Map<String, Json>) -> Result<Option<Self>, &'static str> {
        let Some(until) = item.get(DONE_UNTIL) else { return Ok(None) };
        let number = |name| item.get(name).and_then(as_number);
        let words = |name| item.get(name).and_then(as_text);
        let read = || {
            Some(Self {
                nonce: words(DONE_NONCE)?.to_string(),
                token: number(DONE_TOKEN).and_then(Token::new)?,
                owner: Owner::new(words(DONE_OWNER)?).ok()?,
                at_unix_ms: number(DONE_AT)?,
                until_unix_ms: as_number(until)?,
                about: item.get(DONE_ABOUT).and_then(as_bytes).and_then(|bytes| About::read(&bytes)),
            })
        };
        let honest = |done: &Self| {
            Duration::from_millis(done.until_unix_ms.saturating_sub(done.at_unix_ms)) <= MAX_KEEP.saturating_mul(2)
        };
        let mut done = read().filter(honest).ok_or(DONE_UNTIL)?;
        done.about = done.about.filter(|about| done.nonce == own(&about.nonce()));
        Ok(Some(done))
    }

    pub(super) fn is_of(&self, nonce: &Nonce) -> bool {
        self.nonce == own(nonce)
    }

    /// The completion, if it stands.
    pub(super) fn standing(&self, unix_ms: u64) -> Option<Box<Completion>> {
        (unix_ms < self.until_unix_ms).then(|| {
            Box::new(Completion {
                token: self.token,
                owner: self.owner.clone(),
                at_unix_ms: self.at_unix_ms,
                left: Duration::from_millis(self.until_unix_ms - unix_ms),
                about: self.about.clone(),
                unsettled: false,
            })
        })
    }
}

/// The record version number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rvn {
    /// `<nonce>:<seq>`.
    Ours { nonce: Nonce, seq: Seq },
    /// The version number of another client, usually a UUID.
    Foreign(Version),
}

/// The prefix of every version of an attempt.
pub(super) fn own(nonce: &Nonce) -> String {
    alloc::format!("{:032x}:", u128::from_be_bytes(*nonce.as_bytes()))
}

/// A session as the row of an attempt names it.
pub(super) fn session_text(nonce: &Nonce, session: &Session) -> String {
    own(nonce) + &session_text::write(session)
}

/// The session that a row of this attempt names.
///
/// # Errors
/// It names one that cannot be read, so that nobody can tell if it lives.
fn session_of(nonce: &Nonce, attribute: Option<&Json>) -> Result<Option<Session>, ()> {
    let Some(text) = attribute.and_then(as_text) else { return Ok(None) };
    text.strip_prefix(&own(nonce)).map(|session| session_text::read(session).ok_or(())).transpose()
}

/// The version that a send writes. Seqs have equal lengths, so that they are ordered as text as they are as numbers.
pub(super) fn rvn(nonce: &Nonce, seq: Seq) -> String {
    alloc::format!("{}{:010}", own(nonce), seq.get())
}

impl Rvn {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let ours = || {
            let (hex, number) = text.split_once(':')?;
            let nonce = Nonce::from_bytes(u128::from_str_radix(hex, 16).ok()?.to_be_bytes());
            let seq = Seq::new(number.parse().ok()?);
            // Signs, upper case and other lengths are read above; nobody of ours writes them.
            (rvn(&nonce, seq) == text).then_some(Self::Ours { nonce, seq })
        };
        ours().or_else(|| foreign_version(text).map(Self::Foreign))
    }

    pub(super) fn is_of(&self, theirs: &Nonce) -> bool {
        matches!(self, Self::Ours { nonce, .. } if nonce == theirs)
    }

    /// Written by an earlier send of the attempt.
    pub(super) fn is_before(&self, theirs: &Nonce, send: Seq) -> bool {
        matches!(self, Self::Ours { nonce, seq } if nonce == theirs && *seq < send)
    }

    fn version(&self) -> Version {
        match self {
            Self::Ours { nonce, seq } => Version::of(nonce, *seq),
            Self::Foreign(version) => version.clone(),
        }
    }
}

/// The length of [`Version::of`].
const OUR_VERSION: usize = 20;

/// A foreign text as a version. One as long as ours are gets a NUL in front, so that neither is taken for the other.
fn foreign_version(text: &str) -> Option<Version> {
    match text.len() {
        0 => None,
        OUR_VERSION => Version::new(&[b"\0", text.as_bytes()].concat()),
        _ => Version::new(text.as_bytes()),
    }
}

/// The text in the table that a version stands for, and the attempt that it names; `None` for a version that no row of
/// this table can have.
pub(super) fn version_text(version: &Version) -> Option<(String, Option<Nonce>)> {
    let bytes = version.as_bytes();
    if let Ok(ours) = <[u8; OUR_VERSION]>::try_from(bytes) {
        let (mut nonce, mut seq) = ([0; 16], [0; 4]);
        nonce.copy_from_slice(&ours[..16]);
        seq.copy_from_slice(&ours[16..]);
        let nonce = Nonce::from_bytes(nonce);
        return Some((rvn(&nonce, Seq::new(u32::from_be_bytes(seq))), Some(nonce)));
    }
    let is_marked = bytes.len() == OUR_VERSION + 1 && bytes.first() == Some(&0);
    let text = core::str::from_utf8(if is_marked { &bytes[1..] } else { bytes }).ok()?;
    Some((text.to_string(), None))
}

impl Row {
    /// Reads a row from its attributes.
    ///
    /// # Errors
    /// They were not written by a client whose locks are understood here.
    pub(super) fn read(settings: &Settings, item: &Map<String, Json>) -> Result<Self, Denial> {
        let unreadable = |attribute: &str, wanted: &str| Err(unreadable(settings, item, attribute, wanted));
        let Some(rvn) = item.get(RVN).and_then(as_text).and_then(Rvn::parse) else {
            return unreadable(RVN, "a text of 1 to 256 bytes");
        };
        let Some(ms) = item.get(DURATION).and_then(as_text).and_then(digits) else {
            return unreadable(DURATION, "a text of decimal milliseconds");
        };
        let released = match item.get(RELEASED) {
            None => false,
            Some(attribute) if as_text(attribute) == Some("1") => true,
            Some(_) => {
                return unreadable(
                    RELEASED,
                    "the text \"1\" or nothing: Java's clients take any other for released when they read, but never lock it",
                );
            }
        };
        let counter = match item.get(COUNTER) {
            None => None,
            Some(attribute) => match as_number(attribute).and_then(Token::new) {
                Some(counter) => Some(counter),
                None => return unreadable(COUNTER, "an integer from 0 to 2^53 - 1"),
            },
        };
        let told = match item.get(TOLD) {
            None => 0,
            Some(attribute) => match as_number(attribute) {
                Some(told) => told,
                None => return unreadable(TOLD, "an integer"),
            },
        };
        let is_ours = matches!(rvn, Rvn::Ours { .. });
        let has_data = match &rvn {
            Rvn::Ours { nonce, .. } => item.get(DATA_OF).and_then(as_text) == Some(own(nonce).as_str()),
            Rvn::Foreign(_) => true,
        };
        let session = match &rvn {
            Rvn::Ours { nonce, .. } => session_of(nonce, item.get(SESSION)),
            Rvn::Foreign(_) => Ok(None),
        };
        let Ok(session) = session else {
            return unreadable(SESSION, "a session as leasehold writes it");
        };
        let undone = item.get(UNDONE).and_then(as_text).is_some_and(|text| Rvn::parse(text).as_ref() == Some(&rvn));
        Ok(Self {
            released,
            undone,
            counter,
            trust: item.get(TRUST).and_then(as_text).and_then(LossId::parse),
            owner: item.get(OWNER).and_then(as_text).and_then(|label| Owner::new(label).ok()),
            record_ttl: Duration::from_millis(ms),
            granted_at: item.get(GRANTED_AT).and_then(as_number).filter(|_| is_ours),
            freed_at: item.get(FREED_AT).and_then(as_number),
            done: Done::read(item).map_err(|attribute| {
                self::unreadable(
                    settings,
                    item,
                    attribute,
                    "the end of a completion of finished work, with its other attributes",
                )
            }),
            data: item.get(DATA).filter(|_| has_data).and_then(as_bytes).and_then(|bytes| Payload::new(&bytes).ok()),
            session,
            expires: settings.expires_name().and_then(|name| item.get(name)).map(as_number),
            told,
            rvn,
        })
    }

    /// Also while released, a row of the same attempt is not written again: accepting it would let a delayed first send
    /// overwrite a heartbeat, or bring back whom everybody saw leave. A later send may write over what an earlier one had
    /// to undo, for its holder has not left.
    pub(super) fn is_free_for(&self, op: &Acquire) -> bool {
        if self.rvn.is_of(&op.nonce) {
            return op.member.is_some() && self.released && self.undone && self.rvn.is_before(&op.nonce, op.seq);
        }
        self.released || op.expect.as_ref() == Some(&self.rvn.version())
    }

    /// Held by this attempt.
    pub(super) fn is_held_by(&self, nonce: &Nonce) -> bool {
        self.rvn.is_of(nonce) && !self.released
    }

    pub(super) fn is_revoked(&self) -> bool {
        matches!(self.rvn, Rvn::Ours { seq: Seq::LAST, .. })
    }

    pub(super) fn seen(self) -> Seen {
        let version = self.rvn.version();
        let holder = match self.rvn {
            Rvn::Ours { nonce, seq } => Holder::Lease { nonce, seq: Some(seq) },
            Rvn::Foreign(_) => Holder::Foreign,
        };
        let holding = Holding {
            holder,
            version,
            released: self.released,
            counter: self.counter,
            owner: self.owner,
            record_ttl: Some(self.record_ttl),
            // Nothing runs out by itself: observers wait.
            left: None,
            since_unix_ms: self.granted_at,
            data: self.data,
            session: self.session,
            told: self.told,
        };
        Seen { holding: Some(Box::new(holding)), done: None }
    }
}

fn unreadable(settings: &Settings, item: &Map<String, Json>, attribute: &str, wanted: &str) -> Denial {
    let holds = shown(item.get(attribute));
    let table = &settings.table_name()[..settings.table_name().len().min(60)];
    match writer(item) {
        Some(who) => Denial::new(
            DenialKind::Schema,
            &alloc::format!(
                "the row is no lock that leasehold can read, and may be held: {attribute} is {holds}, not {wanted}; \
                 {who} writes such rows: give leasehold a table of its own, or other names than those that are locked in \
                 {table:?}"
            ),
        ),
        None => Denial::new(
            DenialKind::CorruptRecord,
            &alloc::format!(
                "the row is no lock that leasehold can read, and may be held: {attribute} is {holds}, not {wanted}; find \
                 out what writes it to {table:?}, and once nobody holds the lock remove the row by hand"
            ),
        ),
    }
}

/// The library that writes rows like this one.
fn writer(item: &Map<String, Json>) -> Option<&'static str> {
    let has = |name: &str| item.contains_key(name);
    let duration = item.get(DURATION);
    if has("record_version_number") {
        Some("python_dynamodb_lock")
    } else if has("leaseCounter") {
        Some("the Kinesis Client Library")
    } else if has("LockID") && !has(RVN) {
        Some("Terraform")
    } else if duration.and_then(as_text).is_some_and(is_go_duration) {
        Some("dynamolock (Go)")
    } else if duration.is_some_and(|duration| duration.get("N").is_some()) {
        Some("dynamodb_lock (Rust)")
    } else {
        None
    }
}

/// As Go prints lengths of time: `20s`, `1m0s`, `1.5s`, `100ms`.
fn is_go_duration(text: &str) -> bool {
    text.ends_with('s')
        && text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'h' | 'm' | 's' | 'u' | 'µ' | 'n'))
}

/// An attribute for people, shortened, and without what might be a nonce.
fn shown(attribute: Option<&Json>) -> String {
    let Some(attribute) = attribute else { return "missing".into() };
    let first = attribute.as_object().and_then(|fields| fields.iter().next());
    match first {
        Some((kind, Json::String(text))) if kind == "S" || kind == "N" => {
            let text = super::errors::said(text);
            let short: String = text.chars().take(40).collect();
            let dots = if short.len() < text.len() { "..." } else { "" };
            let what = if kind == "S" { "the text" } else { "the number" };
            alloc::format!("{what} {short:?}{dots}")
        }
        Some((kind, Json::Bool(value))) if kind == "BOOL" => alloc::format!("the boolean {value}"),
        Some((kind, _)) => alloc::format!("of type {:?}", kind.chars().take(4).collect::<String>()),
        None => "of no type".into(),
    }
}
