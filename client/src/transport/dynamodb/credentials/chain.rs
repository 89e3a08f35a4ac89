//! Where keys are looked for, in the order of AWS's own tools: the environment, a profile, a token of a web identity,
//! what serves a container, what serves a machine.
//!
//! Somebody who is named there and gives nothing ends the search with an error: to go on would be to ask as somebody
//! else. A profile that the url names comes without the environment's keys.

use std::pin::Pin;

use reqsign_aws_v4::{Credential, ECSCredentialProvider, IMDSv2CredentialProvider, ProcessCredentialProvider};
use reqsign_core::ProvideCredential;

use super::command::Program;
use super::outside::{Outside, printable};
use super::roles;
use super::{Keys, Lack, NoKeys};
use crate::aws::profiles::{self, Profiles, Section};

const ADVICE: &str = "; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a profile with ?profile=NAME or AWS_PROFILE, \
                      or give the machine, task or pod a role";
const REFUSED: &str = "; that was a refusal, and waiting does not change it: see the role's trust policy, the session or the \
                       settings of the machine";
/// Profiles that take a role from one another.
const MOST_PROFILES: usize = 8;
const MACHINE: &str = "http://169.254.169.254";
const MACHINE_IPV6: &str = "http://[fd00:ec2::254]";
const TASK: &str = "http://169.254.170.2";

/// What somebody gives: keys, or the reason why it is not meant.
pub(super) enum Given {
    Keys(Box<Keys>),
    Nothing(String),
}

/// Keys, nothing, or an error in words.
pub(super) type Asked = Result<Given, String>;

pub(super) async fn search(outside: &Outside) -> Result<Keys, NoKeys> {
    outside.nobody_was_asked();
    let mut tried = Vec::new();
    let found = ask_all(outside, &mut tried).await;
    let list = tried.join("; ");
    let (what, advice) = match found {
        Some(Ok(keys)) => return Ok(keys),
        Some(Err(why)) if tried.is_empty() => (why, ""),
        Some(Err(why)) => (format!("{why} (before that, {list})"), ""),
        None => (list, ADVICE),
    };
    // Nobody is asked after a refusal, so it is what the last answer was.
    let (lack, advice) = if outside.was_refused() { (Lack::Refused, REFUSED) } else { (Lack::Missing, advice) };
    Err(NoKeys { lack, detail: format!("no AWS credentials: {what}{advice}") })
}

async fn ask_all(outside: &Outside, tried: &mut Vec<String>) -> Option<Result<Keys, String>> {
    let name = outside.profile.clone().unwrap_or_else(|| profiles::usual(&outside.surroundings));
    let in_profile = format!("profile {name:?}");
    let mut note = |place: &str, asked: Asked| match asked {
        Ok(Given::Keys(keys)) => Some(Ok(*keys)),
        Ok(Given::Nothing(why)) => {
            tried.push(format!("{place}: {why}"));
            None
        }
        Err(why) => Some(Err(format!("{place}: {why}"))),
    };
    if outside.profile.is_none()
        && let Some(end) = note("environment", environment(outside))
    {
        return Some(end);
    }
    if let Some(end) = note(&in_profile, chosen_profile(outside, &name).await) {
        return Some(end);
    }
    if let Some(end) = note("web identity", roles::web_identity_of_environment(outside).await) {
        return Some(end);
    }
    if let Some(end) = note("container", container(outside).await) {
        return Some(end);
    }
    // Where nobody answers there is no such machine.
    let machine = machine(outside).await;
    note("EC2 instance metadata", machine.or_else(|why| Ok(Given::Nothing(why))))
}

/// What the library found, or why it found nothing.
pub(super) fn given(
    outside: &Outside,
    found: reqsign_core::Result<Option<Credential>>,
    source: impl Into<String>,
) -> Asked {
    match found {
        Ok(Some(credential)) => Ok(Given::Keys(Box::new(Keys::new(credential, source)?))),
        Ok(None) => Err("it gives nothing".to_owned()),
        Err(error) => Err(outside.told(&error)),
    }
}

fn environment(outside: &Outside) -> Asked {
    let variable = |name| outside.surroundings.variable(name);
    let (id, secret) = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY");
    match (variable(id), variable(secret)) {
        (Some(access_key_id), Some(secret_access_key)) => {
            let session_token = variable("AWS_SESSION_TOKEN");
            let credential = Credential { access_key_id, secret_access_key, session_token, expires_in: None };
            Ok(Given::Keys(Box::new(Keys::new(credential, "the environment")?)))
        }
        (None, None) => Ok(Given::Nothing(format!("{id} is not set"))),
        (Some(_), None) => Err(format!("{id} is set and {secret} is not; set both or none")),
        (None, Some(_)) => Err(format!("{secret} is set and {id} is not; set both or none")),
    }
}

