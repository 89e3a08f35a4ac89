"""``Lock`` with the signature and manners of redis-py's, on a lease: on the same keys, so that workers with one and workers
with the other exclude each other.

>>> import redis
>>> from leasehold.compat.redis_py import Lock
>>> with Lock(redis.Redis(), "invoice/42", timeout=10) as lock:         # or redis.Redis().lock(..., lock_class=Lock)
...     print("fencing token", lock.token)                              # new: for the resource

What is different stands in the guide, ``docs/migrating-python.md``. The twin for asyncio is
``leasehold.compat.redis_py.asyncio.Lock``.
"""

from __future__ import annotations

from contextlib import suppress

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
    timeout: the most seconds for which the lock is held, above 0: then it is released, whether the work is done or not,
        unless it was extended. Without it the lock is held until it is released, or this process ends.
    blocking, blocking_timeout: whether to wait, and for how many seconds at most; for ever by default.
    thread_local: whether each thread that shares this object sees only what it has acquired itself.
    raise_on_release_error: whether the end of a ``with`` block raises when the lock was lost; else it is logged.
    sleep: accepted and of no meaning: nobody polls.
    """

    @property
    def lease(self) -> _native.Lease | None:
        """What this thread has acquired through this object and not released, lost or not; None where there is nothing."""
        return self._lease

    def acquire(
        self,
        sleep: float | None = None,
        blocking: bool | None = None,
        blocking_timeout: float | None = None,
        token: object = None,
    ) -> bool:
        """Whether the lock was had. What is left out is as the constructor said.

        Raises LockConnectionError where the server cannot be reached, which is never the same as a lock that others
        hold, and :class:`leasehold.ConfigError` where this very thread holds the lock without a timeout and would wait for
        itself for ever.
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
        """Whether anybody holds the lock. The answer is old when it arrives."""
        with self._translated():
            return self._client().inspect(self.name) is not None

    def owned(self) -> bool:
        """Whether this thread holds the lock through this object, and the server says so too."""
        lease = self._lease
        return lease is not None and self._owns(lease)

    def release(self) -> None:
        """Gives the lock back.

        Raises LockError if nothing was acquired, LockNotOwnedError if the lock was lost since, LockConnectionError if
        the server has not confirmed within 2 s: then the release goes on in the background.
        """
        lease = self._taken()
        with self._translated():
            try:
                # It may have been taken away since the last renewal.
                is_ours = self._is_ours(lease, self._client().inspect(self.name))
            except StoreUnavailableError:
                # So will the release say.
                is_ours = True
            except BaseException:
                # Whatever has interrupted the look, its caller is done with the lock.
                with suppress(LeaseholdError):
                    lease.release()
                raise
            lease.release()
        self._unless_owned(is_ours)

    def extend(self, additional_time: float, replace_ttl: bool = False) -> Literal[True]:
        """Adds seconds to the time that is left of ``timeout``, or puts them in its place.

        Raises LockError if nothing was acquired or there is no timeout, LockNotOwnedError if the lock was lost.
        """
        lease = self._held("extend")
        return self._extend(lease, self._refresh(lease), additional_time, replace_ttl)

    def reacquire(self) -> Literal[True]:
        """Has ``timeout`` begin anew. Raises what :meth:`extend` raises."""
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
        return self._known_client() or self._connected(self._connector().connect())

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
