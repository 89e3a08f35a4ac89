//! The endpoint of an account of Azure: what its connection string says, and its cloud.

use std::net::IpAddr;

use leasehold_wire::objects::Service;

use crate::aws::EnvVars;

/// The account of the emulator, and its key, which everybody knows.
pub(crate) const EMULATOR: (&str, &str) =
    ("devstoreaccount1", "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==");

/// The variables with connection strings for Blob Storage, and for Cosmos DB.
pub(crate) const OF_BLOBS: [&str; 2] = ["AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGEBLOB_CONNECTIONSTRING"];
pub(crate) const OF_COSMOS: [&str; 2] = ["AZURE_COSMOS_CONNECTION_STRING", "COSMOS_CONNECTION_STRING"];

/// Sovereign clouds: the host of their logins, and the suffixes of Blob Storage and of Cosmos DB.
const CLOUDS: [(&str, &str, &str); 3] = [
    ("login.chinacloudapi.cn", "blob.core.chinacloudapi.cn", "documents.azure.cn"),
    ("login.partner.microsoftonline.cn", "blob.core.chinacloudapi.cn", "documents.azure.cn"),
    ("login.microsoftonline.us", "blob.core.usgovcloudapi.net", "documents.azure.us"),
];

/// A connection string: names and values.
#[derive(Clone, Copy)]
pub(crate) struct ConnectionString<'a>(pub(crate) &'a str);

impl<'a> ConnectionString<'a> {
    pub(crate) fn part(self, name: &str) -> Option<&'a str> {
        let mut pairs = self.0.split(';').filter_map(|pair| pair.trim().split_once('='));
        let found = pairs.find(|(known, _)| known.trim().eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    pub(crate) fn is_of_emulator(self) -> bool {
        self.part("UseDevelopmentStorage").is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// The account that it is for.
    pub(crate) fn account(self) -> Option<&'a str> {
        if self.is_of_emulator() {
            return Some(EMULATOR.0);
        }
        let of_endpoint = |endpoint: &'a str| {
            let (_, rest) = endpoint.split_once("://").unwrap_or(("", endpoint));
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
            let is_local = name == "localhost" || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
            let account = if is_local { path.split('/').next() } else { host.split(['.', ':']).next() };
            account.filter(|account| !account.is_empty())
        };
        let named = || self.part("AccountEndpoint").or_else(|| self.part("BlobEndpoint"));
        self.part("AccountName").or_else(|| named().and_then(of_endpoint))
    }

    /// The endpoint that it names.
    fn endpoint(self, service: Service) -> Option<String> {
        if service == Service::CosmosDb {
            return self.part("AccountEndpoint").map(str::to_owned);
        }
        if let Some(endpoint) = self.part("BlobEndpoint") {
            return Some(endpoint.to_owned());
        }
        if self.is_of_emulator() {
            let machine = self.part("DevelopmentStorageProxyUri").unwrap_or("http://127.0.0.1");
            return Some(format!("{}:10000/{}", machine.trim_end_matches('/'), EMULATOR.0));
        }
        let (suffix, account) = (self.part("EndpointSuffix")?, self.account()?);
        let scheme = self.part("DefaultEndpointsProtocol").unwrap_or("https");
        Some(format!("{scheme}://{account}.blob.{suffix}"))
    }
}

/// The endpoint of an account, and the variable that leads to it: what a connection string for it says, or that of the
/// cloud where it logs in.
pub(super) fn endpoint(service: Service, account: &str, env: &EnvVars) -> Option<(String, &'static str)> {
    let strings = if service == Service::CosmosDb { OF_COSMOS } else { OF_BLOBS };
    let said = strings.into_iter().find_map(|name| {
        let text = env.variable(name)?;
        let string = ConnectionString(&text);
        (string.account() == Some(account)).then(|| string.endpoint(service)).flatten().map(|found| (found, name))
    });
    said.or_else(|| {
        const LOGIN: &str = "AZURE_AUTHORITY_HOST";
        let login = env.variable(LOGIN)?;
        let (_, blobs, cosmos) = CLOUDS.into_iter().find(|(host, ..)| login.contains(host))?;
        let suffix = if service == Service::CosmosDb { cosmos } else { blobs };
        Some((format!("https://{account}.{suffix}"), LOGIN))
    })
}

