//! Every source of tokens, each against a made-up endpoint.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use leasehold_servers::answers::{Reply, Request as Asked, Server};
use leasehold_wire::objects::{Codec, Signed};
use leasehold_wire::sigv4::Signer;
use reqsign_core::StaticEnv;
use tempfile::TempDir;

use super::*;
use crate::host::clock;
use crate::transport::credentials::sender::Sender;

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
        let mut envs = self.variables.clone();
        // Not the tools of who runs the tests.
        envs.entry("PATH".to_owned()).or_insert_with(|| self.folder.path().display().to_string());
        StaticEnv { home_dir: Some(PathBuf::from(self.folder.path())), envs }
    }

    fn source_of_azure(&self, service: Service) -> CredentialCache<Azure> {
        let sender = Sender::new(oauth::RULES).with_detour(self.server.address());
        CredentialCache::new(Azure::with(service, "acme", "", self.env(), sender))
    }

    fn source_of_google(&self) -> CredentialCache<Google> {
        let sender = Sender::new(oauth::RULES).with_detour(self.server.address());
        CredentialCache::new(Google::with(self.env(), sender))
    }

    fn auth_of_azure(&self, service: Service) -> Auth {
        Auth::Azure { account: "acme".into(), found: self.source_of_azure(service) }
    }

    /// The header `authorization` of a read.
    fn azure(&self, service: Service) -> Result<String, Refusal> {
        signed(&self.auth_of_azure(service), service).map(|signed| authorization(&signed))
    }

    fn google(&self) -> Result<String, Refusal> {
        signed(&Auth::Google { found: self.source_of_google() }, Service::Gcs).map(|signed| authorization(&signed))
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// A read.
fn signed(auth: &Auth, service: Service) -> Result<Signed, Refusal> {
    let root = if service == Service::CosmosDb { "/dbs/a/colls/b" } else { "/locks" };
    let used = block_on(auth.keys(None))?;
    let codec = Codec::new(service, root, "p/");
    let signed = codec.signed(codec.look(), "host", auth.right(&used), &mut Signer::new(), 1_700_000_000_000);
    signed.ok_or_else(|| used.is_no_key())
}

fn authorization(signed: &Signed) -> String {
    let found = signed.headers.iter().find(|(name, _)| *name == "authorization");
    found.map(|(_, value)| value.to_owned()).unwrap_or_default()
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

#[test]
fn an_app_of_azure_has_an_identity() {
    for (service, audience) in OF_AZURE {
        let world = World::new(entra).set("IDENTITY_ENDPOINT", "SERVER/msi/token").set("IDENTITY_HEADER", "hunter2");
        assert_eq!(world.azure(service).unwrap(), shown(service));
        let asked = world.server.asked().remove(0);
        assert_eq!(asked.header("x-identity-header"), Some("hunter2"));
        for part in ["/msi/token?", "api-version=2019-08-01", &format!("resource={audience}")] {
            assert!(asked.path.contains(part), "{part}: {}", asked.path);
        }
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

/// A key of 512 bits, for nothing else.
const SERVICE_ACCOUNT: &str = r#"{"type":"service_account","client_email":"worker@acme.iam","private_key":"KEY"}"#;
const KEY: &str = "-----BEGIN PRIVATE KEY-----
MIIBVQIBADANBgkqhkiG9w0BAQEFAASCAT8wggE7AgEAAkEA66Lb8fHeZT3kGl1O
hNp1OHWr9tjLp+JTo5A41aTpX4u9LHlCTiabDvNx3+T9zV+FxYUyL8raMjNGO1JT
Mblh9QIDAQABAkEAybhZ4f3VDYa2R3upREJgJz1VQbTGY6p1P4ivnvXWc1tgmE29
jvO9EN+T4ktu0yTJwpwobn5/6FTVbjYkHRosAQIhAP06Hu8azLDKuLetwYSsSigL
mGK2cWT7eADXGlEvq8xhAiEA7jds4Ow8eY8KaUuVsBw2RSAlDHWhhflrmAWVxmtW
XhUCIDafp/aaCFeGk0wD7j+pTqHOxoNcqZ9H434C6IlkyCFhAiBUY9w1flsaMTtd
/AHmZsgvCuk1FcMIBElCjM/3f/UT1QIhANpsKpGddwDWzRz2n2dcvtmQX1kfEE6m
vR4crxvix4HQ
-----END PRIVATE KEY-----
";

fn service_account(answering: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> World {
    let file = SERVICE_ACCOUNT.replace("KEY", &KEY.replace('\n', "\\n"));
    World::new(answering).write("account.json", &file).set("GOOGLE_APPLICATION_CREDENTIALS", "HOME/account.json")
}

#[test]
fn a_service_account_gets_one_token_for_many_requests() {
    let world = service_account(google);
    let auth = Auth::Google { found: world.source_of_google() };
    for _ in 0..3 {
        assert_eq!(authorization(&signed(&auth, Service::Gcs).unwrap()), "Bearer of-google");
    }
    let asked = world.server.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].header("x-meant-for"), Some("oauth2.googleapis.com"));
    assert!(asked[0].text().contains("jwt-bearer"), "{asked:?}");
}

/// The first answer, and then none.
fn once(first: impl Fn() -> Reply + Send + Sync + 'static) -> impl Fn(&Asked) -> Reply + Send + Sync + 'static {
    let is_first = std::sync::atomic::AtomicBool::new(true);
    move |_| match is_first.swap(false, std::sync::atomic::Ordering::SeqCst) {
        true => first(),
        false => Reply::Hang,
    }
}

#[test]
fn a_token_is_used_while_the_next_one_is_waited_for() {
    let of_machine = || Reply::new(200, format!(r#"{{"access_token":"first","expires_on":"{}"}}"#, seconds() + 3_600));
    let azure = World::new(once(of_machine)).set("AZURE_IMDS_ENDPOINT", "SERVER/token");
    let google = World::new(once(|| Reply::new(200, r#"{"access_token":"first","expires_in":3600}"#)))
        .set("GCE_METADATA_HOST", &"SERVER".replace("SERVER", "169.254.169.254"));
    still_used(&azure.source_of_azure(Service::AzureBlob), &azure);
    still_used(&google.source_of_google(), &google);
}

fn seconds() -> u64 {
    clock::unix_ms() / 1_000
}

fn still_used<S: crate::transport::credentials::Source<Keys = CloudKeys>>(found: &CredentialCache<S>, world: &World) {
    let now = clock::monotonic();
    block_on(found.keys_at(now)).unwrap_or_else(|why| panic!("{why}"));
    let soon = now.plus(Duration::from_secs(3_600 - 200));
    block_on(found.keys_at(soon)).unwrap_or_else(|why| panic!("{why}"));
    leasehold_servers::wait_until("the next one is asked for", || world.server.asked().len() == 2);
    // The source hangs, and nobody waits for it: that would end with an error.
    let Ok(still) = block_on(found.keys_at(soon)) else { panic!("nothing is wrong with the token") };
    assert!(still.secret == Secret::Token("first".to_owned().into()));
}

const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nQ2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n";

fn of_client(world: World) -> World {
    world.set("AZURE_TENANT_ID", "tenant").set("AZURE_CLIENT_ID", "worker")
}

#[test]
fn a_service_principal_has_a_certificate() {
    for (service, audience) in OF_AZURE {
        let world = of_client(World::new(entra)).write("both.pem", &format!("{KEY}{CERTIFICATE}"));
        let world = world.set("AZURE_CLIENT_CERTIFICATE_PATH", "HOME/both.pem");
        assert_eq!(world.azure(service).unwrap(), shown(service));
        let asked = world.server.asked().remove(0);
        assert_eq!(asked.header("x-meant-for"), Some("login.microsoftonline.com"));
        assert_eq!(asked.path, "/tenant/oauth2/v2.0/token");
        for part in ["client_assertion=ey", "client_id=worker", &format!("scope={audience}%2F.default")] {
            assert!(asked.text().contains(part), "{part}: {}", asked.text());
        }
    }
}

#[test]
fn a_job_of_azure_pipelines_has_a_service_connection() {
    for (service, audience) in OF_AZURE {
        let answering = |asked: &Asked| match asked.path.starts_with("/oidc") {
            true => Reply::new(200, r#"{"oidcToken":"of-pipelines"}"#),
            false => entra(asked),
        };
        let world = of_client(World::new(answering))
            .set("SYSTEM_ACCESSTOKEN", "hunter2")
            .set("SYSTEM_OIDCREQUESTURI", "SERVER/oidc")
            .set("AZURE_SERVICE_CONNECTION_ID", "connection");
        assert_eq!(world.azure(service).unwrap(), shown(service));
        let [first, second] = world.server.asked().try_into().unwrap();
        assert_eq!(first.header("authorization"), Some("Bearer hunter2"));
        assert!(first.path.contains("serviceConnectionId=connection"), "{}", first.path);
        assert_eq!(second.header("x-meant-for"), Some("login.microsoftonline.com"));
        for part in ["client_assertion=of-pipelines", &format!("scope={audience}%2F.default")] {
            assert!(second.text().contains(part), "{part}: {}", second.text());
        }
    }
}

/// A machine without an identity, and a program `az`.
#[cfg(unix)]
fn with_az(script: &str) -> World {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new(|_| Reply::new(400, r#"{"error":"invalid_request"}"#)).set("PATH", "HOME:/usr/bin:/bin");
    let world = world.write("az", &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(world.folder.path().join("az"), PermissionsExt::from_mode(0o755)).unwrap();
    world
}

#[cfg(unix)]
#[test]
fn a_person_has_a_login_of_azures_command_line() {
    let script = r#"echo "$@" > HOME/arguments
        echo '{"accessToken":"of-entra","expires_on":4102444800,"expiresOn":"2100-01-01 00:00:00.000000","tokenType":"Bearer"}'"#;
    for (service, resource) in
        [(Service::AzureBlob, "https://storage.azure.com/"), (Service::CosmosDb, "https://acme.documents.azure.com/")]
    {
        let world = with_az(script);
        assert_eq!(world.azure(service).unwrap(), shown(service));
        let arguments = std::fs::read_to_string(world.folder.path().join("arguments")).unwrap();
        assert_eq!(arguments.trim_end(), format!("account get-access-token --resource {resource} --output json"));
    }
    let out = with_az("echo \"ERROR: Please run 'az login' to setup account.\" >&2; exit 1");
    let said = said(&out.azure(Service::AzureBlob).unwrap_err());
    assert!(said.contains("Please run 'az login'") && said.contains("HTTP status 400, invalid_request"), "{said}");
}

#[test]
fn a_machine_of_google_has_a_service_account() {
    let world = World::new(google);
    let host = world.server.address().to_string();
    let named = World { variables: HashMap::from([("GCE_METADATA_HOST".to_owned(), host)]), ..world };
    let usual = World::new(google);
    for (world, host) in [(named, None), (usual, Some("metadata.google.internal"))] {
        assert_eq!(world.google().unwrap(), "Bearer of-google");
        let asked = world.server.asked().remove(0);
        assert_eq!((asked.header("metadata-flavor"), asked.header("x-meant-for")), (Some("Google"), host));
        assert!(
            asked.path.starts_with("/computeMetadata/v1/instance/service-accounts/default/token"),
            "{}",
            asked.path
        );
    }
}

fn said(refusal: &Refusal) -> String {
    let said = format!("{refusal:?}");
    assert!(!said.contains("hunter2"), "{said}");
    said
}

#[test]
fn credentials_that_are_expired_or_wrong_end_the_search_with_advice() {
    let expired = r#"{"error":"invalid_client","error_description":"AADSTS7000222: The keys of hunter2 are expired."}"#;
    let entra = move |_: &Asked| Reply::new(401, expired);
    let secret = of_client(World::new(entra)).set("AZURE_CLIENT_SECRET", "hunter2");
    let refusal = secret.azure(Service::AzureBlob).unwrap_err();
    assert!(matches!(refusal, Refusal::Denied(_)), "{refusal:?}");
    for part in ["the client secret", "login.microsoftonline.com", "401, invalid_client, AADSTS7000222", "renew"] {
        assert!(said(&refusal).contains(part), "{part}: {refusal:?}");
    }
    assert_eq!(secret.server.asked().len(), 1, "nobody else is asked");
    let account = service_account(|_| Reply::new(400, r#"{"error":"invalid_grant","error_description":"hunter2"}"#));
    let refusal = account.google().unwrap_err();
    assert!(matches!(refusal, Refusal::Denied(_)), "{refusal:?}");
    for part in ["GOOGLE_APPLICATION_CREDENTIALS", "invalid_grant", "renew"] {
        assert!(said(&refusal).contains(part), "{part}: {refusal:?}");
    }
    let key = World::new(google).set("AZURE_STORAGE_KEY", "hunter2!").azure(Service::AzureBlob).unwrap_err();
    assert!(said(&key).contains("AZURE_STORAGE_KEY is no key"), "{key:?}");
}

#[test]
fn what_is_meant_and_not_there_is_named() {
    let file = |name: &str| World::new(entra).set(name, "HOME/none");
    let google = file("GOOGLE_APPLICATION_CREDENTIALS");
    assert!(said(&google.google().unwrap_err()).contains("GOOGLE_APPLICATION_CREDENTIALS: "));
    for name in ["AZURE_FEDERATED_TOKEN_FILE", "AZURE_CLIENT_CERTIFICATE_PATH"] {
        let azure = of_client(file(name));
        let said = said(&azure.azure(Service::AzureBlob).unwrap_err());
        assert!(said.contains("certificate") || said.contains(name), "{said}");
        assert!(azure.server.asked().is_empty() && google.server.asked().is_empty());
    }
    let nothing = World::new(|_| Reply::new(404, ""));
    let (azure, google) = (nothing.azure(Service::AzureBlob).unwrap_err(), nothing.google().unwrap_err());
    assert!(matches!((&azure, &google), (Refusal::NeedsCredentials(_), Refusal::NeedsCredentials(_))));
    assert!(
        said(&azure).contains("run `az login`") && said(&google).contains("run `gcloud auth"),
        "{azure:?} {google:?}"
    );
}

#[test]
fn a_key_is_of_the_account_that_is_named() {
    let key = "QWNjb3VudEtleU9mVGVzdHM=";
    let world = |account: &str| {
        let world = World::new(entra).set("AZURE_STORAGE_KEY", key).set("AZURE_STORAGE_ACCOUNT", account);
        world.azure(Service::AzureBlob).unwrap()
    };
    assert!(world("acme").starts_with("SharedKey acme:"));
    assert_eq!(world("other"), "Bearer of-entra");
}
