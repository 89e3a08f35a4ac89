//! Every source of tokens, each against a made-up endpoint.

use std::collections::HashMap;
use std::path::PathBuf;

use leasehold_servers::answers::{Reply, Request as Asked, Server};
use leasehold_wire::objects::Session;
use reqsign_core::StaticEnv;
use tempfile::TempDir;

use super::*;

/// An environment, and the endpoint that it names.
struct World {
    server: Server,
    folder: TempDir,
    variables: HashMap<String, String>,
}

impl World {
    fn new(answering: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { server: Server::start(answering), folder, variables: HashMap::new() }
    }

    fn set(mut self, name: &str, value: &str) -> Self {
        let value = value.replace("SERVER", &self.server.url()).replace("HOME", self.folder.path().to_str().unwrap());
        self.variables.insert(name.to_owned(), value);
        self
    }

    fn write(self, name: &str, text: &str) -> Self {
        let text = text.replace("SERVER", &self.server.url()).replace("HOME", self.folder.path().to_str().unwrap());
        std::fs::write(self.folder.path().join(name), text).unwrap();
        self
    }

    fn env(&self) -> StaticEnv {
        StaticEnv { home_dir: Some(PathBuf::from(self.folder.path())), envs: self.variables.clone() }
    }

    /// The header `authorization` of a read.
    fn azure(&self, service: Service) -> Result<String, Refusal> {
        let (root, uri) = match service {
            Service::CosmosDb => ("/dbs/a/colls/b", "https://acme.documents.azure.com/dbs/a/colls/b/docs/x"),
            Service::S3 | Service::AzureBlob | Service::Gcs => ("/locks", "https://acme.blob.core.windows.net/locks/x"),
        };
        self.signed(&of_azure(service, "acme", self.env()), &Session::new(service, root, "p/"), uri)
    }

    fn google(&self) -> Result<String, Refusal> {
        let uri = "https://storage.googleapis.com/storage/v1/b/locks/o/x";
        self.signed(&of_google(self.env()), &Session::new(Service::Gcs, "locks", "p/"), uri)
    }

    fn signed<K: reqsign_core::SigningCredential>(
        &self,
        signer: &Signer<K>,
        session: &Session,
        uri: &str,
    ) -> Result<String, Refusal> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut request = session.look();
        set_date(&mut request, 1_700_000_000_000);
        let headers = runtime.block_on(signed(signer, &request, uri))?;
        Ok(headers.into_iter().find(|(name, _)| name == "authorization").unwrap().1)
    }
}

/// Answers with a token of Entra ID.
fn entra(_: &Asked) -> Reply {
    Reply::new(200, r#"{"access_token":"of-entra","token_type":"Bearer","expires_in":3600,"expires_on":"4102444800"}"#)
}

fn shown(service: Service) -> &'static str {
    if service == Service::CosmosDb { "type%3Daad%26ver%3D1.0%26sig%3Dof-entra" } else { "Bearer of-entra" }
}

const OF_AZURE: [(Service, &str); 2] = [
    (Service::AzureBlob, "https%3A%2F%2Fstorage.azure.com"),
    (Service::CosmosDb, "https%3A%2F%2Facme.documents.azure.com"),
];

#[test]
fn a_machine_of_azure_has_an_identity() {
    for (service, audience) in OF_AZURE {
        let world = World::new(entra).set("AZURE_IMDS_ENDPOINT", "SERVER/token").set("AZURE_CLIENT_ID", "worker");
        assert_eq!(world.azure(service).unwrap(), shown(service));
        let asked = world.server.asked().remove(0);
        assert_eq!(asked.header("metadata"), Some("true"));
        assert!(asked.path.contains(&format!("resource={audience}")), "{}", asked.path);
        assert!(asked.path.contains("client_id=worker"), "{}", asked.path);
    }
}

/// The file is the token of any issuer that Entra ID trusts: a pod's in AKS, or in EKS at AWS.
#[test]
fn a_token_of_another_cloud_is_exchanged_by_entra() {
    for (service, audience) in OF_AZURE {
        let world = World::new(entra)
            .write("token", "of-eks\n")
            .set("AZURE_FEDERATED_TOKEN_FILE", "HOME/token")
            .set("AZURE_TENANT_ID", "tenant")
            .set("AZURE_CLIENT_ID", "worker")
            .set("AZURE_AUTHORITY_HOST", "SERVER/");
        assert_eq!(world.azure(service).unwrap(), shown(service));
        let asked = world.server.asked().remove(0);
        assert_eq!((asked.method.as_str(), asked.path.as_str()), ("POST", "/tenant/oauth2/v2.0/token"));
        for part in ["client_assertion=of-eks", "client_id=worker", &format!("scope={audience}%2F.default")] {
            assert!(asked.text().contains(part), "{part}: {}", asked.text());
        }
    }
}

#[test]
fn a_service_principal_has_a_secret() {
    for (service, audience) in OF_AZURE {
        let world = World::new(entra)
            .set("AZURE_TENANT_ID", "tenant")
            .set("AZURE_CLIENT_ID", "worker")
            .set("AZURE_CLIENT_SECRET", "hunter2")
            .set("AZURE_AUTHORITY_HOST", "SERVER");
        assert_eq!(world.azure(service).unwrap(), shown(service));
        let asked = world.server.asked().remove(0).text();
        assert!(asked.contains("client_secret=hunter2") && asked.contains(&format!("scope={audience}%2F")), "{asked}");
    }
}

