//! `s3://BUCKET`, `azblob://ACCOUNT/CONTAINER`, `gs://BUCKET`, `cosmos://ACCOUNT/DATABASE/CONTAINER`: objects in a cloud's
//! storage service.
//!
//! The url has no keys: they come from where the tools of each cloud keep them.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;

use leasehold_core::member::Durability;
use leasehold_wire::objects::Service;
use url::{Url, form_urlencoded};

use super::{Reach, durability, is_loopback, parameter, without_secrets};
use crate::aws::profiles::Profiles;
use crate::aws::{EnvVars, region};
use crate::error::Error;

/// A bucket or container: its address, and the prefix of the objects in it.
#[derive(Clone, PartialEq, Eq)]
pub struct ObjectsUrl {
    pub(crate) service: Service,
    /// The bucket of S3 and Google, `ACCOUNT/CONTAINER` of Azure, or `ACCOUNT/DATABASE/CONTAINER` of Cosmos DB.
    pub(crate) place: String,
    pub(crate) prefix: String,
    /// Of S3.
    pub(crate) region: String,
    pub(crate) profile: Option<String>,
    /// Scheme, host and port, without a trailing slash.
    pub(crate) base: String,
    /// The path of the bucket or container, as requests name it.
    pub(crate) root: String,
    pub(crate) reach: Reach,
    /// The url or the environment names the endpoint.
    pub(crate) is_named: bool,
    pub(crate) durability: Durability,
    /// PEM file with certificates that are trusted instead of those of the operating system.
    pub(crate) ca: Option<PathBuf>,
}

const PARAMETERS: &str = "ca, durable, endpoint, plaintext, profile and region";
const PREFIX: &str = "leasehold/";

#[derive(Default)]
struct Parameters {
    region: Option<String>,
    profile: Option<String>,
    endpoint: Option<String>,
    is_plaintext_allowed: bool,
    durability: Option<Durability>,
    ca: Option<PathBuf>,
}

impl ObjectsUrl {
    /// Reads the url, and takes what it leaves open (region, endpoint) from the environment and the profile.
    pub(crate) fn parse(text: &str, env: &EnvVars) -> Result<Self, Error> {
        let shown = without_secrets(text);
        Self::of(text, env).map_err(|what| Error::config(format!("store url {shown:?}: {what}")))
    }

    fn of(text: &str, env: &EnvVars) -> Result<Self, String> {
        let (scheme, rest) = text.split_once(':').unwrap_or((text, ""));
        let (service, form) = match scheme {
            "s3" => (Service::S3, "write s3://BUCKET?region=eu-west-1, or s3://BUCKET/PREFIX"),
            "azblob" => (Service::AzureBlob, "write azblob://ACCOUNT/CONTAINER, or azblob://ACCOUNT/CONTAINER/PREFIX"),
            "cosmos" => (Service::CosmosDb, "write cosmos://ACCOUNT/DATABASE/CONTAINER, or with /PREFIX"),
            _ => (Service::Gcs, "write gs://BUCKET, or gs://BUCKET/PREFIX"),
        };
        let rest = rest.strip_prefix("//").ok_or_else(|| format!("the slashes are missing; {form}"))?;
        if rest.contains(['#', '@', '\\', '%']) {
            return Err(format!("keys do not belong in the url, and # @ \\ % in no name; {form}"));
        }
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let given = Parameters::parse(service, query)?;
        let names = match service {
            Service::S3 | Service::Gcs => 1,
            Service::AzureBlob => 2,
            Service::CosmosDb => 3,
        };
        let mut parts: Vec<&str> = path.split('/').collect();
        if parts.len() < names {
            return Err(format!("the database or container is missing; {form}"));
        }
        let prefix = parts.split_off(names).join("/");
        for (at, name) in parts.iter().enumerate() {
            let has_capitals = service == Service::CosmosDb && at > 0;
            check_name(name, has_capitals).map_err(|what| format!("{what}; {form}"))?;
        }
        let prefix = match prefix.trim_end_matches('/') {
            "" => PREFIX.to_owned(),
            prefix => format!("{}/", checked_prefix(service, prefix)?),
        };
        // Read once, and only if they are needed.
        let mut files: Option<Profiles> = None;
        if let Some(name) = &given.profile {
            Profiles::opened(&mut files, env)?.expect(name)?;
        }
        let region = match service {
            Service::S3 => region::chosen(
                given.region.as_deref(),
                given.profile.as_deref(),
                env,
                &mut files,
                "write ?region=eu-west-1",
            )?,
            Service::AzureBlob | Service::Gcs | Service::CosmosDb => String::new(),
        };
        let endpoint = match &given.endpoint {
            Some(endpoint) => Some((endpoint.clone(), "endpoint")),
            None => endpoint_of_environment(service, &given, env, &mut files)?,
        };
        let (base, root, reach) = match &endpoint {
            Some((endpoint, said)) => at_endpoint(service, endpoint, said, &parts, given.is_plaintext_allowed)?,
            None if given.is_plaintext_allowed => {
                return Err("plaintext=allow is for an endpoint with http only; leave it out".to_owned());
            }
            None => in_the_cloud(service, &parts, &region),
        };
        if given.ca.is_some() && reach != Reach::Tls {
            return Err("certificates are used with https only".to_owned());
        }
        // Emulators run on this machine, and lose everything in a restart.
        let usual = match reach {
            Reach::Tls | Reach::Plaintext => Durability::Declared,
            Reach::Loopback => Durability::NotDeclared,
        };
        Ok(Self {
            service,
            place: parts.join("/"),
            prefix,
            region,
            profile: given.profile,
            base,
            root,
            reach,
            is_named: endpoint.is_some(),
            durability: given.durability.unwrap_or(usual),
            ca: given.ca,
        })
    }

