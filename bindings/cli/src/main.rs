//! leasehold
fn main() {}