/// The resource for which tokens of a Cosmos DB are made: its host in its cloud, also where requests go elsewhere.
pub(crate) fn cosmos_resource(account: &str, host: &str) -> String {
    let suffix = CLOUDS.into_iter().map(|(.., cosmos)| cosmos).find(|suffix| host.ends_with(suffix));
    format!("https://{account}.{}", suffix.unwrap_or("documents.azure.com"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(service: Service, account: &str, variables: &'static [(&str, &str)]) -> Option<String> {
        let env = EnvVars::new(move |name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        });
        endpoint(service, account, &env).map(|(endpoint, _)| endpoint)
    }

    #[test]
    fn endpoints_of_connection_strings_and_clouds_are_used() {
        use Service::{AzureBlob, CosmosDb};
        const STRING: &str = OF_BLOBS[0];
        const COSMOS: &str = OF_COSMOS[0];
        const LOGIN: &str = "AZURE_AUTHORITY_HOST";
        type Case = (Service, &'static str, &'static [(&'static str, &'static str)], Option<&'static str>);
        let cases: [Case; 14] = [
            (AzureBlob, "acme", &[], None),
            (AzureBlob, "acme", &[(STRING, "AccountName=acme;AccountKey=QUJD")], None),
            (
                AzureBlob,
                "acme",
                &[(STRING, "DefaultEndpointsProtocol=https;AccountName=acme;EndpointSuffix=core.chinacloudapi.cn")],
                Some("https://acme.blob.core.chinacloudapi.cn"),
            ),
            (
                AzureBlob,
                "acme",
                &[(STRING, "DefaultEndpointsProtocol=http;AccountName=acme;EndpointSuffix=stack.local")],
                Some("http://acme.blob.stack.local"),
            ),
            (AzureBlob, "other", &[(STRING, "AccountName=acme;EndpointSuffix=core.chinacloudapi.cn")], None),
            (
                AzureBlob,
                "acme",
                &[(STRING, "AccountName=acme;BlobEndpoint=https://blobs.example/;EndpointSuffix=x")],
                Some("https://blobs.example/"),
            ),
            (
                AzureBlob,
                "acme",
                &[(OF_BLOBS[1], "BlobEndpoint=https://acme.blob.core.usgovcloudapi.net;SharedAccessSignature=x")],
                Some("https://acme.blob.core.usgovcloudapi.net"),
            ),
            (
                AzureBlob,
                "devstoreaccount1",
                &[(STRING, "BlobEndpoint=http://127.0.0.1:7/devstoreaccount1;SharedAccessSignature=x")],
                Some("http://127.0.0.1:7/devstoreaccount1"),
            ),
            (
                AzureBlob,
                "devstoreaccount1",
                &[(STRING, "UseDevelopmentStorage=true")],
                Some("http://127.0.0.1:10000/devstoreaccount1"),
            ),
            (
                AzureBlob,
                "devstoreaccount1",
                &[(STRING, "usedevelopmentstorage=TRUE;DevelopmentStorageProxyUri=http://azurite/")],
                Some("http://azurite:10000/devstoreaccount1"),
            ),
            (AzureBlob, "acme", &[(STRING, "UseDevelopmentStorage=true")], None),
            (
                CosmosDb,
                "acme",
                &[(COSMOS, "AccountEndpoint=https://acme.documents.azure.us:443/;AccountKey=QUJD")],
                Some("https://acme.documents.azure.us:443/"),
            ),
            (CosmosDb, "acme", &[(LOGIN, "https://login.chinacloudapi.cn/")], Some("https://acme.documents.azure.cn")),
            (
                AzureBlob,
                "acme",
                &[(LOGIN, "https://login.microsoftonline.us")],
                Some("https://acme.blob.core.usgovcloudapi.net"),
            ),
        ];
        for (service, account, variables, expected) in cases {
            assert_eq!(found(service, account, variables).as_deref(), expected, "{variables:?}");
        }
    }

    #[test]
    fn tokens_are_for_the_host_in_its_cloud() {
        for (host, resource) in [
            ("acme.documents.azure.com", "https://acme.documents.azure.com"),
            ("acme.documents.azure.cn", "https://acme.documents.azure.cn"),
            ("127.0.0.1", "https://acme.documents.azure.com"),
        ] {
            assert_eq!(cosmos_resource("acme", host), resource);
        }
    }
}
