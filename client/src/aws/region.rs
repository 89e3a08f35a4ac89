//! Regions, and the host names of their services.

use super::EnvVars;
use super::profiles::{self, Profiles};

/// The suffixes of service names, by the prefixes of region names: plain ones, and those that have IPv6 addresses as
/// well. The first match counts. From the endpoint rules that AWS publishes for its SDKs.
const PARTITIONS: [(&str, &str, Option<&str>); 8] = [
    ("cn-", "amazonaws.com.cn", Some("api.amazonwebservices.com.cn")),
    ("us-gov-", "amazonaws.com", Some("api.aws")),
    ("eusc-", "amazonaws.eu", Some("api.amazonwebservices.eu")),
    ("us-isob-", "sc2s.sgov.gov", None),
    ("us-isof-", "csp.hci.ic.gov", None),
    ("us-iso-", "c2s.ic.gov", None),
    ("eu-isoe-", "cloud.adc-e.uk", None),
    ("", "amazonaws.com", Some("api.aws")),
];

/// The kind of a service's address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Variant {
    pub(crate) cryptography: Cryptography,
    pub(crate) stack: Stack,
}

impl Variant {
    /// The kind that the parameters `fips` and `dualstack` of a url choose.
    pub(crate) fn of(fips: Option<bool>, dualstack: Option<bool>) -> Self {
        let cryptography = if fips == Some(true) { Cryptography::Fips } else { Cryptography::Any };
        Self { cryptography, stack: if dualstack == Some(true) { Stack::Dual } else { Stack::Ipv4 } }
    }
}

/// The encryption modules of an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Cryptography {
    #[default]
    Any,
    /// Validated under FIPS 140 by AWS.
    Fips,
}

/// The IP versions of an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stack {
    #[default]
    Ipv4,
    /// IPv6 as well.
    Dual,
}

/// Tells if a text can be a region. It becomes part of host names, so nothing else may pass.
pub(crate) fn is_region(text: &str) -> bool {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    is_plain && (3..=64).contains(&text.len()) && !text.starts_with('-') && !text.ends_with('-')
}

/// The region that the url names, or else that of the environment and of the profile. A profile that the url names comes
/// before the environment. `form` says how to write a url.
///
/// # Errors
/// There is none, or it is no region; a file cannot be read.
pub(crate) fn chosen(
    named: Option<&str>,
    profile: Option<&str>,
    env: &EnvVars,
    files: &mut Option<Profiles>,
    form: &str,
) -> Result<String, String> {
    let usual = profile.map_or_else(|| profiles::usual(env), str::to_owned);
    let variable = |name| env.variable(name).map(|value| (value, name));
    let of_environment = || variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
    let of_profile = |files: &mut Option<Profiles>| -> Result<_, String> {
        let section = Profiles::opened(files, env)?.profile(&usual);
        let value = section.and_then(|section| section.get("region"));
        Ok(value.map(|value| (value.to_owned(), "the profile's region")))
    };
    let found = match (named, profile) {
        (Some(named), _) => Some((named.to_owned(), "region")),
        (None, Some(_)) => of_profile(files)?.or_else(of_environment),
        (None, None) => match of_environment() {
            Some(found) => Some(found),
            None => of_profile(files)?,
        },
    };
    let Some((region, place)) = found else {
        return Err(format!(
            "the region is missing; {form}, or set AWS_REGION, or give the profile {usual:?} a region in {}",
            Profiles::opened(files, env)?.places()
        ));
    };
    if is_region(&region) {
        return Ok(region);
    }
    Err(format!("{place} is {region:?}, which is not a region; write one such as eu-west-1"))
}

fn partition(region: &str) -> (&'static str, Option<&'static str>) {
    let found = PARTITIONS.iter().find(|(prefix, ..)| region.starts_with(prefix));
    found.map_or(("amazonaws.com", None), |(_, plain, dual)| (*plain, *dual))
}

/// The suffix of plain service names in a region.
pub(crate) fn suffix(region: &str) -> &'static str {
    partition(region).0
}

/// Tells if a host is one of AWS's own services.
pub(crate) fn is_of_aws(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let is_below = |suffix: &str| host.strip_suffix(suffix).is_some_and(|rest| rest.ends_with('.'));
    PARTITIONS.iter().any(|(_, plain, dual)| is_below(plain) || dual.is_some_and(is_below))
}

/// A service that stores use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    Dynamodb,
    #[cfg_attr(not(feature = "objects"), allow(dead_code, reason = "object stores use it"))]
    S3,
}

