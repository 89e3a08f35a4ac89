//! Making HTTP clients: addresses, TLS, logins.

use std::fmt;
use std::sync::Arc;

use leasehold_core::op::{Fault, FaultKind};
use leasehold_wire::redis::Command;
use leasehold_wire::rest::{self, Dialect};
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder};

use crate::error::Error;
use crate::transport::web::{Pool, Web};
use crate::url::http::{HttpUrl, Login, Reach};

/// Access to one server.
pub(super) struct Access {
    pub(super) dialect: Dialect,
    pub(super) reach: Reach,
    pub(super) login: Login,
    base: String,
    web: Arc<Web>,
    shown: String,
}

impl Access {
    /// # Errors
    /// A certificate cannot be read.
    pub(super) fn new(url: &HttpUrl) -> Result<Self, Error> {
        let wrong = |what: String| Error::config(format!("{url}: {what}"));
        let web = Web::new(url.reach, url.ca.as_deref(), None).map_err(wrong)?;
        Ok(Self {
            dialect: url.dialect,
            reach: url.reach,
            login: url.login.clone(),
            base: url.base.clone(),
            web: Arc::new(web),
            shown: url.to_string(),
        })
    }

    /// Connections for one runtime.
    pub(super) fn pool(&self) -> Pool {
        Pool::new(Arc::clone(&self.web))
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
