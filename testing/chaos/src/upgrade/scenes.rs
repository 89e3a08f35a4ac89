//! The scenes: one version does something, and then the other.

use super::world::{Version, WORK, World, ended};
use crate::Result;

/// A scene, in which the first version begins.
type Scene = fn(&World, &Version, &Version) -> Result;

/// All of them, by name.
pub const SCENES: [(&str, Scene); 7] = [
    ("done", done),
    ("done again", done_again),
    ("forgotten", forgotten),
    ("contended", contended),
    ("taken over", taken_over),
    ("failed", failed),
    ("given up", given_up),
];

/// Longer than any ttl, and than a machine may need to start all of them.
const WAIT: [&str; 2] = ["--wait", "60s"];
/// Commands of each version that start at once.
const CONTENDERS: usize = 3;
/// Work that says that it has begun, and does not end by itself.
const ENDLESS: &str = r#"echo "$LEASEHOLD_RESOURCE by $0" >> "$1"; exec sleep 600"#;
const FAILING: &str = r#"echo "$LEASEHOLD_RESOURCE by $0" >> "$1"; exit 3"#;
/// The limit of attempts, which the older version does not know, and the status when it is reached.
const LIMIT: [&str; 2] = ["--max-attempts", "2"];
const GIVEN_UP: i32 = 79;

/// Work that one has done is done for the other.
fn done(world: &World, first: &Version, second: &Version) -> Result {
    let key = world.key("done");
    let output = world.does(first, &key, &[])?;
    world.is_done(&key, first, &output, [second, first])
}

/// A completion that the other version has replaced has no result, or its own.
fn done_again(world: &World, first: &Version, second: &Version) -> Result {
    let key = world.key("again");
    world.does(first, &key, &[])?;
    let output = world.does(second, &key, &["--even-if-done"])?;
    world.is_done(&key, second, &output, [first, second])
}

/// Work that one has forgotten both may do, and nothing of the former result is left.
fn forgotten(world: &World, first: &Version, second: &Version) -> Result {
    let key = world.key("forgotten");
    world.does(first, &key, &[])?;
    world.forget(second, &key)?;
    let output = world.does(second, &key, &[])?;
    world.is_done(&key, second, &output, [first, second])?;
    world.forget(first, &key)?;
    let output = world.does(first, &key, &[])?;
    world.is_done(&key, first, &output, [second, first])
}

/// Of several of both versions one does the work, and all wait for it.
fn contended(world: &World, first: &Version, second: &Version) -> Result {
    let key = world.key("contended");
    let slow = format!("sleep 0.2; {WORK}");
    let mut children = Vec::new();
    for _ in 0..CONTENDERS {
        for version in [first, second] {
            children.push((version, world.start(version, &key, &WAIT, &slow)?));
        }
    }
    let mut others = Vec::new();
    let mut worker = None;
    for (version, child) in children {
        let ended = ended(child)?;
        // One that has done the work may say that its result was not kept; all others are told that it is done.
        if ended.said_done() {
            others.push((version, ended.was_done()?.stdout));
            continue;
        }
        let ended = world.finished(version, ended)?;
        if let Some((_, other)) = worker.replace((version, ended.stdout)) {
            return Err(format!("two did the work: {other:?} and {worker:?}").into());
        }
    }
    let Some((version, output)) = worker else { return Err("nobody did the work".into()) };
    if world.works(&key)? != 1 {
        return Err(format!("{} did the work", world.works(&key)?).into());
    }
    for (other, told) in others {
        let expected = if world.keeps(version) && other.is_newer() { output.as_str() } else { "" };
        if told != expected {
            return Err(format!("{} was told {told:?}, not {expected:?}", other.name).into());
        }
    }
    world.is_done(&key, version, &output, [first, second])
}

/// The work of one that was killed is done by the other one, which has waited for it.
fn taken_over(world: &World, first: &Version, second: &Version) -> Result {
    let key = world.key("killed");
    let mut killed = world.start(first, &key, &[], ENDLESS)?;
    world.wait_for_works(&key, 1)?;
    killed.kill()?;
    let output = world.does(second, &key, &WAIT)?;
    killed.wait()?;
    world.is_done(&key, second, &output, [first, second])
}

/// Work that has failed is left to the other one.
fn failed(world: &World, first: &Version, second: &Version) -> Result {
    let key = world.key("failed");
    ended(world.start(first, &key, &[], FAILING)?)?.with(3)?;
    let output = world.does(second, &key, &[])?;
    world.is_done(&key, second, &output, [first, second])
}

/// Work that the newer version has given up the older one does, and then it is done for both.
fn given_up(world: &World, first: &Version, second: &Version) -> Result {
    let (older, newer) = if first.is_newer() { (second, first) } else { (first, second) };
    if !world.keeps(newer) {
        // Attempts are counted where results are kept.
        return Ok(());
    }
    let key = world.key("given-up");
    for _ in 0..2 {
        ended(world.start(newer, &key, &LIMIT, FAILING)?)?.with(3)?;
    }
    world.once(newer, &key, &LIMIT)?.with(GIVEN_UP)?;
    let output = world.does(older, &key, &[])?;
    world.once(newer, &key, &LIMIT)?.was_done()?;
    world.is_done(&key, older, &output, [newer, older])
}
