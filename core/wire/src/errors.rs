//! The errors of stores, as data: which of them pass, which are final, and why.
//!
//! An error **passes** if the same request may succeed later without any change of this client: a wait goes on, and a renewal is
//! tried again for as long as its lease lasts. It is **final** if only other settings, other rights or another record help: then a
//! wait ends at once. Each store has a table of [`Known`] answers, from which its errors are judged and from which the page
//! `docs/errors.md` is made.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Outcome, Refusal};

/// The meaning of an error, which decides about the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Means {
    /// Not done, and over soon by itself.
    Passes(FaultKind),
    /// Not done, until those who run the store have mended it.
    Mended(FaultKind),
    /// Not done, for this server takes no writes while another one may.
    Elsewhere,
    /// Not done, for being one of too many.
    TooMany,
    /// Not done, since the credentials have expired.
    Expired,
    /// Perhaps done.
    Unfinished,
    /// User or password are refused.
    Login,
    /// Not done, and never will be.
    Final(DenialKind),
}

/// Tells if a wait goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It does.
    Passing,
    /// It ends at once.
    Final,
    /// It ends where the client has never been let in, and goes on where it has.
    FinalAtFirst,
}

/// An answer of a store that is known by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its code, or words in it. A `*` at the end stands for any rest.
    pub answer: &'static str,
    /// Its meaning.
    pub means: Means,
    /// The words that come with it: what has happened, and what to do.
    pub advice: &'static str,
}

pub(crate) const fn known(answer: &'static str, means: Means, advice: &'static str) -> Known {
    Known { answer, means, advice }
}

/// The entry for an answer; a full name comes before one with `*`.
pub(crate) fn find<'a>(table: &'a [Known], answer: &str) -> Option<&'a Known> {
    let begins = |known: &&Known| known.answer.strip_suffix('*').is_some_and(|start| answer.starts_with(start));
    table.iter().find(|known| known.answer == answer).or_else(|| table.iter().find(begins))
}

impl Means {
    /// Tells if a wait goes on.
    pub const fn verdict(self) -> Verdict {
        match self {
            Self::Passes(_) | Self::Mended(_) | Self::Elsewhere | Self::TooMany | Self::Expired | Self::Unfinished => {
                Verdict::Passing
            }
            Self::Login => Verdict::FinalAtFirst,
            Self::Final(_) => Verdict::Final,
        }
    }

    /// The reason of the verdict.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Passes(_) => "it ends by itself soon",
            Self::Mended(_) => "the operators of the store repair it, and this client need not change",
            Self::Elsewhere => {
                "another server takes the writes, or this one will do so again: the client closes the connection, and \
                 looks the address up again for the next try"
            }
            Self::TooMany => "too many requests at once: tried again more slowly",
            Self::Expired => "the client gets new credentials, or adjusts its clock to the store's, and tries again",
            Self::Unfinished => "the request may have been carried out, which a repeated request shows",
            Self::Login => {
                "at the first connect most likely a mistake in the url; later most likely a password that was changed \
                 on one side, and soon will be on the other"
            }
            Self::Final(DenialKind::Permission) => "somebody must grant the right, and should learn of that at once",
            Self::Final(DenialKind::Schema) => "the table must be made or changed first",
            Self::Final(DenialKind::CorruptRecord) => "the record stays as it is until somebody corrects or deletes it",
            Self::Final(DenialKind::StorageFull) => "the store has no room, however long a client waits",
            Self::Final(DenialKind::TokensExhausted | DenialKind::Membership | DenialKind::Other) => {
                "only another url, other settings or another server help"
            }
        }
    }

    /// The refusal that it is, with these words; `None` where the request may have been carried out.
    pub(crate) fn refusal(self, words: &str) -> Option<Refusal> {
        Some(match self {
            Self::Passes(kind) | Self::Mended(kind) => Refusal::Unavailable(Fault::new(kind, words)),
            Self::Elsewhere => Refusal::Unavailable(Fault::new(FaultKind::Server, words)),
            Self::TooMany => Refusal::Throttled(Fault::new(FaultKind::Busy, words)),
            Self::Expired => Refusal::NeedsCredentials(Fault::new(FaultKind::Server, words)),
            Self::Unfinished => return None,
            Self::Login => Refusal::Denied(Denial::new(DenialKind::Permission, words)),
            Self::Final(kind) => Refusal::Denied(Denial::new(kind, words)),
        })
    }

    /// The outcome of a request that was answered so.
    pub(crate) fn outcome(self, words: &str) -> Outcome {
        self.refusal(words).map_or_else(|| Outcome::Unknown(Fault::new(FaultKind::Server, words)), Outcome::NotApplied)
    }
}

/// The refusal of a login by a server that has let this client in before: it passes, since passwords are exchanged on both sides,
/// and never at the same instant. Rights that are missing stay final.
pub fn login_refused_again(refusal: Refusal) -> Refusal {
    let Refusal::Denied(Denial { kind: DenialKind::Permission, detail }) = &refusal else { return refusal };
    if !is_of_login(detail) {
        return refusal;
    }
    let detail = alloc::format!(
        "{detail}; the same login worked before: if the password was changed, wait, or connect again with the new one"
    );
    Refusal::Unavailable(Fault::new(FaultKind::Server, &detail))
}

/// Refusals begin with the words of their table.
fn is_of_login(words: &str) -> bool {
    let mut all = tables().into_iter().flat_map(|(_, table)| table);
    all.any(|(_, known)| known.means == Means::Login && words.starts_with(known.advice))
}

/// The tables of all stores that this crate speaks to, each with its name.
pub fn tables() -> Vec<(&'static str, Vec<(String, Known)>)> {
    let plain = |all: &[Known]| all.iter().map(|known| (known.answer.to_string(), *known)).collect::<Vec<_>>();
    let mut tables = alloc::vec![
        ("Redis and Valkey", plain(&crate::redis::KNOWN)),
        ("Redis over HTTP (Upstash, Webdis), by status", plain(&crate::rest::KNOWN)),
        ("PostgreSQL, by SQLSTATE", plain(&crate::postgres::KNOWN)),
        ("DynamoDB", plain(&crate::dynamodb::KNOWN)),
        ("etcd", crate::etcd::known().collect()),
    ];
    tables.extend(crate::objects::known());
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_no_denial_and_what_is_final_is_one() {
        for (store, answers) in tables() {
            assert!(!answers.is_empty(), "{store}");
            for (answer, known) in answers {
                let is_denied = matches!(known.means.refusal("words"), Some(Refusal::Denied(_)));
                assert_eq!(is_denied, known.means.verdict() != Verdict::Passing, "{store}: {answer}");
                assert!(!known.advice.is_empty(), "{store}: {answer} comes without words");
            }
        }
    }

    #[test]
    fn no_answer_is_listed_twice() {
        for (store, answers) in tables() {
            for (at, (answer, _)) in answers.iter().enumerate() {
                assert!(answers[..at].iter().all(|(other, _)| other != answer), "{store}: {answer}");
            }
        }
    }

    #[test]
    fn only_a_refused_login_passes_where_it_was_let_in_before() {
        for (store, known) in
            tables().into_iter().flat_map(|(store, table)| table.into_iter().map(move |row| (store, row.1)))
        {
            let Some(refusal) = known.means.refusal(&alloc::format!("{} (it said: no)", known.advice)) else {
                continue;
            };
            let passes = matches!(login_refused_again(refusal.clone()), Refusal::Unavailable(fault)
                if fault.detail.as_deref().is_some_and(|said| said.contains("worked before")));
            assert_eq!(passes, known.means == Means::Login, "{store}: {}", known.answer);
        }
    }
}
