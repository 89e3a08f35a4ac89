//! The search for keys, in the order of AWS's own tools: the environment, a profile, a web identity token, the
//! container's endpoint, the machine's endpoint.
//!
//! A source that is named there but gives no keys ends the search with an error: going on would mean asking as somebody
//! else. A profile that the url names is used without the environment's keys.

use std::pin::Pin;

use reqsign_aws_v4::{Credential, ECSCredentialProvider, IMDSv2CredentialProvider, ProcessCredentialProvider};
use reqsign_core::ProvideCredential;

use super::environment::Environment;
use super::roles;
use super::{Keys, NoKeys};
use crate::aws::profiles::{self, Profiles, Section};
use crate::transport::credentials::command::Program;
use crate::transport::credentials::sender::{Unserved, printable};

const ADVICE: &str = "; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a profile with ?profile=NAME or \
                      AWS_PROFILE, or give the machine, task or pod a role";
const REFUSED: &str = "; this is a refusal, and waiting does not help: check the role's trust policy, the session or \
                       the settings of the machine";
/// The most profiles that take a role from one another.
const MOST_PROFILES: usize = 8;
const MACHINE: &str = "http://169.254.169.254";
const MACHINE_IPV6: &str = "http://[fd00:ec2::254]";
const MACHINES_ENDPOINT: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
const TASK: &str = "http://169.254.170.2";

/// The keys of one source, or the reason why the source is not configured.
pub(super) enum Credentials {
    Found(Box<Keys>),
    None(String),
}

/// Keys, the reason why there are none, or an error message.
pub(super) type ProviderResult = Result<Credentials, String>;

pub(super) async fn search(environment: &Environment) -> Result<Keys, NoKeys> {
    environment.reset();
    let mut tried = Vec::new();
    let found = ask_all(environment, &mut tried).await;
    let list = tried.join("; ");
    match found {
        Some(Ok(keys)) => Ok(keys),
        Some(Err(why)) => {
            let before = if tried.is_empty() { String::new() } else { format!(" (before that, {list})") };
            Err(environment.no_keys(format!("no AWS credentials: {why}{before}"), REFUSED))
        }
        // A machine was the last to be asked, and is one, since it has answered.
        None if environment.was_refused() || environment.sender.unserved() == Some(Unserved::ByAnswer) => {
            Err(environment.no_keys(format!("no AWS credentials: {list}"), REFUSED))
        }
        None => Err(NoKeys::missing(format!("no AWS credentials: {list}{ADVICE}"))),
    }
}

async fn ask_all(environment: &Environment, tried: &mut Vec<String>) -> Option<Result<Keys, String>> {
    let name = environment.profile.clone().unwrap_or_else(|| profiles::usual(&environment.env));
    let in_profile = format!("profile {name:?}");
    let mut note = |place: &str, asked: ProviderResult| match asked {
        Ok(Credentials::Found(keys)) => Some(Ok(*keys)),
        Ok(Credentials::None(why)) => {
            tried.push(format!("{place}: {why}"));
            None
        }
        Err(why) => Some(Err(format!("{place}: {why}"))),
    };
    if environment.profile.is_none()
        && let Some(end) = note("environment", of_environment(environment))
    {
        return Some(end);
    }
    if let Some(end) = note(&in_profile, chosen_profile(environment, &name).await) {
        return Some(end);
    }
    if let Some(end) = note("web identity", roles::web_identity_of_environment(environment).await) {
        return Some(end);
    }
    if let Some(end) = note("container", container(environment).await) {
        return Some(end);
    }
    // Without an answer this is no such machine, unless somebody says where it answers.
    let machine = machine(environment).await;
    if environment.env.variable(MACHINES_ENDPOINT).is_some() {
        return note("EC2 instance metadata", machine);
    }
    note("EC2 instance metadata", machine.or_else(|why| Ok(Credentials::None(why))))
}

/// Converts the result of the library.
pub(super) fn provider_result(
    environment: &Environment,
    found: reqsign_core::Result<Option<Credential>>,
    source: impl Into<String>,
) -> ProviderResult {
    match found {
        Ok(Some(credential)) => Ok(Credentials::Found(Box::new(Keys::new(credential, source)?))),
        Ok(None) => Err("it gives nothing".to_owned()),
        Err(error) => Err(environment.describe(&error)),
    }
}

fn of_environment(environment: &Environment) -> ProviderResult {
    let variable = |name| environment.env.variable(name);
    let (id, secret) = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY");
    match (variable(id), variable(secret)) {
        (Some(access_key_id), Some(secret_access_key)) => {
            let session_token = variable("AWS_SESSION_TOKEN");
            let credential = Credential { access_key_id, secret_access_key, session_token, expires_in: None };
            Ok(Credentials::Found(Box::new(Keys::new(credential, "the environment")?)))
        }
        (None, None) => Ok(Credentials::None(format!("{id} is not set"))),
        (Some(_), None) => Err(format!("{id} is set and {secret} is not; set both or none")),
        (None, Some(_)) => Err(format!("{secret} is set and {id} is not; set both or none")),
    }
}

async fn chosen_profile(environment: &Environment, name: &str) -> ProviderResult {
    let profiles = Profiles::read(&environment.env)?;
    if profiles.profile(name).is_some() {
        return profile(environment, &profiles, name, Vec::new()).await;
    }
    let why = format!("it is not in {}, which has {}", profiles.places(), profiles.names());
    let is_meant = environment.profile.is_some() || environment.env.variable("AWS_PROFILE").is_some();
    if is_meant { Err(why) } else { Ok(Credentials::None(format!("it is not in {}", profiles.places()))) }
}

