//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.

use super::*;
use crate::face::*;

impl Fields for Malformed {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("message", self.message.write(to)),
        ]
    }
}
