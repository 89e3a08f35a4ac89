// The shared exports of both ways of loading the component.

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
