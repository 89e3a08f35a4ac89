//! A quorum of three clouds, of which one is away.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_core::config::Wait;
use leasehold_core::member::{Durability, LossId, Marker, Phase, QuorumId};
use leasehold_core::{Config, Event, LockId, Monotonic, NodeConfig, Quorum};
use leasehold_wire::client::{
    Access, AccountKey, Credentials, HttpRequest, ObjectsService, ObjectsStore, Plaintext, Response, Store,
};

use super::common::{Host, aws, bearer, header, http};

const HOUR: Duration = Duration::from_secs(3_600);
const SERVICES: [ObjectsService; 3] = [ObjectsService::S3, ObjectsService::AzureBlob, ObjectsService::GcsXml];

/// Objects by their paths, each with its version.
struct Cloud {
    service: ObjectsService,
    objects: BTreeMap<String, (u64, String)>,
    writes: u64,
}

impl Cloud {
    /// One that is marked as a node.
    fn new(service: ObjectsService) -> Self {
        let phase = Phase::Member;
        let (quorum, stamp) = (QuorumId([1; 16]), LossId([3; 16]));
        let marker = Marker { quorum, max_ttl_ms: 60_000, stamp, phase, run: None }.text();
        let body = format!(r#"{{"quorum":"{marker}"}}"#);
        Self { service, objects: [("/locks/leasehold/quorum.json".to_owned(), (1, body))].into(), writes: 0 }
    }

    fn answer(&mut self, request: &HttpRequest) -> Response {
        let (_, path) = request.url.split_once("://").unwrap();
        let path = &path[path.find('/').unwrap()..];
        let is = self.objects.get(path).map_or(0, |(version, _)| *version);
        let shown = |version: u64| match self.service {
            ObjectsService::GcsXml => ("x-goog-generation", version.to_string()),
            _ => ("etag", format!("\"{version}\"")),
        };
        let (name, version) = shown(is);
        if request.method == "GET" {
            return match self.objects.get(path) {
                Some((_, body)) => http(200, &[(name, &version)], body),
                None => {
                    let code = [("x-ms-error-code", "BlobNotFound")];
                    http(404, &code, "<Error><Code>NoSuchKey</Code></Error>")
                }
            };
        }
        let holds = match self.service {
            ObjectsService::GcsXml => header(request, "x-goog-if-generation-match") == Some(is.to_string().as_str()),
            _ if is == 0 => header(request, "if-none-match") == Some("*"),
            _ => header(request, "if-match") == Some(version.as_str()),
        };
        if !holds {
            return http(412, &[], "<Error><Code>PreconditionFailed</Code></Error>");
        }
        let (name, version) = shown(is + 1);
        self.writes += 1;
        self.objects.insert(path.to_owned(), (is + 1, String::from_utf8(request.body.clone()).unwrap()));
        http(200, &[(name, &version)], "")
    }
}

/// Answers for all but one, which swallows its requests.
fn serve(host: &mut Host, clouds: &mut [Cloud], away: Option<usize>, until: Monotonic) {
    while host.now.monotonic < until {
        match host.http.pop_front() {
            Some(request) if away == Some(request.node.index()) => {}
            Some(request) => {
                let answer = clouds[request.node.index()].answer(&request);
                host.answer(request.id, answer);
            }
            None => host.sleep(),
        }
        let is_lost = host.events.iter().any(|event| matches!(event, Event::Lost { .. }));
        assert!(!is_lost, "{:?}", host.events);
    }
}

#[test]
fn a_cloud_that_is_away_for_an_hour_costs_no_lease_and_votes_again() {
    let quorum = Quorum::new(QuorumId([1; 16]), Duration::from_secs(60)).unwrap();
    let node = NodeConfig { durability: Durability::Declared, ..NodeConfig::default() };
    let config = Config::new(vec![node; 3]).unwrap().with_quorum(quorum);
    let store = |service| {
        let (url, region) = match service {
            ObjectsService::S3 => ("https://s3.eu-west-1.amazonaws.com", "eu-west-1"),
            ObjectsService::AzureBlob => ("https://acme.blob.core.windows.net", ""),
            _ => ("https://storage.googleapis.com", ""),
        };
        Store::Objects(ObjectsStore {
            service,
            url: url.into(),
            place: "locks".into(),
            prefix: "leasehold/".into(),
            region: region.into(),
            access: Access::WithCredentials,
            plaintext: Plaintext::Refused,
        })
    };
    let mut host = Host::with(1, config, SERVICES.map(store).to_vec());
    host.give(0, aws("AKID", None));
    host.give(1, Credentials::AccountKey(AccountKey { key: "aHVudGVyMg==".into() }));
    host.give(2, bearer("token"));
    let mut clouds = SERVICES.map(Cloud::new);
    let at = |host: &Host, time: Duration| host.now.monotonic.plus(time);

    host.acquire(1, Wait::Forever);
    let soon = at(&host, Duration::from_secs(5));
    serve(&mut host, &mut clouds, None, soon);
    assert!(host.token().is_some(), "{:?}", host.events);
    let before = clouds.each_ref().map(|cloud| cloud.writes);
    assert_eq!(before, [1; 3], "all three have granted");

    let later = at(&host, HOUR);
    serve(&mut host, &mut clouds, Some(1), later);
    let then = clouds.each_ref().map(|cloud| cloud.writes);
    assert!(then[0] > 300 && then[1] == before[1] && then[2] > 300, "{then:?}");

    // It is back, and so another may go.
    let later = at(&host, Duration::from_secs(60));
    serve(&mut host, &mut clouds, None, later);
    assert!(clouds[1].writes > then[1], "it was not asked again");
    let later = at(&host, HOUR);
    serve(&mut host, &mut clouds, Some(2), later);
    assert!(!host.client.remaining(LockId::new(1), host.now).is_zero());
}
