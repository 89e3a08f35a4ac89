//! [`leasehold_fuzz::wired`], as a program.

#![cfg_attr(fuzzing, no_main)]

leasehold_fuzz::target!(leasehold_fuzz::wired::run);
