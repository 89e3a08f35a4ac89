//! Which store a command speaks to.

use std::ffi::OsString;

use leasehold::StoreUrl;
use leasehold::blocking::Client;

use crate::output::Failure;

/// The url that was given, empty where none was: the client then asks the environment, or takes its default.
pub(crate) fn url(given: &[String]) -> Result<&str, Failure> {
    match given {
        [] => Ok(""),
        [url] if url.trim().is_empty() => {
            Err(Failure::usage("--store is empty; name a store, such as sqlite:locks.db, or leave --store out"))
        }
        [url] => Ok(url),
        [_, ..] => Err(Failure::usage(
            "--store was given more than once: several stores form a quorum, which this version does not offer yet; \
             name one store",
        )),
    }
}

/// Connects for a command that is about locks which others see too.
pub(crate) fn connect(url: &str) -> Result<Client, Failure> {
    let client = Client::connect(url)?;
    must_be_shared(client.store())?;
    Ok(client)
}

/// A lock that no other process can see would be worse than none.
pub(crate) fn must_be_shared(store: &StoreUrl) -> Result<(), Failure> {
    if matches!(store, StoreUrl::Memory { .. }) {
        return Err(Failure::usage(format!(
            "the store {store} lives and ends with one process, so it locks out nobody else; name a store that \
             others share, such as sqlite:locks.db"
        )));
    }
    Ok(())
}

/// The url as another process, in another folder, has to write it.
pub(crate) fn absolute(store: &StoreUrl) -> OsString {
    if let StoreUrl::Sqlite { path } = store
        && let Ok(path) = std::path::absolute(path)
    {
        let mut url = OsString::from("sqlite:");
        url.push(path);
        return url;
    }
    store.to_string().into()
}