async fn chosen_profile(outside: &Outside, name: &str) -> Asked {
    let profiles = Profiles::read(&outside.surroundings)?;
    if profiles.profile(name).is_some() {
        return profile(outside, &profiles, name, Vec::new()).await;
    }
    let why = format!("it is not in {}; there is {}", profiles.places(), profiles.names());
    let is_meant = outside.profile.is_some() || outside.surroundings.variable("AWS_PROFILE").is_some();
    if is_meant { Err(why) } else { Ok(Given::Nothing(format!("it is not in {}", profiles.places()))) }
}

/// What a profile gives, by itself or with the help of another. `above` are those that it helps.
fn profile<'a>(
    outside: &'a Outside,
    profiles: &'a Profiles,
    name: &'a str,
    above: Vec<&'a str>,
) -> Pin<Box<dyn Future<Output = Asked> + Send + 'a>> {
    Box::pin(async move {
        let missing = || format!("there is no profile {name:?} in {}", profiles.places());
        let section = profiles.profile(name).ok_or_else(missing)?;
        // A profile may take its role with its own keys.
        if section.get("role_arn").is_some() && !above.contains(&name) {
            return role(outside, profiles, name, section, above).await;
        }
        if let Some(found) = roles::sso(outside, profiles, name, section).await {
            return found;
        }
        if let Some(keys) = own_keys(name, section)? {
            return Ok(Given::Keys(Box::new(keys)));
        }
        match section.get("credential_process") {
            Some(line) => process(outside, name, line).await,
            None => Ok(Given::Nothing("it has no keys, no role, no SSO and no credential_process".to_owned())),
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
    outside: &'a Outside,
    profiles: &'a Profiles,
    name: &'a str,
    section: &'a Section,
    mut above: Vec<&'a str>,
) -> Asked {
    if let Some(file) = section.get("web_identity_token_file") {
        return roles::web_identity_of_profile(outside, name, section, file).await;
    }
    let helper = match (section.get("source_profile"), section.get("credential_source")) {
        (Some(source), None) => {
            if above.len() >= MOST_PROFILES || (source != name && above.contains(&source)) {
                return Err(format!("its source_profile {source:?} leads back to it, or through too many others"));
            }
            above.push(name);
            profile(outside, profiles, source, above).await?
        }
        (None, Some("Environment")) => environment(outside)?,
        (None, Some("EcsContainer")) => container(outside).await?,
        (None, Some("Ec2InstanceMetadata")) => machine(outside).await?,
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
        Given::Keys(keys) => roles::assume(outside, name, section, *keys).await,
        Given::Nothing(why) => Err(format!("no keys to take its role with: {why}")),
    }
}

async fn process(outside: &Outside, name: &str, line: &str) -> Asked {
    outside.wait_for(format!("the credential_process of the profile {name:?}"));
    let wrong = |what: String| format!("credential_process: {what}");
    let program = Program::parse(line, outside.patience()).map_err(wrong)?;
    // The library has the program run by ours, which has its own words for it.
    let provider = ProcessCredentialProvider::new().with_command("credential_process");
    let found = provider.provide_credential(&outside.context().with_command_execute(program)).await;
    given(outside, found, format!("the credential_process of the profile {name:?}")).map_err(wrong)
}

/// ECS and EKS.
async fn container(outside: &Outside) -> Asked {
    let variable = |name| outside.surroundings.variable(name);
    let relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    let full = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    let endpoint = match (relative, full) {
        (Some(path), _) if path.starts_with('/') => format!("{TASK}{path}"),
        (Some(_), _) => return Err("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI does not begin with /".to_owned()),
        (None, Some(url)) => url,
        (None, None) => return Ok(Given::Nothing("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is not set".to_owned())),
    };
    let mut provider = ECSCredentialProvider::new().with_endpoint(endpoint);
    // The file comes first: its token is renewed.
    if let Some(file) = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        provider = provider.with_auth_token_file(file);
    } else if let Some(token) = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN") {
        provider = provider.with_auth_token(token);
    }
    given(outside, provider.provide_credential(&outside.context()).await, "the container")
}

/// EC2.
async fn machine(outside: &Outside) -> Asked {
    let surroundings = &outside.surroundings;
    if surroundings.says("AWS_EC2_METADATA_DISABLED") {
        return Ok(Given::Nothing("AWS_EC2_METADATA_DISABLED is set".to_owned()));
    }
    let mode = surroundings.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
    let usual = if mode.is_some_and(|mode| mode.eq_ignore_ascii_case("ipv6")) { MACHINE_IPV6 } else { MACHINE };
    let endpoint = surroundings.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    let endpoint = endpoint.as_deref().unwrap_or(usual).trim_end_matches('/');
    let provider = IMDSv2CredentialProvider::new().with_endpoint(endpoint);
    given(outside, provider.provide_credential(&outside.context()).await, "EC2 instance metadata")
}
