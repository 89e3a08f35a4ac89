//! The table itself: creating it, looking at it, and whether locks are safe in it.
//!
//! Responses that ask for a [`Repeat`](super::Repeat) are told by [`classify`]; nothing here is repeated by itself.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::{Map, Value as Json, json};

use super::errors::classify;
use super::exchange::{misfit, protocol};
use super::json::{as_text, object};
use super::record::{self, Rvn};
use super::{HttpResponse, Request, Settings, Target};
use leasehold_core::Resource;
use leasehold_core::op::{Denial, DenialKind, Outcome};

#[cfg(test)]
mod tests;

/// As many rows as one response has room for, even with the longest names.
const SAMPLE: u32 = 500;

/// How a table is paid for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Billing {
    /// By request.
    #[default]
    OnDemand,
    /// By capacity, in units: each at least 1.
    Provisioned {
        /// Consistent reads of up to 4 KB in a second.
        read_units: u64,
        /// Writes of up to 1 KB in a second.
        write_units: u64,
    },
}

/// Creates the table that the settings name. One that is there is
/// [`Refusal::Unavailable`](leasehold_core::op::Refusal::Unavailable); a new one takes a few seconds to become
/// [`Status::Active`].
///
/// # Errors
/// The settings name an ARN: a table is created where the endpoint is.
pub fn create(settings: &Settings, billing: Billing, tags: &[(String, String)]) -> Result<Request, Denial> {
    if settings.table() != settings.table_name() {
        let detail = "a table is created by its name, not by its ARN: give the name and the Region";
        return Err(Denial::new(DenialKind::Other, detail));
    }
    let keys = [(Some(settings.key_name()), "HASH"), (settings.sort().map(|sort| &*sort.name), "RANGE")];
    let keys = || keys.iter().filter_map(|(name, kind)| name.map(|name| (name, *kind)));
    let schema: Vec<Json> = keys().map(|(name, kind)| json!({ "AttributeName": name, "KeyType": kind })).collect();
    let types: Vec<Json> = keys().map(|(name, _)| json!({ "AttributeName": name, "AttributeType": "S" })).collect();
    let mut body = json!({
        "TableName": settings.table(),
        "AttributeDefinitions": types,
        "KeySchema": schema,
    });
    match billing {
        Billing::OnDemand => body["BillingMode"] = "PAY_PER_REQUEST".into(),
        Billing::Provisioned { read_units, write_units } => {
            body["BillingMode"] = "PROVISIONED".into();
            body["ProvisionedThroughput"] =
                json!({ "ReadCapacityUnits": read_units.max(1), "WriteCapacityUnits": write_units.max(1) });
        }
    }
    if !tags.is_empty() {
        let tags: Vec<Json> = tags.iter().map(|(key, value)| json!({ "Key": key, "Value": value })).collect();
        body["Tags"] = tags.into();
    }
    Ok(Request::new(Target::CreateTable, &body))
}

/// Asks what the table is like; [`described`] reads the response.
pub fn describe(settings: &Settings) -> Request {
    Request::new(Target::DescribeTable, &json!({ "TableName": settings.table() }))
}

/// Switches DynamoDB's time to live on; `None` where the settings name no attribute for it.
pub fn expire(settings: &Settings) -> Option<Request> {
    let specification = json!({ "AttributeName": settings.expires_name()?, "Enabled": true });
    let body = json!({ "TableName": settings.table(), "TimeToLiveSpecification": specification });
    Some(Request::new(Target::UpdateTimeToLive, &body))
}

/// Asks for DynamoDB's time to live; [`expires`] reads the response.
pub fn describe_expiry(settings: &Settings) -> Request {
    Request::new(Target::DescribeTimeToLive, &json!({ "TableName": settings.table() }))
}

/// Asks for some rows, to see whose they are; [`writers`] reads the response.
pub fn sample(settings: &Settings) -> Request {
    let body = json!({
        "TableName": settings.table(),
        "Limit": SAMPLE,
        "ProjectionExpression": "#pk, #rvn",
        "ExpressionAttributeNames": { "#pk": settings.key_name(), "#rvn": record::RVN },
    });
    Request::new(Target::Scan, &body)
}

/// The clients that have written some rows of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writers {
    /// The number of locks that were looked at.
    pub locks: usize,
    /// Those of them that a client of another library wrote last.
    pub foreign: usize,
    /// Those of them whose names are that of a run.
    pub foreign_runs: Vec<String>,
}

