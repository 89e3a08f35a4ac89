//! Tries what only items of compare-and-set need.

use leasehold_core::Resource;
use leasehold_wire::redis::{Command, cas};

use super::Asker;
use super::lack::Lack;
use crate::admin::checks::redis as check;
use crate::admin::doctor::Finding;

/// Tells if items can be kept. What is written for that is removed again. Locks need none of it, so a missing right is no
/// fault.
pub(super) async fn examine(asker: &Asker, name: &Resource) -> Result<Finding, String> {
    let key = cas::key(name);
    let read = Command::new([&b"HMGET"[..], &key, b"version"]);
    let write = Command::new([&b"HSET"[..], &key, b"version", b"0"]);
    let replies = asker.all(&[read, write, Command::new([&b"DEL"[..], &key])]).await?;
    let named = ["hmget", "hset"].iter().zip(&replies);
    let mut rules: Vec<String> =
        named.filter_map(|(name, reply)| Some(Lack::of(reply)?.rule(name, "~{jobs/*"))).collect();
    rules.dedup();
    Ok(check::ITEMS.passes(match rules.is_empty() {
        true => "items of compare-and-set can be kept".to_owned(),
        false => format!("this user lacks {} for items of compare-and-set; locks do not need it", rules.join(" ")),
    }))
}
