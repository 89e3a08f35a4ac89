//! Every store and every model, each against the reference. See `docs/decisions/0040-one-reference.md`.

#![allow(clippy::print_stdout, reason = "figures, and scripts that fail")]

#[path = "differential/found.rs"]
mod found;
#[path = "differential/planted.rs"]
mod planted;

use leasehold::direct::Direct;
use leasehold_differential::allowed::table;
use leasehold_differential::measure::{measure, seeds};
use leasehold_differential::run::Side;
use leasehold_differential::script::Abilities;
use leasehold_differential::stores::models::Model;
use leasehold_differential::stores::real::Real;
use leasehold_differential::stores::rows::{Dynamodb, OutOfReach, Postgres, Redis, Sqlite};
use leasehold_servers::objects::{AZURE_KEY, Account, Api, COSMOS_KEY};
use leasehold_servers::{dynamodb, etcd, objects, postgres, redis, rest, webdis};
use leasehold_sim::store::Kind;

/// The first difference is shown as a script as short as it can be.
fn against_the_reference<'a>(few: u64, abilities: Abilities, new: impl Fn() -> Box<dyn Side + 'a>) {
    let measured = measure(&seeds(few), abilities, new).unwrap_or_else(|found| panic!("{}", found.text));
    print!("{}", measured.report());
    measured.note();
}

const NODE: Abilities = Abilities { quorum: true, queue: false, leaves: false, refuses_raises: false };
const LINE: Abilities = Abilities { queue: true, ..NODE };

#[test]
fn memory() {
    let next = std::sync::atomic::AtomicU64::new(0);
    against_the_reference(200, Abilities { leaves: true, ..LINE }, || {
        let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Box::new(Real::new("memory", &format!("memory:differential-{number}"), &OutOfReach, true))
    });
}

#[test]
fn sqlite() {
    let shm = std::path::Path::new("/dev/shm");
    let folder = if shm.is_dir() { tempfile::tempdir_in(shm) } else { tempfile::tempdir() }.expect("a folder");
    let path = folder.path().join("locks.db");
    let rows = Sqlite(path.clone());
    let url = format!("sqlite://{}", path.display());
    against_the_reference(20, LINE, || Box::new(Real::new("sqlite", &url, &rows, true)));
}

#[test]
fn model_memory() {
    against_the_reference(200, NODE, || Box::new(Model::new(Kind::Memory)));
}

#[test]
fn model_sqlite() {
    against_the_reference(200, Abilities::default(), || Box::new(Model::new(Kind::Sqlite)));
}

#[test]
fn model_redis() {
    against_the_reference(200, Abilities::default(), || Box::new(Model::new(Kind::Redis)));
}

#[test]
fn model_dynamodb() {
    // As a node of a quorum it writes first and undoes it then: `dynamodb_model` of the simulator compares that.
    against_the_reference(200, Abilities::default(), || Box::new(Model::new(Kind::Dynamodb)));
}

#[test]
fn redis() {
    let server = redis::Server::start();
    let rows = Redis(&server);
    against_the_reference(20, NODE, || Box::new(Real::new("redis", &server.url(), &rows, true)));
}

#[test]
fn webdis() {
    let redis = redis::Server::start();
    let (server, rows) = (webdis::Server::start(&redis), Redis(&redis));
    let url = format!("webdis+http://{}", server.address());
    against_the_reference(5, NODE, || Box::new(Real::new("webdis", &url, &rows, true)));
}

#[test]
fn upstash() {
    let redis = redis::Server::start();
    let (server, rows) = (rest::Server::start(&redis), Redis(&redis));
    let url = format!("upstash+http://:{}@{}", server.token(), server.address());
    against_the_reference(5, NODE, || Box::new(Real::new("upstash", &url, &rows, true)));
}

fn set_keys() {
    static KEYS: std::sync::Once = std::sync::Once::new();
    KEYS.call_once(|| {
        let keys = [
            ("AWS_ACCESS_KEY_ID", dynamodb::ACCESS_KEY_ID),
            ("AWS_SECRET_ACCESS_KEY", "hunter2"),
            ("AZURE_STORAGE_KEY", AZURE_KEY),
            ("AZURE_COSMOS_KEY", COSMOS_KEY),
        ];
        for (name, value) in keys {
            // SAFETY: nothing that a test does before its first server reads the environment past Rust's lock.
            unsafe { std::env::set_var(name, value) };
        }
    });
}

#[test]
fn dynamodb() {
    set_keys();
    let server = dynamodb::Server::shared();
    let table = dynamodb::table_name();
    let region = dynamodb::REGION;
    let url = format!("dynamodb://{table}?region={region}&endpoint={}&expires=ttl", server.endpoint());
    leasehold::table::create(&url, &leasehold::table::NewTable::default()).expect("a table can be made");
    let rows = Dynamodb { server: &server, table, expires: "ttl" };
    against_the_reference(10, Abilities::default(), || Box::new(Real::new("dynamodb", &url, &rows, false)));
}

fn on_postgres(run: impl FnOnce(&dyn Fn() -> Box<dyn Side>)) {
    let server = postgres::Server::shared();
    let schema = server.schema();
    let url = format!("{}?schema={}", server.url(), schema.name());
    leasehold::schema::create(&url).expect("a table can be made");
    server.insist_on_durability(schema.name());
    let rows: &'static _ = Box::leak(Box::new(Postgres {
        client: server.connect().into(),
        table: format!("{}.leasehold", schema.name()),
    }));
    run(&|| Box::new(Real::new("postgres", &url, rows, true)));
}

#[test]
fn postgres() {
    on_postgres(|new| against_the_reference(3, LINE, new));
}

#[test]
fn etcd() {
    let server = etcd::Server::start();
    let url = format!("{}?prefix=differential/", server.url());
    against_the_reference(10, NODE, || Box::new(Real::new("etcd", &url, &OutOfReach, true)));
}

fn on_objects(store: &'static str, api: Api, is_node: bool) {
    set_keys();
    let server = objects::Server::start(api);
    let url = server.url("differential");
    let abilities = Abilities { quorum: is_node, refuses_raises: !is_node, ..NODE };
    against_the_reference(4, abilities, || Box::new(Real::new(store, &url, &OutOfReach, is_node)));
}

#[test]
fn azure_blob() {
    on_objects("azure-blob", Api::AzureBlob, true);
}

#[test]
fn s3() {
    on_objects("s3", Api::S3, true);
}

#[test]
fn gcs() {
    on_objects("gcs", Api::Gcs, true);
}

#[test]
fn cosmos() {
    on_objects("cosmos", Api::Cosmos(Account::Session), false);
}

#[test]
fn the_table_can_be_read() {
    assert!(Direct::open("memory:").is_ok());
    for row in table() {
        assert!(!row.why.is_empty(), "{row:?} has no reason");
    }
}
