"""Distributed locks that tell the truth.

>>> import leasehold
>>> client = leasehold.connect("memory:")
>>> with client.lock("invoice/42", ttl=30, wait=10) as lease:   # raises, never enters without the lock
...     lease.check(5)                                          # LeaseLostError unless 5 s of validity are left
...     print("fencing token", lease.token)                     # for the resource, which refuses older ones
fencing token ...

All lengths of time are seconds, as a number or a ``timedelta``. ``ttl`` is how long a grant lasts without renewal
(default 30 s, 0.1 s to 24 h; it is renewed in the background), ``wait`` how long to try (default for ever; 0 tries
once). Locks are not reentrant. Waiters of one client are served in order; across clients there is no order.

A lease is no proof: between a check and the write that it guards any amount of time can pass. Only the resource
itself, refusing tokens older than it has seen, closes that gap: see ``leasehold.fence``. In a forked child all
inherited leases are lost, nothing is released, and inherited clients refuse to work; connect again there.
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
