//! `dynamodb://TABLE?region=eu-west-1`: a table of DynamoDB.
//!
//! The url has no keys: they come from where AWS's tools keep them.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;

use leasehold_core::member::Durability;
use leasehold_wire::dynamodb::Settings;
use url::{Url, form_urlencoded};

use super::{Reach, durability, is_loopback, is_true, parameter, without_secrets};
use crate::aws::profiles::Profiles;
use crate::aws::region::{self, Cryptography, Service, Stack, Variant};
use crate::aws::{EnvVars, endpoint};
use crate::error::Error;

/// A table of DynamoDB: its address, and the names in its rows.
#[derive(Clone, PartialEq, Eq)]
pub struct DynamodbUrl {
    pub(crate) table: String,
    pub(crate) region: String,
    pub(crate) endpoint: Endpoint,
    /// The attribute that names the lock: the table's partition key.
    pub(crate) key: String,
    pub(crate) sort: Option<Sort>,
    /// `None`: the environment decides.
    pub(crate) profile: Option<String>,
    /// The attribute of the table's TTL, where rows are to have it.
    pub(crate) expires: Option<String>,
    pub(crate) replicas: Replicas,
    pub(crate) durability: Durability,
    /// PEM file with certificates that are trusted instead of those of the operating system.
    pub(crate) ca: Option<PathBuf>,
}

/// The endpoint of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// Scheme, host and port, without a trailing slash.
    pub(crate) base: String,
    pub(crate) reach: Reach,
    pub(crate) given: Given,
}

/// The source of the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// The region's own endpoint.
    ByRegion,
    /// The url, the environment or the profile.
    ByName,
}

/// The sort key of a table that has one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sort {
    pub(crate) name: String,
    /// Its value, the same in all rows.
    pub(crate) value: String,
}

/// The policy for a table whose replicas in other regions lag behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Replicas {
    /// It gets a warning.
    MayLag,
    /// It is refused.
    MustAgree,
}

/// The permission to send requests without encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plaintext {
    ToLoopback,
    Allowed,
}

const FORM: &str = "write dynamodb://TABLE?region=eu-west-1";
const PARAMETERS: &str = "ca, dualstack, durable, endpoint, expires, fips, key, plaintext, profile, region, \
                          require_strong, sort_key and sort_key_value";
/// The default value of the sort key, for tables that have one although leasehold needs none.
const SORT_KEY_VALUE: &str = "-";

/// The parameters, as they are written in the url.
#[derive(Default)]
struct Parameters {
    region: Option<String>,
    endpoint: Option<String>,
    profile: Option<String>,
    key: Option<String>,
    sort_key: Option<String>,
    sort_key_value: Option<String>,
    expires: Option<String>,
    variant: Variant,
    plaintext: Option<Plaintext>,
    replicas: Option<Replicas>,
    durability: Option<Durability>,
    ca: Option<PathBuf>,
}

impl DynamodbUrl {
    /// Reads the url, and takes what it leaves open (region, endpoint) from the environment and the profile.
    pub(crate) fn parse(text: &str, env: &EnvVars) -> Result<Self, Error> {
        let shown = without_secrets(text);
        Self::of(text, env).map_err(|what| Error::config(format!("store url {shown:?}: {what}")))
    }

    fn of(text: &str, env: &EnvVars) -> Result<Self, String> {
        let rest = text.strip_prefix("dynamodb://").ok_or_else(|| format!("the slashes are missing; {FORM}"))?;
        if rest.contains('#') {
            return Err("a # is written %23".to_owned());
        }
        let (table, query) = rest.split_once('?').unwrap_or((rest, ""));
        let table = table.strip_suffix('/').unwrap_or(table);
        check_table(table)?;
        let given = Parameters::parse(query)?;
        // Read once, and only if they are needed.
        let mut files: Option<Profiles> = None;
        if let Some(name) = &given.profile {
            Profiles::opened(&mut files, env)?.expect(name)?;
        }
        let region = region::chosen(given.region.as_deref(), given.profile.as_deref(), env, &mut files, FORM)?;
        let endpoint = self::endpoint(&given, env, &mut files, &region)?;
        let (key, sort) = keys(&given)?;
        if let Some(expires) = &given.expires {
            check_attribute("expires", expires)?;
            if *expires == key || sort.as_ref().is_some_and(|sort| sort.name == *expires) {
                return Err(format!("expires is {expires:?}, which is a key of the table; name another attribute"));
            }
        }
        if given.ca.is_some() && endpoint.reach != Reach::Tls {
            return Err("certificates are used with https only".to_owned());
        }
        // Emulators run on this machine, and lose everything in a restart.
        let usual = match endpoint.reach {
            Reach::Tls | Reach::Plaintext => Durability::Declared,
            Reach::Loopback => Durability::NotDeclared,
        };
        Ok(Self {
            table: table.to_owned(),
            region,
            endpoint,
            key,
            sort,
            profile: given.profile,
            expires: given.expires,
            replicas: given.replicas.unwrap_or(Replicas::MayLag),
            durability: given.durability.unwrap_or(usual),
            ca: given.ca,
        })
    }

