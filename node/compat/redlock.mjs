// By name: bundlers differ in what the default export of a CommonJS module is.
export { Redlock, Redlock as default, Lock, ExecutionError, ResourceLockedError } from "./redlock.cjs";