    pub(crate) fn host(&self) -> Option<String> {
        Url::parse(&self.base).ok()?.host_str().map(str::to_owned)
    }
}

impl Parameters {
    fn parse(service: Service, query: &str) -> Result<Self, String> {
        let mut given = Self::default();
        let mut seen: Vec<String> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let (name, value) = (name.into_owned(), value.into_owned());
            if value.is_empty() {
                return Err(format!("{} is empty; give it a value, or leave it out", parameter(&name)));
            }
            match name.as_str() {
                "region" | "profile" if service != Service::S3 => return Err(format!("{name} is for s3:// only")),
                "region" => given.region = Some(value),
                "profile" => given.profile = Some(value),
                "endpoint" => given.endpoint = Some(value),
                "durable" => given.durability = Some(durability(&value)?),
                "ca" => given.ca = Some(PathBuf::from(value)),
                "plaintext" if value == "allow" => given.is_plaintext_allowed = true,
                "plaintext" => {
                    return Err(format!("plaintext is {value:?}; write plaintext=allow, or leave it out"));
                }
                _ => {
                    let advice = "keys come from the environment, never from the url";
                    return Err(format!(
                        "there is no parameter {}; there are {PARAMETERS}, and {advice}",
                        parameter(&name)
                    ));
                }
            }
            if seen.contains(&name) {
                return Err(format!("{name} is given twice"));
            }
            seen.push(name);
        }
        Ok(given)
    }
}

/// Names of buckets, containers and accounts become parts of hosts and paths, so nothing else may pass.
fn check_name(name: &str, has_capitals: bool) -> Result<(), String> {
    let is_plain = |byte: u8| {
        let is_letter = byte.is_ascii_lowercase() || has_capitals && byte.is_ascii_uppercase();
        is_letter || byte.is_ascii_digit() || b"-._".contains(&byte)
    };
    let is_name = name.bytes().all(is_plain) && (3..=222).contains(&name.len()) && !name.starts_with('.');
    match is_name {
        true => Ok(()),
        false => {
            let letters = if has_capitals { "letters" } else { "lowercase letters" };
            Err(format!("a name has 3 to 222 {letters}, digits, dashes, dots and underscores"))
        }
    }
}

fn checked_prefix(service: Service, prefix: &str) -> Result<&str, String> {
    // Ids of Cosmos DB are short.
    let most = if service == Service::CosmosDb { 100 } else { 255 };
    let is_part = |part: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        !part.is_empty() && part.bytes().all(is_plain) && !part.bytes().all(|byte| byte == b'.')
    };
    match prefix.split('/').all(is_part) && prefix.len() <= most {
        true => Ok(prefix),
        false => Err(format!("a prefix has at most {most} letters, digits and -._~ between single slashes")),
    }
}

