//! Leaves out steps for as long as the same kind of difference remains.

use crate::run::Failure;
use crate::script::Step;

/// The shortest script that was found, and its difference. `fails` runs a script on a new store.
pub fn shrink(
    script: &[Step],
    failure: Failure,
    mut fails: impl FnMut(&[Step]) -> Option<Failure>,
) -> (Vec<Step>, Failure) {
    let mut shortest = script[..=failure.at].to_vec();
    let mut found = failure;
    let mut length = shortest.len().div_ceil(2);
    loop {
        let mut at = 0;
        let before = shortest.len();
        while at < shortest.len() {
            let end = (at + length).min(shortest.len());
            let shorter: Vec<_> = shortest[..at].iter().chain(&shortest[end..]).cloned().collect();
            match fails(&shorter).filter(|other| other.is_like(&found)) {
                Some(other) => {
                    shortest = shorter[..=other.at].to_vec();
                    found = other;
                }
                None => at += length,
            }
        }
        if length == 1 && shortest.len() == before {
            return (shortest, found);
        }
        length = if length == 1 { 1 } else { length.div_ceil(2) };
    }
}
