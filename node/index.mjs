import leasehold from "./index.cjs";

// One implementation, so that an error is an instance of the same class for whoever imports and whoever requires it.
export const {
  connect,
  observe,
  Client,
  Election,
  Lease,
  Leases,
  LeaseholdError,
  LockBusyError,
  LockTimeoutError,
  LeaseLostError,
  NotOwnedError,
  StoreUnavailableError,
  StoreRefusedError,
  ClosedError,
  ConfigError,
  InternalError,
  StaleTokenError,
} = leasehold;
