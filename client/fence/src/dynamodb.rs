//! Guards for items in DynamoDB.

use leasehold_wire::fence::dynamodb::{self as pieces, Refused, Step};

pub use leasehold_wire::fence::dynamodb::Shown;

use crate::marks::number;
use crate::{Error, ErrorKind};

/// Keeps the mark of an item in the item itself, and compares in the request that writes.
///
/// These are pieces of expressions for the requests that you make, with the client library that you have. Names and
/// values go through `ExpressionAttributeNames` and `ExpressionAttributeValues`, under placeholders that get into
/// nobody's way, so the pieces go beside your own.
///
/// | request | `UpdateExpression` | `ConditionExpression` |
/// |---|---|---|
/// | claim: `UpdateItem` | `SET {set}` | [`claim_condition`](Self::claim_condition) |
/// | write: `UpdateItem` | `SET yours, {set}` | [`check_condition`](Self::check_condition), and with `AND (yours)` |
/// | writes elsewhere: `TransactWriteItems` with a `ConditionCheck` of the item | | `check_condition` |
///
/// Ask for `ReturnValuesOnConditionCheckFailure = ALL_OLD`; [`DynamodbGuard::refusal`] then says why a write was
/// refused, without another request. Read after the claim, with `ConsistentRead`, or take the item from the claim
/// itself by `ReturnValues = ALL_NEW`.
///
/// ```
/// use std::collections::HashMap;
///
/// use leasehold_fence::{DynamodbGuard, Shown};
///
/// # fn main() -> Result<(), leasehold_fence::Error> {
/// # let token: u64 = 34; // lease.token()
/// let guard = DynamodbGuard::new("fence")?;
///
/// // client.update_item().table_name("invoices").key("id", S("42"))
/// let update = format!("SET balance = :balance, {}", DynamodbGuard::set());
/// let condition = DynamodbGuard::check_condition();
/// let names = HashMap::from(guard.names());                    // set_expression_attribute_names
/// let values = HashMap::from(DynamodbGuard::values(token)?);   // each is a number: AttributeValue::N
/// assert_eq!(update, "SET balance = :balance, #leasehold_fence = :leasehold_token");
/// assert_eq!((condition, names["#leasehold_fence"]), ("#leasehold_fence <= :leasehold_token", "fence"));
/// assert_eq!(values[":leasehold_token"], "34");
///
/// // On ConditionalCheckFailedException, what the item in it has as `fence`:
/// let error = DynamodbGuard::refusal("invoice/42", token, Shown::Mark("35")).unwrap();
/// assert_eq!(error.kind(), leasehold_fence::ErrorKind::StaleToken);
/// # Ok(())
/// # }
/// ```
///
/// # Never delete a guarded item
/// The mark goes with it. A late write is refused all the same, since a check needs the mark to exist; a late claim is
/// not, and the item would begin again. Write that it is deleted instead, and do not let DynamoDB's time to live remove
/// it. Nothing but the guard may write the attribute; `PutItem` replaces the whole item, so it has to carry the mark.
///
/// # Global tables
/// With eventual consistency they apply writes of other Regions without asking the condition again: guard in one Region
/// only. With strong consistency there are no transactions, and the rest holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamodbGuard {
    attribute: String,
}

impl DynamodbGuard {
    /// Marks in this attribute of your items: a number at the top level, which is no part of a key.
    ///
    /// # Errors
    /// [`ErrorKind::Config`]: the name is empty, longer than 255 bytes, or has a control character.
    pub fn new(attribute: &str) -> Result<Self, Error> {
        if !pieces::is_name(attribute) {
            let most = pieces::MAX_NAME;
            let name = &attribute[..attribute.floor_char_boundary(100)];
            let message = format!("attribute {name:?}: a name has 1 to {most} bytes and no control characters");
            return Err(Error::config(message));
        }
        Ok(Self { attribute: attribute.to_owned() })
    }

    /// The condition of a claim, which makes the token the only one that is accepted from now on, apart from higher
    /// ones. Run it with each new lease, **before** reading the item. It makes the item where there is none.
    pub const fn claim_condition() -> &'static str {
        pieces::CLAIM
    }

    /// The condition of a write: it has to be claimed, and by nobody later.
    pub const fn check_condition() -> &'static str {
        pieces::CHECK
    }

    /// The assignment that raises the mark, to stand after `SET` or a comma: in claims, and in writes.
    pub const fn set() -> &'static str {
        pieces::SET
    }

    /// For `ExpressionAttributeNames`: placeholder and name.
    pub fn names(&self) -> [(&'static str, &str); 1] {
        [(pieces::NAME, &self.attribute)]
    }

    /// For `ExpressionAttributeValues`: placeholder, and the digits of a number (`N`).
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a token above 2^53 - 1.
    pub fn values(token: u64) -> Result<[(&'static str, String); 1], Error> {
        Ok([(pieces::VALUE, number(token)?.to_string())])
    }

    /// The reason why a write with [`DynamodbGuard::check_condition`] ended in `ConditionalCheckFailedException`;
    /// `item` names the resource in the error. `None`: not by the guard, but for the rest of the condition. In all
    /// cases nothing was written.
    ///
    /// [`ErrorKind::StaleToken`]: a later holder has claimed the item, the message has both tokens; or there is no item,
    /// for a later holder may have deleted it. [`ErrorKind::Config`]: it was never claimed, or the token is above
    /// 2^53 - 1. [`ErrorKind::StoreRefused`]: the mark is no token.
    pub fn refusal(item: &str, token: u64, shown: Shown<'_>) -> Option<Error> {
        judge(Step::Check, item, token, shown)
    }

    /// As [`DynamodbGuard::refusal`], of a claim with [`DynamodbGuard::claim_condition`], for which there need be neither
    /// item nor mark.
    pub fn refusal_of_claim(item: &str, token: u64, shown: Shown<'_>) -> Option<Error> {
        judge(Step::Claim, item, token, shown)
    }
}

pub(crate) fn judge(step: Step, item: &str, token: u64, shown: Shown<'_>) -> Option<Error> {
    let token = match number(token) {
        Ok(token) => token,
        Err(error) => return Some(error.on(item)),
    };
    let refused = pieces::refused(step, token, shown);
    let error = match &refused {
        Refused::Rejected(rejected) => Error::from(*rejected),
        Refused::Gone => Error::new(ErrorKind::StaleToken, refused.to_string()),
        Refused::NoToken(_) => Error::new(ErrorKind::StoreRefused, refused.to_string()),
        Refused::Otherwise => return None,
    };
    Some(error.on(item))
}