fn endpoint_of_environment(
    service: Service,
    given: &Parameters,
    env: &EnvVars,
    files: &mut Option<Profiles>,
) -> Result<Option<(String, &'static str)>, String> {
    let variable = |name: &'static str| env.variable(name).map(|value| (value, name));
    match service {
        Service::S3 if given.profile.is_none() => {
            Ok(variable("AWS_ENDPOINT_URL_S3").or_else(|| variable("AWS_ENDPOINT_URL")))
        }
        Service::S3 => {
            let files = Profiles::opened(files, env)?;
            let section = given.profile.as_deref().and_then(|name| files.profile(name));
            let url = section.and_then(|section| files.endpoint_url(section, "s3"));
            Ok(url.map(|url| (url.to_owned(), "the profile's endpoint_url")))
        }
        Service::AzureBlob | Service::CosmosDb => Ok(None),
        Service::Gcs => Ok(variable("STORAGE_EMULATOR_HOST").map(|(host, name)| {
            let is_url = host.starts_with("http://") || host.starts_with("https://");
            (if is_url { host } else { format!("http://{host}") }, name)
        })),
    }
}

fn in_the_cloud(service: Service, parts: &[&str], region: &str) -> (String, String, Reach) {
    let name = parts.last().copied().unwrap_or_default();
    let (base, root) = match service {
        // The certificate covers one label.
        Service::S3 if name.contains('.') => {
            (format!("https://s3.{region}.{}", region::suffix(region)), format!("/{name}"))
        }
        Service::S3 => (format!("https://{name}.s3.{region}.{}", region::suffix(region)), String::new()),
        Service::AzureBlob => {
            let account = parts.first().copied().unwrap_or_default();
            (format!("https://{account}.blob.core.windows.net"), format!("/{name}"))
        }
        Service::Gcs => ("https://storage.googleapis.com".to_owned(), name.to_owned()),
        Service::CosmosDb => {
            let account = parts.first().copied().unwrap_or_default();
            (format!("https://{account}.documents.azure.com"), container_of(parts))
        }
    };
    (base, root, Reach::Tls)
}

fn at_endpoint(
    service: Service,
    text: &str,
    said: &str,
    parts: &[&str],
    is_plaintext_allowed: bool,
) -> Result<(String, String, Reach), String> {
    let url = Url::parse(text).map_err(|error| format!("{said} is not a url: {error}"))?;
    if !["http", "https"].contains(&url.scheme()) || !url.username().is_empty() || url.password().is_some() {
        return Err(format!("{said} must begin with https:// or http://, and has no user or password"));
    }
    let path = url.path().trim_end_matches('/');
    let has_path = !path.is_empty() && service != Service::AzureBlob;
    if url.query().is_some() || url.fragment().is_some() || has_path {
        return Err(format!("{said} has more than a host and a port"));
    }
    let host = url.host().ok_or_else(|| format!("{said} has no host"))?;
    let reach = match url.scheme() {
        "https" => Reach::Tls,
        _ if is_loopback(&host) => Reach::Loopback,
        _ => Reach::Plaintext,
    };
    if reach == Reach::Plaintext && !is_plaintext_allowed {
        return Err(format!(
            "over http everybody on the network path could read requests; give {said} https://, or add plaintext=allow \
             where the network is trusted"
        ));
    }
    let name = parts.last().copied().unwrap_or_default();
    let root = match service {
        Service::S3 | Service::AzureBlob => format!("{path}/{name}"),
        Service::Gcs => name.to_owned(),
        Service::CosmosDb => container_of(parts),
    };
    let base = url.as_str().trim_end_matches('/');
    Ok((base.strip_suffix(path).unwrap_or(base).to_owned(), root, reach))
}

fn container_of(parts: &[&str]) -> String {
    let name = |at: usize| parts.get(at).copied().unwrap_or_default();
    format!("/dbs/{}/colls/{}", name(1), name(2))
}

impl fmt::Display for ObjectsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.service {
            Service::S3 => "s3",
            Service::AzureBlob => "azblob",
            Service::Gcs => "gs",
            Service::CosmosDb => "cosmos",
        };
        write!(f, "{scheme}://{}", self.place)?;
        if self.prefix != PREFIX {
            write!(f, "/{}", self.prefix.trim_end_matches('/'))?;
        }
        let mut separator = "?";
        if self.service == Service::S3 {
            write!(f, "?region={}", self.region)?;
            separator = "&";
        }
        if !self.is_named {
            return Ok(());
        }
        // With what Azure has in its path.
        let path = match self.service {
            Service::AzureBlob => self.root.rsplit_once('/').map_or("", |(path, _)| path),
            Service::S3 | Service::Gcs | Service::CosmosDb => "",
        };
        write!(f, "{separator}endpoint={}{path}", self.base)?;
        // Without it the url would be refused.
        if self.reach == Reach::Plaintext { f.write_str("&plaintext=allow") } else { Ok(()) }
    }
}

