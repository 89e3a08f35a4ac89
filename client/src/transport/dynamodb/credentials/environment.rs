//! The environment of a search for keys: variables, small files, and a few hosts. A search reaches nothing else.
//!
//! Requests sent here carry keys. So there are no proxies and no redirects; plain HTTP goes only to loopback and to the
//! fixed addresses at which AWS serves machines, tasks and pods; all other requests are HTTPS, to hosts of AWS.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri};
use reqsign_core::{Context, Error, FileRead, HttpSend, StaticEnv};
use reqwest::Client;
use rustls::ClientConfig;

use super::PATIENCE;
use crate::aws::{self, EnvVars, region};
use crate::sync::Mutex;
use crate::transport::{tls, web};

/// The time limit for connecting to the fixed addresses: a server there is a few hops away, or does not exist.
const METADATA_CONNECT: Duration = Duration::from_secs(1);
/// The time limit for its answer: it may have to ask another server.
const METADATA_TOTAL: Duration = Duration::from_secs(5);
const SERVICE_CONNECT: Duration = Duration::from_secs(5);
const SERVICE_TOTAL: Duration = Duration::from_secs(10);
/// The longest answer with keys.
const MOST_BODY: usize = 256 << 10;
/// The addresses at which AWS serves tasks (ECS), pods (EKS) and machines (EC2).
const METADATA: [&str; 5] = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23", "169.254.169.254", "fd00:ec2::254"];

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
            sender: Sender::default(),
            patience: PATIENCE,
        }
    }

    /// Sends all requests for AWS to `fake` instead, with the host in the header `x-meant-for`.
    #[cfg(test)]
    pub(super) fn fake(env: EnvVars, profile: Option<&str>, fake: std::net::SocketAddr) -> Self {
        let sender = Sender { detour: Some(fake), ..Sender::default() };
        let profile = profile.map(str::to_owned);
        Self { env, profile, region: "eu-west-1".to_owned(), sender, patience: PATIENCE }
    }

    /// Uses these answers and sends no requests.
    #[cfg(feature = "fuzzing")]
    pub(super) fn answered(env: EnvVars, profile: Option<&str>, answers: super::fuzzing::Answers) -> Self {
        let sender = Sender { answers: Some(answers), ..Sender::default() };
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
        self.sender.last.lock().asked.clone().unwrap_or_else(|| "a file".to_owned())
    }

    /// Notes the source that the search waits for from now on.
    pub(super) fn wait_for(&self, whom: impl Into<String>) {
        *self.sender.last.lock() = LastRequest { asked: Some(whom.into()), ..LastRequest::default() };
    }

    /// Forgets the last request, at the start of a search.
    pub(super) fn reset(&self) {
        *self.sender.last.lock() = LastRequest::default();
    }

    /// Tells if the last request was answered with a refusal.
    pub(super) fn was_refused(&self) -> bool {
        self.sender.last.lock().refused
    }

    /// The library's error with missing details added and possible keys removed.
    pub(super) fn describe(&self, error: &Error) -> String {
        let text = error.to_string();
        // A parser repeats text that it cannot read, which may be a key.
        let text = match text.find("failed to parse") {
            Some(at) => text[at..].split(':').next().unwrap_or_default().to_owned(),
            None => text,
        };
        let mut said = printable(&text);
        for hint in error.context().iter().filter_map(|context| context.strip_prefix("hint: ")) {
            said.push_str(&format!(" ({})", printable(hint)));
        }
        if let Some(trouble) = &self.sender.last.lock().trouble {
            said.push_str(&format!(": {trouble}"));
        }
        said
    }
}

/// Shortens a text to one line, and removes possible keys.
pub(super) fn printable(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    without_keys(&words.join(" ")).chars().filter(|c| !c.is_control()).take(300).collect()
}

/// Secret keys have 40 characters of base64; tokens have more.
const KEY_BYTES: usize = 32;

/// Replaces everything that could be a key or a token, by its length and characters, with an asterisk.
fn without_keys(text: &str) -> String {
    let is_of_a_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    let is_key = |run: &str| {
        let has = |kind: fn(&u8) -> bool| run.bytes().any(|byte| kind(&byte));
        let is_mixed = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_digit);
        run.len() >= KEY_BYTES && is_mixed
    };
    let mut shown = String::with_capacity(text.len());
    for part in text.split_inclusive(|c| !is_of_a_key(c)) {
        let run = part.trim_end_matches(|c| !is_of_a_key(c));
        shown.push_str(if is_key(run) { "*" } else { run });
        shown.push_str(&part[run.len()..]);
    }
    shown
}

