//! The tables of a PostgreSQL store: making them, and the SQL that makes them.
//!
//! ```no_run
//! let url = "postgres://owner:secret@db/prod";
//! leasehold::schema::create(url)?;
//! println!("{}", leasehold::schema::sql("postgres://app@db/prod")?); // for your migrations
//! # Ok::<(), leasehold::Error>(())
//! ```

use leasehold_wire::postgres::schema as wire;

use crate::error::Error;
use crate::stores::Stores;
use crate::transport::postgres::Postgres;
use crate::url::postgres::PostgresUrl;

/// Makes the tables that a single url names, and their schema, unless they are there, and brings those of an earlier version up
/// to date. Blocks.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) for a url of another store;
/// [`ErrorKind::StoreRefused`](crate::ErrorKind::StoreRefused) where this user may not;
/// [`ErrorKind::StoreUnavailable`](crate::ErrorKind::StoreUnavailable) where the server is not reached.
pub fn create(store: &(impl Stores + ?Sized)) -> Result<(), Error> {
    let url = parsed(store)?;
    Postgres::create(&url, &statements(&url), &wire::upgrade(&url.schema))
}

/// The statements of [`create`], and those that give the user of the url the rights to lock, as SQL to paste. Connects to
/// nothing.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) for a url of another store.
pub fn sql(store: &(impl Stores + ?Sized)) -> Result<String, Error> {
    let url = parsed(store)?;
    let grants = wire::grant(&url.schema, &url.user);
    let upgrade = [wire::upgrade(&url.schema)];
    Ok(statements(&url).iter().chain(&upgrade).chain(&grants).map(|statement| format!("{statement};\n")).collect())
}

fn statements(url: &PostgresUrl) -> Vec<String> {
    let schema = format!("CREATE SCHEMA IF NOT EXISTS {}", wire::quoted(&url.schema));
    let schema = (url.schema != "public").then_some(schema);
    schema.into_iter().chain(wire::create(&url.schema)).chain([wire::create_items(&url.schema)]).collect()
}

fn parsed(store: &(impl Stores + ?Sized)) -> Result<PostgresUrl, Error> {
    const FORM: &str = "write postgres://user:password@host/database";
    let urls = store.urls()?;
    let [url] = urls.as_slice() else {
        return Err(Error::config(format!(
            "{} stores are named, but a table is in one of them: name that one; {FORM}",
            urls.len()
        )));
    };
    let url = url.resolved()?;
    url.of().cloned().ok_or_else(|| Error::config(format!("{url} needs no table that SQL makes; {FORM}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sql_makes_the_table_and_grants_the_rights() {
        let text = sql("postgres://app@db/prod?schema=jobs").unwrap();
        let [schema, table, usage, rights] =
            ["CREATE SCHEMA IF NOT EXISTS \"jobs\";", "\"jobs\".\"leasehold\" (", "TO \"app\";", "DELETE ON \"jobs\""]
                .map(|words| text.find(words).unwrap_or_else(|| panic!("no {words} in {text}")));
        assert!(schema < table && table < usage && usage < rights);
        assert!(!sql("postgres://app@db/prod").unwrap().contains("CREATE SCHEMA"));
    }

    #[test]
    fn other_stores_have_no_such_table() {
        assert!(sql("memory:").unwrap_err().to_string().contains("postgres://user:password@host/database"));
        assert!(sql("postgres://a@b postgres://a@c").is_err());
    }
}
