//! Guards for the protected resource as text for each store; [`leasehold_core::fence::Guard`] has their rules.

pub mod cosmos;
pub mod dynamodb;
pub mod objects;
pub mod redis;