    /// The url for another process, with everything that this one found in its environment and in the profile. It has
    /// no secrets.
    pub fn in_full(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("region", &self.region).append_pair("endpoint", &self.endpoint.base);
        if self.endpoint.reach == Reach::Plaintext {
            query.append_pair("plaintext", "allow");
        }
        query.append_pair("key", &self.key);
        if let Some(sort) = &self.sort {
            query.append_pair("sort_key", &sort.name).append_pair("sort_key_value", &sort.value);
        }
        for (name, value) in [("profile", &self.profile), ("expires", &self.expires)] {
            if let Some(value) = value {
                query.append_pair(name, value);
            }
        }
        if self.replicas == Replicas::MustAgree {
            query.append_pair("require_strong", "true");
        }
        let durable = match self.durability {
            Durability::Declared => "yes",
            Durability::NotDeclared => "no",
        };
        query.append_pair("durable", durable);
        if let Some(ca) = self.ca.as_deref().and_then(|ca| std::path::absolute(ca).ok()) {
            query.append_pair("ca", &ca.to_string_lossy());
        }
        format!("dynamodb://{}?{}", self.table, query.finish())
    }

    pub(crate) fn host(&self) -> Option<String> {
        Url::parse(&self.endpoint.base).ok()?.host_str().map(str::to_owned)
    }
}

impl Parameters {
    fn parse(query: &str) -> Result<Self, String> {
        let mut given = Self::default();
        let mut seen: Vec<String> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let (name, value) = (name.into_owned(), value.into_owned());
            if value.is_empty() {
                return Err(format!("{} is empty; give it a value, or leave it out", parameter(&name)));
            }
            match name.as_str() {
                "region" => given.region = Some(value),
                "endpoint" => given.endpoint = Some(value),
                "profile" => given.profile = Some(value),
                "key" => given.key = Some(value),
                "sort_key" => given.sort_key = Some(value),
                "sort_key_value" => given.sort_key_value = Some(value),
                "expires" => given.expires = Some(value),
                "fips" if is_true("fips", &value)? => given.variant.cryptography = Cryptography::Fips,
                "dualstack" if is_true("dualstack", &value)? => given.variant.stack = Stack::Dual,
                "fips" | "dualstack" => {}
                "require_strong" => {
                    let strong = is_true("require_strong", &value)?;
                    given.replicas = Some(if strong { Replicas::MustAgree } else { Replicas::MayLag });
                }
                "durable" => given.durability = Some(durability(&value)?),
                "ca" => given.ca = Some(PathBuf::from(value)),
                "plaintext" if value == "allow" => given.plaintext = Some(Plaintext::Allowed),
                "plaintext" => {
                    return Err(format!("plaintext is {value:?}; write plaintext=allow, or leave it out"));
                }
                "access_key"
                | "access_key_id"
                | "aws_access_key_id"
                | "secret"
                | "secret_key"
                | "secret_access_key"
                | "aws_secret_access_key"
                | "session_token"
                | "aws_session_token" => return Err(no_keys()),
                "proxy" => {
                    return Err(
                        "proxies are none of the url: set LEASEHOLD_PROXY=environment, and HTTPS_PROXY".to_owned()
                    );
                }
                _ => return Err(format!("there is no parameter {}; there are {PARAMETERS}", parameter(&name))),
            }
            if seen.contains(&name) {
                return Err(format!("{name} is given twice"));
            }
            seen.push(name);
        }
        Ok(given)
    }
}

fn no_keys() -> String {
    "access keys do not belong in the url: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile with \
     ?profile=NAME"
        .to_owned()
}

fn check_table(table: &str) -> Result<(), String> {
    if table.contains('@') {
        return Err(no_keys());
    }
    if table.is_empty() {
        return Err(format!("the table is missing; {FORM}"));
    }
    if table.contains(':') && !table.starts_with("arn:") {
        return Err(format!("dynamodb:// is followed by a table, not a host; {FORM}&endpoint=http://127.0.0.1:8000"));
    }
    let is_plain = table.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
    if !is_plain || !(3..=255).contains(&table.len()) {
        return Err(format!("a table's name has 3 to 255 letters, digits, dots, dashes and underscores; {FORM}"));
    }
    Ok(())
}

