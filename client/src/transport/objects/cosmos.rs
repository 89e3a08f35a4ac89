//! The properties of an account of Cosmos DB that locks need.

use leasehold_wire::objects::Properties;

use super::Objects;
use crate::error::{Error, ErrorKind};

/// Looks at the account and the container.
///
/// # Errors
/// They could not be read, or locks cannot be kept there.
pub(super) fn check(store: &Objects) -> Result<Properties, Error> {
    let asked = store.ask(store.codec.account()).and_then(|answer| store.codec.properties(&answer));
    let properties = asked.map_err(|outcome| store.judged(outcome))?;
    if properties.has_several_write_regions {
        let message = format!(
            "{}: the account takes writes in several regions, of which the last one wins, so two clients could hold a \
             lock; use an account with one write region",
            store.url
        );
        return Err(Error::new(ErrorKind::StoreRefused, message));
    }
    let asked = store.ask(store.codec.container()).and_then(|answer| store.codec.check_container(&answer));
    asked.map_err(|outcome| store.judged(outcome))?;
    Ok(properties)
}
