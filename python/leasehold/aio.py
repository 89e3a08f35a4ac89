"""The same client for asyncio, under the same names.

>>> import asyncio, leasehold.aio
>>> async def main():
...     async with leasehold.aio.connect("memory:") as client:
...         async with client.lock("invoice/42", ttl=30, wait=10, on_lost="cancel") as lease:
...             print("fencing token", lease.token)
>>> asyncio.run(main())
fencing token ...

Cancelling a task that waits for a lock abandons the acquisition, and nothing is held afterwards. ``on_lost="cancel"`` cancels
the task that runs the body when the lease is lost, and the ``async with`` statement then raises LeaseLostError.
Renewals happen on the client's own threads, so an event loop that is blocked for a while loses no lease.
"""

from __future__ import annotations

import asyncio

from leasehold import _aio_shards, _hints
from leasehold._aio_lease import Lease, Leases, Lost, Permit, Run, refuse_uncallable
from leasehold._aio_lock import Acquirable, Lock, Once
from leasehold._aio_loop import OnLoop, perform, reactor_of, task_number
from leasehold._aio_pending import Pending, asked
from leasehold._aio_permits import LockAny, RwLock, Semaphore
from leasehold._aio_shards import Shard, Shards
from leasehold._client import _begin_acquire, _connector, _end_with_child, _refuse_wait, _request, _several
from leasehold._misuse import AsyncOnly
from leasehold._options import (
    UNNAMED,
    Unnamed,
    acquiring,
    acquiring_all,
    connecting,
    refuse_name,
    refuse_prefix,
    refuse_key,
    refuse_unknown,
    running,
    shown_as,
    trying,
    watching,
    watching_any,
    watching_permits,
    watching_shared,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Sequence
    from types import TracebackType
    from typing import Any, NoReturn

    from typing_extensions import Self, Unpack

    from leasehold import _native
    from leasehold._aio_lock import OnLost
    from leasehold._aio_shards import OnGain, OnLoss
    from leasehold._errors import LeaseholdError
    from leasehold._native import LockInfo, ReleaseIfOutcome, RevokeOutcome, SessionInfo
    from leasehold._runs import Completion, RunInfo
    from leasehold._types import (
        AllOptions,
        AnyOptions,
        ConnectOptions,
        LockOptions,
        OnceOptions,
        Seconds,
        Stores,
        Strings,
        TryOptions,
    )
    from leasehold._watch import Change

__all__ = [
    "Acquirable",
    "Client",
    "Election",
    "Lease",
    "Leases",
    "Lock",
    "LockAny",
    "Lost",
    "Once",
    "Pending",
    "Permit",
    "Run",
    "RwLock",
    "Semaphore",
    "Shard",
    "Shards",
    "connect",
]


@shown_as(connecting)
def connect(stores: Stores | None | Unnamed = UNNAMED, **options: Unpack[ConnectOptions]) -> Pending[Client]:
    """Opens a store; see :func:`leasehold.connect`. ``await`` it for the client, or write ``async with connect(...) as client``,
    which closes it at the end.
    """
    return Pending(_connect(stores, options))


async def _connect(stores: Stores | None | Unnamed, options: ConnectOptions) -> Client:
    return Client(await perform(_connector(stores, **options).begin_connect()))


class Client(AsyncOnly):
    """A connection to a store, and everything that keeps its leases alive; made by :func:`connect`.

    Any number of tasks and event loops may use it. Its methods are those of :class:`leasehold.Client`, awaited.
    """

    _settled: Callable[[], object] | None = None
    """Called when a callback has ended of a client of a test clock."""

    def __init__(self, native: _native.Client) -> None:
        self._native = native
        _end_with_child()

    @property
    def stores(self) -> Strings:
        """The urls of the stores, without secrets."""
        return self._native.stores

    @shown_as(watching)
    def lock(self, name: str, *, on_lost: OnLost = None, **options: Unpack[LockOptions]) -> Lock:
        """A lock for ``async with``, or as a decorator of a coroutine function. Nothing is held yet."""
        return Lock(self, name, on_lost, options)

    @shown_as(acquiring)
    def acquire(self, name: str, **options: Unpack[LockOptions]) -> Pending[Lease]:
        """See :meth:`leasehold.Client.acquire`; awaited, or entered by ``async with``."""
        return Pending(self._acquire(name, options))

    async def _acquire(self, name: str, options: LockOptions) -> Lease:
        loop = asyncio.get_running_loop()
        return Lease(await perform(_begin_acquire(self._native, name, task_number(loop), options), loop))

    @shown_as(trying)
    @asked
    async def try_acquire(self, name: str, **options: Unpack[TryOptions]) -> Lease | None:
        """See :meth:`leasehold.Client.try_acquire`."""
        _refuse_wait(options)
        lease = await perform(_request(self._native, name, options).begin_try_acquire())
        return None if lease is None else Lease(lease)

    @shown_as(running)
    def once(self, name: str, *, save_result: bool = False, **options: Unpack[OnceOptions]) -> Once:
        """See :meth:`leasehold.Client.once`; used by ``async with``, or as a decorator of coroutine functions."""
        once = Once(self, name, options)
        once._saves = save_result
        return once

    @shown_as(acquiring_all)
    def lock_all(self, names: Iterable[str], **options: Unpack[AllOptions]) -> Pending[Leases]:
        """See :meth:`leasehold.Client.lock_all`; awaited, or entered by ``async with``."""
        return Pending(self._lock_all(names, options))

    async def _lock_all(self, names: Iterable[str], options: AllOptions) -> Leases:
        names = _several(names)
        try:
            operation = self._native.begin_acquire_all(names, **options)
        except TypeError:
            refuse_unknown("lock_all", acquiring_all, options)
            raise
        return Leases(await perform(operation))

    @shown_as(watching_any)
    def lock_any(self, names: Iterable[str], *, on_lost: OnLost = None, **options: Unpack[AnyOptions]) -> LockAny:
        """See :meth:`leasehold.Client.lock_any`; used by ``async with``, or as a decorator of coroutine functions."""
        return LockAny(self._native, _several(names), on_lost, options)

    @shown_as(watching_permits)
    def semaphore(self, name: str, permits: int, *, on_lost: OnLost = None, **options: Unpack[AnyOptions]) -> Semaphore:
        """See :meth:`leasehold.Client.semaphore`; used by ``async with``, or as a decorator of coroutine functions."""
        return Semaphore(self._native, name, permits, on_lost, options)

    async def set_permits(self, name: str, permits: int) -> None:
        """See :meth:`leasehold.Client.set_permits`."""
        refuse_name(name)
        await perform(self._native.begin_set_permits(name, permits))

    @shown_as(watching_shared)
    def rw_lock(
        self, name: str, *, readers: int | None = None, on_lost: OnLost = None, **options: Unpack[AllOptions]
    ) -> RwLock:
        """See :meth:`leasehold.Client.rw_lock`."""
        return RwLock(self._native, name, readers, on_lost, options)

    async def set_readers(self, name: str, readers: int) -> None:
        """See :meth:`leasehold.Client.set_readers`."""
        refuse_name(name)
        await perform(self._native.begin_set_readers(name, readers))

    def list(self, prefix: str = "") -> AsyncGenerator[LockInfo, None]:
        """See :meth:`leasehold.Client.list`; used by ``async for``."""
        refuse_prefix(prefix)
        return _listed(self._native.pages(prefix))

    def runs(self, prefix: str = "") -> AsyncGenerator[RunInfo, None]:
        """See :meth:`leasehold.Client.runs`; used by ``async for``."""
        refuse_prefix(prefix)
        return _listed(self._native.run_pages(prefix))

    def watch(self, name: str, *, every: Seconds | None = None) -> AsyncGenerator[Change, None]:
        """See :meth:`leasehold.Client.watch`; used by ``async for``."""
        refuse_name(name)
        return _changed(self._native.changes(name, every))

    def elect(
        self,
        name: str,
        *,
        ttl: Seconds | None = None,
        owner: str | None = None,
        on_start: Callable[[Lease], Awaitable[object] | object] | None = None,
        on_stop: Callable[[LeaseholdError | None], Awaitable[object] | object] | None = None,
    ) -> Election:
        """See :meth:`leasehold.Client.elect`. The callbacks run on the running event loop, and may be coroutine
        functions; the next step of the election waits for them. When the loop is closed, the election is resigned.
        """
        refuse_name(name)
        loop = asyncio.get_running_loop()
        for callback in (on_start, on_stop):
            if callback is not None:
                refuse_uncallable(callback)

        started = None if on_start is None else OnLoop(loop, on_start, Lease, self._settled)
        stopped = None if on_stop is None else OnLoop(loop, on_stop, None, self._settled)
        election = self._native.elect(name, ttl=ttl, owner=owner, on_start=started, on_stop=stopped)
        reactor_of(loop).tie(election)
        return Election(election)

    def shards(
        self,
        name: str,
        count: int = 16,
        *,
        on_gain: OnGain = None,
        on_loss: OnLoss = None,
        ttl: Seconds | None = None,
        owner: str | None = None,
        look_every: Seconds | None = None,
    ) -> Shards:
        """See :meth:`leasehold.Client.shards`. The callbacks run on the running event loop, and may be coroutine functions.
        When the loop is closed, the worker stops.
        """
        refuse_name(name)
        return _aio_shards.start(self._native, name, count, on_gain, on_loss, ttl, owner, look_every, self._settled)

    async def set_shards(self, name: str, count: int) -> None:
        """See :meth:`leasehold.Client.set_shards`."""
        refuse_name(name)
        await perform(self._native.begin_set_shards(name, count))

    @asked
    async def inspect(self, name: str) -> LockInfo | None:
        """See :meth:`leasehold.Client.inspect`."""
        refuse_name(name)
        info: LockInfo | None = await perform(self._native.begin_inspect(name))
        return info

    @asked
    async def inspect_run(self, name: str, key: str | None = None) -> RunInfo:
        """See :meth:`leasehold.Client.inspect_run`."""
        refuse_name(name)
        refuse_key(key)
        info: RunInfo = await perform(self._native.begin_inspect_run(name, key))
        return info

    @asked
    async def forget_run(self, name: str, key: str | None = None) -> Completion | None:
        """See :meth:`leasehold.Client.forget_run`."""
        refuse_name(name)
        refuse_key(key)
        completion: Completion | None = await perform(self._native.begin_forget_run(name, key))
        return completion

    @asked
    async def release_if(self, name: str, *, token: int | None = None, owner: str | None = None) -> ReleaseIfOutcome:
        """See :meth:`leasehold.Client.release_if`."""
        outcome: ReleaseIfOutcome = await perform(self._native.begin_release_if(name, token, owner))
        return outcome

    @asked
    async def revoke(self, name: str, token: int, *, owner: str | None = None) -> RevokeOutcome:
        """See :meth:`leasehold.Client.revoke`."""
        outcome: RevokeOutcome = await perform(self._native.begin_revoke(name, token, owner))
        return outcome

    @asked
    async def sessions(self) -> Sequence[SessionInfo]:
        """See :meth:`leasehold.Client.sessions`."""
        sessions: Sequence[SessionInfo] = await perform(self._native.begin_sessions())
        return sessions

    @asked
    async def revoke_session(self, label: str) -> Sequence[SessionInfo]:
        """See :meth:`leasehold.Client.revoke_session`."""
        sessions: Sequence[SessionInfo] = await perform(self._native.begin_revoke_session(label))
        return sessions

    async def close(self) -> None:
        """See :meth:`leasehold.Client.close`."""
        await perform(self._native.begin_close())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self.close()
        except ConnectionError:
            if error is None:
                raise

    def __reduce__(self) -> NoReturn:
        raise TypeError("a client is a connection of this process: connect again in the other one")

    def __repr__(self) -> str:
        return f"<leasehold.aio.Client {' '.join(self.stores)}>"


async def _listed(pages: _native.Pages | _native.RunPages) -> AsyncGenerator[Any, None]:
    while (page := await perform(pages.begin_next())) is not None:
        for each in page:
            yield each


async def _changed(changes: _native.Changes) -> AsyncGenerator[Change, None]:
    while True:
        yield await perform(changes.begin_next())


class Election(AsyncOnly):
    """A candidacy; see :class:`leasehold.Election`. It campaigns from the call on: it may be awaited, which takes no time, or be
    entered by ``async with``, which resigns at the end.
    """

    def __init__(self, native: _native.Election) -> None:
        self._native = native

    @property
    def resource(self) -> str:
        """The name of the election's lock."""
        return self._native.resource

    @property
    def token(self) -> int | None:
        """The fencing token of the current term; None while somebody else leads, and after the lease of the term ended."""
        return self._native.token

    @property
    def last_error(self) -> LeaseholdError | None:
        """The error of the last campaign, if it failed: the store is down or refuses, or a callback has raised."""
        return self._native.last_error

    async def resign(self) -> None:
        """Stops campaigning; a current term ends, ``on_stop`` is called, and the lock is released. In a callback of this
        election it returns at once, and the term ends afterwards. If the last term has ended since a callback raised, that
        exception is raised here.
        """
        await perform(self._native._begin_end(False))

    def __await__(self) -> Generator[None, None, Self]:
        yield from ()
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await perform(self._native._begin_end(kind is not None))

    def __repr__(self) -> str:
        return repr(self._native)


_hints.resolve(globals())
