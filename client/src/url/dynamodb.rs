//! `dynamodb://TABLE?region=eu-west-1`: a table of DynamoDB.
//!
//! The url has no keys: they come from where AWS's tools keep them.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use leasehold_core::member::Durability;
use leasehold_wire::dynamodb::Settings;
use url::form_urlencoded;

use super::Said;
use super::parameters::{NO_PROXY, Parameters, Plaintext};
use super::place::{Draft, Place};
use super::reach::Exposure;
use super::reach::{endpoint as read_endpoint, host_of};
use crate::aws::profiles::Profiles;
use crate::aws::region::{self, Service, Variant};
use crate::aws::{EnvVars, endpoint};

/// A table of DynamoDB: its address, and the names in its rows.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct DynamodbUrl {
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
    pub(crate) reach: Exposure,
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

const FORM: &str = "write dynamodb://TABLE?region=eu-west-1";
/// The default value of the sort key, for tables that have one although leasehold needs none.
const SORT_KEY_VALUE: &str = "-";

/// A server that may be called durable.
const DURABLE: &str = "an endpoint that loses nothing in a restart";

/// The url as it is written, with what it leaves open.
#[derive(Debug, PartialEq, Eq)]
struct Written {
    table: String,
    region: Option<String>,
    endpoint: Option<String>,
    profile: Option<String>,
    key: String,
    sort: Option<Sort>,
    expires: Option<String>,
    variant: Variant,
    plaintext: Plaintext,
    replicas: Replicas,
    durability: Option<Durability>,
    ca: Option<PathBuf>,
}

pub(super) fn parse(text: &str) -> Result<Said, String> {
    Written::parse(text).map(|draft| Said::open(text, draft))
}

impl Written {
    fn parse(text: &str) -> Result<Self, String> {
        let rest = text.strip_prefix("dynamodb://").ok_or_else(|| format!("the slashes are missing; {FORM}"))?;
        if rest.contains('#') {
            return Err("a # is written %23".to_owned());
        }
        let (table, query) = rest.split_once('?').unwrap_or((rest, ""));
        let table = table.strip_suffix('/').unwrap_or(table);
        check_table(table)?;
        let mut given = Parameters::of(query)?;
        let (ca, dualstack) = (given.file("ca")?, given.switch("dualstack")?);
        let durability = given.durability(DURABLE)?;
        let (endpoint, expires) = (given.text("endpoint")?, given.text("expires")?);
        let variant = Variant::of(given.switch("fips")?, dualstack);
        let key = given.text("key")?;
        let plaintext = given.plaintext()?;
        let (profile, region) = (given.text("profile")?, given.text("region")?);
        let is_strong = given.switch("require_strong")?.unwrap_or(false);
        let sort = (given.text("sort_key")?, given.text("sort_key_value")?);
        given.refuse(&KEYS, NO_KEYS)?;
        given.refuse(&["proxy"], NO_PROXY)?;
        given.finish("")?;
        let (key, sort) = keys(key, sort)?;
        if let Some(expires) = &expires {
            check_attribute("expires", expires)?;
            if *expires == key || sort.as_ref().is_some_and(|sort| sort.name == *expires) {
                return Err(format!("expires is {expires:?}, which is a key of the table; name another attribute"));
            }
        }
        let replicas = if is_strong { Replicas::MustAgree } else { Replicas::MayLag };
        let table = table.to_owned();
        Ok(Self { table, region, endpoint, profile, key, sort, expires, variant, plaintext, replicas, durability, ca })
    }

