//! Credentials that only the service can judge: they open a container, or the message says what to do.

use leasehold::ErrorKind;
use leasehold::blocking::Client;
use leasehold_servers::answers::{self, Reply};
use leasehold_servers::objects::{Api, Server};
use leasehold_servers::proxy::Proxy;

use crate::common::{PATIENCE, eventually};

/// A signature for the container of Azurite, made with its key, that has ended.
const ENDED: &str =
    "sp=rcwl&se=2020-01-01T00%3A00%3A00Z&sv=2021-12-02&sr=c&sig=RQaIvXadgiU5UL5oHV0tLTioI5vv67FZ8cR8fImSCg8%3D";

#[test]
fn a_signature_that_has_ended_is_told_without_it() {
    // SAFETY: this is before the first client, and nextest gives each test its own process.
    unsafe { std::env::set_var("AZURE_STORAGE_SAS_TOKEN", ENDED) };
    let server = Server::start(Api::AzureBlob);
    let error = Client::connect(server.url("p")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
    // Azurite gives Azure's code for a firewall, where Azure says AuthenticationFailed.
    assert!(error.to_string().contains("AuthorizationFailure"), "{error}");
    assert!(!error.to_string().contains("RQaIv"), "{error}");
}

#[test]
fn keys_that_come_late_are_waited_for_as_a_late_store_is() {
    let keys =
        r#"{"AccessKeyId":"A","SecretAccessKey":"hunter2","Token":"hunter2","Expiration":"2100-01-01T00:00:00Z"}"#;
    let agent = answers::Server::start(move |_| Reply::new(200, keys));
    let agent = Proxy::to(agent.address());
    agent.refuse();
    let home = tempfile::tempdir().unwrap();
    for (name, value) in [
        ("HOME", home.path().display().to_string()),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("http://{}/keys", agent.address())),
    ] {
        // SAFETY: this is before the first client, and nextest gives each test its own process.
        unsafe { std::env::set_var(name, value) };
    }
    let server = Server::start(Api::S3);
    let url = server.url("p");
    let error = Client::connect(&url).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    agent.pass();
    let mut client = None;
    eventually("there are keys", || {
        client = Client::connect(&url).ok();
        client.is_some()
    });
    client.unwrap().lock("a").wait(PATIENCE).acquire().unwrap().release().unwrap();
}
