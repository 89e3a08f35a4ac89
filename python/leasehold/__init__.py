"""Distributed locks that tell the truth.

>>> import leasehold
>>> client = leasehold.connect("memory:")
>>> with client.lock("invoice/42", ttl=30, wait=10) as lease:   # raises, never enters without the lock
...     lease.check(5)                                          # LeaseLostError unless 5 s of validity are left
...     print("fencing token", lease.token)                     # for the resource, which rejects older ones
fencing token ...

All durations are in seconds, as a number or a ``timedelta``. ``ttl`` is how long a lease lasts without renewal
(default 30 s, 0.1 s to 24 h; it is renewed in the background), ``wait`` is how long to try (default: without limit; 0 tries
once). Locks are not reentrant. Waiters of one client are served in order; across clients only
in memory, in SQLite, on PostgreSQL and on one Redis.

Any amount of time can pass between a check of a lease and the write that it guards. Only the resource
itself closes that gap, by rejecting tokens older than the newest it has seen: see ``leasehold.fence``. In a forked child all
inherited leases are lost, nothing is released, and inherited clients raise an error: connect again there.
"""

from __future__ import annotations

from leasehold import _hints
from leasehold._client import Client, connect
from leasehold._errors import (
    CallbackError,
    ClosedError,
    ConfigError,
    FinishUnconfirmedError,
    GivenUpError,
    InternalError,
    LeaseholdError,
    LeaseLostError,
    LockBusyError,
    LockTimeoutError,
    NotOwnedError,
    ResultNotKeptError,
    StaleTokenError,
    StoreRefusedError,
    StoreUnavailableError,
    TooManyConflictsError,
)
from leasehold._lock import Acquirable, Lock
from leasehold._native import (
    Election,
    Lease,
    Leases,
    LockInfo,
    Lost,
    Permit,
    ReleaseIfOutcome,
    RevokeOutcome,
    Run,
    SessionInfo,
    Shard,
    Shards,
    __version__,
)
from leasehold._once import Once
from leasehold._permits import LockAny, RwLock, Semaphore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from leasehold._results import NoResult
    from leasehold._runs import AlreadyDone, Attempts, Completion, Ran, Replaced, RetryLater, RunInfo, RunningElsewhere
    from leasehold._watch import Change

__all__ = [
    "Acquirable",
    "AlreadyDone",
    "Attempts",
    "CallbackError",
    "Change",
    "Client",
    "ClosedError",
    "ConfigError",
    "Election",
    "FinishUnconfirmedError",
    "GivenUpError",
    "InternalError",
    "Lease",
    "LeaseLostError",
    "LeaseholdError",
    "Leases",
    "Lock",
    "LockAny",
    "LockBusyError",
    "LockInfo",
    "LockTimeoutError",
    "Lost",
    "Completion",
    "NoResult",
    "NotOwnedError",
    "Once",
    "Permit",
    "Ran",
    "ReleaseIfOutcome",
    "ResultNotKeptError",
    "Replaced",
    "RetryLater",
    "RevokeOutcome",
    "Run",
    "RunInfo",
    "RunningElsewhere",
    "RwLock",
    "Semaphore",
    "SessionInfo",
    "Shard",
    "Shards",
    "StaleTokenError",
    "StoreRefusedError",
    "StoreUnavailableError",
    "TooManyConflictsError",
    "__version__",
    "connect",
]

if not TYPE_CHECKING:
    # They need modules that take long to import.
    _LAZY = {
        "AlreadyDone": "_runs",
        "Attempts": "_runs",
        "Change": "_watch",
        "Completion": "_runs",
        "NoResult": "_results",
        "Ran": "_runs",
        "Replaced": "_runs",
        "RetryLater": "_runs",
        "RunInfo": "_runs",
        "RunningElsewhere": "_runs",
    }

    def __getattr__(name: str) -> object:
        if name not in _LAZY:
            raise AttributeError(f"module 'leasehold' has no attribute {name!r}")
        from importlib import import_module

        value = globals()[name] = getattr(import_module(f"leasehold.{_LAZY[name]}"), name)
        _hints.resolve_class(value, f"leasehold.{_LAZY[name]}")
        return value


_hints.resolve(globals())
del TYPE_CHECKING
