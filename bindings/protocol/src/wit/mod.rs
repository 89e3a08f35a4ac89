//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.

pub mod types;
pub mod ops;
pub mod stores;
pub mod redis;
pub mod client;
pub mod runs;
pub mod fence;
