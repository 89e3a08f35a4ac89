//! The membership of a node in a quorum: the marker that the node keeps, and the vote that follows from it.
//!
//! A node that has lost its data forgets leases and counters. It keeps a [`Marker`] beside its locks, which gets lost
//! along with them, and [`admit`] runs atomically with each acquire: a node without its marker, or with that of another
//! run, abstains until all leases it may have forgotten are over. Its counters stay in doubt for longer, resource by
//! resource, until a client that has read enough other nodes has raised them.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::quorum::Trust;
use crate::sip;

/// The id of a quorum: a digest of its nodes and majority, or any id that its clients agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuorumId(pub [u8; 16]);

impl QuorumId {
    /// Derives the id from the names of the nodes, in any order, and the size of a majority.
    ///
    /// It tells apart quorums that were mixed up by mistake. It is no cryptographic digest and need not be one: a client
    /// that can write to a node can write any marker.
    pub fn of(names: &[&str], q: usize) -> Self {
        let mut sorted = names.to_vec();
        sorted.sort_unstable();
        let mut words = Vec::new();
        words.push(q as u64);
        for name in sorted {
            // The length first: otherwise "ab", "c" and "a", "bc" could be the same quorum.
            words.push(name.len() as u64);
            for chunk in name.as_bytes().chunks(8) {
                let mut eight = [0; 8];
                eight[..chunk.len()].copy_from_slice(chunk);
                words.push(u64::from_le_bytes(eight));
            }
        }
        Self(sip::digest(&words))
    }

    /// Reads what `Display` writes: 32 hexadecimal digits in lower case.
    pub fn parse(text: &str) -> Option<Self> {
        hex(text).map(Self).filter(|quorum| alloc::format!("{quorum}") == text)
    }
}

/// The id of one loss of memory: 16 fresh random bytes.
///
/// Every *send* of an acquire carries its own. If one were used twice, a delayed send could mark a second loss with the id
/// of the first, whose abstention a client has already waited out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LossId(pub [u8; 16]);

impl LossId {
    /// The id of a loss that a node finds at this instant of its clock. If a proxy delivers a request twice, the second
    /// delivery must not give a later loss the id of an earlier one.
    #[must_use]
    pub fn found_at(self, unix_ms: u64) -> Self {
        let word = |at: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&self.0[at..at + 8]);
            u64::from_le_bytes(eight)
        };
        Self(sip::digest(&[word(0), word(8), unix_ms]))
    }

    /// Reads what `Display` writes: 32 hexadecimal digits in lower case.
    pub fn parse(text: &str) -> Option<Self> {
        hex(text).map(Self).filter(|stamp| alloc::format!("{stamp}") == text)
    }
}

impl fmt::Display for QuorumId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Display for LossId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// The id of one run of a server: it changes with every restart.
///
/// 1 to 64 bytes of printable ASCII without spaces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(Arc<str>);

impl RunId {
    /// The longest, in bytes.
    pub const MAX_BYTES: usize = 64;

    /// `None` where the text is empty, too long, or not printable.
    pub fn new(text: &str) -> Option<Self> {
        let fits = (1..=Self::MAX_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| Self(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The phase of a node in its quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// It has forgotten nothing since the quorum was new.
    Member,
    /// It has lost its memory, or may have: it abstains.
    Joining,
    /// Its abstention was waited out: it votes, but its counters are trusted resource by resource only.
    Rejoined {
        /// From when on all its counters are trusted, in milliseconds since 1970 by the node's clock: by then the
        /// wall-clock floor has passed every token that it may have forgotten.
        trusted_from_unix_ms: u64,
    },
}

/// The record of a node's membership. It lies beside the locks, so it is lost whenever they are lost.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Marker {
    /// The quorum that the node belongs to.
    pub quorum: QuorumId,
    /// The longest time that a record of this quorum stands, in milliseconds.
    pub max_ttl_ms: u64,
    /// The loss after which the marker was written.
    pub stamp: LossId,
    /// The phase of the node.
    pub phase: Phase,
    /// The server's run when it was marked; `None` for a store that has none.
    pub run: Option<RunId>,
}

/// The operator's word that a node keeps all acknowledged writes across a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Durability {
    /// Given. A changed run alone then means nothing.
    Declared,
    /// Not given: a changed run counts as lost memory.
    #[default]
    NotDeclared,
}

/// The evidence of a client that the quorum is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Bootstrap {
    /// Within one attempt *all* nodes answered that they are joining, each under a stamp that was shown before that
    /// attempt began and has been waited out since. So there was an instant at which nobody remembered anything.
    Yes,
    /// Anything else.
    #[default]
    No,
}

