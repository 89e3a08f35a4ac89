//! Real Redis Clusters.

use super::{Builder, Server};
use crate::resp::Reply;
use crate::wait_until;

/// The number of slots of a cluster.
const SLOTS: u16 = 16_384;
/// A node that is silent for so long has failed, in the eyes of the others.
const NODE_TIMEOUT_MS: &str = "1000";

/// A cluster of a test's own: masters that share the slots evenly, and replicas of the first of them.
///
/// # Panics
///
/// Every method panics where it cannot do what it says.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Server>,
    masters: usize,
}

impl Cluster {
    /// Starts `masters` of them with equal shares of the slots, and `replicas`: the first follows the first master, and
    /// so on around.
    #[track_caller]
    pub fn start(masters: usize, replicas: usize) -> Self {
        Self::start_with(masters, replicas, |_, builder| builder)
    }

    /// The same with options for each node, by index: masters come first. All must have the same credentials.
    #[track_caller]
    pub fn start_with(masters: usize, replicas: usize, options: impl Fn(usize, Builder) -> Builder) -> Self {
        let node = |place| {
            let builder = Server::builder()
                .arg("--cluster-enabled", "yes")
                .arg("--cluster-node-timeout", NODE_TIMEOUT_MS)
                // A replica that was cut off a moment ago may still be elected.
                .arg("--cluster-replica-validity-factor", "0");
            options(place, builder).start()
        };
        let cluster = Self { nodes: (0..masters + replicas).map(node).collect(), masters };
        cluster.share_slots();
        cluster.introduce();
        for place in 0..replicas {
            let id = cluster.nodes[place % masters].command(&["CLUSTER", "MYID"]).text();
            cluster.nodes[masters + place].must(&["CLUSTER", "REPLICATE", &id]);
        }
        cluster.wait_until_whole(replicas);
        cluster
    }

    fn share_slots(&self) {
        for (place, node) in self.nodes.iter().enumerate() {
            node.must(&["CLUSTER", "SET-CONFIG-EPOCH", &(place + 1).to_string()]);
            if place < self.masters {
                let slots: Vec<String> = (0..SLOTS)
                    .filter(|slot| usize::from(*slot) * self.masters / usize::from(SLOTS) == place)
                    .map(|slot| slot.to_string())
                    .collect();
                let words: Vec<&str> =
                    ["CLUSTER", "ADDSLOTS"].into_iter().chain(slots.iter().map(String::as_str)).collect();
                node.must(&words);
            }
        }
    }

    fn introduce(&self) {
        for node in &self.nodes[1..] {
            node.must(&["CLUSTER", "MEET", "127.0.0.1", &self.nodes[0].port().to_string()]);
        }
        wait_until("all nodes know each other", || {
            let known = |node: &Server| node.command(&["CLUSTER", "NODES"]).text().lines().count();
            self.nodes.iter().all(|node| known(node) == self.nodes.len() && !node.nodes_text().contains("handshake"))
        });
    }

    fn wait_until_whole(&self, replicas: usize) {
        wait_until("every node sees the whole cluster", || {
            self.nodes.iter().all(|node| {
                let is_ok = node.command(&["CLUSTER", "INFO"]).text().contains("cluster_state:ok");
                let ranges = node.command(&["CLUSTER", "SLOTS"]);
                let Reply::Array(ranges) = ranges else { return false };
                let copies: usize = ranges.iter().map(|range| range.array().len().saturating_sub(3)).sum();
                is_ok && ranges.len() == self.masters && copies == replicas
            })
        });
        for node in &self.nodes[self.masters..] {
            wait_until("the replica is connected", || node.info("master_link_status").as_deref() == Some("up"));
        }
    }

    /// All nodes, the masters of the beginning first.
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// The url for clients, naming every node: `redis+cluster://127.0.0.1:port,...`.
    pub fn url(&self) -> String {
        let hosts: Vec<String> = self.nodes.iter().map(|node| node.address().to_string()).collect();
        format!("redis+cluster://{}{}", self.nodes[0].options.userinfo(), hosts.join(","))
    }

    /// The slot of a key, as a node computes it.
    #[track_caller]
    pub fn slot(&self, key: &str) -> u16 {
        let slot = self.alive().command(&["CLUSTER", "KEYSLOT", key]).integer();
        u16::try_from(slot).unwrap_or_else(|_| panic!("no slot: {slot}"))
    }

    /// The master of a key, in the eyes of a node that runs.
    #[track_caller]
    pub fn master_of(&self, key: &str) -> &Server {
        let slot = i64::from(self.slot(key));
        let ranges = self.alive().command(&["CLUSTER", "SLOTS"]);
        let range = ranges.array().iter().find(|range| {
            let parts = range.array();
            parts[0].integer() <= slot && slot <= parts[1].integer()
        });
        let port = range.map(|range| range.array()[2].array()[1].integer());
        let node = self.nodes.iter().find(|node| Some(i64::from(node.port())) == port);
        node.unwrap_or_else(|| panic!("nobody serves the slot {slot}"))
    }

    /// Opens the slot of a key on both sides, as the first step of moving it from its master to another one.
    #[track_caller]
    pub fn begin_move(&self, key: &str, to: &Server) {
        let (from, slot) = (self.master_of(key), self.slot(key).to_string());
        to.must(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from.command(&["CLUSTER", "MYID"]).text()]);
        from.must(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to.command(&["CLUSTER", "MYID"]).text()]);
    }

    /// Moves what there is in the slot of a key, in one piece.
    #[track_caller]
    pub fn move_keys(&self, key: &str, to: &Server) {
        let (from, slot) = (self.master_of(key), self.slot(key).to_string());
        let keys = from.command(&["CLUSTER", "GETKEYSINSLOT", &slot, "100"]);
        let keys: Vec<String> = keys.array().iter().map(Reply::text).collect();
        let port = to.port().to_string();
        let words = ["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
        let words: Vec<&str> = words.into_iter().chain(keys.iter().map(String::as_str)).collect();
        from.must(&words);
    }

    /// Gives the slot of a key to its new master for good.
    #[track_caller]
    pub fn end_move(&self, key: &str, to: &Server) {
        let (from, slot) = (self.master_of(key), self.slot(key).to_string());
        let id = to.command(&["CLUSTER", "MYID"]).text();
        to.must(&["CLUSTER", "SETSLOT", &slot, "NODE", &id]);
        from.must(&["CLUSTER", "SETSLOT", &slot, "NODE", &id]);
    }

    fn alive(&self) -> &Server {
        self.nodes.iter().find(|node| node.is_running()).unwrap_or_else(|| panic!("no node runs"))
    }
}

impl Server {
    /// A command that must succeed.
    #[track_caller]
    pub fn must(&self, words: &[&str]) -> Reply {
        let reply = self.command(words);
        assert!(!reply.is_error(), "{words:?}: {reply:?}");
        reply
    }

    fn nodes_text(&self) -> String {
        self.command(&["CLUSTER", "NODES"]).text()
    }
}
