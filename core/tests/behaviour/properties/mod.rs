//! Properties that hold for all inputs, tested with random ones.

mod clients;
mod counts;
mod margins;
mod store;
