// What both ways of loading the component have in common for users.

import errors from "./shared/errors.mjs";

export { Client } from "./client.mjs";
export { Lease } from "./lease.mjs";
export const {
  LeaseholdError,
  LockBusyError,
  LockTimeoutError,
  LeaseLostError,
  NotOwnedError,
  StoreUnavailableError,
  StoreRefusedError,
  ClosedError,
  ConfigError,
} = errors;
