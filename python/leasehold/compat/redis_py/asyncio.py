"""The version of :class:`leasehold.compat.redis_py.Lock` for asyncio, with the behaviour of ``redis.asyncio.lock.Lock``."""

from __future__ import annotations

import asyncio

from leasehold import _hints
from leasehold._aio_loop import perform
from leasehold._aio_pending import asked
from leasehold._errors import LockBusyError, LockTimeoutError
from leasehold.aio import Lease
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
    """A named lock; nothing is held until it is acquired. See :class:`leasehold.compat.redis_py.Lock`; ``redis`` is a
    client of ``redis.asyncio``, a url, or a client of :func:`leasehold.aio.connect`.
    """

    @property
    def lease(self) -> Lease | None:
        """The lease that was acquired through this object and not released, lost or not; None without one."""
        lease = self._lease
        return None if lease is None else Lease(lease)

    @asked
    async def acquire(
        self,
        sleep: float | None = None,
        blocking: bool | None = None,
        blocking_timeout: float | None = None,
        token: object = None,
    ) -> bool:
        """Acquires the lock; see :meth:`leasehold.compat.redis_py.Lock.acquire`."""
        with self._translated():
            client, until = await self._client(), self._until(blocking, blocking_timeout, token)
            while True:
                for own, _ in _standing(client, self.name):
                    await self._owns(own)
                request, is_last = self._request(client, until)
                try:
                    lease = await perform(request.begin_acquire())
                except (LockTimeoutError, LockBusyError):
                    if is_last:
                        return False
                else:
                    self._had(client, lease)
                    return True

    @asked
    async def locked(self) -> bool:
        """True if anybody holds the lock. The answer is already old when it arrives."""
        with self._translated():
            return await self._inspect() is not None

    @asked
    async def owned(self) -> bool:
        """True if the lock is held through this object, and the server confirms it."""
        lease = self._lease
        return lease is not None and await self._owns(lease)

    async def release(self) -> None:
        """Releases the lock; see :meth:`leasehold.compat.redis_py.Lock.release`. Cancelling does not stop it."""
        lease = self._taken()
        await asyncio.shield(asyncio.ensure_future(self._give_back(lease)))

    @asked
    async def extend(self, additional_time: float, replace_ttl: bool = False) -> Literal[True]:
        """See :meth:`leasehold.compat.redis_py.Lock.extend`."""
        lease = self._held("extend")
        return self._extend(lease, await self._refresh(lease), additional_time, replace_ttl)

    @asked
    async def reacquire(self) -> Literal[True]:
        """See :meth:`leasehold.compat.redis_py.Lock.reacquire`."""
        lease = self._held("reacquire")
        return self._extend(lease, await self._refresh(lease), self.timeout or 0.0, True)

    async def __aenter__(self) -> Self:
        if not await self.acquire():
            self._not_had()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self.release()
        except LockError as lost:
            self._swallow(lost, error)

    async def _client(self) -> _native.Client:
        return self._known_client() or self._connected(await perform(self._connector().begin_connect()))

    async def _inspect(self) -> _native.LockInfo | None:
        info: _native.LockInfo | None = await perform((await self._client()).begin_inspect(self.name))
        return info

    async def _owns(self, lease: _native.Lease) -> bool:
        with self._translated():
            return self._looked(await self._client(), lease, self._is_ours(lease, await self._inspect()))

    async def _refresh(self, lease: _native.Lease) -> bool:
        with self._translated():
            client = await self._client()
            is_ours = lease.remaining() > 0 and await perform(client.begin_refresh(lease, self._ttl))
            return self._looked(client, lease, is_ours)

    async def _give_back(self, lease: _native.Lease) -> None:
        with self._translated():
            await perform(lease._begin_release())


_hints.resolve(globals())
