//! Making HTTP clients: addresses, TLS, logins.

use std::fmt;

use leasehold_core::op::{Fault, FaultKind, TransportFault};
use leasehold_wire::redis::Command;
use leasehold_wire::rest::{self, Dialect};
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder};
use rustls::ClientConfig;

use crate::error::Error;
use crate::transport::{tls, web};
use crate::url::http::{HttpUrl, Login, Reach};

/// Access to one server.
pub(super) struct Access {
    pub(super) dialect: Dialect,
    pub(super) reach: Reach,
    pub(super) login: Login,
    base: String,
    /// Made once, since reading the certificates of the system takes 20 ms; clones share them, and TLS sessions.
    tls: ClientConfig,
    shown: String,
}

impl Access {
    /// # Errors
    /// A certificate cannot be read.
    pub(super) fn new(url: &HttpUrl) -> Result<Self, Error> {
        let wrong = |what: String| Error::config(format!("{url}: {what}"));
        let tls = match url.reach {
            Reach::Tls => tls::trusting(url.ca.as_deref()).map_err(wrong)?.with_no_client_auth(),
            Reach::Loopback | Reach::Plaintext => web::without_tls(),
        };
        let access = Self {
            dialect: url.dialect,
            reach: url.reach,
            login: url.login.clone(),
            base: url.base.clone(),
            tls,
            shown: url.to_string(),
        };
        access.client().map_err(|fault| wrong(fault.to_string()))?;
        Ok(access)
    }

    /// A client for one pool: its connections belong to the runtime that makes them.
    pub(super) fn client(&self) -> Result<Client, Fault> {
        web::client(&self.tls, self.reach == Reach::Tls)
    }

    /// # Errors
    /// The request cannot be encoded.
    pub(super) fn request(&self, client: &Client, command: &Command) -> Result<RequestBuilder, Fault> {
        let token = match &self.login {
            Login::Token(token) => Some(token.as_str()),
            Login::Nobody | Login::Basic { .. } => None,
        };
        let asked = rest::request(self.dialect, std::slice::from_ref(command), token);
        let mut request = client.post(format!("{}{}", self.base, asked.path));
        for (name, value) in asked.headers {
            let unwritable = |_| Fault::new(FaultKind::Protocol, &format!("the header {name} cannot be encoded"));
            let mut value = HeaderValue::try_from(value).map_err(unwritable)?;
            let name = HeaderName::from_static(name);
            value.set_sensitive(name == AUTHORIZATION);
            request = request.header(name, value);
        }
        if let Login::Basic { user, password } = &self.login {
            request = request.basic_auth(user, Some(password.as_str()));
        }
        Ok(request.body(asked.body))
    }

    /// Converts a failure below HTTP. Before there is a connection, no byte of a request has left.
    pub(super) fn fault(&self, error: reqwest::Error) -> TransportFault {
        web::fault(error, self)
    }

    /// The token or password, which must not be shown.
    pub(super) fn secret(&self) -> Option<&str> {
        match &self.login {
            Login::Nobody => None,
            Login::Token(secret) | Login::Basic { password: secret, .. } => Some(secret),
        }
    }

    /// The kind of server that the url names, for messages.
    pub(super) fn kind_of_server(&self) -> &'static str {
        match self.dialect {
            Dialect::Upstash => "an Upstash REST server",
            Dialect::Webdis => "a Webdis",
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}
