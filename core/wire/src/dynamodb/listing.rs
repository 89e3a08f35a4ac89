//! Pages of the locks of the table. DynamoDB keeps them in no order, so each page reads the next part of the table.

use alloc::string::ToString;

use serde_json::{Map, Value as Json, json};

use leasehold_core::Resource;
use leasehold_core::op::{Outcome, Seen};

use super::exchange::{Heard, misfit};
use super::json::{as_text, text};
use super::record::{DONE_NONCE, RELEASED, RVN, Row};
use super::{Codec, HttpResponse, Request, Target, membership};
use crate::listing::{PAGE, Page, Which};

impl Codec {
    /// Asks for a page of the locks whose names begin with `prefix`; [`Codec::listed`] reads the response. `after` is
    /// empty for the first page. The right `dynamodb:Scan` is needed, and the rows of the whole table are paid for, as
    /// strongly consistent reads.
    pub fn list(&self, prefix: &str, after: &[u8], which: Which) -> Request {
        let settings = &self.settings;
        let mut filter = "attribute_exists(#rvn) AND ".to_string();
        let mut body = json!({
            "TableName": settings.table(),
            "Limit": PAGE,
            "ConsistentRead": true,
            "ExpressionAttributeNames": { "#rvn": RVN, "#ir": RELEASED },
        });
        let mut values = Map::new();
        filter += match which {
            Which::Held => "attribute_not_exists(#ir)",
            Which::Runs => {
                body["ExpressionAttributeNames"]["#pk"] = settings.key_name().into();
                body["ExpressionAttributeNames"]["#done"] = DONE_NONCE.into();
                values.insert(":at".to_string(), text("@"));
                "contains(#pk, :at) AND (attribute_not_exists(#ir) OR attribute_exists(#done))"
            }
        };
        if !prefix.is_empty() {
            filter += " AND begins_with(#pk, :prefix)";
            body["ExpressionAttributeNames"]["#pk"] = settings.key_name().into();
            values.insert(":prefix".to_string(), text(prefix));
        }
        if let Some(sort) = settings.sort() {
            filter += " AND #sk = :sort";
            body["ExpressionAttributeNames"]["#sk"] = (&*sort.name).into();
            values.insert(":sort".to_string(), text(&sort.value));
        }
        if !values.is_empty() {
            body["ExpressionAttributeValues"] = values.into();
        }
        body["FilterExpression"] = filter.into();
        // What comes back is what an earlier page has left.
        if let Ok(after) = serde_json::from_slice::<Json>(after) {
            body["ExclusiveStartKey"] = after;
        }
        Request::new(Target::Scan, &body)
    }

    /// Reads the response to [`Codec::list`]. Rows that are no locks are left out. Of those with a completion the name alone is told,
    /// since its end depends on the time of reading.
    ///
    /// # Errors
    /// The table could not be read.
    pub fn listed(&self, prefix: &str, response: &HttpResponse) -> Result<Page, Outcome> {
        match Heard::of(&self.settings, Ok(response)) {
            Heard::Success(fields) => {
                let items = fields.get("Items").and_then(Json::as_array).ok_or_else(misfit)?;
                let records = items.iter().filter_map(|item| self.record(item));
                let records = records.filter(|(name, _)| name.as_str().starts_with(prefix)).collect();
                let next = fields.get("LastEvaluatedKey").filter(|key| !key.is_null());
                Ok(Page { records, next: next.map(|key| key.to_string().into_bytes()) })
            }
            Heard::Conflict(_) => Err(misfit()),
            Heard::Failed(outcome) => Err(outcome),
        }
    }

    fn record(&self, item: &Json) -> Option<(Resource, Option<Seen>)> {
        let item = item.as_object()?;
        let name = item.get(self.settings.key_name()).and_then(as_text).filter(|name| *name != membership::ROW)?;
        let row = Row::read(&self.settings, item).ok()?;
        let seen = matches!(row.done, Ok(None)).then(|| row.seen());
        Some((Resource::new(name).ok()?, seen))
    }
}
