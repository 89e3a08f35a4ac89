//! Two versions of the command that share a store: an older one, from before runs had results, and the present one.
//!
//! On each kind of store, made by either version, both do runs that the other one sees, replaces, forgets and takes over. What holds
//! between them: work that one has done the other does not do again, and a result is missing, never a different one.

mod scenes;
mod world;

use std::path::{Path, PathBuf};

use crate::Result;
use crate::chaos::environment::StoreKind;
use scenes::SCENES;
use world::{Version, World};

/// The stores where no other is named: one of each kind of record.
pub const STORES: [StoreKind; 7] = [
    StoreKind::Sqlite,
    StoreKind::Redis,
    StoreKind::Postgres,
    StoreKind::Dynamodb,
    StoreKind::Etcd,
    StoreKind::Azure,
    StoreKind::Quorum,
];

/// Plays all scenes on each store, in both directions, and prints how many runs there were.
///
/// # Errors
/// When work was done again, not done, or had another result.
pub fn show(stores: &[StoreKind], older: PathBuf, newer: PathBuf, folder: &Path) -> Result {
    let [older, newer] = [("older", older), ("newer", newer)].map(|(name, program)| Version { name, program });
    println!("An older version and the present one do runs on the same store.\n");
    println!("| store | made by | runs | done | results | without a result |\n|---|---|{}", "---:|".repeat(4));
    let mut broken = Vec::new();
    for store in stores {
        for maker in [&older, &newer] {
            let folder = folder.join(format!("{}-{}", store.name(), maker.name));
            match play(*store, maker, [&older, &newer], &folder) {
                Ok(row) => println!("| {} | {} | {row} |", store.name(), maker.name),
                Err(why) => broken.push(format!("{}, made by the {} version: {why}", store.name(), maker.name)),
            }
        }
    }
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n       ").into()) }
}

/// Answers the row of the table.
fn play(store: StoreKind, maker: &Version, [older, newer]: [&Version; 2], folder: &Path) -> Result<String> {
    std::fs::create_dir_all(folder)?;
    // The table that the older version makes has no place for results.
    let has_place = store != StoreKind::Postgres || maker.is_newer();
    let mut world = World::make(store, maker, has_place, folder)?;
    play_scenes(&world, older, newer)?;
    if !has_place {
        world.upgrade(newer)?;
        play_scenes(&world, older, newer)?;
    }
    world.look_at_all(older, newer)?;
    Ok(world.row())
}

fn play_scenes(world: &World, older: &Version, newer: &Version) -> Result {
    for (name, scene) in SCENES {
        for (first, second) in [(older, newer), (newer, older)] {
            scene(world, first, second).map_err(|why| format!("{name}, first by the {}: {why}", first.name))?;
        }
    }
    Ok(())
}
