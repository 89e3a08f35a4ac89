//! Guards for the protected resource.

use leasehold::fence;
use napi::Either;
use napi::bindgen_prelude::Buffer;
use napi_derive::napi;

use crate::failure::{Failure, either};
use crate::info::whole;
use crate::options::natural;

/// Nothing, or an error.
type Outcome = Option<Failure>;

fn outcome(result: Result<(), Failure>) -> Outcome {
    result.err()
}

fn token_of(token: f64) -> Result<u64, Failure> {
    natural("token", token)
}

/// See `fence::Guards`.
#[napi]
pub struct Guards(fence::Guards);

#[napi]
impl Guards {
    /// Guards with room for this many items.
    #[napi(constructor, catch_unwind)]
    pub fn new(most: u32) -> Self {
        Self(fence::Guards::new(usize::try_from(most).unwrap_or(usize::MAX)))
    }

    /// See `fence::Guards::claim`.
    #[napi(catch_unwind)]
    pub fn claim(&self, item: String, token: f64) -> Outcome {
        outcome(token_of(token).and_then(|token| Ok(self.0.claim(&item, token)?)))
    }

    /// See `fence::Guards::check`, and `check_in_order` if there is a number.
    #[napi(catch_unwind)]
    pub fn check(&self, item: String, token: f64, number: Option<f64>) -> Outcome {
        outcome(token_of(token).and_then(|token| match number {
            None => Ok(self.0.check(&item, token)?),
            Some(number) => Ok(self.0.check_in_order(&item, token, natural("number", number)?)?),
        }))
    }

    /// See `fence::Guards::high_water`.
    #[napi(catch_unwind)]
    pub fn high_water(&self, item: String) -> Option<i64> {
        self.0.high_water(&item).map(whole)
    }

    /// See `fence::Guards::forget`.
    #[napi(catch_unwind)]
    pub fn forget(&self, item: String) {
        self.0.forget(&item);
    }
}

/// The statements of a guard for PostgreSQL.
#[napi(object, object_from_js = false)]
pub struct Statements {
    /// Creates the table of marks, if the guard has one.
    pub create: Option<String>,
    /// Claims an item or a row.
    pub claim: String,
    /// Checks an item or a row.
    pub check: String,
    /// Reads a mark.
    pub read: String,
}

/// See `fence::PostgresGuard`.
#[napi(catch_unwind)]
pub fn postgres_guard(table: Option<String>, schema: Option<String>) -> Either<Statements, Failure> {
    let guard = match (schema, table) {
        (None, None) => Ok(fence::PostgresGuard::new()),
        (None, Some(table)) => fence::PostgresGuard::with_table(&table),
        (Some(schema), table) => {
            fence::PostgresGuard::in_schema(&schema, table.as_deref().unwrap_or("leasehold_fence"))
        }
    };
    either(guard.map_err(Failure::from).map(|guard| Statements {
        create: Some(guard.create_sql().to_owned()),
        claim: guard.claim_sql().to_owned(),
        check: guard.check_sql().to_owned(),
        read: guard.read_sql().to_owned(),
    }))
}

/// See `fence::PostgresGuard::outcome`. Drivers return a bigint as text.
#[napi(catch_unwind)]
pub fn postgres_outcome(item: String, token: f64, mark: Option<String>) -> Outcome {
    outcome(
        token_of(token)
            .and_then(|token| Ok(fence::PostgresGuard::outcome(&item, token, mark.map(bigint).transpose()?)?)),
    )
}

/// See `fence::PostgresRowGuard`.
#[napi]
pub struct PostgresRowGuard(fence::PostgresRowGuard);

/// See `fence::PostgresRowGuard::new`.
#[napi(catch_unwind)]
pub fn postgres_row_guard(table: String, key: String, fence: String) -> Either<PostgresRowGuard, Failure> {
    either(fence::PostgresRowGuard::new(&table, &key, &fence).map(PostgresRowGuard).map_err(Failure::from))
}

