//! Judges replicas: a promoted replica lacks the last locks, and a master that lost contact to its replicas goes on
//! granting.

use super::Part;
use super::server::ServerAnswers;
use crate::admin::checks::redis as check;
use crate::admin::doctor::Finding;
use crate::transport::info::printable;

const FENCE: &str = "set min-replicas-to-write 1 and min-replicas-max-lag 10 or less on every server that can be the \
                     master, or give a node of a quorum no replicas; a server that comes back after a failover must \
                     start empty";

impl ServerAnswers {
    pub(super) fn replicas(&self, wanted: Option<u32>, part: Part) -> Finding {
        let Some(connected) = self.durability.replicas() else {
            return check::REPLICAS.warns(
                format!("cannot be seen: {}", self.durability.unseen()),
                match part {
                    Part::Alone => {
                        "if a replica can take over, put wait_replicas into the store url; with +info this user can \
                         see them"
                    }
                    Part::Node => FENCE,
                },
            );
        };
        let enough = match &self.min_replicas {
            Ok(count) => format!("; min-replicas-to-write is {}", printable(count)),
            Err(_) => String::new(),
        };
        match wanted.map(u64::from) {
            Some(wanted) if wanted > connected => check::REPLICAS.fails(
                format!("wait_replicas is {wanted}, and {connected} are connected{enough}: no lock is granted"),
                "connect more replicas, or lower wait_replicas in the store url",
            ),
            _ if connected > 0 && part == Part::Node => self.fenced(connected),
            Some(wanted) if wanted == connected => check::REPLICAS
                .passes(format!("{connected} connected, and a lock counts only once all of them have it{enough}")),
            Some(wanted) => check::REPLICAS.passes(format!(
                "{connected} connected, and a lock counts only once {wanted} of them have it{enough}; a failover loses \
                 it only if it promotes another replica"
            )),
            None if connected == 0 => {
                check::REPLICAS.passes("none connected, so no replica without the locks can take over")
            }
            None => check::REPLICAS.warns(
                format!(
                    "{connected} connected, asynchronously{enough}: after a failover a lock that was granted may be \
                     missing, and can be granted again"
                ),
                format!(
                    "put wait_replicas={connected} into the store url; with min-replicas-to-write, a master that lost \
                     its replicas grants nothing"
                ),
            ),
        }
    }

    /// Checks if a node of a quorum with replicas stops when it loses contact to them. Otherwise it goes on as the same
    /// run with the same marker, while a promoted replica begins to vote as well.
    fn fenced(&self, connected: u64) -> Finding {
        let both = "if it loses contact to its replicas and one of them is promoted, both servers could vote, for \
                    different holders of one lock";
        match (number(&self.min_replicas), number(&self.max_lag)) {
            (Err(why), _) | (_, Err(why)) => check::REPLICAS.warns(
                format!(
                    "{connected} connected; whether min-replicas-to-write and min-replicas-max-lag stop a master \
                     cannot be seen: {}. Without them, {both}",
                    printable(why)
                ),
                FENCE,
            ),
            (Ok(0), Ok(_)) => {
                check::REPLICAS.fails(format!("{connected} connected, and min-replicas-to-write is 0: {both}"), FENCE)
            }
            (Ok(_), Ok(0)) => check::REPLICAS.fails(
                format!(
                    "{connected} connected, and min-replicas-max-lag is 0, so no replica ever counts as missing: {both}"
                ),
                FENCE,
            ),
            (Ok(count), Ok(lag)) => check::REPLICAS.passes(format!(
                "{connected} connected; without {count} of them it stops within {lag} s (min-replicas-to-write). \
                     After a failover the former master must start empty"
            )),
        }
    }
}

/// A value that is not a number counts as 0.
fn number(setting: &Result<String, String>) -> Result<u64, &str> {
    setting.as_ref().map(|text| text.parse().unwrap_or(0)).map_err(String::as_str)
}
