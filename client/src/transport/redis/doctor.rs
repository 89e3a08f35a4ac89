//! Checks if this Redis, with this user and these settings, can keep locks.
//!
//! `server` judges the answers of the server; `rights` tries the user's permissions. A question that is not permitted
//! costs its own answer and no other.

mod items;
mod lack;
mod queue;
mod replicas;
mod rights;
mod server;
mod topology;
mod version;

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::Monotonic;
use leasehold_core::op::Refusal;
use leasehold_wire::redis::cluster::Map;
use leasehold_wire::redis::{Command, slot, time_ms};
use leasehold_wire::resp::Value;

use self::server::{Role, ServerAnswers};
use super::access::RedisAccess;
use super::link::{NoConnection, RedisLink};
use super::store_link::StoreLink;
use crate::admin::checks::redis as check;
use crate::admin::doctor::Finding;
use crate::host::clock;
use crate::transport::connections::Connections;
use crate::transport::durability::ServerSettings;
use crate::transport::info::{Fields, fields, printable, setting};
use crate::url::redis::{Address, RedisUrl};

/// The time limit for all checks together.
const PATIENCE: Duration = Duration::from_secs(10);

/// The part that the server plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// It decides alone.
    Alone,
    /// It votes, and keeps its membership beside the locks.
    Node,
}

pub(super) fn diagnose(
    connections: &Connections<StoreLink>,
    access: &Arc<RedisAccess>,
    url: &RedisUrl,
    part: Part,
) -> Vec<Finding> {
    let until = clock::monotonic().plus(PATIENCE);
    let (access, url) = (Arc::clone(access), url.clone());
    let examined = connections.block_on_background(move |link| async move {
        match (access.cluster(), access.sentinels()) {
            (Some(cluster), _) => topology::cluster(&link, cluster, &access, &url, until).await,
            (None, Some(sentinels)) => topology::sentinels(&link, sentinels, &access, &url, until).await,
            (None, None) => match &*link {
                StoreLink::Single(link) => {
                    examine(&Asker { link: Arc::clone(link), until, home: None }, &access, &url, part).await
                }
                StoreLink::Cluster(_) => Vec::new(),
            },
        }
    });
    examined.unwrap_or_else(|fault| vec![silent(&fault.to_string())])
}

async fn examine(asker: &Asker, access: &RedisAccess, url: &RedisUrl, part: Part) -> Vec<Finding> {
    // The first answer may have waited for a connection.
    let trip = match asker.one(&["TIME"]).await {
        Ok(_) => timed(asker).await,
        Err(why) => Err(why),
    };
    let trip = match trip {
        Ok(trip) => trip,
        // Some proxies end the connection on a command that they do not know.
        Err(why) => match asker.one(&["GET", "leasehold-doctor"]).await {
            Ok(_) => return vec![behind_proxy(&why)],
            Err(_) => return vec![silent(&why)],
        },
    };
    let mut findings =
        vec![check::REACHABLE.passes(format!("answered in {:.1} ms", trip.took.as_secs_f64() * 1e3)), trip.clock()];
    let answers = match server_answers(asker).await {
        Ok(answers) => answers,
        Err(why) => {
            findings.push(silent(&why));
            return findings;
        }
    };
    findings.extend(answers.judge(url, part));
    if answers.role() != Role::Sentinel {
        match rights::examine(asker, access, url, part, answers.role()).await {
            Ok(more) => findings.extend(more),
            Err(why) => findings.push(silent(&why)),
        }
    }
    findings
}

fn behind_proxy(why: &str) -> Finding {
    check::REACHABLE.warns(
        format!("keys can be read, and TIME gets no answer ({}), as behind some proxies", printable(why)),
        "run the doctor on the url of the server itself: through this proxy nothing else can be seen",
    )
}

fn silent(why: &str) -> Finding {
    check::REACHABLE.fails(
        format!("no answer: {}", printable(why)),
        "check that the server runs, is not blocked by a slow command, and can be reached from here",
    )
}

/// One link, and the time left for all questions.
struct Asker {
    link: Arc<RedisLink>,
    until: Monotonic,
    /// The node of a cluster that it leads to.
    home: Option<NodeOfCluster>,
}

/// One node, and the map of all nodes.
#[derive(Clone)]
struct NodeOfCluster {
    map: Arc<Map>,
    node: Address,
}

impl Asker {
    /// Tells if this server serves the key's slot.
    fn serves(&self, key: &[u8]) -> bool {
        let home = self.home.as_ref();
        home.is_none_or(|home| home.map.master_of(slot(key)) == Some(&home.node))
    }

    async fn one(&self, words: &[&str]) -> Result<Value, String> {
        let replies = self.all(&[command(words)]).await?;
        replies.into_iter().next().ok_or_else(|| "no reply to a command".to_owned())
    }

    /// # Errors
    /// There was no answer. A refused command is an answer.
    async fn all(&self, commands: &[Command]) -> Result<Vec<Value>, String> {
        self.link.command(commands, self.until).await.map_err(|why| words(&why))
    }
}

fn command(words: &[&str]) -> Command {
    Command::new(words)
}

fn words(why: &NoConnection) -> String {
    match why {
        NoConnection::Fault(fault) => fault.to_string(),
        NoConnection::Refused(refusal) => refused(refusal),
    }
}

fn refused(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Conflict(_) => "it is held by another client".to_owned(),
        Refusal::Done(_) => "its work is done".to_owned(),
        Refusal::Throttled(fault) | Refusal::Unavailable(fault) | Refusal::NeedsCredentials(fault) => fault.to_string(),
        Refusal::Abstains { .. } => "the node does not vote yet".to_owned(),
        Refusal::Denied(denial) => denial.to_string(),
    }
}

/// The server's answer to TIME, with the times of the question and the answer.
struct Trip {
    reply: Value,
    took: Duration,
    sent_ms: u64,
    got_ms: u64,
}

async fn timed(asker: &Asker) -> Result<Trip, String> {
    let (sent, sent_ms) = (clock::monotonic(), clock::unix_ms());
    let reply = asker.one(&["TIME"]).await?;
    Ok(Trip { reply, took: clock::monotonic().since(sent), sent_ms, got_ms: clock::unix_ms() })
}

impl Trip {
    fn clock(&self) -> Finding {
        match time_ms(&self.reply) {
            Some(server_ms) => server::clock(self.sent_ms, server_ms, self.got_ms),
            None => check::CLOCK.fails(
                format!("cannot be seen: {}", self.reply.as_error().unwrap_or("TIME does not show it")),
                "check that NTP keeps the server's clock; with +time this user can see it",
            ),
        }
    }
}

async fn server_answers(asker: &Asker) -> Result<ServerAnswers, String> {
    let settings = ["save", "appendfsync", "min-replicas-to-write", "min-replicas-max-lag", "protected-mode", "bind"];
    let mut commands = vec![command(&["HELLO"]), command(&["INFO"])];
    commands.extend(settings.map(|name| command(&["CONFIG", "GET", name])));
    let mut replies = asker.all(&commands).await?.into_iter();
    let mut next = || replies.next().unwrap_or(Value::Nil);
    let hello = Some(next()).filter(|reply| reply.as_error().is_none());
    let info = next();
    let [save, appendfsync, min_replicas, max_lag, protected_mode, bind] = settings.map(|name| setting(name, &next()));
    let hello = hello.as_ref().map(Fields::of_pairs);
    let durability = ServerSettings { info: fields(&info), save, appendfsync };
    Ok(ServerAnswers { durability, hello, min_replicas, max_lag, protected_mode, bind })
}
