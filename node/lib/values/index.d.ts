// Generated from wit/leasehold.wit by `cargo xtask component --bless`. Do not edit.

export type * from "./types.js";
export type * from "./ops.js";
export type * from "./stores.js";
export type * from "./client.js";
export type * from "./runs.js";
export type * from "./fence.js";
