//! What holds for all inputs, as far as random ones can tell.

mod clients;
mod counts;
mod margins;
mod store;
