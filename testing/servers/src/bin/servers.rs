//! One server for a test in another language: `leasehold-servers KIND [ARGUMENT]`.
//!
//! The first line of output is a JSON object that says where the server is. Each line of input is an order, `kill`,
//! `freeze`, `continue` or `restart`, and is answered with the same object as it is then. The server ends with the input.
//!
//! `cluster` is three masters and a replica of the first of them, `sentinel` a master and its replica under three Sentinels. Their
//! orders are `failover`: the first master is killed, and its replica has taken over; and `switch`: it lives on as a replica of that. To a
//! cluster, `move NAME` takes what the name has to another master, to which the old one redirects what comes, one by one until
//! `moved NAME`.

#![allow(clippy::print_stdout, reason = "what it prints is its answer")]

use std::io;

use leasehold_servers::{redis, webdis};
use serde_json::{Value, json};

/// Obeys an order if there is one, and says where the server is.
type Server = Box<dyn Fn(Option<&str>) -> Value>;

/// A server whose process is steered by orders, with what restarts it and what there is to say about it.
macro_rules! server {
    ($server:expr, $restart:expr, $facts:expr) => {{
        let server = $server;
        let (restart, facts) = ($restart, $facts);
        Box::new(move |order: Option<&str>| {
            match order {
                Some("kill") => server.kill(),
                Some("freeze") => server.stop_process(),
                Some("continue") => server.continue_process(),
                Some("restart") => restart(&server),
                Some(other) => panic!("`{other}` is none of kill, freeze, continue and restart"),
                None => {}
            }
            facts(&server)
        }) as Server
    }};
}

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let server = start(&words.iter().map(String::as_str).collect::<Vec<_>>());
    println!("{}", server(None));
    for order in io::stdin().lines() {
        println!("{}", server(Some(order?.trim())));
    }
    Ok(())
}

fn start(words: &[&str]) -> Server {
    match words {
        ["redis"] => server!(
            redis::Server::start(),
            |redis: &redis::Server| redis.restart(redis::Data::Lost),
            |redis: &redis::Server| {
                json!({"url": format!("redis://{}", redis.address()), "port": redis.port(), "pid": redis.pid()})
            }
        ),
        ["webdis", port] => server!(
            webdis::Server::in_front_of(port.parse().unwrap_or_else(|_| panic!("`{port}` is no port of a Redis"))),
            webdis::Server::restart,
            |webdis: &webdis::Server| {
                json!({"url": format!("webdis+http://{}", webdis.address()), "port": webdis.port(), "pid": webdis.pid()})
            }
        ),
        #[cfg(unix)]
        words => unix::start(words),
        #[cfg(not(unix))]
        words => panic!("{words:?}: there is `redis`, and `webdis` with the port of one"),
    }
}

#[cfg(unix)]
mod unix {
    use leasehold_servers::objects::{self, Account, Api};
    use leasehold_servers::redis::{Cluster, Watched};
    use leasehold_servers::{dynamodb, etcd, postgres, redis, wait_until};
    use serde_json::json;

    use super::Server;

    /// For servers that nobody restarts.
    fn stay<T>(_: &T) {
        panic!("this server cannot be restarted");
    }

    pub(super) fn start(words: &[&str]) -> Server {
        match words {
            ["etcd"] => of_etcd(etcd::Server::start(), ""),
            ["etcd", user, password] => {
                let server = etcd::Server::start();
                restrict(&server, user, password);
                of_etcd(server, &format!("{user}:{password}@"))
            }
            ["postgres"] => {
                server!(postgres::Server::start(), postgres::Server::restart, |server: &postgres::Server| {
                    json!({
                        "url": server.url(), "host": "127.0.0.1", "port": server.port(),
                        "user": "postgres", "database": "postgres",
                    })
                })
            }
            ["dynamodb"] => server!(dynamodb::Server::start(), stay, |server: &dynamodb::Server| {
                json!({"url": server.endpoint(), "port": server.port()})
            }),
            ["cluster"] => of_cluster(Cluster::start(3, 1)),
            ["sentinel"] => of_watched(Watched::start()),
            ["dynamodb", "table"] => of_table(dynamodb::Server::shared()),
            ["azure"] => of_objects(Api::AzureBlob, objects::AZURE_KEY),
            ["s3"] => of_objects(Api::S3, ""),
            ["gcs"] => of_objects(Api::Gcs, ""),
            ["cosmos"] => of_objects(Api::Cosmos(Account::Strong), objects::COSMOS_KEY),
            words => panic!("there is no server {words:?}"),
        }
    }

