//! [`leasehold_fuzz::sqlite`], as a program.

#![cfg_attr(fuzzing, no_main)]

leasehold_fuzz::target!(leasehold_fuzz::sqlite::run);