/// The keys of a profile, by itself or with the help of another. `above` are the profiles that it helps.
fn profile<'a>(
    environment: &'a Environment,
    profiles: &'a Profiles,
    name: &'a str,
    above: Vec<&'a str>,
) -> Pin<Box<dyn Future<Output = ProviderResult> + Send + 'a>> {
    Box::pin(async move {
        let missing = || format!("there is no profile {name:?} in {}", profiles.places());
        let section = profiles.profile(name).ok_or_else(missing)?;
        // A profile may use its own keys to take its role.
        if section.get("role_arn").is_some() && !above.contains(&name) {
            return role(environment, profiles, name, section, above).await;
        }
        if let Some(found) = roles::sso(environment, profiles, name, section).await {
            return found;
        }
        if let Some(keys) = own_keys(name, section)? {
            return Ok(Credentials::Found(Box::new(keys)));
        }
        match section.get("credential_process") {
            Some(line) => process(environment, name, line).await,
            None => Ok(Credentials::None("it has no keys, no role, no SSO and no credential_process".to_owned())),
        }
    })
}

fn own_keys(name: &str, section: &Section) -> Result<Option<Keys>, String> {
    let (id, secret) = ("aws_access_key_id", "aws_secret_access_key");
    match (section.get(id), section.get(secret)) {
        (None, None) => Ok(None),
        (Some(access_key_id), Some(secret_access_key)) => {
            let credential = Credential {
                access_key_id: access_key_id.to_owned(),
                secret_access_key: secret_access_key.to_owned(),
                session_token: section.get("aws_session_token").map(str::to_owned),
                expires_in: None,
            };
            Keys::new(credential, format!("the profile {name:?}")).map(Some)
        }
        (Some(_), None) | (None, Some(_)) => Err(format!("{id} and {secret} belong together: it has only one of them")),
    }
}

async fn role<'a>(
    environment: &'a Environment,
    profiles: &'a Profiles,
    name: &'a str,
    section: &'a Section,
    mut above: Vec<&'a str>,
) -> ProviderResult {
    if let Some(file) = section.get("web_identity_token_file") {
        return roles::web_identity_of_profile(environment, name, section, file).await;
    }
    let helper = match (section.get("source_profile"), section.get("credential_source")) {
        (Some(source), None) => {
            if above.len() >= MOST_PROFILES || (source != name && above.contains(&source)) {
                return Err(format!(
                    "its source_profile {source:?} is circular, or goes through too many other profiles"
                ));
            }
            above.push(name);
            profile(environment, profiles, source, above).await?
        }
        (None, Some("Environment")) => of_environment(environment)?,
        (None, Some("EcsContainer")) => container(environment).await?,
        (None, Some("Ec2InstanceMetadata")) => machine(environment).await?,
        (None, Some(other)) => {
            let other = printable(other);
            return Err(format!(
                "credential_source is {other:?}; there are Environment, EcsContainer and Ec2InstanceMetadata"
            ));
        }
        (None, None) => {
            return Err("it has a role_arn; add source_profile, credential_source or web_identity_token_file".into());
        }
        (Some(_), Some(_)) => return Err("it has both source_profile and credential_source; leave one out".into()),
    };
    match helper {
        Credentials::Found(keys) => roles::assume(environment, name, section, *keys).await,
        Credentials::None(why) => Err(format!("no keys to take its role with: {why}")),
    }
}

async fn process(environment: &Environment, name: &str, line: &str) -> ProviderResult {
    environment.wait_for(format!("the credential_process of the profile {name:?}"));
    let wrong = |what: String| format!("credential_process: {what}");
    let program = Program::parse(line, environment.patience()).map_err(wrong)?;
    // The library runs the program through our executor, which has better error messages.
    let provider = ProcessCredentialProvider::new().with_command("credential_process");
    let found = provider.provide_credential(&environment.context().with_command_execute(program)).await;
    provider_result(environment, found, format!("the credential_process of the profile {name:?}")).map_err(wrong)
}

/// The endpoint of ECS and EKS.
async fn container(environment: &Environment) -> ProviderResult {
    let variable = |name| environment.env.variable(name);
    let relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    let full = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    let endpoint = match (relative, full) {
        (Some(path), _) if path.starts_with('/') => format!("{TASK}{path}"),
        (Some(_), _) => return Err("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI does not begin with /".to_owned()),
        (None, Some(url)) => url,
        (None, None) => return Ok(Credentials::None("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is not set".to_owned())),
    };
    let mut provider = ECSCredentialProvider::new().with_endpoint(endpoint);
    // The file has precedence: its token is renewed.
    if let Some(file) = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        provider = provider.with_auth_token_file(file);
    } else if let Some(token) = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN") {
        provider = provider.with_auth_token(token);
    }
    provider_result(environment, provider.provide_credential(&environment.context()).await, "the container")
}

/// The endpoint of EC2.
async fn machine(environment: &Environment) -> ProviderResult {
    let env = &environment.env;
    if env.says("AWS_EC2_METADATA_DISABLED") {
        return Ok(Credentials::None("AWS_EC2_METADATA_DISABLED is set".to_owned()));
    }
    let mode = env.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
    let usual = if mode.is_some_and(|mode| mode.eq_ignore_ascii_case("ipv6")) { MACHINE_IPV6 } else { MACHINE };
    let endpoint = env.variable(MACHINES_ENDPOINT);
    let endpoint = endpoint.as_deref().unwrap_or(usual).trim_end_matches('/');
    let provider = IMDSv2CredentialProvider::new().with_endpoint(endpoint);
    provider_result(environment, provider.provide_credential(&environment.context()).await, "EC2 instance metadata")
}