    /// From now on a client needs this login, with which it may do everything.
    fn restrict(server: &etcd::Server, user: &str, password: &str) {
        for (path, body) in [
            ("user/add", json!({"name": user, "password": password})),
            ("role/add", json!({"name": "root"})),
            ("user/grant", json!({"user": user, "role": "root"})),
            ("enable", json!({})),
        ] {
            let answer = server.post(&format!("/v3/auth/{path}"), &body.to_string());
            assert_eq!(answer.status, 200, "etcd refuses {path}: {}", answer.text());
        }
    }

    fn of_etcd(server: etcd::Server, login: &str) -> Server {
        let url = format!("etcd://{login}{}", server.address());
        server!(server, etcd::Server::restart, move |server: &etcd::Server| {
            json!({"url": url, "bare": server.url(), "port": server.address().port(), "pid": server.pid()})
        })
    }

    /// A table of its own, on the server that all programs of a run share if there is one.
    fn of_table(server: dynamodb::Server) -> Server {
        let table = dynamodb::table_name();
        let keys = json!({
            "TableName": table,
            "AttributeDefinitions": [{"AttributeName": "key", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "key", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
        });
        server.command("CreateTable", &keys);
        let url = format!("dynamodb://{table}?region={}&endpoint={}", dynamodb::REGION, server.endpoint());
        server!(server, stay, move |server: &dynamodb::Server| {
            json!({"url": url, "port": server.port(), "accessKeyId": dynamodb::ACCESS_KEY_ID})
        })
    }

    fn of_cluster(cluster: Cluster) -> Server {
        Box::new(move |order: Option<&str>| {
            match order.map(|order| order.split_once(' ').unwrap_or((order, ""))) {
                None => {}
                Some((how @ ("failover" | "switch"), "")) => {
                    let (master, replica) = (&cluster.nodes()[0], &cluster.nodes()[3]);
                    master.wait_replicas_in_sync(1);
                    if how == "failover" {
                        master.kill();
                        replica.must(&["CLUSTER", "FAILOVER", "TAKEOVER"]);
                    } else {
                        replica.must(&["CLUSTER", "FAILOVER"]);
                    }
                    wait_until("the replica serves", || replica.info("role").as_deref() == Some("master"));
                }
                Some(("move", name)) => {
                    let to = other(&cluster, name);
                    cluster.begin_move(name, to);
                    cluster.move_keys(name, to);
                }
                Some(("moved", name)) => cluster.end_move(name, other(&cluster, name)),
                Some(other) => panic!("{other:?} is none of failover, switch, move and moved"),
            }
            let ports: Vec<u16> = cluster.nodes().iter().map(redis::Server::port).collect();
            json!({"url": cluster.url(), "ports": ports})
        })
    }

    /// The master to which a name is moved: the first one that does not have it.
    fn other<'a>(cluster: &'a Cluster, name: &str) -> &'a redis::Server {
        let from = cluster.master_of(name).port();
        let [first, second, ..] = cluster.nodes() else { panic!("a cluster of one node") };
        if first.port() == from { second } else { first }
    }

    fn of_watched(watched: Watched) -> Server {
        Box::new(move |order: Option<&str>| {
            match order {
                None => {}
                Some("failover") => {
                    let [master, replica] = watched.servers();
                    master.wait_replicas_in_sync(1);
                    master.kill();
                    watched.wait_until_master(replica);
                }
                Some("switch") => {
                    watched.servers()[0].wait_replicas_in_sync(1);
                    watched.fail_over();
                }
                Some(other) => panic!("`{other}` is none of failover and switch"),
            }
            let servers: Vec<u16> = watched.servers().iter().map(redis::Server::port).collect();
            json!({"url": watched.url(), "ports": watched.ports(), "servers": servers})
        })
    }

    fn of_objects(api: Api, key: &'static str) -> Server {
        server!(objects::Server::start(api), stay, move |server: &objects::Server| {
            json!({"url": server.url("tests"), "port": server.address().port(), "pid": server.pid(), "key": key})
        })
    }
}
