"""``Lock`` with the signature and behaviour of redis-py's, on a lease and on the same keys, so that workers with either
library exclude each other.

>>> import redis
>>> from leasehold.compat.redis_py import Lock
>>> with Lock(redis.Redis(), "invoice/42", timeout=10) as lock:         # or redis.Redis().lock(..., lock_class=Lock)
...     print("fencing token", lock.token)                              # new: for the resource

The guide ``docs/migrating-python.md`` lists the differences. The version for asyncio is
``leasehold.compat.redis_py.asyncio.Lock``.
"""

from __future__ import annotations

from contextlib import suppress

from leasehold import _hints
from leasehold._client import _connected
from leasehold._errors import LeaseholdError, LockBusyError, LockTimeoutError, StoreUnavailableError
from leasehold.compat.redis_py._errors import LockConnectionError, LockError, LockNotOwnedError
from leasehold.compat.redis_py._lock import BaseLock, _standing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Literal

    from typing_extensions import Self

    from leasehold import _native

__all__ = ["Lock", "LockConnectionError", "LockError", "LockNotOwnedError"]


class Lock(BaseLock):
    """A named lock; nothing is held until it is acquired.

    redis: a client of redis-py, a url, or a client of :func:`leasehold.connect`.
    timeout: the longest time for which the lock is held, in seconds above 0. Then it is released, even if the work is not
        done, unless it was extended. Without it the lock is held until it is released, or this process exits.
    blocking, blocking_timeout: whether to wait, and for how many seconds at most; without limit by default.
    thread_local: whether each thread that shares this object sees only its own lease.
    raise_on_release_error: whether the end of a ``with`` block raises when the lock was lost; otherwise it is logged.
    sleep: accepted and ignored, since waiters do not poll.
    """

    @property
    def lease(self) -> _native.Lease | None:
        """The lease that this thread has acquired through this object and not released, lost or not; None without one."""
        return self._lease

    def acquire(
        self,
        sleep: float | None = None,
        blocking: bool | None = None,
        blocking_timeout: float | None = None,
        token: object = None,
    ) -> bool:
        """Acquires the lock. Returns True if it was acquired. Omitted arguments are those of the constructor.

        Raises LockConnectionError if the server cannot be reached, which is never the same as a lock that others
        hold, and :class:`leasehold.ConfigError` if this thread holds the lock without a timeout and would wait for
        itself forever.
        """
        with self._translated():
            client, until = self._client(), self._until(blocking, blocking_timeout, token)
            while True:
                for own, _ in _standing(client, self.name):
                    self._owns(own)
                request, is_last = self._request(client, until)
                try:
                    lease = request.acquire()
                except (LockTimeoutError, LockBusyError):
                    if is_last:
                        return False
                else:
                    self._had(client, lease)
                    return True

    def locked(self) -> bool:
        """True if anybody holds the lock. The answer is already old when it arrives."""
        with self._translated():
            return self._client().inspect(self.name) is not None

    def owned(self) -> bool:
        """True if this thread holds the lock through this object, and the server confirms it."""
        lease = self._lease
        return lease is not None and self._owns(lease)

    def release(self) -> None:
        """Releases the lock.

        Raises LockError if nothing was acquired, LockNotOwnedError if the lock was lost since, LockConnectionError if
        the server has not confirmed within 2 s: then the release continues in the background.
        """
        lease = self._taken()
        with self._translated():
            lease.release()

    def extend(self, additional_time: float, replace_ttl: bool = False) -> Literal[True]:
        """Adds seconds to the remaining time of ``timeout``, or replaces it.

        Raises LockError if nothing was acquired or there is no timeout, LockNotOwnedError if the lock was lost.
        """
        lease = self._held("extend")
        return self._extend(lease, self._refresh(lease), additional_time, replace_ttl)

    def reacquire(self) -> Literal[True]:
        """Starts ``timeout`` again. Raises the errors of :meth:`extend`."""
        lease = self._held("reacquire")
        return self._extend(lease, self._refresh(lease), self.timeout or 0.0, True)

    def _owns(self, lease: _native.Lease) -> bool:
        with self._translated():
            client = self._client()
            return self._looked(client, lease, self._is_ours(lease, client.inspect(self.name)))

    def _refresh(self, lease: _native.Lease) -> bool:
        with self._translated():
            client = self._client()
            return self._looked(client, lease, lease.remaining() > 0 and client.refresh(lease, self._ttl))

    def _client(self) -> _native.Client:
        return self._known_client() or self._connected(_connected(self._connector()))

    def __enter__(self) -> Self:
        if not self.acquire():
            self._not_had()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.release()
        except LockError as lost:
            self._swallow(lost, error)


_hints.resolve(globals())
