//! Finds the master: asks the Sentinels in turn until one answers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Refusal};
use leasehold_wire::redis::{Command, refusal};
use leasehold_wire::resp::Value;
use tokio::sync::watch;
use tokio::time::timeout;

use super::access::RedisAccess;
use super::failovers::Failovers;
use super::link::NoConnection;
use crate::host::sync::Mutex;
use crate::transport::info::printable;
use crate::url::redis::Address;

/// The time limit for each Sentinel, connecting included; then the next one is asked.
const PATIENCE: Duration = Duration::from_secs(1);

/// The Sentinels of one master.
pub(super) struct Sentinels {
    sentinels: Vec<RedisAccess>,
    name: String,
    /// The Sentinel that answered last; it is asked first.
    first: AtomicUsize,
    master: watch::Sender<Option<Address>>,
    /// Those that did not answer when they were asked last.
    silent: Mutex<Vec<String>>,
    pub(super) failovers: Failovers,
}

impl Sentinels {
    pub(super) fn new(sentinels: Vec<RedisAccess>, name: String) -> Self {
        let (master, _) = watch::channel(None);
        Self {
            sentinels,
            name,
            first: AtomicUsize::new(0),
            master,
            silent: Mutex::default(),
            failovers: Failovers::default(),
        }
    }

    /// The name of the master.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// All of them, in the order of the url.
    pub(super) fn all(&self) -> &[RedisAccess] {
        &self.sentinels
    }

    /// The address of the master, by the first Sentinel that answers.
    ///
    /// # Errors
    /// No Sentinel knows the master; the message has each answer. A refusal only if one refuses, and none knows.
    pub(super) async fn master(&self) -> Result<Address, NoConnection> {
        let first = self.first.load(Ordering::Relaxed);
        let (mut said, mut refused) = (Vec::new(), None);
        for turn in 0..self.sentinels.len() {
            let index = (first + turn) % self.sentinels.len();
            let sentinel = &self.sentinels[index];
            let asked = ask(sentinel, &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", &self.name]).await;
            self.note(&sentinel.to_string(), asked.is_ok());
            match asked {
                Ok(reply) => match Address::of_master(&reply) {
                    Some(address) => {
                        self.first.store(index, Ordering::Relaxed);
                        return Ok(address);
                    }
                    None => said.push(format!("{sentinel} knows no master named {:?}", self.name)),
                },
                Err(NoConnection::Fault(fault)) => said.push(fault.to_string()),
                Err(NoConnection::Refused(refusal)) => refused = refused.or(Some(refusal)),
            }
        }
        Err(match refused {
            Some(refusal) => NoConnection::Refused(refusal),
            None => {
                let detail = format!("no Sentinel knows the master's address: {}", said.join("; "));
                NoConnection::Fault(Fault::new(FaultKind::Unreachable, &detail))
            }
        })
    }

    fn note(&self, sentinel: &str, has_answered: bool) {
        let mut silent = self.silent.lock();
        silent.retain(|other| other != sentinel);
        if !has_answered {
            silent.push(sentinel.to_owned());
        }
    }

    /// Words about those that did not answer when they were asked last, if there are any. Without them nobody tells the
    /// clients of another master.
    pub(super) fn silent(&self) -> Option<String> {
        let silent = self.silent.lock();
        let (of, names) = (self.sentinels.len(), silent.join(", "));
        (!silent.is_empty()).then(|| format!("; {} of {of} Sentinels do not answer: {names}", silent.len()))
    }

    /// Notes that the server at this address reports itself as the master.
    pub(super) fn found(&self, address: &Address) {
        let before = self.master.send_replace(Some(address.clone()));
        if let Some(before) = before.filter(|before| before != address) {
            self.failovers.note(&before, address);
        }
    }

    /// The master that was found last.
    pub(super) fn known(&self) -> Option<Address> {
        self.master.borrow().clone()
    }

    /// Waits until another master than this one is found; returns at once if it was found already.
    pub(super) async fn turn_away_from(&self, address: &Address) {
        let mut master = self.master.subscribe();
        let is_another = |now: &Option<Address>| now.as_ref().is_some_and(|now| now != address);
        if master.wait_for(is_another).await.is_err() {
            std::future::pending().await
        }
    }
}

/// Sends one question to one Sentinel.
pub(super) async fn ask(sentinel: &RedisAccess, words: &[&str]) -> Result<Value, NoConnection> {
    let command = Command::new(words);
    let asked = async {
        let replies = sentinel.ask_there(&[command]).await;
        replies.map(|replies| replies.into_iter().next().unwrap_or(Value::Nil)).map_err(|why| match why {
            NoConnection::Fault(fault) if fault.kind != FaultKind::Unreachable => {
                unreachable(&format!("{sentinel}: {fault}"))
            }
            why @ (NoConnection::Fault(_) | NoConnection::Refused(_)) => why,
        })
    };
    let reply =
        timeout(PATIENCE, asked).await.unwrap_or_else(|_| Err(unreachable(&format!("{sentinel}: no answer"))))?;
    let Value::Error(error) = &reply else { return Ok(reply) };
    if error.to_ascii_lowercase().contains("unknown command") {
        let detail = format!("{sentinel} is no Sentinel; write redis://{sentinel} if it is the server itself");
        return Err(NoConnection::Refused(Refusal::Denied(Denial::new(DenialKind::Other, &detail))));
    }
    Err(match refusal(error) {
        Some(refusal) => NoConnection::Refused(refusal),
        None => unreachable(&format!("{sentinel}: {}", printable(error))),
    })
}

fn unreachable(detail: &str) -> NoConnection {
    NoConnection::Fault(Fault::new(FaultKind::Unreachable, detail))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_client_of_a_former_master_leaves_it_at_once() {
        let [one, two] = [1, 2].map(|port| Address { host: "a".into(), port });
        let sentinels = Sentinels::new(Vec::new(), "main".into());
        let turns_away = |from: &Address| sentinels.turn_away_from(from).now_or_never().is_some();
        assert!(!turns_away(&one), "nobody knows better");
        sentinels.found(&one);
        assert!(!turns_away(&one));
        sentinels.found(&two);
        assert!(turns_away(&one) && !turns_away(&two));
    }

    #[tokio::test]
    async fn who_is_with_the_master_turns_away_when_another_is_found() {
        let [one, two] = [1, 2].map(|port| Address { host: "a".into(), port });
        let sentinels = Sentinels::new(Vec::new(), "main".into());
        sentinels.found(&one);
        let mut turning = std::pin::pin!(sentinels.turn_away_from(&one));
        assert!(turning.as_mut().now_or_never().is_none());
        sentinels.found(&one);
        assert!(turning.as_mut().now_or_never().is_none());
        sentinels.found(&two);
        turning.await;
    }
}