impl Service {
    /// The name in hosts, and in files of AWS's tools.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Dynamodb => "dynamodb",
            Self::S3 => "s3",
        }
    }

    /// The variable that names its endpoint.
    pub(crate) const fn variable(self) -> &'static str {
        match self {
            Self::Dynamodb => "AWS_ENDPOINT_URL_DYNAMODB",
            Self::S3 => "AWS_ENDPOINT_URL_S3",
        }
    }
}

/// The host of a service; `None` where the region has none of this kind.
pub(crate) fn host(service: Service, region: &str, variant: Variant) -> Option<String> {
    let (plain, dual) = partition(region);
    let validated = match variant.cryptography {
        Cryptography::Any => "",
        // In these regions the plain name is the validated one.
        Cryptography::Fips
            if service == Service::Dynamodb && variant.stack == Stack::Ipv4 && region.starts_with("us-gov-") =>
        {
            ""
        }
        Cryptography::Fips => "-fips",
    };
    let (between, suffix) = match (service, variant.stack) {
        (Service::Dynamodb | Service::S3, Stack::Ipv4) => ("", plain),
        (Service::Dynamodb, Stack::Dual) => ("", dual?),
        // Below the plain suffix, where the others have another.
        (Service::S3, Stack::Dual) => (".dualstack", dual.map(|_| plain)?),
    };
    Some(format!("{}{validated}{between}.{region}.{suffix}", service.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_have_the_names_that_aws_gave_them() {
        let host =
            |region, cryptography, stack| super::host(Service::Dynamodb, region, Variant { cryptography, stack });
        let of_s3 = |region, cryptography, stack| super::host(Service::S3, region, Variant { cryptography, stack });
        use Cryptography::{Any, Fips};
        use Stack::{Dual, Ipv4};
        for (region, cryptography, stack, expected) in [
            ("eu-west-1", Any, Ipv4, Some("dynamodb.eu-west-1.amazonaws.com")),
            ("us-east-1", Fips, Ipv4, Some("dynamodb-fips.us-east-1.amazonaws.com")),
            ("us-east-1", Any, Dual, Some("dynamodb.us-east-1.api.aws")),
            ("us-east-1", Fips, Dual, Some("dynamodb-fips.us-east-1.api.aws")),
            ("us-gov-west-1", Fips, Ipv4, Some("dynamodb.us-gov-west-1.amazonaws.com")),
            ("cn-north-1", Any, Ipv4, Some("dynamodb.cn-north-1.amazonaws.com.cn")),
            ("cn-north-1", Any, Dual, Some("dynamodb.cn-north-1.api.amazonwebservices.com.cn")),
            ("us-iso-east-1", Any, Ipv4, Some("dynamodb.us-iso-east-1.c2s.ic.gov")),
            ("us-isob-east-1", Any, Ipv4, Some("dynamodb.us-isob-east-1.sc2s.sgov.gov")),
            ("us-iso-east-1", Any, Dual, None),
        ] {
            assert_eq!(host(region, cryptography, stack).as_deref(), expected);
            assert!(expected.is_none_or(is_of_aws));
        }
        for (region, cryptography, stack, expected) in [
            ("eu-west-1", Any, Ipv4, Some("s3.eu-west-1.amazonaws.com")),
            ("us-east-1", Fips, Ipv4, Some("s3-fips.us-east-1.amazonaws.com")),
            ("us-gov-west-1", Fips, Ipv4, Some("s3-fips.us-gov-west-1.amazonaws.com")),
            ("us-east-1", Any, Dual, Some("s3.dualstack.us-east-1.amazonaws.com")),
            ("us-east-1", Fips, Dual, Some("s3-fips.dualstack.us-east-1.amazonaws.com")),
            ("cn-north-1", Any, Dual, Some("s3.dualstack.cn-north-1.amazonaws.com.cn")),
            ("us-iso-east-1", Any, Dual, None),
        ] {
            assert_eq!(of_s3(region, cryptography, stack).as_deref(), expected);
        }
        assert!(!is_of_aws("amazonaws.com") && !is_of_aws("dynamodb.amazonaws.com.example"));
        assert!(!is_of_aws("eu-west-1-amazonaws.com"));
    }

    #[test]
    fn nothing_but_a_region_becomes_part_of_a_host() {
        for good in ["eu-west-1", "us-gov-east-1", "local"] {
            assert!(is_region(good), "{good}");
        }
        for bad in ["", "eu", "EU-west-1", "eu-west-1.example", "eu/west", "-eu-west-1", "eu-west-1-", "eu@west", "a b"]
        {
            assert!(!is_region(bad), "{bad}");
        }
    }
}