/// Reads the response to [`sample`].
///
/// # Errors
/// There are none to read.
pub fn writers(settings: &Settings, response: &HttpResponse) -> Result<Writers, Outcome> {
    let fields = success(settings, response)?;
    let items = fields.get("Items").and_then(Json::as_array).ok_or_else(misfit)?;
    let mut writers = Writers::default();
    for item in items.iter().filter_map(Json::as_object) {
        let attribute = |name: &str| item.get(name).and_then(as_text);
        // The marker of a quorum's node is no resource.
        let resource = attribute(settings.key_name()).and_then(|name| Resource::new(name).ok());
        let (Some(resource), Some(version)) = (resource, attribute(record::RVN).and_then(Rvn::parse)) else { continue };
        writers.locks += 1;
        if matches!(version, Rvn::Foreign(_)) {
            writers.foreign += 1;
            if resource.may_be_of_run() {
                writers.foreign_runs.push(resource.as_str().to_string());
            }
        }
    }
    Ok(writers)
}

/// Reads a table's description from the response to [`describe`] or [`create`].
///
/// # Errors
/// It could not be described or created. A table that is not there is a denial that says so.
pub fn described(settings: &Settings, response: &HttpResponse) -> Result<Description, Outcome> {
    let fields = success(settings, response)?;
    let table = fields.get("Table").or_else(|| fields.get("TableDescription")).and_then(Json::as_object);
    Description::read(table.ok_or_else(misfit)?).ok_or_else(misfit)
}

/// The attribute that DynamoDB's time to live goes by, in the response to [`describe_expiry`]; `None` where it is off.
///
/// # Errors
/// It could not be read.
pub fn expires(settings: &Settings, response: &HttpResponse) -> Result<Option<String>, Outcome> {
    let fields = success(settings, response)?;
    let ttl = fields.get("TimeToLiveDescription").and_then(Json::as_object).ok_or_else(misfit)?;
    let is_on = matches!(text(ttl, "TimeToLiveStatus"), Some("ENABLED" | "ENABLING"));
    Ok(text(ttl, "AttributeName").filter(|_| is_on).map(ToString::to_string))
}

/// Checks that the response to [`expire`] says that it was done.
///
/// # Errors
/// It was not, or nobody knows. Where it is on already, that is a denial with DynamoDB's words.
pub fn expiring(settings: &Settings, response: &HttpResponse) -> Result<(), Outcome> {
    let fields = success(settings, response)?;
    fields.get("TimeToLiveSpecification").map(|_| ()).ok_or_else(misfit)
}

fn success(settings: &Settings, response: &HttpResponse) -> Result<Map<String, Json>, Outcome> {
    if response.status != 200 {
        return Err(classify(settings, response).outcome());
    }
    object(&response.body).map_err(protocol)
}

/// The description of a table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// Its state: whether it can be used.
    pub status: Status,
    /// Its primary key: the partition key first.
    pub keys: Vec<KeyAttribute>,
    /// How it is paid for; `None` where that is not said.
    pub billing: Option<Billing>,
    /// The Regions that have replicas; empty for a table of one Region.
    pub replicas: Vec<String>,
    /// Its consistency across Regions; a strong one is `STRONG` in DynamoDB's words.
    pub consistency: Consistency,
    /// Regions that take part in strong consistency without a replica.
    pub witnesses: Vec<String>,
    /// Its ARN.
    pub arn: Option<String>,
    /// Its id, which a table that was created again under the same name does not share.
    pub id: Option<String>,
}

/// The state of a table: whether it can be used.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// It can.
    Active,
    /// It can, and is being changed.
    Updating,
    /// Not yet.
    Creating,
    /// In DynamoDB's words: going, archived, or without its key.
    Other(String),
}

/// The consistency of global tables across Regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Consistency {
    /// A write in one Region is seen in all at once.
    Strong,
    /// It is seen some time later, and the last one wins. Said of no table without replicas.
    Eventual,
}

/// One attribute of a primary key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyAttribute {
    /// Its name.
    pub name: String,
    /// `S`, `N` or `B`.
    pub kind: String,
}