fn check_attribute(parameter: &str, name: &str) -> Result<(), String> {
    let most = Settings::MAX_NAME;
    if name.len() > most || name.chars().any(char::is_control) {
        return Err(format!("{parameter} is not the name of an attribute, which has at most {most} bytes"));
    }
    if Settings::reserves(name) {
        return Err(format!(
            "{parameter} is {name:?}, which every lock uses for something else; name another attribute"
        ));
    }
    Ok(())
}

fn keys(given: &Parameters) -> Result<(String, Option<Sort>), String> {
    let key = given.key.clone().unwrap_or_else(|| Settings::KEY.to_owned());
    check_attribute("key", &key)?;
    let sort = match (&given.sort_key, &given.sort_key_value) {
        (Some(name), value) => {
            check_attribute("sort_key", name)?;
            if *name == key {
                return Err(format!(
                    "key and sort_key are both {name:?}; a table has two different keys, or no sort key"
                ));
            }
            let value = value.clone().unwrap_or_else(|| SORT_KEY_VALUE.to_owned());
            if value.len() > Settings::MAX_SORT_VALUE {
                return Err(format!("sort_key_value has more than {} bytes", Settings::MAX_SORT_VALUE));
            }
            Some(Sort { name: name.clone(), value })
        }
        (None, Some(_)) => return Err("sort_key_value without sort_key; name the attribute too".to_owned()),
        (None, None) => None,
    };
    Ok((key, sort))
}

fn endpoint(given: &Parameters, env: &EnvVars, files: &mut Option<Profiles>, region: &str) -> Result<Endpoint, String> {
    let plaintext = given.plaintext.unwrap_or(Plaintext::ToLoopback);
    let wanted = endpoint::Given {
        service: Service::Dynamodb,
        region,
        endpoint: given.endpoint.as_deref(),
        variant: given.variant,
        profile: given.profile.as_deref(),
    };
    match endpoint::find(&wanted, env, files)? {
        endpoint::Endpoint::Named { text, place } => named(&text, &place, plaintext),
        endpoint::Endpoint::OfRegion { .. } if plaintext == Plaintext::Allowed => {
            Err("plaintext=allow is for an endpoint with http only; leave it out".to_owned())
        }
        endpoint::Endpoint::OfRegion { host } => {
            Ok(Endpoint { base: format!("https://{host}"), reach: Reach::Tls, given: Given::ByRegion })
        }
    }
}

fn named(text: &str, place: &str, plaintext: Plaintext) -> Result<Endpoint, String> {
    let example = "write it like https://dynamodb.eu-west-1.amazonaws.com or http://127.0.0.1:8000";
    if !text.starts_with("https://") && !text.starts_with("http://") {
        return Err(format!("{place} must begin with https:// or http://; {example}"));
    }
    let url = Url::parse(text).map_err(|error| format!("{place} is not a url: {error}; {example}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("{place} has a user or password; {}", no_keys()));
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err(format!("{place} has more than a host and a port; {example}"));
    }
    let host = url.host().ok_or_else(|| format!("{place} has no host; {example}"))?;
    let reach = match url.scheme() {
        "https" => Reach::Tls,
        _ if is_loopback(&host) => Reach::Loopback,
        _ => Reach::Plaintext,
    };
    match (reach, plaintext) {
        (Reach::Plaintext, Plaintext::ToLoopback) => Err(format!(
            "over http everybody on the network path could read requests; give {place} https://, or add \
             plaintext=allow where the network is trusted"
        )),
        (Reach::Tls, Plaintext::Allowed) => Err("plaintext=allow is for http only; leave it out".to_owned()),
        (Reach::Tls | Reach::Loopback | Reach::Plaintext, _) => {
            let base = url.as_str().trim_end_matches('/').to_owned();
            Ok(Endpoint { base, reach, given: Given::ByName })
        }
    }
}

/// The same for all clients of the table, through any of the region's own endpoints.
impl fmt::Display for DynamodbUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dynamodb://{}?region={}", self.table, self.region)?;
        match self.endpoint.given {
            Given::ByName if !self.host().is_some_and(|host| region::is_of_aws(&host)) => {
                write!(f, "&endpoint={}", self.endpoint.base)?;
            }
            Given::ByRegion | Given::ByName => return Ok(()),
        }
        // Without it the url would be refused.
        if self.endpoint.reach == Reach::Plaintext { f.write_str("&plaintext=allow") } else { Ok(()) }
    }
}

impl fmt::Debug for DynamodbUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DynamodbUrl({self})")
    }
}

impl Hash for DynamodbUrl {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.table, &self.region, &self.endpoint.base, &self.key, &self.sort, &self.profile).hash(state);
    }
}

#[cfg(test)]
mod tests;
