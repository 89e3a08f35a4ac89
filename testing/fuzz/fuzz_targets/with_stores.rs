//! [`leasehold_fuzz::with_stores`], as a program.

#![cfg_attr(fuzzing, no_main)]

leasehold_fuzz::target!(leasehold_fuzz::with_stores::run);
