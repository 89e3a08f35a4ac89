//! Every source of tokens, each against a made-up endpoint.

use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use leasehold_servers::answers::{Reply, Request as Asked, Server};
use leasehold_wire::objects::Session;
use reqsign_core::{Context, HttpSend, StaticEnv};
use tempfile::TempDir;

use super::sender::{Sender, context};
use super::*;

/// A private key and its certificate.
const KEY: &str = include_str!("test-key.pem");
/// The addresses of clouds that no variable changes.
const FIXED: [&str; 2] = ["https://oauth2.googleapis.com", "https://login.microsoftonline.com"];

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

    fn auth_of_azure(&self, service: Service) -> Auth {
        let found = CredentialCache::new(Azure::new(service, "acme", self.env()));
        Auth::Azure { service, account: "acme".into(), found }
    }

    fn auth_of_google(&self) -> Auth {
        Auth::Google { found: CredentialCache::new(Google::new(self.env())) }
    }

    /// The same, where the addresses of the clouds are those of the server.
    fn rerouted(&self) -> Context {
        context(self.env(), None).with_http_send(Rerouted(self.server.url()))
    }

    /// The header `authorization` of a read.
    fn azure(&self, service: Service) -> Result<String, Refusal> {
        signed(&self.auth_of_azure(service), service).map(|signed| authorization(&signed))
    }

    fn google(&self) -> Result<String, Refusal> {
        signed(&self.auth_of_google(), Service::Gcs).map(|signed| authorization(&signed))
    }
}

#[derive(Debug)]
struct Rerouted(String);

