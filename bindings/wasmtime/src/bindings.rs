//! The WIT as Rust.

#![allow(missing_docs, unreachable_pub)]

wasmtime::component::bindgen!({
    path: "wit/leasehold.wit",
    world: "protocol",
    additional_derives: [PartialEq],
});
