//! Checks if this server, over HTTP, can keep locks.

use std::time::Duration;

use leasehold_core::member::Durability;
use leasehold_wire::redis::{Command, info_by_script};
use leasehold_wire::resp::Value;
use leasehold_wire::rest::Dialect;

use super::access::{HttpAccess, HttpLink};
use crate::admin::checks::http as check;
use crate::admin::doctor::Finding;
use crate::host::clock;
use crate::transport::connections::Connections;
use crate::transport::durability::ServerSettings;
use crate::transport::info::{fields, setting};
use crate::transport::readiness::NoServer;
use crate::transport::web_checks::way;
use crate::url::http::{Exposure, Login};

const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn diagnose(
    access: &HttpAccess,
    connections: &Connections<HttpLink>,
    durability: Durability,
) -> Vec<Finding> {
    let way = way(check::WAY, access.reach, "break locks with what they see", "use https");
    let mut findings = vec![way, login(access)];
    let met = ask(connections, &["PING"]);
    let reached = !matches!(met, Err(NoServer::Fault(_)));
    findings.push(server(access, &met));
    if reached {
        findings.push(scripts(&ask(connections, &["EVAL", "return 1", "0"])));
        findings.extend(data_loss(connections, durability));
    }
    findings.push(limits(access));
    findings
}

fn ask(connections: &Connections<HttpLink>, args: &[&str]) -> Result<Value, NoServer> {
    perform(connections, Command::new(args))
}

fn perform(connections: &Connections<HttpLink>, command: Command) -> Result<Value, NoServer> {
    let deadline = clock::monotonic().plus(PATIENCE);
    connections
        .block_on(
            move |link| async move { link.greeted(&command, deadline).await.map_err(|why| link.store.no_server(why)) },
        )
        .unwrap_or_else(|fault| Err(NoServer::Fault(fault)))
}

fn login(access: &HttpAccess) -> Finding {
    match (&access.login, access.reach) {
        (Login::Nobody, Exposure::Tls | Exposure::Plaintext) => check::LOGIN.fails(
            "the url has no user: if the server needs no login, everybody who reaches it can do everything",
            "give the server http_basic_auth in its acl, and write webdis+https://user:password@host",
        ),
        (Login::Nobody, Exposure::Loopback) => check::LOGIN.passes("none, on this machine"),
        (Login::Token(_), _) => check::LOGIN.passes("a token"),
        (Login::Basic { .. }, _) => check::LOGIN.passes("user and password"),
    }
}

fn server(access: &HttpAccess, met: &Result<Value, NoServer>) -> Finding {
    match met {
        Ok(Value::Error(error)) => check::SERVER.warns(
            format!("{access} answers a PING with {error:?}"),
            "allow PING, so that a running server can be distinguished from a missing one",
        ),
        Ok(_) => check::SERVER.passes(format!("{access} answers")),
        Err(why) => check::SERVER.fails(
            why.to_string(),
            match why {
                NoServer::Fault(_) => "check that the server runs at this address, then run this check again",
                NoServer::Refused(_) => "fix the cause named here, then run this check again; waiting does not help",
            },
        ),
    }
}

fn scripts(reply: &Result<Value, NoServer>) -> Finding {
    const ADVICE: &str = "allow EVAL and EVALSHA, to the token or user and in the server's own list of commands: every \
                          lock is a script";
    match reply {
        Ok(Value::Integer(1)) => check::SCRIPTS.passes("scripts run"),
        Ok(Value::Error(error)) => check::SCRIPTS.fails(format!("scripts do not run: {error}"), ADVICE),
        Ok(_) => check::SCRIPTS.fails("a script that returns 1 returned something else", ADVICE),
        Err(why) => check::SCRIPTS.fails(format!("scripts do not run: {why}"), ADVICE),
    }
}

/// The durability of its data. Many such servers do not report it: then it is up to their operator, unless the url
/// declares it.
fn data_loss(connections: &Connections<HttpLink>, durability: Durability) -> Vec<Finding> {
    let in_words = |reply: Result<Value, NoServer>| reply.map_err(|why| why.to_string());
    // Webdis splits the reply to INFO, except in a script; other servers refuse INFO in scripts.
    let mut info = in_words(perform(connections, info_by_script(None))).and_then(|reply| fields(&reply));
    if info.is_err() {
        info = in_words(ask(connections, &["INFO"])).and_then(|reply| fields(&reply)).or(info);
    }
    if info.is_err() && durability == Durability::NotDeclared {
        return Vec::new();
    }
    let of = |name| in_words(ask(connections, &["CONFIG", "GET", name])).and_then(|reply| setting(name, &reply));
    let settings = ServerSettings { info, save: of("save"), appendfsync: of("appendfsync") };
    let losses = if settings.info.is_ok() { settings.losses() } else { Vec::new() };
    losses.into_iter().chain(settings.durable(durability)).collect()
}

fn limits(access: &HttpAccess) -> Finding {
    let what = match access.dialect {
        Dialect::Upstash => "REST has no WAIT for replicas and no notifications of releases: waiters poll",
        Dialect::Webdis => {
            "Webdis has no WAIT for replicas, because it pools its connections, and no notifications of releases: \
             waiters poll"
        }
    };
    let advice = "nothing, unless you need one of them: then use redis:// or rediss:// to the same Redis";
    Finding { advice: advice.to_owned(), ..check::LIMITS.passes(what) }
}
