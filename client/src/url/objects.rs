//! `s3://BUCKET`, `azblob://ACCOUNT/CONTAINER`, `gs://BUCKET`, `cosmos://ACCOUNT/DATABASE/CONTAINER`: objects in a cloud's
//! storage service.
//!
//! The url has no keys: they come from where the tools of each cloud keep them.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use leasehold_core::member::Durability;
use leasehold_wire::objects::Service;

use super::parameters::{Parameters, Plaintext};
use super::place::{Draft, Place};
use super::reach::Exposure;
use super::reach::{endpoint as read_endpoint, host_of};
use super::{Said, azure};
use crate::aws::profiles::Profiles;
use crate::aws::region::{self, Variant};
use crate::aws::{EnvVars, endpoint};

/// A bucket or container: its address, and the prefix of the objects in it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ObjectsUrl {
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
    pub(crate) reach: Exposure,
    /// The url or the environment names the endpoint.
    pub(crate) is_named: bool,
    pub(crate) durability: Durability,
    /// PEM file with certificates that are trusted instead of those of the operating system.
    pub(crate) ca: Option<PathBuf>,
}

const PREFIX: &str = "leasehold/";
/// A service that may be called durable.
const DURABLE: &str = "an endpoint that loses nothing in a restart";

const NO_KEYS: &str = "keys come from the environment, never from the url";

/// The url as it is written, with what it leaves open.
#[derive(PartialEq)]
struct Written {
    service: Service,
    /// The names that come before the prefix.
    parts: Vec<String>,
    prefix: String,
    region: Option<String>,
    profile: Option<String>,
    variant: Variant,
    endpoint: Option<String>,
    plaintext: Plaintext,
    durability: Option<Durability>,
    ca: Option<PathBuf>,
}

pub(super) fn parse(text: &str) -> Result<Said, String> {
    Written::parse(text).map(|draft| Said::open(text, draft))
}

impl Written {
    fn parse(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once(':').unwrap_or((text, ""));
        let (service, names, form) = match scheme {
            "s3" => (Service::S3, 1, "write s3://BUCKET?region=eu-west-1, or s3://BUCKET/PREFIX"),
            "azblob" => {
                (Service::AzureBlob, 2, "write azblob://ACCOUNT/CONTAINER, or azblob://ACCOUNT/CONTAINER/PREFIX")
            }
            "cosmos" => (Service::CosmosDb, 3, "write cosmos://ACCOUNT/DATABASE/CONTAINER, or with /PREFIX"),
            _ => (Service::Gcs, 1, "write gs://BUCKET, or gs://BUCKET/PREFIX"),
        };
        let rest = rest.strip_prefix("//").ok_or_else(|| format!("the slashes are missing; {form}"))?;
        if rest.contains(['#', '@', '\\', '%']) {
            return Err(format!("the url must not contain keys, nor a name with # @ \\ %; {form}"));
        }
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut given = Parameters::of(query)?;
        if service != Service::S3 {
            for name in ["region", "profile", "fips", "dualstack"] {
                given.refuse(&[name], &format!("{name} is for s3:// only"))?;
            }
        }
        let (ca, dualstack) = (given.file("ca")?, given.switch("dualstack")?);
        let durability = given.durability(DURABLE)?;
        let endpoint = given.text("endpoint")?;
        let variant = Variant::of(given.switch("fips")?, dualstack);
        let plaintext = given.plaintext()?;
        let (profile, region) = (given.text("profile")?, given.text("region")?);
        given.finish(&format!(", and {NO_KEYS}"))?;
        let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
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
        Ok(Self { service, parts, prefix, region, profile, variant, endpoint, plaintext, durability, ca })
    }

