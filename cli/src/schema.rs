//! `leasehold store`: makes the table of a PostgreSQL store, or shows its SQL.

use crate::args::{SchemaAction, SchemaArgs};
use crate::output::Failure;
use crate::store::Target;

#[cfg(not(feature = "postgres"))]
pub(crate) fn run(_: &SchemaArgs, _: &Target) -> Result<u8, Failure> {
    Err(Failure::usage("this build has no PostgreSQL: enable the feature `postgres`"))
}

#[cfg(feature = "postgres")]
pub(crate) fn run(args: &SchemaArgs, target: &Target) -> Result<u8, Failure> {
    use crate::output::answer;

    match args.action {
        SchemaAction::Create(_) => {
            leasehold::schema::create(target)?;
            answer("the table of locks is there\n")?;
        }
        SchemaAction::Show(_) => answer(&leasehold::schema::sql(target)?)?,
    }
    Ok(crate::status::DONE)
}
