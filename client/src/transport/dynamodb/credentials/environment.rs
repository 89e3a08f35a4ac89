//! The environment of a search for keys: variables, small files, and a few hosts. A search reaches nothing else.
//!
//! Requests sent here carry keys. So there are no redirects; plain HTTP goes only to loopback and to the
//! fixed addresses at which AWS serves machines, tasks and pods; all other requests are HTTPS, to hosts of AWS.

use std::time::Duration;

use http::{StatusCode, Uri};
use reqsign_core::{Context, Error, StaticEnv};

use super::{NoKeys, PATIENCE};
use crate::aws::{EnvVars, region};
use crate::transport::credentials::sender::{Files, Peer, Rules, Sender, address, is_loopback};

/// The addresses at which AWS serves tasks (ECS), pods (EKS) and machines (EC2).
const METADATA: [&str; 5] = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23", "169.254.169.254", "fd00:ec2::254"];

const RULES: Rules = Rules { peer, judge, shows_answers: true };

/// Everything that a search for keys may use.
#[derive(Clone)]
pub(crate) struct Environment {
    pub(super) env: EnvVars,
    /// The profile that the url names.
    pub(super) profile: Option<String>,
    pub(super) region: String,
    pub(super) sender: Sender,
    patience: Duration,
}

impl Environment {
    /// `profile` is the one that a url names.
    pub(crate) fn new(profile: Option<&str>, region: &str) -> Self {
        Self {
            env: EnvVars::of_process(),
            profile: profile.map(str::to_owned),
            region: region.to_owned(),
            sender: Sender::new(RULES),
            patience: PATIENCE,
        }
    }

    /// Sends all requests for AWS to `fake` instead, with the host in the header `x-meant-for`.
    #[cfg(test)]
    pub(super) fn fake(env: EnvVars, profile: Option<&str>, fake: std::net::SocketAddr) -> Self {
        let sender = Sender::new(RULES).with_detour(fake);
        let profile = profile.map(str::to_owned);
        Self { env, profile, region: "eu-west-1".to_owned(), sender, patience: PATIENCE }
    }

    /// Uses these answers and sends no requests.
    #[cfg(feature = "fuzzing")]
    pub(super) fn answered(env: EnvVars, profile: Option<&str>, answers: super::fuzzing::Answers) -> Self {
        let sender = Sender::new(RULES).with_answers(answers);
        let profile = profile.map(str::to_owned);
        Self { env, profile, region: "eu-west-1".to_owned(), sender, patience: PATIENCE }
    }

    #[cfg(test)]
    pub(super) fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The time limit of a search.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// The context for the library: it sees nothing of the environment except what it is given.
    pub(super) fn context(&self) -> Context {
        let env = StaticEnv { home_dir: self.env.home(), envs: Default::default() };
        Context::new().with_env(env).with_file_read(Files).with_http_send(self.sender.clone())
    }

    /// The source that the search is waiting for.
    pub(super) fn waiting_for(&self) -> String {
        self.sender.waiting_for()
    }

    /// Notes the source that the search waits for from now on.
    pub(super) fn wait_for(&self, whom: impl Into<String>) {
        self.sender.wait_for(whom);
    }

    /// Forgets the last request, at the start of a search.
    pub(super) fn reset(&self) {
        self.sender.reset();
    }

    /// Tells if the last request was answered with a refusal.
    pub(super) fn was_refused(&self) -> bool {
        self.sender.was_refused()
    }

    /// The end of a search whose last request was that of a named source.
    pub(super) fn no_keys(&self, detail: String, advice: &str) -> NoKeys {
        NoKeys::of_named_source(detail, advice, &self.sender)
    }

    /// The library's error with missing details added and possible keys removed.
    pub(super) fn describe(&self, error: &Error) -> String {
        self.sender.describe(error)
    }
}

/// # Errors
/// Keys must not be sent there.
fn peer(uri: &Uri) -> Result<Peer, String> {
    let host = uri.host().unwrap_or_default();
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("keys are not requested from a url with a user name".to_owned());
    }
    match uri.scheme_str() {
        Some("https") if region::is_of_aws(host) && uri.port().is_none() => Ok(Peer::Service),
        Some("http") if is_metadata(host) || is_loopback(host) => Ok(Peer::Metadata),
        _ => Err(format!(
            "keys are not requested from there: they are fetched over http only from {} and loopback, and over https \
             only from AWS",
            METADATA.join(", ")
        )),
    }
}

/// Tells if requests for keys may go there.
#[cfg(feature = "fuzzing")]
pub(super) fn is_asked(uri: &Uri) -> bool {
    peer(uri).is_ok()
}

/// The library reports trouble itself, and a refusal for some providers only. An answer of 400 may pass, as when requests
/// are throttled.
fn judge(status: StatusCode, _: &[u8]) -> (Option<String>, bool) {
    (None, [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status))
}

fn is_metadata(host: &str) -> bool {
    let fixed = METADATA.iter().filter_map(|text| address(text));
    address(host).is_some_and(|asked| fixed.into_iter().any(|known| known == asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_requested_from_few_hosts() {
        for (url, expected) in [
            ("https://sts.eu-west-1.amazonaws.com/", Some(Peer::Service)),
            ("https://portal.sso.cn-north-1.amazonaws.com.cn/x", Some(Peer::Service)),
            ("http://169.254.169.254/latest", Some(Peer::Metadata)),
            ("http://169.254.170.2/v2", Some(Peer::Metadata)),
            ("http://169.254.170.23:80/v1", Some(Peer::Metadata)),
            ("http://[fd00:ec2::254]/latest", Some(Peer::Metadata)),
            ("http://[fd00:EC2:0::23]/latest", Some(Peer::Metadata)),
            ("http://127.0.0.1:1234/", Some(Peer::Metadata)),
            ("http://localhost:1234/", Some(Peer::Metadata)),
            ("http://sts.eu-west-1.amazonaws.com/", None),
            ("https://sts.eu-west-1.amazonaws.com.example/", None),
            ("https://sts.eu-west-1.amazonaws.com:444/", None),
            ("https://user@sts.eu-west-1.amazonaws.com/", None),
            ("http://169.254.169.254@evil.example/", None),
            ("http://169.254.169.253/", None),
            ("http://metadata.google.internal/", None),
            ("http://0.0.0.0/", None),
            ("http://localhost.example/", None),
            ("https://169.254.170.2/", None),
        ] {
            assert_eq!(peer(&url.parse().unwrap()).ok(), expected, "{url}");
        }
    }
}
