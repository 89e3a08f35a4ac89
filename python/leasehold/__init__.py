"""Distributed locks that tell the truth.

>>> import leasehold
>>> client = leasehold.connect("memory:")
>>> with client.lock("invoice/42", ttl=30, wait=10) as lease:   # raises, never enters without the lock
...     lease.check(5)                                          # LeaseLostError unless 5 s of validity are left
...     print("fencing token", lease.token)                     # for the resource, which rejects older ones
fencing token ...

All durations are in seconds, as a number or a ``timedelta``. ``ttl`` is how long a lease lasts without renewal
(default 30 s, 0.1 s to 24 h; it is renewed in the background), ``wait`` is how long to try (default: without limit; 0 tries
once). Locks are not reentrant. Waiters of one client are served in order; across clients there is no order.

Any amount of time can pass between a check of a lease and the write that it guards. Only the resource
itself closes that gap, by rejecting tokens older than the newest it has seen: see ``leasehold.fence``. In a forked child all
inherited leases are lost, nothing is released, and inherited clients raise an error: connect again there.
"""

from __future__ import annotations

from leasehold._client import Client, connect
from leasehold._errors import (
    ClosedError,
    ConfigError,
    InternalError,
    LeaseholdError,
    LeaseLostError,
    LockBusyError,
    LockTimeoutError,
    NotOwnedError,
    StaleTokenError,
    StoreRefusedError,
    StoreUnavailableError,
)
from leasehold._lock import Lock
from leasehold._native import Election, Lease, Leases, LockInfo, Lost, ReleaseIfOutcome, __version__

__all__ = [
    "Client",
    "ClosedError",
    "ConfigError",
    "Election",
    "InternalError",
    "Lease",
    "LeaseLostError",
    "LeaseholdError",
    "Leases",
    "Lock",
    "LockBusyError",
    "LockInfo",
    "LockTimeoutError",
    "Lost",
    "NotOwnedError",
    "ReleaseIfOutcome",
    "StaleTokenError",
    "StoreRefusedError",
    "StoreUnavailableError",
    "__version__",
    "connect",
]
