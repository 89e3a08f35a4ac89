//! The AWS lock client for Java, request by request.

use std::time::Duration;

use leasehold_core::Version;
use leasehold_sim::store::{ForeignAct, ForeignAnswer, ForeignRow, Mark};
use serde_json::{Map, Value as Json, json};

use super::wire::Wire;

/// The UUID in the table for the model's 16 bytes.
pub(crate) fn uuid(mark: Mark) -> String {
    let bytes = (u128::from(mark.by) << 64) | u128::from(mark.count);
    let hex = format!("{bytes:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// The version as observers see it.
pub(crate) fn real_version(version: &Version) -> Version {
    match <[u8; 16]>::try_from(version.as_bytes()) {
        Ok(bytes) => {
            let (by, count) = bytes.split_at(8);
            let number = |half: &[u8]| u64::from_be_bytes(half.try_into().unwrap()).try_into().unwrap();
            Version::new(uuid(Mark { by: number(by), count: number(count) }).as_bytes()).unwrap()
        }
        Err(_) => version.clone(),
    }
}

/// The version as the table has it.
pub(crate) fn version_text(version: &Version) -> String {
    let bytes = version.as_bytes();
    match <[u8; 20]>::try_from(bytes) {
        Ok(ours) => {
            let nonce = u128::from_be_bytes(ours[..16].try_into().unwrap());
            let seq = u32::from_be_bytes(ours[16..].try_into().unwrap());
            format!("{nonce:032x}:{seq:010}")
        }
        Err(_) => String::from_utf8(real_version(version).as_bytes().to_vec()).unwrap(),
    }
}

fn text(value: &str) -> Json {
    json!({ "S": value })
}

fn lasting(ttl: Duration) -> String {
    ttl.as_nanos().div_ceil(1_000_000).to_string()
}

fn owner(mark: Mark) -> String {
    mark.owner().unwrap().as_str().to_owned()
}

/// The row that an acquire puts there.
fn item(mark: Mark, ttl: Duration) -> Json {
    json!({
        "ownerName": text(&owner(mark)),
        "leaseDuration": text(&lasting(ttl)),
        "recordVersionNumber": text(&uuid(mark)),
    })
}

/// The holder's condition, its names and its values.
const IS_OURS: &str = "attribute_exists(#pk) AND #rvn = :rvn AND #on = :on";

fn ours(mark: Mark, names: Json, values: Json) -> Json {
    let mut rest = json!({
        "ExpressionAttributeNames": { "#rvn": "recordVersionNumber", "#on": "ownerName" },
        "ExpressionAttributeValues": { ":rvn": text(&uuid(mark)), ":on": text(&owner(mark)) },
    });
    for (kind, more) in [("ExpressionAttributeNames", names), ("ExpressionAttributeValues", values)] {
        let more = more.as_object().cloned().unwrap_or_default();
        rest[kind].as_object_mut().unwrap().extend(more);
    }
    rest
}

/// Asks the table as Java would; `name` is the lock.
pub(crate) fn act(wire: &Wire, name: &str, act: &ForeignAct) -> ForeignAnswer {
    let held = |is_held: bool, mark: Mark| if is_held { ForeignAnswer::Held(mark) } else { ForeignAnswer::Refused };
    let freed = |is_freed: bool| if is_freed { ForeignAnswer::Released } else { ForeignAnswer::Refused };
    match act {
        ForeignAct::Read => read(wire.row(name)),
        ForeignAct::AcquireNew { mark, ttl } => {
            let rest = json!({ "Item": item(*mark, *ttl) });
            held(wire.conditional("PutItem", name, "attribute_not_exists(#pk)", &rest), *mark)
        }
        ForeignAct::AcquireReleased { mark, ttl } => {
            let rest = json!({
                "Item": item(*mark, *ttl),
                "ExpressionAttributeNames": { "#ir": "isReleased" },
                "ExpressionAttributeValues": { ":ir": text("1") },
            });
            held(wire.conditional("PutItem", name, "attribute_exists(#pk) AND #ir = :ir", &rest), *mark)
        }
        ForeignAct::AcquireExpired { mark, ttl, seen } => {
            let rest = json!({
                "Item": item(*mark, *ttl),
                "ExpressionAttributeNames": { "#rvn": "recordVersionNumber" },
                "ExpressionAttributeValues": { ":rvn": text(&version_text(seen)) },
            });
            held(wire.conditional("PutItem", name, "attribute_exists(#pk) AND #rvn = :rvn", &rest), *mark)
        }
        ForeignAct::Heartbeat { mark, ttl } => {
            let values = json!({ ":ld": text(&lasting(*ttl)), ":next": text(&uuid(mark.next())) });
            let mut rest = ours(*mark, json!({ "#ld": "leaseDuration" }), values);
            rest["UpdateExpression"] = "SET #ld = :ld, #rvn = :next".into();
            held(wire.conditional("UpdateItem", name, IS_OURS, &rest), mark.next())
        }
        ForeignAct::ReleaseDelete { mark } => {
            freed(wire.conditional("DeleteItem", name, IS_OURS, &ours(*mark, json!({}), json!({}))))
        }
        ForeignAct::ReleaseKeep { mark } => {
            let mut rest = ours(*mark, json!({ "#ir": "isReleased" }), json!({ ":ir": text("1") }));
            rest["UpdateExpression"] = "SET #ir = :ir".into();
            freed(wire.conditional("UpdateItem", name, IS_OURS, &rest))
        }
    }
}

/// Java parses the length of the lease as a long, and looks only at whether `isReleased` is there.
fn read(row: Option<Map<String, Json>>) -> ForeignAnswer {
    let Some(row) = row else { return ForeignAnswer::Read(None) };
    let string = |name: &str| row[name]["S"].as_str().unwrap();
    let Ok(ms) = string("leaseDuration").parse() else { return ForeignAnswer::Refused };
    ForeignAnswer::Read(Some(ForeignRow {
        version: Version::new(string("recordVersionNumber").as_bytes()).unwrap(),
        ttl: Duration::from_millis(ms),
        released: row.contains_key("isReleased"),
    }))
}
