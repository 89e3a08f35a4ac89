// The shared exports of both ways of loading the component.

import errors from "./shared/errors.mjs";

export { Client } from "./client.mjs";
export { Lease, Run } from "./lease.mjs";
export const {
  LeaseholdError,
  LockBusyError,
  LockTimeoutError,
  LeaseLostError,
  NotOwnedError,
  FinishUnconfirmedError,
  StoreUnavailableError,
  StoreRefusedError,
  ClosedError,
  ConfigError,
} = errors;
