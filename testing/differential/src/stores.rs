//! The stores: real ones behind the client's own transports, and the simulator's models.

pub mod models;
pub mod real;
pub mod rows;
