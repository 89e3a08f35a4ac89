//! Empty: `Cargo.toml` says what for.
