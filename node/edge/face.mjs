// The shared exports of both ways of loading the component.

import errors from "./shared/errors.mjs";
import results from "./shared/results.mjs";

export { Client } from "./client.mjs";
export { Lease, Run } from "./lease.mjs";
export const {
  LeaseholdError,
  LockBusyError,
  LockTimeoutError,
  LeaseLostError,
  NotOwnedError,
  FinishUnconfirmedError,
  ResultNotKeptError,
  GivenUpError,
  StoreUnavailableError,
  StoreRefusedError,
  ClosedError,
  ConfigError,
} = errors;
export const { noResult, unsettled } = results;