impl Description {
    fn read(table: &Map<String, Json>) -> Option<Self> {
        let kinds = list(table, "AttributeDefinitions");
        let kind_of = |name: &str| {
            let definition = kinds.iter().find(|kind| text(kind, "AttributeName") == Some(name))?;
            text(definition, "AttributeType")
        };
        let schema = list(table, "KeySchema");
        let of_type = |kind: &str| schema.iter().find(|key| text(key, "KeyType") == Some(kind)).copied();
        let key = |attribute: &Map<String, Json>| {
            let name = text(attribute, "AttributeName")?;
            Some(KeyAttribute { name: name.to_string(), kind: kind_of(name)?.to_string() })
        };
        let mut keys = alloc::vec![key(of_type("HASH")?)?];
        if let Some(sort) = of_type("RANGE") {
            keys.push(key(sort)?);
        }
        let regions = |name: &str| -> Vec<String> {
            list(table, name).iter().filter_map(|one| text(one, "RegionName")).map(ToString::to_string).collect()
        };
        Some(Self {
            name: text(table, "TableName")?.to_string(),
            status: match text(table, "TableStatus")? {
                "ACTIVE" => Status::Active,
                "UPDATING" => Status::Updating,
                "CREATING" => Status::Creating,
                other => Status::Other(other.chars().take(60).collect()),
            },
            keys,
            billing: billing(table),
            replicas: regions("Replicas"),
            consistency: match text(table, "MultiRegionConsistency") {
                Some("STRONG") => Consistency::Strong,
                Some(_) | None => Consistency::Eventual,
            },
            witnesses: regions("GlobalTableWitnesses"),
            arn: text(table, "TableArn").map(ToString::to_string),
            id: text(table, "TableId").map(ToString::to_string),
        })
    }
}

fn billing(table: &Map<String, Json>) -> Option<Billing> {
    let summary = table.get("BillingModeSummary").and_then(Json::as_object);
    if summary.and_then(|summary| text(summary, "BillingMode")) == Some("PAY_PER_REQUEST") {
        return Some(Billing::OnDemand);
    }
    let units = table.get("ProvisionedThroughput")?;
    let units = |name: &str| units.get(name).and_then(Json::as_u64);
    let (read_units, write_units) = (units("ReadCapacityUnits")?, units("WriteCapacityUnits")?);
    Some(Billing::Provisioned { read_units, write_units })
}

fn list<'a>(fields: &'a Map<String, Json>, name: &str) -> Vec<&'a Map<String, Json>> {
    let items = fields.get(name).and_then(Json::as_array);
    items.map(|items| items.iter().filter_map(Json::as_object).collect()).unwrap_or_default()
}

fn text<'a>(fields: &'a Map<String, Json>, name: &str) -> Option<&'a str> {
    fields.get(name)?.as_str()
}

/// How far a lock in a table reaches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LockScope {
    /// The table is in one Region, so all clients share it.
    OneRegion,
    /// All Regions share it.
    AllRegions,
    /// Clients of different Regions do **not** exclude each other: writes of one are seen in the others some time later,
    /// and the last one wins. Safe only where all clients use one Region.
    EachRegionAlone {
        /// The Regions with replicas.
        regions: Vec<String>,
    },
}

/// Checks that locks can be kept in a table, and returns between whom they exclude.
///
/// Global tables of the version 2017.11.29 do not show here: each of their replicas is described as a table of one
/// Region.
///
/// # Errors
/// The primary key is not what the settings say, or the table cannot be used.
pub fn judge(settings: &Settings, table: &Description) -> Result<LockScope, Denial> {
    let sort = settings.sort().map(|sort| &*sort.name);
    let wanted: Vec<&str> = [Some(settings.key_name()), sort].into_iter().flatten().collect();
    let names = table.keys.iter().map(|key| key.name.as_str());
    if !names.eq(wanted.iter().copied()) || table.keys.iter().any(|key| key.kind != "S") {
        let described: Vec<String> = table.keys.iter().map(described_key).collect();
        let detail = alloc::format!(
            "the table's primary key is {}, this client uses {}: name the attributes in the settings, or give leasehold a \
             table of its own with `leasehold table create`",
            described.join(" and "),
            wanted.iter().map(|name| described_as(name, "S")).collect::<Vec<_>>().join(" and ")
        );
        return Err(Denial::new(DenialKind::Schema, &detail));
    }
    if let Status::Other(status) = &table.status {
        let detail = alloc::format!("the table cannot be used: its status is {status:?}");
        return Err(Denial::new(DenialKind::Other, &detail));
    }
    Ok(match table.consistency {
        Consistency::Strong => LockScope::AllRegions,
        Consistency::Eventual if table.replicas.is_empty() => LockScope::OneRegion,
        Consistency::Eventual => LockScope::EachRegionAlone { regions: table.replicas.clone() },
    })
}

fn described_key(key: &KeyAttribute) -> String {
    described_as(&key.name, &key.kind)
}

fn described_as(name: &str, kind: &str) -> String {
    let name = &name[..name.floor_char_boundary(60)];
    alloc::format!("{name:?} ({})", kind.chars().take(4).collect::<String>())
}
