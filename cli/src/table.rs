//! `leasehold store` for DynamoDB: creates a table for locks, or shows one.

use crate::args::TableArgs;
use crate::output::Failure;
use crate::store::Target;

#[cfg(not(feature = "dynamodb"))]
pub(crate) fn run(_: &TableArgs, _: &Target) -> Result<u8, Failure> {
    Err(Failure::usage("this build has no DynamoDB: enable the feature `dynamodb`"))
}

#[cfg(feature = "dynamodb")]
pub(crate) fn run(args: &TableArgs, target: &Target) -> Result<u8, Failure> {
    use crate::args::TableAction;

    match &args.action {
        TableAction::Create(args) => with::create(args, target),
        TableAction::Show(args) => with::describe(args, target),
    }
}

#[cfg(feature = "dynamodb")]
mod with {
    use leasehold::table::{self, Billing, Consistency, Made, NewTable, Status, Table};
    use serde_json::{Value, json};

    use crate::args::{CreateArgs, ShowArgs};
    use crate::output::{Failure, answer, answer_json, printable};
    use crate::status;
    use crate::store::Target;

    pub(super) fn create(args: &CreateArgs, target: &Target) -> Result<u8, Failure> {
        let mut new = NewTable::default();
        if let (Some(read_units), Some(write_units)) = (args.read_units, args.write_units) {
            new.billing = Billing::Provisioned { read_units, write_units };
        }
        let mut names: Vec<&str> = args.tags.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Failure::usage(format!("--tag {} was given twice; give it once", twice[0])));
        }
        new.tags.clone_from(&args.tags);
        let done = table::create(target, &new)?;
        let (result, message) = match done.made {
            Made::New => ("made", "the table was created"),
            Made::Before => ("exists", "the table exists already; its billing and its tags were not changed"),
        };
        if args.json {
            let mut shown = shown(&done.table);
            shown["result"] = result.into();
            answer_json(&shown)?;
        } else {
            answer(&printable(&format!("{message}\n\n{}", text(&done.table))))?;
        }
        Ok(status::DONE)
    }

    pub(super) fn describe(args: &ShowArgs, target: &Target) -> Result<u8, Failure> {
        let table = table::describe(target)?;
        if args.json {
            answer_json(&shown(&table))?;
        } else {
            answer(&printable(&text(&table)))?;
        }
        Ok(match table.status {
            Status::Active | Status::Updating => status::DONE,
            Status::Creating | Status::Other(_) => status::NOTHING,
        })
    }

    /// The output for machines.
    fn shown(table: &Table) -> Value {
        let keys: Vec<Value> = table.keys.iter().map(|key| json!({ "name": key.name, "type": key.kind })).collect();
        json!({
            "name": table.name,
            "status": status_name(&table.status),
            "keys": keys,
            "billing": table.billing.map(|billing| match billing {
                Billing::OnDemand => json!({ "mode": "on_demand" }),
                Billing::Provisioned { read_units, write_units } => {
                    json!({ "mode": "provisioned", "read_units": read_units, "write_units": write_units })
                }
            }),
            "expires": table.expires,
            "replicas": table.replicas,
            "consistency": consistency(table),
            "witnesses": table.witnesses,
            "arn": table.arn,
        })
    }

    /// The output for people.
    fn text(table: &Table) -> String {
        let keys: Vec<String> = table.keys.iter().map(|key| format!("{} ({})", key.name, key.kind)).collect();
        let billing = match table.billing {
            Some(Billing::OnDemand) => "by request".to_owned(),
            Some(Billing::Provisioned { read_units, write_units }) => {
                format!("{read_units} read units and {write_units} write units per second")
            }
            None => "not shown".to_owned(),
        };
        let listed = |regions: &[String]| if regions.is_empty() { "none".to_owned() } else { regions.join(", ") };
        let consistency = match consistency(table) {
            None => "within one Region",
            Some("strong") => "strong: all Regions share the locks",
            Some(_) => "eventual: clients of different Regions do NOT exclude each other",
        };
        let lines = [
            ("status", status_name(&table.status).to_owned()),
            ("keys", keys.join(", ")),
            ("billing", billing),
            ("expires", table.expires.clone().unwrap_or_else(|| "off, or not permitted to read".to_owned())),
            ("replicas", listed(&table.replicas)),
            ("consistency", consistency.to_owned()),
            ("witnesses", listed(&table.witnesses)),
            ("arn", table.arn.clone().unwrap_or_else(|| "not shown".to_owned())),
        ];
        let lines: String = lines.iter().map(|(name, value)| format!("  {name:<12} {value}\n")).collect();
        format!("table {}\n{lines}", table.name)
    }

    fn status_name(status: &Status) -> &str {
        match status {
            Status::Active => "active",
            Status::Updating => "updating",
            Status::Creating => "creating",
            Status::Other(words) => words,
        }
    }

    /// The line is missing for a table without replicas.
    fn consistency(table: &Table) -> Option<&'static str> {
        match table.consistency {
            Consistency::Strong => Some("strong"),
            Consistency::Eventual if table.replicas.is_empty() => None,
            Consistency::Eventual => Some("eventual"),
        }
    }
}