/// The membership data that a client of a quorum sends with every acquire.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Membership {
    /// The quorum of the client.
    pub quorum: QuorumId,
    /// The longest time that a record stands, in milliseconds.
    pub max_ttl_ms: u64,
    /// The durability of this node.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "crate::json::is_default"))]
    pub durability: Durability,
    /// A fresh id, for a loss that this send is the first to find.
    pub fresh: LossId,
    /// The loss whose abstention this client has waited out, or which it has seen to be over, *before this attempt
    /// began*: all sends of an attempt carry the same.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub waited_out: Option<LossId>,
    /// The evidence of this client that the quorum is new.
    #[cfg_attr(feature = "serde", serde(rename = "birth", default, skip_serializing_if = "crate::json::is_default"))]
    pub bootstrap: Bootstrap,
    /// The time that a node that rejoins stays in doubt; normally [`RETENTION`].
    #[cfg_attr(
        feature = "serde",
        serde(
            rename = "retention_ns",
            default = "crate::json::retention",
            skip_serializing_if = "crate::json::is_retention",
            with = "crate::json::nanos"
        )
    )]
    pub retention: Duration,
}

/// The time that stores remember an unused counter, and so the time that a lost one is missed: 7 days. This is far above
/// the longest lease. By then the clock, which is the floor of every new token, has long passed the forgotten counter.
pub const RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The decision of [`admit`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Admission {
    /// The marker to write, atomically with the rest of the acquire; `None` leaves it as it is.
    pub write: Option<Marker>,
    /// The answer to the acquire.
    pub answer: Answer,
}

/// The answer of a node to an acquire, before the lock itself is looked at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The node votes: the acquire goes on.
    Votes(CounterTrust),
    /// The node abstains: leases that were forgotten in this loss may still be valid.
    Abstains(LossId),
    /// The node refuses: it belongs to another quorum.
    WrongQuorum {
        /// The quorum that the node belongs to.
        quorum: QuorumId,
        /// The longest record of that quorum, in milliseconds.
        max_ttl_ms: u64,
    },
}

/// The counters of a voting node that can be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CounterTrust {
    /// All of them.
    Trusted,
    /// Only those raised since this loss.
    ByResource(LossId),
}

impl CounterTrust {
    /// The trust in the counter of a resource whose trust entry is `entry`.
    ///
    /// A doubtful answer counts only for an attempt whose [`Membership::waited_out`] names that stamp. An attempt
    /// that began earlier may have heard from other nodes before the last grant that the node took part in.
    pub fn trust(&self, entry: Option<&LossId>) -> Trust {
        match self {
            Self::Trusted => Trust::Trusted,
            Self::ByResource(stamp) if entry == Some(stamp) => Trust::Trusted,
            Self::ByResource(_) => Trust::Doubtful,
        }
    }
}