#[napi]
impl PostgresRowGuard {
    /// Its statements.
    #[napi(getter, catch_unwind)]
    pub fn statements(&self) -> Statements {
        Statements {
            create: None,
            claim: self.0.claim_sql().to_owned(),
            check: self.0.check_sql().to_owned(),
            read: self.0.read_sql().to_owned(),
        }
    }

    /// See `fence::PostgresRowGuard::raise`.
    #[napi(catch_unwind)]
    pub fn raise(&self, parameter: u32) -> String {
        self.0.raise(usize::try_from(parameter).unwrap_or(usize::MAX))
    }

    /// See `fence::PostgresRowGuard::condition`.
    #[napi(catch_unwind)]
    pub fn condition(&self, parameter: u32) -> String {
        self.0.condition(usize::try_from(parameter).unwrap_or(usize::MAX))
    }
}

/// The statement of a row guard whose marks are to be judged.
#[napi(string_enum = "lowercase")]
pub enum Asked {
    /// A claim.
    Claim,
    /// A check.
    Check,
    /// A statement of the user that has written nothing.
    Refusal,
}

/// Judges the marks: see `fence::PostgresRowGuard::claim_outcome`, `check_outcome` and `refusal`.
#[napi(catch_unwind)]
pub fn postgres_row_outcome(asked: Asked, token: f64, marks: Vec<Option<String>>) -> Outcome {
    outcome(token_of(token).and_then(|token| {
        let marks = marks.into_iter().map(|mark| mark.map(bigint).transpose()).collect::<Result<Vec<_>, _>>()?;
        match asked {
            Asked::Claim => Ok(fence::PostgresRowGuard::claim_outcome(token, &marks)?),
            Asked::Check => Ok(fence::PostgresRowGuard::check_outcome(token, &marks)?),
            Asked::Refusal => Err(fence::PostgresRowGuard::refusal(token, &marks).into()),
        }
    }))
}

/// Checks a token that is to be passed on as text.
#[napi(catch_unwind)]
pub fn check_token(token: f64) -> Outcome {
    outcome(token_of(token).map(|_| ()))
}

fn bigint(text: String) -> Result<i64, Failure> {
    text.parse().map_err(|_| {
        Failure::config(format!(
            "{text:?} is not a mark: pass on the value that the statement \
                                                      returned"
        ))
    })
}

/// The scripts of `fence::RedisGuard`.
#[napi(object, object_from_js = false)]
pub struct RedisScripts {
    /// A Lua function, to be put in front of a script.
    pub function: String,
    /// KEYS: mark. ARGV: token.
    pub claim: String,
    /// KEYS: mark. ARGV: token.
    pub check: String,
    /// KEYS: mark, key. ARGV: token, value.
    pub check_and_set: String,
}

/// See `fence::RedisGuard`.
#[napi(catch_unwind)]
pub fn redis_scripts() -> RedisScripts {
    RedisScripts {
        function: fence::RedisGuard::CHECK.to_owned(),
        claim: fence::RedisGuard::claim_script().to_owned(),
        check: fence::RedisGuard::check_script().to_owned(),
        check_and_set: fence::RedisGuard::check_and_set_script().to_owned(),
    }
}

/// See `fence::RedisGuard::mark_key`.
#[napi(catch_unwind)]
pub fn redis_mark_key(key: String) -> Either<String, Failure> {
    either(fence::RedisGuard::mark_key(&key).map_err(Failure::from))
}

/// See `fence::RedisGuard::outcome`.
#[napi(catch_unwind)]
pub fn redis_outcome(item: String, token: f64, reply: i64) -> Outcome {
    outcome(token_of(token).and_then(|token| Ok(fence::RedisGuard::outcome(&item, token, reply)?)))
}

/// One entry of `ExpressionAttributeNames` or `ExpressionAttributeValues`.
#[napi(object, object_from_js = false)]
pub struct Placeholder {
    /// The placeholder in the expression.
    pub placeholder: String,
    /// The name, or the digits of the value.
    pub stands_for: String,
}

/// The constant pieces of `fence::DynamodbGuard`.
#[napi(object, object_from_js = false)]
pub struct DynamodbPieces {
    /// The condition of a claim.
    pub claim: String,
    /// The condition of a write.
    pub check: String,
    /// The assignment that raises the mark.
    pub set: String,
}

