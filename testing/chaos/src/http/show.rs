//! The table of `cargo xtask chaos http`.

use std::path::Path;

use super::{Counts, Service, play};
use crate::Result;
use crate::chaos::environment::StoreKind;

const COLUMNS: [&str; 16] = [
    "store",
    "service",
    "killed",
    "stopped",
    "without an answer",
    "201",
    "replayed",
    "409",
    "422",
    "503",
    "500",
    "effects",
    "keys with several",
    "of these killed or stopped",
    "told 503",
    "marked",
];
/// The share of the requests that a service without the middleware gets.
const SHARE: u64 = 5;

/// Sends the requests to each service on each store, and prints what became of them.
///
/// # Errors
/// When a promise was broken, or a service without the middleware kept all of them.
pub fn show(stores: &[StoreKind], requests: u64, seed: u64, folder: &Path) -> Result {
    println!(
        "Twelve clients send {requests} requests to each service, five with each key; its two processes are killed and stopped; seed \
         {seed}.\n"
    );
    println!("| {} |\n|---|---|{}", COLUMNS.join(" | "), "---:|".repeat(COLUMNS.len() - 2));
    let mut broken = Vec::new();
    for store in stores {
        for service in Service::ALL {
            let folder = folder.join(format!("{}-{}", store.name(), service as usize));
            let counts = play(*store, service, true, requests, seed, &folder)?;
            println!("| {} | {} | {} |", store.name(), service.name(), numbers(&counts));
            let why = counts.broken().or_else(|| counts.blind());
            broken.extend(why.map(|why| format!("{} on {}: {why}", service.name(), store.name())));
        }
    }
    if let Some(store) = stores.first() {
        let service = Service::Both;
        let counts = play(*store, service, false, requests / SHARE, seed, &folder.join("without"))?;
        println!("| none | {}, without the middleware | {} |", service.name(), numbers(&counts));
        if counts.faults.is_empty() {
            broken.push("without the middleware nothing was done twice, so that this proves nothing".to_owned());
        }
    }
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n       ").into()) }
}

fn numbers(counts: &Counts) -> String {
    let numbers = [
        counts.kills,
        counts.stops,
        counts.cut,
        counts.first,
        counts.replayed,
        counts.busy,
        counts.refused,
        counts.uncertain,
        counts.failed,
        counts.effects,
        counts.twice,
        counts.struck,
        counts.late,
        counts.marked,
    ];
    numbers.map(|number| number.to_string()).join(" | ")
}