/// Decides on one acquire at one node, before the lock itself is looked at.
///
/// `run` is the server's run now, `unix_ms` the node's clock in milliseconds since 1970. The node derives
/// [`Membership::fresh`] from what it was sent by [`LossId::found_at`] before. For a table, which derives nothing, the
/// client's clock stands in: only the signature bounds how late a duplicate of the marker's write can come.
pub fn admit(marker: Option<&Marker>, asked: &Membership, run: Option<&RunId>, unix_ms: u64) -> Admission {
    let abstains = || {
        let marker = Marker {
            quorum: asked.quorum,
            max_ttl_ms: asked.max_ttl_ms,
            stamp: asked.fresh,
            phase: Phase::Joining,
            run: run.cloned(),
        };
        Admission { write: Some(marker), answer: Answer::Abstains(asked.fresh) }
    };
    let keep = |answer| Admission { write: None, answer };
    let Some(marker) = marker else { return abstains() };
    if marker.quorum != asked.quorum || marker.max_ttl_ms != asked.max_ttl_ms {
        return keep(Answer::WrongQuorum { quorum: marker.quorum, max_ttl_ms: marker.max_ttl_ms });
    }
    if marker.is_of_another_run(run) && asked.durability == Durability::NotDeclared {
        return abstains();
    }
    match marker.phase {
        Phase::Member => keep(Answer::Votes(CounterTrust::Trusted)),
        Phase::Joining if asked.waited_out == Some(marker.stamp) => {
            let (phase, counters) = match asked.bootstrap {
                Bootstrap::Yes => (Phase::Member, CounterTrust::Trusted),
                Bootstrap::No => {
                    let retention_ms = u64::try_from(asked.retention.as_millis()).unwrap_or(u64::MAX);
                    let trusted_from_unix_ms = unix_ms.saturating_add(retention_ms);
                    (Phase::Rejoined { trusted_from_unix_ms }, CounterTrust::ByResource(marker.stamp))
                }
            };
            Admission { write: Some(Marker { phase, ..marker.clone() }), answer: Answer::Votes(counters) }
        }
        Phase::Joining => keep(Answer::Abstains(marker.stamp)),
        Phase::Rejoined { trusted_from_unix_ms } if unix_ms >= trusted_from_unix_ms => {
            keep(Answer::Votes(CounterTrust::Trusted))
        }
        Phase::Rejoined { .. } => keep(Answer::Votes(CounterTrust::ByResource(marker.stamp))),
    }
}

/// One line of printable ASCII, at most [`Marker::MAX_BYTES`]:
///
/// ```text
/// leasehold/1 quorum=HEX max_ttl_ms=N stamp=HEX phase=PHASE run=RUN
/// ```
///
/// HEX is 32 lower-case hexadecimal digits, N a decimal number below 2^64 without leading zeros, PHASE one of `member`,
/// `joining`, `rejoined:N` (N: trusted from, ms since 1970), and RUN the run id, empty where there is none.
impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{HEAD} quorum={} max_ttl_ms={} stamp={} phase=", self.quorum, self.max_ttl_ms, self.stamp)?;
        match self.phase {
            Phase::Member => f.write_str("member"),
            Phase::Joining => f.write_str("joining"),
            Phase::Rejoined { trusted_from_unix_ms } => write!(f, "rejoined:{trusted_from_unix_ms}"),
        }?;
        write!(f, " run={}", self.run.as_ref().map_or("", RunId::as_str))
    }
}

const HEAD: &str = "leasehold/1";

impl Marker {
    /// The longest text form, in bytes.
    pub const MAX_BYTES: usize = 256;

