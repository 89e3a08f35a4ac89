//! The one answer that is no array: the number of the request.

use super::*;

pub(super) fn released() -> Value {
    bulk("17")
}

#[test]
fn a_release_is_answered_with_its_number() {
    let outcome = |reply| done(codec().begin(ID, &[on("a", release())], LEFT, UNIX_MS).unwrap().replies(vec![reply]));
    assert_eq!(outcome(released()), [Outcome::Applied(Applied::Released)]);
    let word = named(list([bulk("released")]));
    for other in [bulk("16"), bulk("017"), bulk(""), Value::Integer(17), Value::Nil, word] {
        assert!(is_protocol(&outcome(other.clone())[0]), "{other:?}");
    }
}
