//! [`leasehold_fuzz::rest`], as a program.

#![cfg_attr(fuzzing, no_main)]

leasehold_fuzz::target!(leasehold_fuzz::rest::run);