impl HttpSend for Rerouted {
    async fn http_send(&self, request: http::Request<Bytes>) -> reqsign_core::Result<http::Response<Bytes>> {
        let (mut parts, body) = request.into_parts();
        let uri = FIXED.iter().fold(parts.uri.to_string(), |uri, fixed| uri.replace(fixed, &self.0));
        parts.uri = uri.parse().unwrap();
        Sender { account: None }.http_send(http::Request::from_parts(parts, body)).await
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// A read.
fn signed(auth: &Auth, service: Service) -> Result<Signed, Refusal> {
    let root = if service == Service::CosmosDb { "/dbs/a/colls/b" } else { "/locks" };
    block_on(auth.sign(&Session::new(service, root, "p/").look(), "host", 1_700_000_000_000))
}

fn authorization(signed: &Signed) -> String {
    let found = signed.headers.iter().find(|(name, _)| name == "authorization");
    found.map(|(_, value)| value.clone()).unwrap_or_default()
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

/// The words of a JSON Web Token, which is the value of this field of a form.
fn claims(form: &str, field: &str) -> String {
    let token = form.split('&').find_map(|pair| pair.strip_prefix(field)?.strip_prefix('=')).unwrap();
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
    String::from_utf8(claims).unwrap()
}

#[test]
fn a_service_principal_has_a_certificate() {
    let world = World::new(entra)
        .write("principal.pem", KEY)
        .set("AZURE_TENANT_ID", "tenant")
        .set("AZURE_CLIENT_ID", "worker")
        .set("AZURE_CLIENT_CERTIFICATE_PATH", "HOME/principal.pem");
    let mut azure = Azure::new(Service::AzureBlob, "acme", world.env());
    azure.context = world.rerouted();
    let found = CredentialCache::new(azure);
    let auth = Auth::Azure { service: Service::AzureBlob, account: "acme".into(), found };
    assert_eq!(authorization(&signed(&auth, Service::AzureBlob).unwrap()), "Bearer of-entra");
    let asked = world.server.asked().remove(0);
    assert_eq!(asked.path, "/tenant/oauth2/v2.0/token");
    let claims = claims(&asked.text(), "client_assertion");
    assert!(claims.contains(r#""sub":"worker""#), "{claims}");
}

#[test]
fn a_pipeline_of_azure_exchanges_its_token() {
    let world = World::new(|asked| match asked.path.starts_with("/oidc") {
        true => Reply::new(200, r#"{"oidcToken":"of-pipelines"}"#),
        false => entra(asked),
    });
    let world = world
        .set("SYSTEM_ACCESSTOKEN", "of-the-job")
        .set("SYSTEM_OIDCREQUESTURI", "SERVER/oidc")
        .set("ARM_TENANT_ID", "tenant")
        .set("ARM_CLIENT_ID", "worker")
        .set("ARM_OIDC_AZURE_SERVICE_CONNECTION_ID", "connection");
    let mut azure = Azure::new(Service::AzureBlob, "acme", world.env());
    azure.context = world.rerouted();
    let found = CredentialCache::new(azure);
    let auth = Auth::Azure { service: Service::AzureBlob, account: "acme".into(), found };
    assert_eq!(authorization(&signed(&auth, Service::AzureBlob).unwrap()), "Bearer of-entra");
    let asked = world.server.asked();
    assert_eq!(asked[0].header("authorization"), Some("Bearer of-the-job"));
    assert!(asked[1].text().contains("client_assertion=of-pipelines"), "{}", asked[1].text());
}

/// A program `az`, in a folder that `PATH` has, which writes down its arguments.
fn with_az(world: World, script: &str) -> World {
    let bin = world.folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let script = script.replace("HOME", world.folder.path().to_str().unwrap());
    let made = std::fs::write(
        bin.join("az.new"),
        format!("#!/bin/sh\necho \"$@\" >> {}/asked\n{script}", world.folder.path().display()),
    );
    made.unwrap();
    std::fs::set_permissions(bin.join("az.new"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::rename(bin.join("az.new"), bin.join("az")).unwrap();
    world.set("PATH", "HOME/bin:/bin:/usr/bin").set("AZURE_IMDS_ENDPOINT", "http://127.0.0.1:1/")
}

#[test]
fn the_login_of_a_person_comes_last() {
    let token = r#"echo '{"accessToken":"of-az","expiresOn":"2100-01-01 00:00:00","expires_on":4102444800,"tokenType":"Bearer"}'"#;
    for (service, resource) in
        [(Service::AzureBlob, "https://storage.azure.com/"), (Service::CosmosDb, "https://acme.documents.azure.com")]
    {
        let world = with_az(World::new(entra), token);
        assert!(world.azure(service).unwrap().contains("of-az"));
        let asked = std::fs::read_to_string(world.folder.path().join("asked")).unwrap();
        assert_eq!(asked, format!("account get-access-token --resource {resource} --output json\n"));
    }
    let world = with_az(World::new(entra), "echo 'ERROR: hunter2: run az login' >&2; exit 1");
    let refusal = world.azure(Service::AzureBlob).unwrap_err();
    assert!(format!("{refusal:?}").contains("az login") && !format!("{refusal:?}").contains("hunter2"), "{refusal:?}");
    // A machine's identity is asked first.
    let world = with_az(World::new(entra), token).set("AZURE_IMDS_ENDPOINT", "SERVER/token");
    assert_eq!(world.azure(Service::AzureBlob).unwrap(), "Bearer of-entra");
    assert!(!world.folder.path().join("asked").exists());
}

#[test]
fn a_shared_access_signature_is_a_part_of_the_url() {
    let world = World::new(entra).set("AZURE_STORAGE_SAS_TOKEN", "?sv=2021&sig=a%2Fb%3D");
    let signed = signed(&world.auth_of_azure(Service::AzureBlob), Service::AzureBlob).unwrap();
    assert!(signed.query.ends_with("sv=2021&sig=a%2Fb%3D") && !signed.query.contains("?"), "{}", signed.query);
    assert_eq!(authorization(&signed), "");
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

#[test]
fn a_machine_of_google_has_an_account() {
    let world = World::new(google);
    let address = world.server.url().replace("http://", "");
    let world = world.set("GCE_METADATA_HOST", &address);
    assert_eq!(world.google().unwrap(), "Bearer of-google");
    let asked = world.server.asked().remove(0);
    assert_eq!(asked.header("metadata-flavor"), Some("Google"));
    assert!(asked.path.starts_with("/computeMetadata/v1/instance/service-accounts/default/token"), "{}", asked.path);
}

#[test]
fn a_key_of_a_service_account_is_exchanged_once_for_many_requests() {
    let [key, ..] = KEY.split("-----BEGIN CERTIFICATE").collect::<Vec<_>>()[..] else { unreachable!() };
    let account = serde_json::json!({
        "type": "service_account",
        "client_email": "worker@acme.iam.gserviceaccount.com",
        "private_key": &key[key.find("-----BEGIN").unwrap()..],
    });
    let world = World::new(google).write("account.json", &account.to_string());
    let world = world.set("GOOGLE_APPLICATION_CREDENTIALS", "HOME/account.json");
    let mut source = Google::new(world.env());
    source.context = world.rerouted();
    let auth = Auth::Google { found: CredentialCache::new(source) };
    for _ in 0..5 {
        assert_eq!(authorization(&signed(&auth, Service::Gcs).unwrap()), "Bearer of-google");
    }
    let asked = world.server.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    let claims = claims(&asked[0].text(), "assertion");
    assert!(claims.contains(r#""iss":"worker@acme.iam.gserviceaccount.com""#), "{claims}");
}

#[test]
fn a_token_that_is_valid_is_used_while_its_successor_is_not_there() {
    let answers = std::sync::atomic::AtomicUsize::new(0);
    let world = World::new(move |asked| match answers.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        0 => google(asked),
        _ => Reply::Hang,
    });
    let address = world.server.url().replace("http://", "");
    let world = world.set("GCE_METADATA_HOST", &address);
    let found = CredentialCache::new(Google::new(world.env()));
    let now = crate::clock::monotonic();
    let at = |seconds: u64| now.plus(std::time::Duration::from_secs(seconds));
    let first = block_on(found.keys_at(at(0))).unwrap();
    // The token lasts an hour. Nothing here waits for the endpoint, or this test would last as long as its patience.
    for seconds in [3_400, 3_410, 3_500, 3_580] {
        assert!(block_on(found.keys_at(at(seconds))).unwrap().are_the_same_as(&first), "after {seconds} s");
    }
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
