//! How a search asks for tokens of Azure and Google.

use std::time::Duration;

use http::{StatusCode, Uri};
use reqsign_core::{CommandExecute, CommandOutput, Context, Env, Error, HttpSend};

use crate::transport::credentials::command::Program;
use crate::transport::credentials::sender::{Files, Peer, Rules, Sender, address, is_loopback};

/// The longest run of a command line tool.
const TOOL_PATIENCE: Duration = Duration::from_secs(20);
/// The names at which clouds serve their machines, besides addresses that reach no further than the next host.
const METADATA: [&str; 2] = ["metadata.google.internal", "metadata"];
/// The errors of OAuth that waiting does not mend.
const REFUSALS: [&str; 7] = [
    "invalid_client",
    "invalid_grant",
    "invalid_scope",
    "invalid_target",
    "unauthorized_client",
    "unsupported_grant_type",
    "access_denied",
];

pub(super) const RULES: Rules = Rules { peer, judge, shows_answers: false };

/// Tokens come over HTTPS, or by plain HTTP from this machine and from a machine's own service.
fn peer(uri: &Uri) -> Result<Peer, String> {
    let host = uri.host().unwrap_or_default();
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("tokens are not requested from a url with a user name".to_owned());
    }
    match uri.scheme_str() {
        Some("https") => Ok(Peer::Service),
        Some("http") if is_loopback(host) || is_link_local(host) || METADATA.contains(&host) => Ok(Peer::Metadata),
        _ => Err("tokens are requested over https only, except from this machine and its own service".to_owned()),
    }
}

fn is_link_local(host: &str) -> bool {
    address(host).is_some_and(|address| match address {
        std::net::IpAddr::V4(address) => address.is_link_local(),
        std::net::IpAddr::V6(address) => address.is_unicast_link_local(),
    })
}

/// The status, OAuth's name of the error and Entra's number of it. The rest of an answer may hold secrets.
fn judge(status: StatusCode, body: &[u8]) -> (Option<String>, bool) {
    if status.is_success() {
        return (None, false);
    }
    let body = String::from_utf8_lossy(body);
    let error = REFUSALS.iter().chain(&["invalid_request"]).find(|name| body.contains(&format!("\"{name}\"")));
    let number = body.split_once("AADSTS").map_or("", |(_, rest)| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        &rest[..digits]
    });
    let mut said = format!("HTTP status {}", status.as_u16());
    if let Some(error) = error {
        said.push_str(&format!(", {error}"));
    }
    if !number.is_empty() {
        said.push_str(&format!(", AADSTS{number}"));
    }
    (Some(said), error.is_some_and(|error| REFUSALS.contains(error)))
}

/// The environment of a search.
pub(super) fn context(env: impl Env, sender: impl HttpSend) -> Context {
    Context::new().with_env(env).with_file_read(Files).with_http_send(sender)
}

/// Runs a command line tool, on a thread that has no other work.
pub(super) struct Tool {
    /// Where to look for it.
    pub(super) path: Option<String>,
    pub(super) sender: Sender,
    /// Changes an argument.
    pub(super) argument: Box<dyn Fn(&str) -> String + Send + Sync>,
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tool")
    }
}

impl CommandExecute for Tool {
    async fn command_execute<'a>(&'a self, name: &'a str, args: &'a [&'a str]) -> reqsign_core::Result<CommandOutput> {
        self.sender.wait_for(name);
        let args = args.iter().map(|argument| (self.argument)(argument));
        let words = std::iter::once(name.to_owned()).chain(args).collect();
        Program::of_words(words, self.path.clone(), TOOL_PATIENCE).run().map_err(Error::unexpected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_requested_over_https_or_from_near() {
        for (url, expected) in [
            ("https://login.microsoftonline.com/t/oauth2", Some(Peer::Service)),
            ("https://login.chinacloudapi.cn/", Some(Peer::Service)),
            ("http://169.254.169.254/metadata", Some(Peer::Metadata)),
            ("http://169.254.130.2:8081/msi/token", Some(Peer::Metadata)),
            ("http://metadata.google.internal/", Some(Peer::Metadata)),
            ("http://localhost:12356/msi/token", Some(Peer::Metadata)),
            ("http://[::1]:1/", Some(Peer::Metadata)),
            ("http://login.microsoftonline.com/", None),
            ("http://192.0.2.1/token", None),
            ("http://metadata.google.internal.example/", None),
            ("http://metadata.google.internal@evil.example/", None),
            ("https://user@login.microsoftonline.com/", None),
        ] {
            assert_eq!(peer(&url.parse().unwrap()).ok(), expected, "{url}");
        }
    }

    #[test]
    fn a_refusal_is_told_by_its_name_and_number_alone() {
        let said =
            br#"{"error":"invalid_client","error_description":"AADSTS7000222: The keys of hunter2 have expired."}"#;
        let (told, is_final) = judge(StatusCode::UNAUTHORIZED, said);
        assert_eq!((told.as_deref(), is_final), (Some("HTTP status 401, invalid_client, AADSTS7000222"), true));
        let (told, is_final) = judge(StatusCode::BAD_REQUEST, br#"{"error":"hunter2"}"#);
        assert_eq!((told.as_deref(), is_final), (Some("HTTP status 400"), false));
        assert_eq!(judge(StatusCode::OK, b""), (None, false));
    }
}
