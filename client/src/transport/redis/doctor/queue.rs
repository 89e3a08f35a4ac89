//! Tries what only waiters that stand in the queue need.

use leasehold_wire::redis::{ClientId, Command};
use leasehold_wire::resp::Value;

use super::Asker;
use super::lack::Lack;
use super::rights::grant;
use crate::admin::checks::redis as check;
use crate::admin::doctor::Finding;
use crate::url::redis::RedisUrl;

/// The commands that scripts run on a line. Each changes nothing where nobody waits.
const ON_QUEUES: [(&str, &[&[u8]]); 4] =
    [("zadd", &[b"XX", b"0", b"ticket"]), ("zrank", &[b"ticket"]), ("zrem", &[b"ticket"]), ("zpopmin", &[])];
/// `?` stands for the byte 0x1F, which an ACL file cannot have.
const CHANNELS_RULE: &str = "&leasehold?client?*";
/// Scripts ask for the listeners of one channel: a message also reaches those who listen to a pattern.
const COUNTS_RULE: &str = "+pubsub|numsub";
/// An example, as in other advice.
const KEYS_RULE: &str = "~{jobs/*";

/// Tells if waiters can stand in the queue `key`.
pub(super) async fn examine(asker: &Asker, url: &RedisUrl, key: &[u8], client: ClientId) -> Result<Finding, String> {
    let on_queue = |(name, rest): (&str, &[&[u8]])| Command::new([&[name.as_bytes(), key], rest].concat());
    let mut commands: Vec<Command> = ON_QUEUES.into_iter().map(on_queue).collect();
    let channel = client.channel();
    commands.push(Command::new([b"PUBLISH", channel.as_slice(), b""]));
    commands.push(Command::new([b"PUBSUB", b"NUMSUB", channel.as_slice()]));
    commands.push(Command::new([b"PUBSUB", b"NUMPAT"]));
    let replies = asker.all(&commands).await?;
    let counts_listeners = replies.get(ON_QUEUES.len() + 1).is_some_and(|reply| reply.as_error().is_none());
    let patterns = match replies.last() {
        Some(Value::Integer(count)) => *count,
        _ => 0,
    };
    let names = ON_QUEUES.iter().map(|(name, _)| (*name, KEYS_RULE)).chain([("publish", CHANNELS_RULE)]);
    let mut rules: Vec<String> =
        names.zip(&replies).filter_map(|((name, place), reply)| Some(Lack::of(reply)?.rule(name, place))).collect();
    rules.dedup();
    if rules.is_empty() && counts_listeners {
        return Ok(check::QUEUE.passes("waiters stand in the queue, and are served in their order"));
    }
    if rules.is_empty() {
        let seems = if patterns > 0 {
            format!(
                "all seem alive now, because a client listens to a pattern of channels (PUBSUB NUMPAT is {patterns})"
            )
        } else {
            "all seem alive while a client listens to a pattern of channels (PUBSUB NUMPAT is 0 now)".to_owned()
        };
        let what = format!(
            "the user lacks {COUNTS_RULE}: each dead waiter that seems alive delays the others by 500 ms; {seems}"
        );
        return Ok(check::QUEUE.fails(what, grant(url, COUNTS_RULE)));
    }
    if !counts_listeners {
        rules.push(COUNTS_RULE.to_owned());
    }
    let rules = rules.join(" ");
    let what = format!("the user lacks {rules}: a release wakes all waiters, all of them try, and there is no order");
    Ok(check::QUEUE.fails(what, grant(url, &rules)))
}