    /// Takes what is left open (region, endpoint) from the environment and the profile.
    fn resolved(&self, env: &EnvVars) -> Result<ObjectsUrl, String> {
        // Read once, and only if they are needed.
        let mut files: Option<Profiles> = None;
        if let Some(name) = &self.profile {
            Profiles::opened(&mut files, env)?.expect(name)?;
        }
        let (named, profile) = (self.region.as_deref(), self.profile.as_deref());
        let region = match self.service {
            Service::S3 => region::chosen(named, profile, env, &mut files, "write ?region=eu-west-1")?,
            Service::AzureBlob | Service::Gcs | Service::CosmosDb => String::new(),
        };
        let (base, root, reach, is_named) = match self.address(&region, env, &mut files)? {
            Address::Named { text, said } => {
                let (base, root, reach) = self.at_endpoint(&text, &said)?;
                (base, root, reach, true)
            }
            Address::InTheCloud(host) => {
                let (base, root) = self.in_the_cloud(&host);
                (base, root, Exposure::Tls, false)
            }
        };
        reach.check(self.ca.is_some(), self.plaintext)?;
        Ok(ObjectsUrl {
            service: self.service,
            place: self.parts.join("/"),
            prefix: self.prefix.clone(),
            region,
            profile: self.profile.clone(),
            base,
            root,
            reach,
            is_named,
            durability: self.durability.unwrap_or(reach.usual_durability()),
            ca: self.ca.clone(),
        })
    }

    fn address(&self, region: &str, env: &EnvVars, files: &mut Option<Profiles>) -> Result<Address, String> {
        let service = self.service;
        if service == Service::S3 {
            let wanted = endpoint::Given {
                service: region::Service::S3,
                region,
                endpoint: self.endpoint.as_deref(),
                variant: self.variant,
                profile: self.profile.as_deref(),
            };
            return Ok(match endpoint::find(&wanted, env, files)? {
                endpoint::Endpoint::Named { text, place } => Address::Named { text, said: place },
                endpoint::Endpoint::OfRegion { host } => Address::InTheCloud(host),
            });
        }
        if let Some(text) = &self.endpoint {
            return Ok(Address::Named { text: text.clone(), said: "endpoint".to_owned() });
        }
        let account = self.parts.first().map_or("", String::as_str);
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
            Some((text, _)) if without_usual_port(&text) == format!("https://{host}") => Address::InTheCloud(host),
            Some((text, said)) => Address::Named { text, said: said.to_owned() },
            None => Address::InTheCloud(host),
        })
    }

    /// The bucket, or the container.
    fn name(&self) -> &str {
        self.parts.last().map_or("", String::as_str)
    }

    fn in_the_cloud(&self, host: &str) -> (String, String) {
        let name = self.name();
        let base = format!("https://{host}");
        match self.service {
            // The certificate covers one label.
            Service::S3 if !name.contains('.') => (format!("https://{name}.{host}"), String::new()),
            Service::S3 | Service::AzureBlob => (base, format!("/{name}")),
            Service::Gcs => (base, name.to_owned()),
            Service::CosmosDb => (base, container_of(&self.parts)),
        }
    }

    fn at_endpoint(&self, text: &str, said: &str) -> Result<(String, String, Exposure), String> {
        let (url, reach) = {
            let may_have_path = self.service == Service::AzureBlob;
            read_endpoint(text, said, may_have_path, self.plaintext, NO_KEYS)?
        };
        let path = url.path().trim_end_matches('/');
        let root = match self.service {
            Service::S3 | Service::AzureBlob => format!("{path}/{}", self.name()),
            Service::Gcs => self.name().to_owned(),
            Service::CosmosDb => container_of(&self.parts),
        };
        let base = url.as_str().trim_end_matches('/');
        Ok((base.strip_suffix(path).unwrap_or(base).to_owned(), root, reach))
    }
}

impl Draft for Written {
    fn resolve(&self, env: &EnvVars) -> Result<Arc<dyn Place>, String> {
        Ok(Arc::new(self.resolved(env)?))
    }
}

impl ObjectsUrl {
    pub(crate) fn host(&self) -> Option<String> {
        host_of(&self.base)
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
enum Address {
    /// A text that somebody wrote, and where it stands.
    Named { text: String, said: String },
    /// The host of the service itself.
    InTheCloud(String),
}

fn without_usual_port(endpoint: &str) -> &str {
    let endpoint = endpoint.trim_end_matches('/');
    endpoint.strip_suffix(":443").unwrap_or(endpoint)
}

fn container_of(parts: &[String]) -> String {
    let name = |at: usize| parts.get(at).map_or("", String::as_str);
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
        if self.reach == Exposure::Plaintext { f.write_str("&plaintext=allow") } else { Ok(()) }
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
        Written::parse(text)?.resolved(&env)
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
            ("http://[::1]:9", Exposure::Loopback, "eu-west-1")
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
            ("s3://key:hunter2@locks?region=eu-west-1", "must not contain keys"),
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
