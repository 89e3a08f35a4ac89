import leasehold from "./index.cjs";

// One implementation, so that `import` and `require` give the same error classes.
export const {
  connect,
  observe,
  Client,
  Election,
  Lease,
  Leases,
  LockAny,
  Permit,
  Run,
  RwLock,
  Semaphore,
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
  InternalError,
  StaleTokenError,
} = leasehold;
