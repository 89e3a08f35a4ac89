//! Keys for servers with the APIs of cloud storage.

use std::sync::Once;

use leasehold_servers::objects::{AZURE_KEY, COSMOS_KEY};

/// Keys of this process, which those servers take.
pub(crate) fn set_keys() {
    static KEYS: Once = Once::new();
    super::on_dynamodb::set_keys();
    KEYS.call_once(|| {
        // SAFETY: nothing that a test does before its first server reads the environment past Rust's lock.
        unsafe {
            std::env::set_var("AZURE_STORAGE_KEY", AZURE_KEY);
            std::env::set_var("AZURE_COSMOS_KEY", COSMOS_KEY);
        }
    });
}
