//! How a search for keys asks: requests to few hosts, and small files.
//!
//! Requests sent here carry keys. So there are no redirects, proxies see nothing but TLS and only where somebody asks for them, and each cloud says which hosts may be asked.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri};
use reqsign_core::{Error, FileRead, HttpSend};
use reqwest::Client;
use rustls::ClientConfig;

use crate::aws;
use crate::host::sync::Mutex;
use crate::transport::web::Way;
use crate::transport::{tls, web};

/// The time limit for connecting to the fixed addresses: a server there is a few hops away, or does not exist.
const METADATA_CONNECT: Duration = Duration::from_secs(1);
/// The time limit for its answer: it may have to ask another server.
const METADATA_TOTAL: Duration = Duration::from_secs(5);
const SERVICE_CONNECT: Duration = Duration::from_secs(5);
const SERVICE_TOTAL: Duration = Duration::from_secs(10);
/// The longest answer with keys.
const MOST_BODY: usize = 256 << 10;

/// Shortens a text to one line, and removes possible keys.
pub(in crate::transport) fn printable(text: &str) -> String {
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
#[derive(Clone)]
pub(in crate::transport) struct Sender {
    rules: Rules,
    last: Arc<Mutex<LastRequest>>,
    /// Made for the first request to a service: reading the certificates of the system takes 20 ms.
    tls: Arc<OnceLock<Result<ClientConfig, String>>>,
    #[cfg(test)]
    detour: Option<std::net::SocketAddr>,
    #[cfg(feature = "fuzzing")]
    answers: Option<crate::transport::dynamodb::credentials::fuzzing::Answers>,
}

/// The rules of a cloud.
#[derive(Clone, Copy)]
pub(in crate::transport) struct Rules {
    /// Tells who may be asked for keys.
    pub(in crate::transport) peer: fn(&Uri) -> Result<Peer, String>,
    /// The trouble in an answer that the library does not report, without secrets; and if waiting does not help.
    pub(in crate::transport) judge: fn(StatusCode, &[u8]) -> (Option<String>, bool),
    /// The library's messages may be repeated with the answers in them.
    pub(in crate::transport) shows_answers: bool,
}

#[derive(Default)]
struct LastRequest {
    asked: Option<String>,
    trouble: Option<String>,
    refused: bool,
    unserved: Option<Unserved>,
}

/// A request that was not served, so that a later one may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::transport) enum Unserved {
    BySilence,
    ByAnswer,
}

/// The kind of server that a request goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::transport) enum Peer {
    /// The endpoint of this machine, task or pod.
    Metadata,
    /// A service of the cloud.
    Service,
}

impl Sender {
    pub(in crate::transport) fn new(rules: Rules) -> Self {
        Self {
            rules,
            last: Arc::default(),
            tls: Arc::default(),
            #[cfg(test)]
            detour: None,
            #[cfg(feature = "fuzzing")]
            answers: None,
        }
    }

    /// Sends all requests to `fake` instead, with the host in the header `x-meant-for`.
    #[cfg(test)]
    pub(in crate::transport) fn with_detour(self, fake: std::net::SocketAddr) -> Self {
        Self { detour: Some(fake), ..self }
    }

    /// Uses these answers and sends no requests.
    #[cfg(feature = "fuzzing")]
    pub(in crate::transport) fn with_answers(
        self,
        answers: crate::transport::dynamodb::credentials::fuzzing::Answers,
    ) -> Self {
        Self { answers: Some(answers), ..self }
    }

    /// The source that the search is waiting for.
    pub(in crate::transport) fn waiting_for(&self) -> String {
        self.last.lock().asked.clone().unwrap_or_else(|| "a file".to_owned())
    }

    /// Notes the source that the search waits for from now on.
    pub(in crate::transport) fn wait_for(&self, whom: impl Into<String>) {
        *self.last.lock() = LastRequest { asked: Some(whom.into()), ..LastRequest::default() };
    }

    /// Forgets the last request, at the start of a search.
    pub(in crate::transport) fn reset(&self) {
        *self.last.lock() = LastRequest::default();
    }

    /// Tells if the last request was answered with a refusal.
    pub(in crate::transport) fn was_refused(&self) -> bool {
        self.last.lock().refused
    }

    /// Tells if the last request was not served.
    pub(in crate::transport) fn unserved(&self) -> Option<Unserved> {
        self.last.lock().unserved
    }

    /// The library's error with missing details added and possible keys removed.
    pub(in crate::transport) fn describe(&self, error: &Error) -> String {
        let text = error.to_string();
        // A parser repeats text that it cannot read, which may be a key.
        let text = match text.to_ascii_lowercase().find("failed to parse") {
            Some(at) => text[at..].split(':').next().unwrap_or_default().to_owned(),
            None if !self.rules.shows_answers => text.split(['{', '<']).next().unwrap_or_default().to_owned(),
            None => text,
        };
        let mut said = printable(&text);
        for hint in error.context().iter().filter_map(|context| context.strip_prefix("hint: ")) {
            said.push_str(&format!(" ({})", printable(hint)));
        }
        if let Some(trouble) = &self.last.lock().trouble {
            said.push_str(&format!(": {trouble}"));
        }
        said
    }

    /// A client for one request: searches are rare, and each has a runtime of its own.
    fn client(&self, peer: Peer) -> Result<Client, String> {
        let (tls, connect, total, way) = match peer {
            Peer::Metadata => (web::without_tls(), METADATA_CONNECT, METADATA_TOTAL, Way::Direct),
            Peer::Service => {
                let tls = self.tls.get_or_init(|| tls::config(None, None));
                (tls.clone()?, SERVICE_CONNECT, SERVICE_TOTAL, Way::AsAsked)
            }
        };
        let client = web::builder(tls, way)?.connect_timeout(connect).timeout(total).pool_max_idle_per_host(0);
        client.build().map_err(|error| format!("no HTTP client: {error}"))
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        let peer = (self.rules.peer)(request.uri())?;
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
        let may_be_asked = (self.rules.peer)(request.uri()).is_ok();
        let answer = self.send(request).await;
        let (trouble, refused) = match &answer {
            Ok(answer) => (self.rules.judge)(answer.status(), answer.body()),
            Err(what) => (Some(what.clone()), false),
        };
        let unserved = match &answer {
            Ok(answer) if answer.status().is_server_error() => Some(Unserved::ByAnswer),
            Ok(answer) if answer.status() == StatusCode::TOO_MANY_REQUESTS => Some(Unserved::ByAnswer),
            Ok(_) => None,
            Err(_) => may_be_asked.then_some(Unserved::BySilence),
        };
        let mut last = self.last.lock();
        last.unserved = unserved;
        last.refused = refused;
        last.trouble = trouble.map(|what| format!("{host}: {what}"));
        answer.map_err(|_| Error::unexpected("no answer"))
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender")
    }
}

pub(in crate::transport) fn address(host: &str) -> Option<IpAddr> {
    host.trim_matches(['[', ']']).parse().ok()
}

pub(in crate::transport) fn is_loopback(host: &str) -> bool {
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
pub(in crate::transport) struct Files;

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
}
