//! Parts shared by the demo, the benchmarks and the chaos tests.

pub mod args;
pub mod bare;
pub mod child;
pub mod database;
pub mod figures;
pub mod protected;
pub mod records;
pub mod rng;
pub mod stage;

/// The way this program was compiled, for figures that depend on it.
pub const fn build() -> &'static str {
    if cfg!(debug_assertions) { "not optimised, with debug assertions" } else { "optimised" }
}