    /// Reads the text form. `None` for everything that [`Marker`]'s `Display` does not write, to the letter.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() > Self::MAX_BYTES {
            return None;
        }
        let text = core::str::from_utf8(text).ok()?;
        let mut fields = text.split(' ');
        if fields.next() != Some(HEAD) {
            return None;
        }
        let mut field = |name: &str| fields.next()?.strip_prefix(name)?.strip_prefix('=');
        let quorum = QuorumId::parse(field("quorum")?)?;
        let max_ttl_ms = field("max_ttl_ms")?.parse().ok()?;
        let stamp = LossId(hex(field("stamp")?)?);
        let phase = match field("phase")? {
            "member" => Phase::Member,
            "joining" => Phase::Joining,
            other => Phase::Rejoined { trusted_from_unix_ms: other.strip_prefix("rejoined:")?.parse().ok()? },
        };
        let run = match field("run")? {
            "" => None,
            run => Some(RunId::new(run)?),
        };
        let marker = Self { quorum, max_ttl_ms, stamp, phase, run };
        // The code above accepts signs, leading zeros, upper case and further fields, which no client writes.
        (marker.text() == text).then_some(marker)
    }

    /// The text form.
    pub fn text(&self) -> String {
        alloc::format!("{self}")
    }

    /// Returns true if the server was restarted since the node was marked, or may have been: a run that was not written
    /// down may have ended since. `run` is the server's run now; without one, the answer is false.
    pub fn is_of_another_run(&self, run: Option<&RunId>) -> bool {
        run.is_some() && self.run.as_ref() != run
    }
}