#[test]
fn keys_of_the_environment_come_first() {
    let keys = "QWNjb3VudEtleU9mVGVzdHM=";
    let blob = World::new(entra).set("AZURE_STORAGE_KEY", keys).set("AZURE_IMDS_ENDPOINT", "SERVER/token");
    assert!(blob.azure(Service::AzureBlob).unwrap().starts_with("SharedKey acme:"));
    for (name, text) in [
        ("AZURE_COSMOS_KEY", keys.to_owned()),
        ("COSMOS_KEY", keys.to_owned()),
        (
            "AZURE_COSMOS_CONNECTION_STRING",
            format!("AccountEndpoint=https://acme.documents.azure.com:443/;AccountKey={keys};"),
        ),
    ] {
        let cosmos = World::new(entra).set(name, &text).set("AZURE_IMDS_ENDPOINT", "SERVER/token");
        let signed = cosmos.azure(Service::CosmosDb).unwrap();
        assert!(signed.starts_with("type%3Dmaster"), "{name}: {signed}");
        assert!(cosmos.server.asked().is_empty());
    }
    // That of another account is not for this one.
    let other = format!("AccountEndpoint=https://other.documents.azure.com:443/;AccountKey={keys};");
    let cosmos = World::new(entra).set("COSMOS_CONNECTION_STRING", &other).set("AZURE_IMDS_ENDPOINT", "SERVER/token");
    assert_eq!(cosmos.azure(Service::CosmosDb).unwrap(), shown(Service::CosmosDb));
}

/// Answers as Google's exchange of tokens, and as a machine of Azure.
fn google(asked: &Asked) -> Reply {
    if asked.path.starts_with("/azure") {
        return entra(asked);
    }
    let body = r#"{"access_token":"of-google","issued_token_type":"urn:ietf:params:oauth:token-type:access_token",
        "token_type":"Bearer","expires_in":3600}"#;
    Reply::new(200, body)
}

const EXTERNAL: &str = r#"{"type":"external_account","audience":"//iam.googleapis.com/pools/p","token_url":"SERVER/v1/token",
    "subject_token_type":"TYPE","credential_source":SOURCE}"#;

fn external(kind: &str, source: &str) -> World {
    let account = EXTERNAL.replace("TYPE", kind).replace("SOURCE", source);
    World::new(google).write("account.json", &account).set("GOOGLE_APPLICATION_CREDENTIALS", "HOME/account.json")
}

#[test]
fn a_token_of_azure_is_exchanged_by_google() {
    let machine = r#"{"url":"SERVER/azure?resource=api","headers":{"Metadata":"True"},
        "format":{"type":"json","subject_token_field_name":"access_token"}}"#;
    let pod = r#"{"file":"HOME/token","format":{"type":"text"}}"#;
    for source in [machine, pod] {
        let world = external("urn:ietf:params:oauth:token-type:jwt", source).write("token", "of-entra\n");
        assert_eq!(world.google().unwrap(), "Bearer of-google");
        let asked = world.server.asked();
        let last = asked.last().unwrap();
        assert!(last.path == "/v1/token" && last.text().contains("of-entra"), "{last:?}");
        assert!(asked.len() == 1 || asked[0].header("metadata") == Some("True"), "{asked:?}");
    }
}

#[test]
fn keys_of_aws_are_exchanged_by_google() {
    let source = r#"{"environment_id":"aws1",
        "regional_cred_verification_url":"https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15"}"#;
    let world = external("urn:ietf:params:aws:token-type:aws4_request", source)
        .set("AWS_REGION", "eu-west-1")
        .set("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        .set("AWS_SECRET_ACCESS_KEY", "hunter2");
    assert_eq!(world.google().unwrap(), "Bearer of-google");
    let asked = world.server.asked().remove(0).text();
    // A signed request that Google sends to AWS, and not the key.
    assert!(asked.contains("GetCallerIdentity") && asked.contains("AKIDEXAMPLE"), "{asked}");
    assert!(!asked.contains("hunter2"), "{asked}");
}

#[test]
fn refusals_are_no_credentials_and_show_no_secret() {
    let refusing = |_: &Asked| Reply::new(401, r#"{"error":"hunter2"}"#);
    let wrong = |world: &World| match world.azure(Service::AzureBlob).unwrap_err() {
        Refusal::NeedsCredentials(fault) => assert!(!format!("{fault:?}").contains("hunter2"), "{fault:?}"),
        other => panic!("{other:?}"),
    };
    wrong(&World::new(refusing).set("AZURE_IMDS_ENDPOINT", "SERVER/token"));
    wrong(&World::new(|_| Reply::new(200, "<html>hunter2")).set("AZURE_IMDS_ENDPOINT", "SERVER/token"));
    wrong(&World::new(|_| Reply::Half(b"{\"access_token\":".to_vec())).set("AZURE_IMDS_ENDPOINT", "SERVER/token"));
    wrong(&World::new(|_| Reply::Close).set("AZURE_IMDS_ENDPOINT", "SERVER/token"));
    // Tokens are secrets: they come by plain HTTP from this machine and from a machine's own service only.
    wrong(&World::new(entra).set("AZURE_IMDS_ENDPOINT", "http://192.0.2.1/token"));
}