/// Of the address alone.
impl Hash for ObjectsUrl {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.service, &self.place, &self.prefix, &self.region, &self.base).hash(state);
    }
}

impl fmt::Debug for ObjectsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, variables: &'static [(&str, &str)]) -> Result<ObjectsUrl, String> {
        let env = EnvVars::new(move |name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        });
        ObjectsUrl::parse(text, &env).map_err(|error| error.to_string())
    }

    #[test]
    fn urls_are_read() {
        for (text, base, root, prefix) in [
            ("s3://locks?region=eu-west-1", "https://locks.s3.eu-west-1.amazonaws.com", "", "leasehold/"),
            ("s3://a.locks/x/y?region=cn-north-1", "https://s3.cn-north-1.amazonaws.com.cn", "/a.locks", "x/y/"),
            ("s3://locks?region=auto&endpoint=https://a.example.com", "https://a.example.com", "/locks", "leasehold/"),
            ("azblob://acme/locks/", "https://acme.blob.core.windows.net", "/locks", "leasehold/"),
            (
                "azblob://devstoreaccount1/locks?endpoint=http://127.0.0.1:10000/devstoreaccount1",
                "http://127.0.0.1:10000",
                "/devstoreaccount1/locks",
                "leasehold/",
            ),
            ("gs://locks/prod", "https://storage.googleapis.com", "locks", "prod/"),
            ("cosmos://acme/Prod/Locks/x", "https://acme.documents.azure.com", "/dbs/Prod/colls/Locks", "x/"),
            (
                "cosmos://acme/db1/locks?endpoint=https://[::1]:8081",
                "https://[::1]:8081",
                "/dbs/db1/colls/locks",
                "leasehold/",
            ),
            ("gs://locks?endpoint=http://localhost:4443", "http://localhost:4443", "locks", "leasehold/"),
        ] {
            let url = read(text, &[]).unwrap();
            assert_eq!((url.base.as_str(), url.root.as_str(), url.prefix.as_str()), (base, root, prefix), "{text}");
        }
        let url =
            read("s3://locks", &[("AWS_REGION", "eu-west-1"), ("AWS_ENDPOINT_URL_S3", "http://[::1]:9")]).unwrap();
        assert_eq!(
            (url.base.as_str(), url.reach, url.region.as_str()),
            ("http://[::1]:9", Reach::Loopback, "eu-west-1")
        );
        let url = read("gs://locks", &[("STORAGE_EMULATOR_HOST", "127.0.0.1:4443")]).unwrap();
        assert_eq!((url.base.as_str(), url.durability), ("http://127.0.0.1:4443", Durability::NotDeclared));
    }

    #[test]
    fn urls_are_shown_so_that_they_can_be_read_again() {
        for text in [
            "s3://locks/x/y?region=eu-west-1&endpoint=https://a.example.com",
            "s3://locks?region=eu-west-1",
            "gs://locks?endpoint=http://storage&plaintext=allow",
            "azblob://acme/locks",
            "azblob://devstoreaccount1/locks?endpoint=http://127.0.0.1:10000/devstoreaccount1",
            "gs://locks/prod",
        ] {
            let url = read(text, &[]).unwrap();
            assert_eq!(url.to_string(), text);
        }
    }

    #[test]
    fn odd_urls_are_refused() {
        for (text, words) in [
            ("s3:locks", "slashes are missing"),
            ("s3://locks", "region is missing"),
            ("s3://locks?region=Mars", "not a region"),
            ("s3://L?region=eu-west-1", "lowercase"),
            ("s3://key:hunter2@locks?region=eu-west-1", "do not belong in the url"),
            ("s3://locks/a//b?region=eu-west-1", "single slashes"),
            ("s3://locks/..?region=eu-west-1", "single slashes"),
            ("azblob://acme", "container is missing"),
            ("azblob://acme/locks?key=hunter2", "never from the url"),
            ("azblob://acme/locks?region=x", "s3:// only"),
            ("gs://locks?endpoint=http://example.com", "plaintext=allow"),
            ("gs://locks?endpoint=ftp://localhost", "https:// or http://"),
            ("gs://locks?endpoint=https://a/b", "more than a host"),
            ("gs://locks?plaintext=allow", "leave it out"),
            ("gs://locks?endpoint=http://localhost&ca=x", "https only"),
            ("gs://locks?durable=yes&durable=no", "twice"),
        ] {
            let error = read(text, &[]).unwrap_err();
            assert!(error.contains(words) && !error.contains("hunter2"), "{text}: {error}");
        }
    }
}