fn hex(digits: &str) -> Option<[u8; 16]> {
    u128::from_str_radix(digits, 16).ok().map(u128::to_be_bytes)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const S: LossId = LossId([7; 16]);
    const FRESH: LossId = LossId([9; 16]);
    const DAY_MS: u64 = 86_400_000;

    fn run(text: &str) -> Option<RunId> {
        Some(RunId::new(text).unwrap())
    }

    pub(crate) fn asked() -> Membership {
        Membership {
            quorum: QuorumId([1; 16]),
            max_ttl_ms: 60_000,
            durability: Durability::NotDeclared,
            fresh: FRESH,
            waited_out: None,
            bootstrap: Bootstrap::No,
            retention: RETENTION,
        }
    }

    fn marker(phase: Phase) -> Marker {
        Marker { quorum: QuorumId([1; 16]), max_ttl_ms: 60_000, stamp: S, phase, run: run("one") }
    }

    fn rejoined(trusted_from_unix_ms: u64) -> Marker {
        marker(Phase::Rejoined { trusted_from_unix_ms })
    }

    fn at(marker: &Marker, asked: &Membership, now: &str) -> Admission {
        admit(Some(marker), asked, run(now).as_ref(), 1_000)
    }

    fn kept(answer: Answer) -> Admission {
        Admission { write: None, answer }
    }

    #[test]
    fn a_node_without_a_marker_is_marked_and_abstains() {
        let found = admit(None, &Membership { waited_out: Some(S), bootstrap: Bootstrap::Yes, ..asked() }, None, 1_000);
        let written = Marker { stamp: FRESH, run: None, ..marker(Phase::Joining) };
        assert_eq!(found, Admission { write: Some(written), answer: Answer::Abstains(FRESH) });
    }

    #[test]
    fn a_node_of_another_quorum_refuses_and_says_which() {
        let refused = kept(Answer::WrongQuorum { quorum: QuorumId([1; 16]), max_ttl_ms: 60_000 });
        for phase in [Phase::Member, Phase::Joining, Phase::Rejoined { trusted_from_unix_ms: 0 }] {
            let other = Membership { quorum: QuorumId([2; 16]), waited_out: Some(S), ..asked() };
            assert_eq!(at(&marker(phase), &other, "one"), refused);
            let longer = Membership { max_ttl_ms: 60_001, waited_out: Some(S), ..asked() };
            assert_eq!(at(&marker(phase), &longer, "two"), refused, "even after a restart");
        }
    }

    #[test]
    fn changed_run_id_counts_as_lost_memory_unless_durable() {
        for phase in [Phase::Member, Phase::Joining, Phase::Rejoined { trusted_from_unix_ms: 0 }] {
            let found = at(&marker(phase), &Membership { waited_out: Some(S), ..asked() }, "two");
            let written = Marker { stamp: FRESH, run: run("two"), ..marker(Phase::Joining) };
            assert_eq!(found, Admission { write: Some(written), answer: Answer::Abstains(FRESH) });
        }
        let durable = Membership { durability: Durability::Declared, ..asked() };
        assert_eq!(at(&marker(Phase::Member), &durable, "two"), kept(Answer::Votes(CounterTrust::Trusted)));
        assert_eq!(at(&marker(Phase::Joining), &durable, "two"), kept(Answer::Abstains(S)));
    }

    #[test]
    fn missing_run_id_counts_as_lost_memory_unless_durable() {
        let unmarked = Marker { run: None, ..marker(Phase::Member) };
        assert_eq!(at(&unmarked, &asked(), "two").answer, Answer::Abstains(FRESH));
        let durable = Membership { durability: Durability::Declared, ..asked() };
        assert_eq!(at(&unmarked, &durable, "two"), kept(Answer::Votes(CounterTrust::Trusted)));
        let found = admit(Some(&marker(Phase::Member)), &asked(), None, 1_000);
        assert_eq!(found, kept(Answer::Votes(CounterTrust::Trusted)), "a store that has no runs");
    }

    #[test]
    fn restart_is_detected_only_with_a_run_id() {
        let (marked, unmarked) = (marker(Phase::Member), Marker { run: None, ..marker(Phase::Member) });
        assert!(!marked.is_of_another_run(run("one").as_ref()));
        assert!(marked.is_of_another_run(run("two").as_ref()));
        assert!(unmarked.is_of_another_run(run("one").as_ref()), "nobody knows under which run it was marked");
        assert!(!marked.is_of_another_run(None) && !unmarked.is_of_another_run(None), "a store that has no runs");
    }

    #[test]
    fn one_request_gives_two_losses_different_ids() {
        assert_ne!(FRESH.found_at(1), FRESH.found_at(2));
        assert_ne!(FRESH.found_at(1), S.found_at(1));
        assert_eq!(FRESH.found_at(1), FRESH.found_at(1));
    }

    #[test]
    fn joining_node_abstains_until_its_own_loss_was_waited_out() {
        for waited_out in [None, Some(FRESH)] {
            let asked = Membership { waited_out, bootstrap: Bootstrap::Yes, ..asked() };
            assert_eq!(at(&marker(Phase::Joining), &asked, "one"), kept(Answer::Abstains(S)));
        }
        let found = at(&marker(Phase::Joining), &Membership { waited_out: Some(S), ..asked() }, "one");
        let write = Some(rejoined(1_000 + 7 * DAY_MS));
        assert_eq!(found, Admission { write, answer: Answer::Votes(CounterTrust::ByResource(S)) });
        let asked = Membership { waited_out: Some(S), retention: Duration::MAX, ..asked() };
        assert_eq!(at(&marker(Phase::Joining), &asked, "one").write, Some(rejoined(u64::MAX)));
    }

    #[test]
    fn bootstrap_makes_waited_out_nodes_members() {
        let asked = Membership { waited_out: Some(S), bootstrap: Bootstrap::Yes, ..asked() };
        let write = Some(marker(Phase::Member));
        let found = at(&marker(Phase::Joining), &asked, "one");
        assert_eq!(found, Admission { write, answer: Answer::Votes(CounterTrust::Trusted) });
        let late = at(&rejoined(2_000), &asked, "one");
        assert_eq!(late, kept(Answer::Votes(CounterTrust::ByResource(S))), "a bootstrap does not lift doubt");
    }

    #[test]
    fn member_always_votes() {
        for (waited_out, bootstrap) in [(None, Bootstrap::No), (Some(S), Bootstrap::Yes), (Some(FRESH), Bootstrap::No)]
        {
            let asked = Membership { waited_out, bootstrap, ..asked() };
            assert_eq!(at(&marker(Phase::Member), &asked, "one"), kept(Answer::Votes(CounterTrust::Trusted)));
        }
    }

    #[test]
    fn rejoined_node_is_trusted_after_the_retention() {
        assert_eq!(at(&rejoined(1_001), &asked(), "one"), kept(Answer::Votes(CounterTrust::ByResource(S))));
        assert_eq!(at(&rejoined(1_000), &asked(), "one"), kept(Answer::Votes(CounterTrust::Trusted)));
    }

    #[test]
    fn trust_entry_is_valid_for_one_loss_only() {
        assert_eq!(CounterTrust::Trusted.trust(None), Trust::Trusted);
        assert_eq!(CounterTrust::ByResource(S).trust(Some(&S)), Trust::Trusted);
        assert_eq!(CounterTrust::ByResource(S).trust(Some(&FRESH)), Trust::Doubtful);
        assert_eq!(CounterTrust::ByResource(S).trust(None), Trust::Doubtful);
    }

    #[test]
    fn markers_round_trip_as_text() {
        let longest = Marker { max_ttl_ms: u64::MAX, run: run(&"r".repeat(64)), ..rejoined(u64::MAX) };
        let bare = Marker { run: None, ..marker(Phase::Joining) };
        for marker in [marker(Phase::Member), bare, longest] {
            let text = marker.text();
            assert!(text.len() <= Marker::MAX_BYTES && text.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{text}");
            assert_eq!(Marker::parse(text.as_bytes()), Some(marker));
        }
        let expected = "leasehold/1 quorum=01010101010101010101010101010101 max_ttl_ms=60000 \
                        stamp=07070707070707070707070707070707 phase=member run=one";
        assert_eq!(marker(Phase::Member).text(), expected);
    }

    #[test]
    fn malformed_markers_are_rejected() {
        let good = rejoined(5).text();
        for (from, to) in [
            ("leasehold/1", "leasehold/2"),
            ("leasehold/1 ", ""),
            ("max_ttl_ms=60000", "max_ttl_ms=060000"),
            ("max_ttl_ms=60000", "max_ttl_ms=+60000"),
            ("max_ttl_ms=60000", "max_ttl_ms=18446744073709551616"),
            ("max_ttl_ms=60000 ", ""),
            ("quorum=01", "quorum=1"),
            ("quorum=01", "quorum=001"),
            ("stamp=07", "stamp=0A"),
            ("rejoined:5", "rejoined:"),
            ("rejoined:5", "gone"),
            ("run=one", "run=one two"),
            ("run=one", "run=one "),
            ("run=one", "run=on\u{e9}"),
            ("run=one", "run=one\n"),
            (" run=one", ""),
            ("quorum", " quorum"),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_ne!(bad, good);
            assert_eq!(Marker::parse(bad.as_bytes()), None, "{bad:?}");
        }
        assert_eq!(Marker::parse(&[b'x'; 257]), None);
        assert_eq!(Marker::parse(&[0xff, 0xfe]), None);
        assert_eq!(Marker::parse(b""), None);
        for end in 0..good.len() {
            let cut = Marker::parse(&good.as_bytes()[..end]);
            assert!(cut.is_none_or(|marker| marker.text().len() == end), "only the run id may be shorter");
        }
    }

    #[test]
    fn run_ids_are_short_and_printable() {
        assert!(RunId::new(&"r".repeat(64)).is_some());
        for bad in ["", " ", "a b", "\u{7f}", "\u{e9}", &"r".repeat(65)] {
            assert_eq!(RunId::new(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn quorum_id_depends_on_names_and_majority() {
        let id = QuorumId::of(&["a:1", "b:2", "c:3"], 2);
        assert_eq!(id, QuorumId::of(&["c:3", "a:1", "b:2"], 2));
        for other in [
            QuorumId::of(&["a:1", "b:2", "c:3"], 3),
            QuorumId::of(&["a:1", "b:2"], 2),
            QuorumId::of(&["a:1b", ":2", "c:3"], 2),
            QuorumId::of(&["a:1", "b:2", "c:3\0"], 2),
        ] {
            assert_ne!(id, other);
        }
        // A stored marker must be recognised by every later release.
        assert_eq!(alloc::format!("{id}"), "ce304f56defc20892fbc67da72e5bb80");
    }
}
