//! Guards for items in Cosmos DB.

use leasehold_wire::fence::cosmos as pieces;
use leasehold_wire::fence::dynamodb::Step;

use crate::Error;
use crate::dynamodb::{Shown, judge};
use crate::marks::number;

/// Keeps the mark of an item in the item itself, and compares in the patch that writes.
///
/// These are pieces of the patches that you make, with the client library that you have. The condition is called
/// `condition`, and `filterPredicate` in some SDKs.
///
/// | patch | condition | operations |
/// |---|---|---|
/// | claim | [`claim_condition`](Self::claim_condition) | [`set`](Self::set) |
/// | write | [`check_condition`](Self::check_condition), and ` AND (yours)` | `set`, and yours |
///
/// The answer to a claim has the item as of the claim, and is the first read. 404: there is no item. 412: the condition
/// did not hold; read the item, and [`CosmosGuard::refusal`] says why.
///
/// ```
/// use leasehold_fence::{CosmosGuard, Shown};
///
/// # fn main() -> Result<(), leasehold_fence::Error> {
/// # let token: u64 = 34; // lease.token()
/// let guard = CosmosGuard::new("fence")?;
/// let patch = format!(
///     r#"{{"condition": {:?}, "operations": [{}, {{"op": "set", "path": "/total", "value": 110}}]}}"#,
///     guard.check_condition(token)?,
///     guard.set(token)?,
/// );
/// assert_eq!(guard.check_condition(token)?, r#"FROM c WHERE c["fence"] <= 34"#);
/// # let _ = patch;
///
/// // On 412, what the item has as `fence`:
/// let error = CosmosGuard::refusal("invoice/42", token, Shown::Mark("35")).unwrap();
/// assert_eq!(error.kind(), leasehold_fence::ErrorKind::StaleToken);
/// # Ok(())
/// # }
/// ```
///
/// # One write region, and no deletion
/// Where several regions take writes, the last one wins, whatever its token. Write that an item is deleted instead of
/// deleting it, and turn its time to live off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CosmosGuard {
    property: String,
}

impl CosmosGuard {
    /// Marks in this property of your items: a number at the top level.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config): the name has other characters than letters, digits and `_`, begins
    /// with a digit, or is empty or longer than 255 bytes.
    pub fn new(property: &str) -> Result<Self, Error> {
        if !pieces::is_name(property) {
            let most = pieces::MAX_NAME;
            let name = &property[..property.floor_char_boundary(100)];
            let message = format!(
                "property {name:?}: a name has 1 to {most} letters, digits and _, and does not begin with a digit"
            );
            return Err(Error::config(message));
        }
        Ok(Self { property: property.to_owned() })
    }

    /// The condition of a claim, which makes the token the only one that is accepted from now on, apart from higher
    /// ones. Send it with each new lease, **before** reading the item.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a token above 2^53 - 1.
    pub fn claim_condition(&self, token: u64) -> Result<String, Error> {
        Ok(pieces::claim(&self.property, number(token)?))
    }

    /// The condition of a write: the item has to be claimed, and by nobody later.
    ///
    /// # Errors
    /// As [`CosmosGuard::claim_condition`].
    pub fn check_condition(&self, token: u64) -> Result<String, Error> {
        Ok(pieces::check(&self.property, number(token)?))
    }

    /// The operation that raises the mark, in claims and in writes, as JSON.
    ///
    /// # Errors
    /// As [`CosmosGuard::claim_condition`].
    pub fn set(&self, token: u64) -> Result<String, Error> {
        Ok(pieces::set(&self.property, number(token)?))
    }

    /// The reason why a write with [`CosmosGuard::check_condition`] ended in 412, given what the item shows afterwards.
    /// `item` names the resource in the error. `None`: not by the guard, but for the rest of the condition.
    ///
    /// The kinds of errors are those of [`DynamodbGuard::refusal`](super::DynamodbGuard::refusal).
    pub fn refusal(item: &str, token: u64, shown: Shown<'_>) -> Option<Error> {
        judge(Step::Check, item, token, shown)
    }

    /// As [`CosmosGuard::refusal`], of a claim.
    pub fn refusal_of_claim(item: &str, token: u64, shown: Shown<'_>) -> Option<Error> {
        judge(Step::Claim, item, token, shown)
    }
}
