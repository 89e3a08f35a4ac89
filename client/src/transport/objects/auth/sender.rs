//! How `reqsign`'s crates read files, ask for tokens and run Azure's command line.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use reqsign_core::{CommandExecute, CommandOutput, Context, Env, FileRead, HttpSend};
use rustls::ClientConfig;

use super::azure::{argument_for_account, for_account};
use crate::aws;
use crate::transport::dynamodb::credentials::run_tool;
use crate::transport::{tls, web};

/// The longest search for tokens.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);
const CONNECT: Duration = Duration::from_secs(5);
/// A machine's own service is near, or there is none.
const CONNECT_NEARBY: Duration = Duration::from_secs(1);
/// The longest answer with a token.
const MOST_BODY: usize = 256 << 10;
/// The addresses at which clouds serve their machines.
const METADATA: [&str; 3] = ["169.254.169.254", "metadata.google.internal", "169.254.169.253"];

/// The world of a search; for tokens of this account of Cosmos DB, if there is one.
pub(super) fn context(env: impl Env, account: Option<String>) -> Context {
    let tool = Tool { account: account.clone(), path: env.var("PATH") };
    Context::new().with_env(env).with_file_read(Files).with_http_send(Sender { account }).with_command_execute(tool)
}

/// Reads files of credentials.
#[derive(Debug)]
struct Files;

impl FileRead for Files {
    async fn file_read(&self, path: &str) -> reqsign_core::Result<Vec<u8>> {
        aws::read(Path::new(path)).map_err(reqsign_core::Error::from)
    }
}

/// Runs Azure's command line, on a thread that has no other work.
#[derive(Debug)]
struct Tool {
    account: Option<String>,
    path: Option<String>,
}

impl CommandExecute for Tool {
    async fn command_execute<'a>(&'a self, name: &'a str, args: &'a [&'a str]) -> reqsign_core::Result<CommandOutput> {
        let argument = |text: &&str| match &self.account {
            Some(account) => argument_for_account(text, account).into_owned(),
            None => (*text).to_owned(),
        };
        let words = std::iter::once(name.to_owned()).chain(args.iter().map(argument)).collect();
        run_tool(words, self.path.as_deref(), PATIENCE).map_err(reqsign_core::Error::unexpected)
    }
}

/// Asks for tokens: over HTTPS, or by plain HTTP at the fixed addresses of machines and on this machine.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) account: Option<String>,
}

impl HttpSend for Sender {
    async fn http_send(&self, request: http::Request<Bytes>) -> reqsign_core::Result<http::Response<Bytes>> {
        let wrong = |what: &str| reqsign_core::Error::unexpected(what.to_owned());
        let host = request.uri().host().unwrap_or_default().to_owned();
        let is_here =
            host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        let is_nearby = is_here || METADATA.contains(&host.as_str());
        let tls: ClientConfig = match request.uri().scheme_str() {
            Some("https") => tls::trusting(None).map_err(|error| wrong(&error))?.with_no_client_auth(),
            Some("http") if is_nearby => web::without_tls(),
            _ => return Err(wrong("tokens are asked for over https only")),
        };
        let connect = if is_nearby { CONNECT_NEARBY } else { CONNECT };
        let client = web::builder(tls).connect_timeout(connect).timeout(PATIENCE).pool_max_idle_per_host(0);
        let client = client.build().map_err(|_| wrong("no HTTP client"))?;
        let (mut parts, mut body) = request.into_parts();
        let mut uri = parts.uri.to_string();
        if let Some(account) = &self.account {
            uri = for_account(&uri, account);
            body = for_account(&String::from_utf8_lossy(&body), account).into();
            // That of the other body.
            parts.headers.remove(http::header::CONTENT_LENGTH);
        }
        let asked = client.request(parts.method, uri).headers(parts.headers).body(body);
        let mut response = asked.send().await.map_err(|error| wrong(&web::innermost(&error.without_url())))?;
        let status = response.status();
        let body = web::read(&mut response, MOST_BODY).await.map_err(|_| wrong("the answer ended early"))?;
        let mut answer = http::Response::builder().status(status);
        for (name, value) in response.headers() {
            answer = answer.header(name, value);
        }
        answer.body(Bytes::from(body)).map_err(|_| wrong("the answer cannot be read"))
    }
}
