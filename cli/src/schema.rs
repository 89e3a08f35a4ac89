//! `leasehold store`: makes the table of a store that needs one, or shows it.

use leasehold::Stores;

use crate::args::TableArgs;
use crate::output::Failure;
use crate::store::Target;
use crate::table;

/// Which store's url is given decides what is made.
pub(crate) fn run(args: &TableArgs, target: &Target) -> Result<u8, Failure> {
    let urls = target.urls()?;
    let scheme = |url: &leasehold::StoreUrl| url.to_string().split(':').next().unwrap_or_default().to_owned();
    match urls.iter().map(scheme).collect::<Vec<_>>().as_slice() {
        [one] if one == "dynamodb" => table::run(args, target),
        [one] if one == "postgres" => with_sql(args, target),
        [one] => Err(Failure::usage(format!("{one} needs no table: only dynamodb and postgres have one"))),
        several => Err(Failure::usage(format!("{} stores are named; name one, whose table is meant", several.len()))),
    }
}

#[cfg(not(feature = "postgres"))]
fn with_sql(_: &TableArgs, _: &Target) -> Result<u8, Failure> {
    Err(Failure::usage("this build has no PostgreSQL: enable the feature `postgres`"))
}

#[cfg(feature = "postgres")]
fn with_sql(args: &TableArgs, target: &Target) -> Result<u8, Failure> {
    use serde_json::json;

    use crate::args::TableAction;
    use crate::output::{answer, answer_json};

    match &args.action {
        TableAction::Create(args) if args.read_units.is_some() || !args.tags.is_empty() => {
            return Err(Failure::usage("--read-units, --write-units and --tag are for tables of DynamoDB"));
        }
        TableAction::Create(args) => {
            leasehold::schema::create(target)?;
            if args.json {
                answer_json(&json!({ "result": "there" }))
            } else {
                answer("the table of locks is there\n")
            }?;
        }
        TableAction::Show(args) => {
            let sql = leasehold::schema::sql(target)?;
            if args.json { answer_json(&json!({ "sql": sql })) } else { answer(&sql) }?;
        }
    }
    Ok(crate::status::DONE)
}
