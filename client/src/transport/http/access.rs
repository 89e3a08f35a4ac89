//! A server behind HTTP: its address, how it is asked, and whether it is one.

use std::fmt;
use std::sync::Arc;

use leasehold_core::op::{Denial, Fault, FaultKind, Outcome, TransportFault};
use leasehold_core::{Monotonic, Transmit};
use leasehold_wire::redis::{Codec, Command, Exchange, Settings, refusal};
use leasehold_wire::resp::Value;
use leasehold_wire::rest::{self, Dialect};
use leasehold_wire::{Exchange as _, Progress};
use reqwest::{Client, RequestBuilder};

use crate::error::Error;
use crate::host::clock;
use crate::transport::readiness::{CONNECT_PATIENCE, Greeted, NoServer};
use crate::transport::web::{Web, written};
use crate::transport::web_link::{Asked, NoAnswer, WebLink, WebStore};
use crate::url::http::{Exposure, HttpUrl, Login};

pub(super) type HttpLink = WebLink<HttpAccess>;

/// Access to one server.
pub(super) struct HttpAccess {
    codec: Codec,
    pub(super) dialect: Dialect,
    pub(super) reach: Exposure,
    pub(super) login: Login,
    base: String,
    web: Arc<Web>,
    shown: String,
}

impl HttpAccess {
    /// # Errors
    /// A certificate cannot be read.
    pub(super) fn new(url: &HttpUrl) -> Result<Self, Error> {
        let wrong = |what: String| Error::config(format!("{url}: {what}"));
        let web = Web::new(url.reach, url.ca.as_deref(), None).map_err(wrong)?;
        Ok(Self {
            // No replicas: a WAIT would need a connection of its own between server and Redis.
            codec: Codec::new(Settings::default()),
            dialect: url.dialect,
            reach: url.reach,
            login: url.login.clone(),
            base: url.base.clone(),
            web: Arc::new(web),
            shown: url.to_string(),
        })
    }

    /// # Errors
    /// The request cannot be encoded.
    fn request(&self, client: &Client, command: &Command) -> Result<RequestBuilder, Fault> {
        let token = match &self.login {
            Login::Token(token) => Some(token.as_str()),
            Login::Nobody | Login::Basic { .. } => None,
        };
        let asked = rest::request(self.dialect, std::slice::from_ref(command), token);
        let mut request = client.post(format!("{}{}", self.base, asked.path));
        if let Login::Basic { user, password } = &self.login {
            request = request.basic_auth(user, Some(password.as_str()));
        }
        written(request, asked.headers.iter().map(|(name, value)| (*name, value.as_str())), asked.body)
    }

    /// The token or password, which must not be shown.
    fn secret(&self) -> Option<&str> {
        match &self.login {
            Login::Nobody => None,
            Login::Token(secret) | Login::Basic { password: secret, .. } => Some(secret),
        }
    }

    /// The reason why there is no reply to a command.
    pub(super) fn no_server(&self, why: Outcome) -> NoServer {
        match NoServer::ungreeted(why) {
            NoServer::Fault(Fault { kind: FaultKind::Protocol, detail }) => {
                let said = self.something_else(detail.as_deref().unwrap_or_default());
                NoServer::Fault(Fault::new(FaultKind::Protocol, &said))
            }
            why @ (NoServer::Fault(_) | NoServer::Refused(_)) => why,
        }
    }

    fn judge_greeting(&self, reply: &Value) -> Greeted {
        let is_pong = matches!(reply, Value::Simple(text) if text == "PONG")
            || matches!(reply, Value::Bulk(text) if text == b"PONG");
        if is_pong {
            return Ok(());
        }
        let Value::Error(error) = reply else {
            let said = self.something_else("its answer to PING is not PONG");
            return Err(NoServer::Fault(Fault::new(FaultKind::Protocol, &said)));
        };
        match refusal(error) {
            // A user who may not PING is logged in all the same.
            _ if error.starts_with("NOPERM") => Ok(()),
            Some(refusal) => Err(NoServer::Refused(refusal)),
            None => Err(NoServer::Fault(Fault::new(FaultKind::Server, error))),
        }
    }

    fn something_else(&self, what: &str) -> String {
        let kind = match self.dialect {
            Dialect::Upstash => "an Upstash REST server",
            Dialect::Webdis => "a Webdis",
        };
        format!("this is not {kind} ({what}): check host, port and path of the store url")
    }
}

impl WebStore for HttpAccess {
    type Exchange = Exchange;
    /// Those of the url, which never change.
    type Keys = ();

    fn web(&self) -> &Arc<Web> {
        &self.web
    }

    fn begin(&self, request: &Transmit) -> Result<Exchange, Denial> {
        let left = request.deadline.since(clock::monotonic());
        rest::only_one(self.codec.begin(request.id, &request.ops, left, clock::unix_ms())?)
    }

    fn take(self: &Arc<Self>, exchange: &mut Exchange, answers: Vec<Asked<Self>>) -> Progress {
        exchange.answers(&mut (), answers)
    }

    async fn keys(_link: &HttpLink, _refused: Option<&()>, _deadline: Monotonic) -> Result<(), Outcome> {
        Ok(())
    }

    async fn send(link: &HttpLink, command: &Command, (): &(), deadline: Monotonic) -> Result<Value, NoAnswer> {
        let store = &link.store;
        let answered = link.post(deadline, |client| store.request(client, command)).await?;
        let head = rest::Head {
            status: answered.status,
            content_type: answered.header("content-type"),
            location: answered.header("location"),
        };
        rest::judge(store.dialect, &head, &answered.body, store.secret()).map_err(NoAnswer::Judged)
    }

    /// A `PING`.
    async fn greet(link: &Arc<HttpLink>) -> Greeted {
        let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
        match link.untried(&Command::new(["PING"]), deadline).await {
            Ok(reply) => link.store.judge_greeting(&reply),
            Err(NoAnswer::Transport(TransportFault::Unknown(fault))) if fault.kind == FaultKind::Timeout => {
                Err(NoServer::Fault(Fault::new(FaultKind::Timeout, "no answer to a PING")))
            }
            Err(why) => Err(link.store.no_server(why.outcome())),
        }
    }
}

impl fmt::Display for HttpAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}
