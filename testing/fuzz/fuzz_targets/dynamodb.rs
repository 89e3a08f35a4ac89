//! [`leasehold_fuzz::dynamodb`], as a program.

#![cfg_attr(fuzzing, no_main)]

leasehold_fuzz::target!(leasehold_fuzz::dynamodb::run);
