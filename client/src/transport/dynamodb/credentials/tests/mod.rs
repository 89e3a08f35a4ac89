//! Every provider against a fake of its endpoint, and the keeping of what they give.

mod keeping;
mod providers;
mod refusals;

use std::sync::{Arc, Mutex};
use std::thread;

use leasehold_core::Monotonic;
use leasehold_core::op::{DenialKind, Refusal};
use leasehold_servers::answers::{Reply, Request, Server};
use tempfile::TempDir;
use tokio::runtime::Builder;

use super::*;
use crate::aws::EnvVars;
use crate::host::clock;

/// A home folder, an environment, and everybody who could be asked for keys.
pub(super) struct World {
    pub(super) home: TempDir,
    variables: Arc<Mutex<Vec<(String, String)>>>,
    pub(super) server: Server,
    pub(super) profile: Option<String>,
}

impl World {
    /// Nobody is there but who `answering` makes up.
    pub(super) fn new(answering: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join(".aws/sso/cache")).unwrap();
        let variables = vec![("HOME".to_owned(), home.path().display().to_string())];
        Self { home, variables: Arc::new(Mutex::new(variables)), server: Server::start(answering), profile: None }
    }

    /// Nobody answers anything but "not found".
    pub(super) fn empty() -> Self {
        Self::new(|_| Reply::new(404, ""))
    }

    pub(super) fn set(&self, name: &str, value: &str) -> &Self {
        let mut variables = self.variables.lock().unwrap();
        variables.retain(|(known, _)| known != name);
        variables.push((name.to_owned(), value.replace("HOME", &self.home.path().display().to_string())));
        drop(variables);
        self
    }

    pub(super) fn write(&self, path: &str, text: &str) -> &Self {
        std::fs::write(self.home.path().join(path), text).unwrap();
        self
    }

    pub(super) fn config(&self, text: &str) -> &Self {
        self.write(".aws/config", text)
    }

    pub(super) fn environment(&self) -> Environment {
        let variables = Arc::clone(&self.variables);
        let variable = move |name: &str| {
            let variables = variables.lock().unwrap();
            variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        };
        Environment::fake(EnvVars::new(variable), self.profile.as_deref(), self.server.address())
    }

    pub(super) fn credentials(&self) -> CredentialCache {
        CredentialCache::new(self.environment())
    }

    pub(super) fn keys(&self) -> Result<Arc<Keys>, String> {
        block_on(self.credentials().keys()).map_err(|why| why.to_string())
    }

    pub(super) fn refused(&self) -> String {
        let said = self.keys().expect_err("there are keys");
        assert!(!said.contains("hunter2"), "{said}");
        said
    }

    /// Hosts and paths that were asked.
    pub(super) fn asked(&self) -> Vec<String> {
        let place = |request: &Request| {
            let host = request.header("x-meant-for").unwrap_or("loopback");
            format!("{} {host}{}", request.method, request.path)
        };
        self.server.asked().iter().map(place).collect()
    }
}

pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Access key id, secret and token in one line.
pub(super) fn line(keys: &Keys) -> String {
    let token = keys.session_token.as_ref().map_or("none", |token| token.as_str());
    format!("{} {} {token}", keys.access_key_id, keys.secret_access_key.as_str())
}

/// Some hours or seconds from now, as AWS writes it.
pub(super) fn time(seconds_from_now: i64) -> String {
    let now = i64::try_from(clock::unix_ms() / 1_000).unwrap();
    reqsign_core::time::Timestamp::from_second(now + seconds_from_now).unwrap().format_rfc3339_zulu()
}

/// The answer of a container's or a machine's server.
pub(super) fn metadata(id: &str, expiration: &str) -> Reply {
    Reply::new(
        200,
        format!(
            r#"{{"Code":"Success","AccessKeyId":"{id}","SecretAccessKey":"hunter2","Token":"token","Expiration":"{expiration}"}}"#
        ),
    )
}

/// The answer of STS.
pub(super) fn sts(action: &str, id: &str, expiration: &str) -> Reply {
    Reply::new(
        200,
        format!(
            "<{action}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{action}Result><Credentials>\
             <AccessKeyId>{id}</AccessKeyId><SecretAccessKey>hunter2</SecretAccessKey><SessionToken>token</SessionToken>\
             <Expiration>{expiration}</Expiration></Credentials></{action}Result></{action}Response>"
        ),
    )
}