/// See `fence::DynamodbGuard`.
#[napi(catch_unwind)]
pub fn dynamodb_pieces() -> DynamodbPieces {
    DynamodbPieces {
        claim: fence::DynamodbGuard::claim_condition().to_owned(),
        check: fence::DynamodbGuard::check_condition().to_owned(),
        set: fence::DynamodbGuard::set().to_owned(),
    }
}

/// See `fence::DynamodbGuard::names`.
#[napi(catch_unwind)]
pub fn dynamodb_names(attribute: String) -> Either<Vec<Placeholder>, Failure> {
    let guard = fence::DynamodbGuard::new(&attribute).map_err(Failure::from);
    either(guard.map(|guard| guard.names().map(|(name, attribute)| placeholder(name, attribute)).into()))
}

/// See `fence::DynamodbGuard::values`.
#[napi(catch_unwind)]
pub fn dynamodb_values(token: f64) -> Either<Vec<Placeholder>, Failure> {
    let values = token_of(token).and_then(|token| Ok(fence::DynamodbGuard::values(token)?));
    either(values.map(|values| values.map(|(name, digits)| placeholder(name, &digits)).into()))
}

/// The item in `ALL_OLD` whose condition did not hold.
#[napi(object, object_to_js = false)]
pub struct Old {
    /// True if there is an item.
    pub exists: bool,
    /// The attribute with its mark, if there is one.
    pub mark: Option<String>,
}

/// The reason why a condition did not hold, unless it is the rest of the condition: see `fence::DynamodbGuard::refusal`
/// and `refusal_of_claim`.
#[napi(catch_unwind)]
pub fn dynamodb_refusal(asked: Asked, item: String, token: f64, old: Old) -> Outcome {
    let token = match token_of(token) {
        Ok(token) => token,
        Err(failure) => return Some(failure),
    };
    let shown = match (old.exists, &old.mark) {
        (false, _) => fence::Shown::Nothing,
        (true, None) => fence::Shown::Unmarked,
        (true, Some(mark)) => fence::Shown::Mark(mark),
    };
    let error = match asked {
        Asked::Claim => fence::DynamodbGuard::refusal_of_claim(&item, token, shown),
        Asked::Check | Asked::Refusal => fence::DynamodbGuard::refusal(&item, token, shown),
    };
    error.map(Failure::from)
}

/// The pieces of a patch with a token: see `fence::CosmosGuard`.
#[napi(object, object_from_js = false)]
pub struct CosmosPieces {
    /// The condition of a claim.
    pub claim: String,
    /// The condition of a write.
    pub check: String,
    /// The operation that raises the mark, as JSON.
    pub set: String,
}

/// See `fence::CosmosGuard`.
#[napi(catch_unwind)]
pub fn cosmos_pieces(property: String, token: f64) -> Either<CosmosPieces, Failure> {
    let pieces = token_of(token).and_then(|token| {
        let guard = fence::CosmosGuard::new(&property)?;
        Ok(CosmosPieces {
            claim: guard.claim_condition(token)?,
            check: guard.check_condition(token)?,
            set: guard.set(token)?,
        })
    });
    either(pieces)
}

/// See `fence::ObjectGuard::claim`, and `write` if there are data.
#[napi(catch_unwind)]
pub fn object_body(item: String, token: f64, seen: Option<Buffer>, data: Option<Buffer>) -> Either<Buffer, Failure> {
    let seen = seen.as_deref();
    let body = token_of(token).and_then(|token| match &data {
        None => Ok(fence::ObjectGuard::claim(&item, token, seen)?),
        Some(data) => Ok(fence::ObjectGuard::write(&item, token, seen, data)?),
    });
    either(body.map(Buffer::from))
}

/// See `fence::ObjectGuard::data`.
#[napi(catch_unwind)]
pub fn object_data(body: Buffer) -> Option<Buffer> {
    fence::ObjectGuard::data(&body).map(|data| data.to_vec().into())
}

fn placeholder(name: &str, stands_for: &str) -> Placeholder {
    Placeholder { placeholder: name.to_owned(), stands_for: stands_for.to_owned() }
}
