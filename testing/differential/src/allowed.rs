//! The table of differences that are allowed: `allowed.txt`. Each test prints the rows that it needed.

use std::collections::BTreeMap;

use crate::compare::{Difference, Value};

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// The store, or several.
    pub stores: &'static str,
    /// The kind of step, `*` for all.
    pub step: &'static str,
    /// The field.
    pub field: &'static str,
    /// The name of the rule that it obeys instead.
    pub rule: &'static str,
    /// The reason.
    pub why: &'static str,
    /// All of it, as it stands in the file.
    pub text: &'static str,
}

/// The rows that were needed, and how often.
pub type Used = BTreeMap<Row, u64>;

/// The table.
///
/// # Panics
/// A row has another number of columns, or an unknown rule.
pub fn table() -> Vec<Row> {
    let rows = include_str!("allowed.txt").lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    rows.map(|line| {
        let columns: Vec<_> = line.split('|').map(str::trim).collect();
        let [stores, step, field, rule, why] = columns[..] else { panic!("not five columns: {line}") };
        assert!(RULES.contains(&rule), "no rule {rule}: {line}");
        Row { stores, step, field, rule, why, text: line }
    })
    .collect()
}

/// The second line changes what the reference does, see [`Run`](crate::run::Run).
const RULES: [&str; 14] = [
    "hidden",
    "shown",
    "any",
    "higher",
    "longer",
    "a_minute",
    "shorter",
    "forgets",
    "again",
    "renews_late",
    "no_raise",
    "not_seen",
    "untold",
    "over",
];

impl Row {
    /// Returns true if the row is about this store and kind of step.
    pub fn is_about(&self, store: &str, step: &str) -> bool {
        self.stores.split_whitespace().any(|one| one == store || one == "*")
            && (self.step == "*" || self.step.split_whitespace().any(|one| one == step))
    }

    /// Returns true if the difference obeys the rule.
    pub fn allows(&self, difference: &Difference) -> bool {
        if self.field != difference.field {
            return false;
        }
        match (self.rule, &difference.store, &difference.reference) {
            ("any", _, _) | ("hidden", None, Some(_)) | ("shown", Some(_), None) => true,
            ("not_seen", Some(Value::Text(store)), Some(Value::Text(reference))) => {
                reference == "conflict"
                    && store.contains(
                        "the object of this lock is not visible, perhaps because reads of this store may be stale",
                    )
            }
            ("higher", Some(Value::Number(store)), Some(Value::Number(reference))) => store > reference,
            ("longer", Some(Value::Span(store)), Some(Value::Span(reference))) => store > reference,
            ("longer", Some(Value::At(store)), Some(Value::At(reference))) => store > reference,
            ("shorter", Some(Value::Span(store)), Some(Value::Span(reference))) => store < reference,
            ("a_minute", Some(Value::Span(store)), Some(Value::Span(reference))) => {
                store.abs_diff(*reference).as_secs() <= 63
            }
            ("shorter", Some(Value::At(store)), Some(Value::At(reference))) => store < reference,
            _ => false,
        }
    }
}
