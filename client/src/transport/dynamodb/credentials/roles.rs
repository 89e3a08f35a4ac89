//! Temporary keys: roles that are taken with other keys or with a token, and SSO.

use reqsign_aws_v4::{
    AssumeRoleCredentialProvider, AssumeRoleWithWebIdentityCredentialProvider, RequestSigner, SSOCredentialProvider,
    StaticCredentialProvider,
};
use reqsign_core::{ProvideCredential, Signer};

use super::Keys;
use super::chain::{Credentials, ProviderResult, provider_result};
use super::environment::Environment;
use crate::aws::profiles::{Profiles, Section};
use crate::aws::region;
use crate::host::clock;

/// The session name of a role, where the profile has none.
fn session_name() -> String {
    format!("leasehold-{}", clock::unix_ms())
}

/// The duration of a role, in seconds and within AWS's bounds.
fn duration(section: &Section) -> Result<Option<u32>, String> {
    let Some(text) = section.get("duration_seconds") else { return Ok(None) };
    let seconds = text.parse().ok().filter(|seconds| (900..=43_200).contains(seconds));
    seconds.map(Some).ok_or_else(|| "duration_seconds must be a number from 900 to 43200".to_owned())
}

/// Takes the role of a profile with other keys.
pub(super) async fn assume(environment: &Environment, name: &str, section: &Section, with: Keys) -> ProviderResult {
    if section.get("mfa_serial").is_some() {
        return Err(
            "its role needs a code from an MFA device (mfa_serial), which cannot be entered here; use SSO or a \
             credential_process"
                .to_owned(),
        );
    }
    let role = section.get("role_arn").ok_or("it has no role_arn")?;
    let mut source = StaticCredentialProvider::new(&with.access_key_id, &with.secret_access_key);
    if let Some(token) = &with.session_token {
        source = source.with_session_token(token.as_str());
    }
    let signer = Signer::new(environment.context(), source, RequestSigner::new("sts", &environment.region));
    let session = section.get("role_session_name").map_or_else(session_name, str::to_owned);
    let mut provider = AssumeRoleCredentialProvider::new(role.to_owned(), signer)
        .with_role_session_name(session)
        .with_region(environment.region.clone())
        .with_regional_sts_endpoint();
    if let Some(id) = section.get("external_id") {
        provider = provider.with_external_id(id.to_owned());
    }
    if let Some(seconds) = duration(section)? {
        provider = provider.with_duration_seconds(seconds);
    }
    let found = provider.provide_credential(&environment.context()).await;
    provider_result(environment, found, format!("the role of the profile {name:?}"))
        .map_err(|why| format!("its role cannot be taken with the keys of {}: {why}", with.source))
}

/// The web identity of IRSA, and of workers in other clouds.
pub(super) async fn web_identity_of_environment(environment: &Environment) -> ProviderResult {
    let variable = |name| environment.env.variable(name);
    match (variable("AWS_WEB_IDENTITY_TOKEN_FILE"), variable("AWS_ROLE_ARN")) {
        (Some(file), Some(role)) => {
            web_identity(environment, &file, role, variable("AWS_ROLE_SESSION_NAME"), None, "the web identity").await
        }
        (Some(_), None) => Err("AWS_WEB_IDENTITY_TOKEN_FILE is set and AWS_ROLE_ARN is not; set both".to_owned()),
        // A role alone means nothing, as in AWS's tools.
        (None, _) => Ok(Credentials::None("AWS_WEB_IDENTITY_TOKEN_FILE is not set".to_owned())),
    }
}

pub(super) async fn web_identity_of_profile(
    environment: &Environment,
    name: &str,
    section: &Section,
    file: &str,
) -> ProviderResult {
    let role = section.get("role_arn").ok_or("it has no role_arn")?.to_owned();
    let session = section.get("role_session_name").map(str::to_owned);
    let source = format!("the web identity of the profile {name:?}");
    web_identity(environment, file, role, session, duration(section)?, &source).await
}

async fn web_identity(
    environment: &Environment,
    file: &str,
    role: String,
    session: Option<String>,
    seconds: Option<u32>,
    source: &str,
) -> ProviderResult {
    let mut provider = AssumeRoleWithWebIdentityCredentialProvider::with_config(role.clone(), file.into())
        .with_role_session_name(session.unwrap_or_else(session_name))
        .with_region(environment.region.clone())
        .with_regional_sts_endpoint();
    if let Some(seconds) = seconds {
        provider = provider.with_duration_seconds(seconds);
    }
    let found = provider.provide_credential(&environment.context()).await;
    provider_result(environment, found, source).map_err(|why| {
        format!(
            "the token in {file} does not give the role {role}: {why}; see the role's trust policy and the token's age"
        )
    })
}

/// The keys that a profile gets by `aws sso login`; `None` where it has no SSO.
pub(super) async fn sso(
    environment: &Environment,
    profiles: &Profiles,
    name: &str,
    section: &Section,
) -> Option<ProviderResult> {
    let session = section.get("sso_session");
    if session.is_none() && section.get("sso_start_url").is_none() {
        return None;
    }
    Some(sso_of(environment, profiles, name, section, session).await)
}

async fn sso_of(
    environment: &Environment,
    profiles: &Profiles,
    name: &str,
    section: &Section,
    session: Option<&str>,
) -> ProviderResult {
    let common = match session {
        Some(named) => profiles.sso_session(named).ok_or_else(|| {
            format!("its sso_session {named:?} is not in {}; run aws configure sso", profiles.places())
        })?,
        None => section,
    };
    let wanted = |section: &Section, property: &str| {
        let value = section.get(property).map(str::to_owned);
        value.ok_or_else(|| format!("{property} is missing; run aws configure sso"))
    };
    let at = wanted(common, "sso_region")?;
    if !region::is_region(&at) {
        return Err(format!("sso_region is {at:?}, which is not a region"));
    }
    // The file with the token is named after the session or, without one, after the start url. The start url is used
    // for nothing else.
    let named_after = match session {
        Some(named) => named.to_owned(),
        None => wanted(common, "sso_start_url")?,
    };
    let endpoint = format!("https://portal.sso.{at}.{}/federation/credentials", region::suffix(&at));
    let provider = SSOCredentialProvider::new()
        .with_account_id(wanted(section, "sso_account_id")?)
        .with_role_name(wanted(section, "sso_role_name")?)
        .with_region(at)
        .with_start_url(named_after)
        .with_endpoint(endpoint);
    environment.wait_for("SSO");
    let found = provider.provide_credential(&environment.context()).await;
    provider_result(environment, found, format!("the SSO session of the profile {name:?}"))
        .map_err(|why| format!("SSO: {why}; run aws sso login --profile {name}"))
}
