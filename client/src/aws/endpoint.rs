//! The endpoint of a service of AWS: named somewhere, or that of its region.

use super::EnvVars;
use super::profiles::{self, Profiles};
use super::region::{self, Cryptography, Service, Stack, Variant};

/// The endpoint that a url leads to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// A text that somebody wrote, and the place where it stands.
    Named { text: String, place: String },
    /// The host of the service in the region.
    OfRegion { host: String },
}

/// The part of a url that is about its endpoint.
pub(crate) struct Given<'a> {
    pub(crate) service: Service,
    pub(crate) region: &'a str,
    /// The parameters `endpoint`, `fips` and `dualstack`, and `profile`.
    pub(crate) endpoint: Option<&'a str>,
    pub(crate) variant: Variant,
    pub(crate) profile: Option<&'a str>,
}

/// Finds the endpoint as AWS's tools do: the environment comes before the profile, and what is for one service before what is
/// for all.
///
/// # Errors
/// A file cannot be read, the url wants a kind of address that is not there, or two places contradict each other.
pub(crate) fn find(given: &Given<'_>, env: &EnvVars, files: &mut Option<Profiles>) -> Result<Endpoint, String> {
    let is_variant = given.variant != Variant::default();
    if let Some(text) = given.endpoint {
        if is_variant {
            return Err(
                "fips and dualstack choose an endpoint of AWS, and endpoint names another; leave one out".into()
            );
        }
        return Ok(Endpoint::Named { text: text.to_owned(), place: "endpoint".to_owned() });
    }
    let profile = given.profile.map_or_else(|| profiles::usual(env), str::to_owned);
    if let Some((text, place)) = configured(given.service, env, &profile, files)? {
        if is_variant {
            return Err(format!(
                "fips and dualstack choose an endpoint of AWS, and {place} names another; leave one out"
            ));
        }
        return Ok(Endpoint::Named { text, place });
    }
    let wants = |variable: &str, property: &str, files: &mut Option<Profiles>| -> Result<bool, String> {
        if let Some(value) = env.variable(variable) {
            return Ok(value.eq_ignore_ascii_case("true"));
        }
        let section = Profiles::opened(files, env)?.profile(&profile);
        Ok(section.is_some_and(|section| section.says(property)))
    };
    let mut variant = given.variant;
    if wants("AWS_USE_FIPS_ENDPOINT", "use_fips_endpoint", files)? {
        variant.cryptography = Cryptography::Fips;
    }
    if wants("AWS_USE_DUALSTACK_ENDPOINT", "use_dualstack_endpoint", files)? {
        variant.stack = Stack::Dual;
    }
    let region = given.region;
    let host = region::host(given.service, region, variant)
        .ok_or_else(|| format!("the region {region} has no dual-stack endpoint; leave dualstack out"))?;
    Ok(Endpoint::OfRegion { host })
}

/// The endpoint in the environment or profile, and where it was found.
fn configured(
    service: Service,
    env: &EnvVars,
    profile: &str,
    files: &mut Option<Profiles>,
) -> Result<Option<(String, String)>, String> {
    if env.says("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") {
        return Ok(None);
    }
    for name in [service.variable(), "AWS_ENDPOINT_URL"] {
        if let Some(text) = env.variable(name) {
            return Ok(Some((text, name.to_owned())));
        }
    }
    let files = Profiles::opened(files, env)?;
    let Some(section) = files.profile(profile) else { return Ok(None) };
    if section.says("ignore_configured_endpoint_urls") {
        return Ok(None);
    }
    let text = files.endpoint_url(section, service.name()).map(str::to_owned);
    Ok(text.map(|text| (text, format!("endpoint_url of the profile {profile:?}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(
        service: Service,
        url: (Option<&str>, Option<&str>),
        config: &str,
        variables: &[(&'static str, &'static str)],
    ) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        std::fs::write(&path, config).unwrap();
        let path = path.display().to_string();
        let variables = variables.to_vec();
        let env = EnvVars::new(move |name| match name {
            "AWS_CONFIG_FILE" => Some(path.clone()),
            _ => variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()),
        });
        let (endpoint, profile) = url;
        let given = Given { service, region: "eu-west-1", endpoint, variant: Variant::default(), profile };
        find(&given, &env, &mut None).map(|found| match found {
            Endpoint::Named { text, .. } => text,
            Endpoint::OfRegion { host } => host,
        })
    }

    /// Each service obeys the same settings.
    #[test]
    fn settings_of_aws_count_for_each_service() {
        for (service, of_region, fips, dual) in [
            (
                Service::Dynamodb,
                "dynamodb.eu-west-1.amazonaws.com",
                "dynamodb-fips.eu-west-1.amazonaws.com",
                "dynamodb.eu-west-1.api.aws",
            ),
            (
                Service::S3,
                "s3.eu-west-1.amazonaws.com",
                "s3-fips.eu-west-1.amazonaws.com",
                "s3.dualstack.eu-west-1.amazonaws.com",
            ),
        ] {
            let name = service.name();
            let nested = format!(
                "[default]\nservices=mine\nendpoint_url=http://all\n[services mine]\n{name} =\n  endpoint_url=http://one\n\
                 [profile other]\nendpoint_url=http://other\n"
            );
            let ignored =
                format!("{nested}[profile deaf]\nendpoint_url=http://no\nignore_configured_endpoint_urls=true\n");
            let variants = "[default]\nuse_fips_endpoint=true\n[profile dual]\nuse_dualstack_endpoint = true\n";
            let (all, own) = (("AWS_ENDPOINT_URL", "http://env"), (service.variable(), "http://own"));
            for (url, config, variables, expected) in [
                ((None, None), "", &[][..], of_region),
                ((Some("http://url"), None), nested.as_str(), &[own][..], "http://url"),
                ((None, None), &nested, &[all, own], "http://own"),
                ((None, None), &nested, &[all], "http://env"),
                ((None, Some("other")), &nested, &[all], "http://env"),
                ((None, None), &nested, &[], "http://one"),
                ((None, None), &nested, &[("AWS_PROFILE", "other")], "http://other"),
                ((None, Some("other")), &nested, &[], "http://other"),
                ((None, Some("deaf")), &ignored, &[], of_region),
                ((None, None), &nested, &[own, ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")], of_region),
                ((None, None), "", &[("AWS_USE_FIPS_ENDPOINT", "true")], fips),
                ((None, None), "", &[("AWS_USE_DUALSTACK_ENDPOINT", "true")], dual),
                ((None, None), variants, &[], fips),
                ((None, None), variants, &[("AWS_USE_FIPS_ENDPOINT", "false")], of_region),
                ((None, Some("dual")), variants, &[], dual),
            ] {
                let answer = found(service, url, config, variables);
                assert_eq!(answer.as_deref(), Ok(expected), "{name}, {url:?}, {config}, {variables:?}");
            }
        }
    }
}