/// Sends requests, to the permitted hosts only.
#[derive(Clone, Default)]
pub(super) struct Sender {
    last: Arc<Mutex<LastRequest>>,
    /// Made for the first request to a service of AWS: reading the certificates of the system takes 20 ms.
    tls: Arc<OnceLock<Result<ClientConfig, String>>>,
    #[cfg(test)]
    detour: Option<std::net::SocketAddr>,
    #[cfg(feature = "fuzzing")]
    answers: Option<super::fuzzing::Answers>,
}

#[derive(Default)]
struct LastRequest {
    asked: Option<String>,
    trouble: Option<String>,
    refused: bool,
}

/// The kind of server that a request goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    /// The endpoint of this machine, task or pod.
    Metadata,
    /// A service of AWS.
    Service,
}

impl Sender {
    /// A client for one request: searches are rare, and each has a runtime of its own.
    fn client(&self, peer: Peer) -> Result<Client, String> {
        let (tls, connect, total) = match peer {
            Peer::Metadata => (web::without_tls(), METADATA_CONNECT, METADATA_TOTAL),
            Peer::Service => {
                let tls = self.tls.get_or_init(|| Ok(tls::trusting(None)?.with_no_client_auth()));
                (tls.clone()?, SERVICE_CONNECT, SERVICE_TOTAL)
            }
        };
        let client = web::builder(tls).connect_timeout(connect).timeout(total).pool_max_idle_per_host(0);
        client.build().map_err(|error| format!("no HTTP client: {error}"))
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        let peer = peer(request.uri())?;
        #[cfg(feature = "fuzzing")]
        if let Some(answers) = &self.answers {
            return answers.next();
        }
        let client = self.client(peer)?;
        #[cfg(test)]
        let request = self.detoured(request);
        let request = reqwest::Request::try_from(request).map_err(|error| error.without_url().to_string())?;
        let mut response = client.execute(request).await.map_err(|error| reason(&error.without_url()))?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| reason(&error.without_url()))? {
            if body.len() + chunk.len() > MOST_BODY {
                return Err(format!("an answer of more than {MOST_BODY} bytes"));
            }
            body.extend_from_slice(&chunk);
        }
        let answer = Response::builder().status(response.status()).body(Bytes::from(body));
        answer.map_err(|error| error.to_string())
    }

    #[cfg(test)]
    fn detoured(&self, mut request: Request<Bytes>) -> Request<Bytes> {
        let host = request.uri().host().unwrap_or_default().to_owned();
        if let Some(fake) = self.detour.filter(|_| !is_loopback(&host)) {
            let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
            *request.uri_mut() = format!("http://{fake}{path}").parse().unwrap();
            request.headers_mut().insert("x-meant-for", host.parse().unwrap());
        }
        request
    }
}

impl HttpSend for Sender {
    async fn http_send(&self, request: Request<Bytes>) -> reqsign_core::Result<Response<Bytes>> {
        let host = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        *self.last.lock() = LastRequest { asked: Some(host.clone()), ..LastRequest::default() };
        let answer = self.send(request).await;
        // The library reports this for some providers only. An answer of 400 may pass, as when requests are throttled.
        let refusal = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN];
        self.last.lock().refused = answer.as_ref().is_ok_and(|answer| refusal.contains(&answer.status()));
        answer.map_err(|what| {
            self.last.lock().trouble = Some(format!("{host}: {what}"));
            Error::unexpected("no answer")
        })
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender")
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

fn address(host: &str) -> Option<IpAddr> {
    host.trim_matches(['[', ']']).parse().ok()
}

fn is_metadata(host: &str) -> bool {
    let fixed = METADATA.iter().filter_map(|text| address(text));
    address(host).is_some_and(|asked| fixed.into_iter().any(|known| known == asked))
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || address(host).is_some_and(|address| address.to_canonical().is_loopback())
}

/// The innermost cause: the outer errors only say that something failed.
fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    web::innermost(error)
}

/// Reads small files, as those with keys are.
#[derive(Debug)]
struct Files;

impl FileRead for Files {
    async fn file_read(&self, path: &str) -> reqsign_core::Result<Vec<u8>> {
        // This thread has no other work.
        aws::read(path.as_ref()).map_err(Error::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_repeated_without_keys() {
        let key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        let said = printable(&format!("request failed: {{\"SecretAccessKey\":\"{key}\",\n\"Code\":\"Failed\"}} {key}"));
        assert_eq!(said, r#"request failed: {"SecretAccessKey":"*", "Code":"Failed"} *"#);
        assert!(!printable(&format!("{} {key}", "é ".repeat(140))).contains("wJalr"), "cut before it is left out");
        for harmless in [
            "arn:aws:iam::123456789012:role/a-role-with-quite-a-long-name",
            "/home/somebody/projects/of/mine/and/others/token",
            "https://sts.eu-west-1.amazonaws.com/doc/2011-06-15/",
            "",
        ] {
            assert_eq!(printable(harmless), harmless);
        }
    }

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
