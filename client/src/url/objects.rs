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

use super::{Reach, azure, durability, is_loopback, is_true, parameter, without_secrets};
use crate::aws::profiles::Profiles;
use crate::aws::region::{self, Cryptography, Stack, Variant};
use crate::aws::{EnvVars, endpoint};
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

const PARAMETERS: &str = "ca, dualstack, durable, endpoint, fips, plaintext, profile and region";
const PREFIX: &str = "leasehold/";

#[derive(Default)]
struct Parameters {
    region: Option<String>,
    profile: Option<String>,
    variant: Variant,
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
        let place = Place::find(service, &given, &parts, &region, env, &mut files)?;
        let (base, root, reach) = match &place {
            Place::Named { text, said } => at_endpoint(service, text, said, &parts, given.is_plaintext_allowed)?,
            Place::InTheCloud(_) if given.is_plaintext_allowed => {
                return Err("plaintext=allow is for an endpoint with http only; leave it out".to_owned());
            }
            Place::InTheCloud(host) => in_the_cloud(service, host, &parts),
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
            is_named: matches!(place, Place::Named { .. }),
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
                "region" | "profile" | "fips" | "dualstack" if service != Service::S3 => {
                    return Err(format!("{name} is for s3:// only"));
                }
                "fips" if is_true("fips", &value)? => given.variant.cryptography = Cryptography::Fips,
                "dualstack" if is_true("dualstack", &value)? => given.variant.stack = Stack::Dual,
                "fips" | "dualstack" => {}
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

/// The address of a service.
enum Place {
    /// A text that somebody wrote, and where it stands.
    Named { text: String, said: String },
    /// The host of the service itself.
    InTheCloud(String),
}

impl Place {
    fn find(
        service: Service,
        given: &Parameters,
        parts: &[&str],
        region: &str,
        env: &EnvVars,
        files: &mut Option<Profiles>,
    ) -> Result<Self, String> {
        if service == Service::S3 {
            let wanted = endpoint::Given {
                service: region::Service::S3,
                region,
                endpoint: given.endpoint.as_deref(),
                variant: given.variant,
                profile: given.profile.as_deref(),
            };
            return Ok(match endpoint::find(&wanted, env, files)? {
                endpoint::Endpoint::Named { text, place } => Self::Named { text, said: place },
                endpoint::Endpoint::OfRegion { host } => Self::InTheCloud(host),
            });
        }
        if let Some(text) = &given.endpoint {
            return Ok(Self::Named { text: text.clone(), said: "endpoint".to_owned() });
        }
        let account = parts.first().copied().unwrap_or_default();
        let (said, host) = match service {
            Service::AzureBlob => (azure::endpoint(service, account, env), format!("{account}.blob.core.windows.net")),
            Service::CosmosDb => (azure::endpoint(service, account, env), format!("{account}.documents.azure.com")),
            Service::Gcs | Service::S3 => {
                let emulator = env.variable("STORAGE_EMULATOR_HOST").map(|host| {
                    let is_url = host.starts_with("http://") || host.starts_with("https://");
                    (if is_url { host } else { format!("http://{host}") }, "STORAGE_EMULATOR_HOST")
                });
                (emulator, "storage.googleapis.com".to_owned())
            }
        };
        Ok(match said {
            // A connection string of the usual cloud says what is so anyway.
            Some((text, _)) if without_usual_port(&text) == format!("https://{host}") => Self::InTheCloud(host),
            Some((text, said)) => Self::Named { text, said: said.to_owned() },
            None => Self::InTheCloud(host),
        })
    }
}

fn without_usual_port(endpoint: &str) -> &str {
    let endpoint = endpoint.trim_end_matches('/');
    endpoint.strip_suffix(":443").unwrap_or(endpoint)
}

fn in_the_cloud(service: Service, host: &str, parts: &[&str]) -> (String, String, Reach) {
    let name = parts.last().copied().unwrap_or_default();
    let (base, root) = match service {
        // The certificate covers one label.
        Service::S3 if name.contains('.') => (format!("https://{host}"), format!("/{name}")),
        Service::S3 => (format!("https://{name}.{host}"), String::new()),
        Service::AzureBlob => (format!("https://{host}"), format!("/{name}")),
        Service::Gcs => (format!("https://{host}"), name.to_owned()),
        Service::CosmosDb => (format!("https://{host}"), container_of(parts)),
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
        for (text, variables, base, root) in [
            ("s3://locks?region=us-east-1&fips=true", &[][..], "https://locks.s3-fips.us-east-1.amazonaws.com", ""),
            (
                "s3://a.locks?region=us-east-1",
                &[("AWS_USE_DUALSTACK_ENDPOINT", "true")],
                "https://s3.dualstack.us-east-1.amazonaws.com",
                "/a.locks",
            ),
            (
                "azblob://acme/locks",
                &[("AZURE_STORAGE_CONNECTION_STRING", "AccountName=acme;EndpointSuffix=core.chinacloudapi.cn")],
                "https://acme.blob.core.chinacloudapi.cn",
                "/locks",
            ),
            (
                "azblob://devstoreaccount1/locks",
                &[("AZURE_STORAGE_CONNECTION_STRING", "UseDevelopmentStorage=true")],
                "http://127.0.0.1:10000",
                "/devstoreaccount1/locks",
            ),
            (
                "cosmos://acme/db1/locks",
                &[("AZURE_AUTHORITY_HOST", "https://login.microsoftonline.us/")],
                "https://acme.documents.azure.us",
                "/dbs/db1/colls/locks",
            ),
        ] {
            let url = read(text, variables).unwrap();
            assert_eq!((url.base.as_str(), url.root.as_str()), (base, root), "{text}");
        }
        // Defaults are not shown.
        let usual = &[("AZURE_STORAGE_CONNECTION_STRING", "AccountName=acme;EndpointSuffix=core.windows.net")];
        assert_eq!(read("azblob://acme/locks", usual).unwrap().to_string(), "azblob://acme/locks");
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
            ("gs://locks?fips=true", "s3:// only"),
            ("s3://locks?region=eu-west-1&fips=true&endpoint=https://a", "leave one out"),
            ("s3://locks?region=us-iso-east-1&dualstack=true", "no dual-stack"),
        ] {
            let error = read(text, &[]).unwrap_err();
            assert!(error.contains(words) && !error.contains("hunter2"), "{text}: {error}");
        }
    }
}