    /// Takes what is left open (region, endpoint) from the environment and the profile.
    fn resolved(&self, env: &EnvVars) -> Result<DynamodbUrl, String> {
        // Read once, and only if they are needed.
        let mut files: Option<Profiles> = None;
        if let Some(name) = &self.profile {
            Profiles::opened(&mut files, env)?.expect(name)?;
        }
        let region = region::chosen(self.region.as_deref(), self.profile.as_deref(), env, &mut files, FORM)?;
        let endpoint = self.endpoint(env, &mut files, &region)?;
        Ok(DynamodbUrl {
            table: self.table.clone(),
            region,
            key: self.key.clone(),
            sort: self.sort.clone(),
            profile: self.profile.clone(),
            expires: self.expires.clone(),
            replicas: self.replicas,
            durability: self.durability.unwrap_or(endpoint.reach.usual_durability()),
            ca: self.ca.clone(),
            endpoint,
        })
    }

    fn endpoint(&self, env: &EnvVars, files: &mut Option<Profiles>, region: &str) -> Result<Endpoint, String> {
        let wanted = endpoint::Given {
            service: Service::Dynamodb,
            region,
            endpoint: self.endpoint.as_deref(),
            variant: self.variant,
            profile: self.profile.as_deref(),
        };
        let endpoint = match endpoint::find(&wanted, env, files)? {
            endpoint::Endpoint::Named { text, place } => {
                let (url, reach) = read_endpoint(&text, &place, false, self.plaintext, NO_KEYS)?;
                Endpoint { base: url.as_str().trim_end_matches('/').to_owned(), reach, given: Given::ByName }
            }
            endpoint::Endpoint::OfRegion { host } => {
                Endpoint { base: format!("https://{host}"), reach: Exposure::Tls, given: Given::ByRegion }
            }
        };
        endpoint.reach.check(self.ca.is_some(), self.plaintext)?;
        Ok(endpoint)
    }
}

impl Draft for Written {
    fn resolve(&self, env: &EnvVars) -> Result<Arc<dyn Place>, String> {
        Ok(Arc::new(self.resolved(env)?))
    }
}

impl DynamodbUrl {
    #[cfg(test)]
    pub(crate) fn parse(text: &str, env: &EnvVars) -> Result<Self, String> {
        Written::parse(text)?.resolved(env)
    }

    /// The url for another process, with everything that this one found in its environment and in the profile. It has
    /// no secrets.
    pub(crate) fn in_full(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("region", &self.region).append_pair("endpoint", &self.endpoint.base);
        if self.endpoint.reach == Exposure::Plaintext {
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
        host_of(&self.endpoint.base)
    }
}

/// Parameters under which people look for a place for their keys.
const KEYS: [&str; 9] = [
    "access_key",
    "access_key_id",
    "aws_access_key_id",
    "secret",
    "secret_key",
    "secret_access_key",
    "aws_secret_access_key",
    "session_token",
    "aws_session_token",
];
const NO_KEYS: &str = "access keys do not belong in the url: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a \
                       profile with ?profile=NAME";

fn check_table(table: &str) -> Result<(), String> {
    if table.contains('@') {
        return Err(NO_KEYS.to_owned());
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

fn keys(key: Option<String>, sort: (Option<String>, Option<String>)) -> Result<(String, Option<Sort>), String> {
    let key = key.unwrap_or_else(|| Settings::KEY.to_owned());
    check_attribute("key", &key)?;
    let sort = match sort {
        (Some(name), value) => {
            check_attribute("sort_key", &name)?;
            if name == key {
                return Err(format!(
                    "key and sort_key are both {name:?}; a table has two different keys, or no sort key"
                ));
            }
            let value = value.unwrap_or_else(|| SORT_KEY_VALUE.to_owned());
            if value.len() > Settings::MAX_SORT_VALUE {
                return Err(format!("sort_key_value has more than {} bytes", Settings::MAX_SORT_VALUE));
            }
            Some(Sort { name, value })
        }
        (None, Some(_)) => return Err("sort_key_value without sort_key; name the attribute too".to_owned()),
        (None, None) => None,
    };
    Ok((key, sort))
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
        if self.endpoint.reach == Exposure::Plaintext { f.write_str("&plaintext=allow") } else { Ok(()) }
    }
}

impl fmt::Debug for DynamodbUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DynamodbUrl({self})")
    }
}

#[cfg(test)]
mod tests;
