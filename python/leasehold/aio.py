"""The same client for asyncio, under the same names.

>>> import asyncio, leasehold.aio
>>> async def main():
...     async with await leasehold.aio.connect("memory:") as client:
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
import concurrent.futures
import functools
import inspect
import itertools
import os
import weakref

from leasehold import _native
from leasehold._client import _begin_acquire, _connector, _end_with_child, _refuse_wait, _request, _run_request, _several
from leasehold._errors import ConfigError, LeaseholdError, LockBusyError, LockTimeoutError, NotOwnedError
from leasehold._functions import refuse_generator, refuse_plain
from leasehold._names import namer
from leasehold._once import NOT_A_CONDITION, requester
from leasehold._options import (
    acquiring,
    acquiring_all,
    connecting,
    refuse_name,
    refuse_prefix,
    refuse_slot,
    refuse_unknown,
    running,
    shown_as,
    trying,
    watching,
    watching_any,
    watching_permits,
    watching_shared,
)
from leasehold._runs import Ran

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Iterable
    from types import TracebackType
    from typing import Any, Literal, NoReturn, ParamSpec, TypeVar

    from typing_extensions import Self, Unpack

    from leasehold._aio_permits import LockAny, RwLock, Semaphore
    from leasehold._lock import Namer
    from leasehold._native import LockInfo, ReleaseIfOutcome, RevokeOutcome
    from leasehold._runs import AlreadyDone, Mark, RunInfo, RunningElsewhere
    from leasehold._types import (
        AllOptions,
        AnyOptions,
        ConnectOptions,
        LockOptions,
        OnceOptions,
        ParamStyle,
        Seconds,
        Stores,
        Strings,
        TryOptions,
    )
    from leasehold._watch import Change

    P = ParamSpec("P")
    R = TypeVar("R")
    OnLost = Literal["cancel"] | None

__all__ = ["Acquirable", "Client", "Election", "Lease", "Leases", "Lock", "Lost", "Once", "Permit", "Run", "connect"]

# A reactor belongs to its loop, which drops it when the loop is closed: pending operations there are cancelled.
# Any other reference to a reactor would keep its operations and its loop alive.
_reactors: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.ref[_native.Reactor]]
_reactors = weakref.WeakKeyDictionary()
# The loop and reactor that were used last, as functions that return them: most programs have one loop, and looking it up in a
# dictionary takes long.
_latest: tuple[Callable[[], asyncio.AbstractEventLoop | None], Callable[[], _native.Reactor | None]]
_latest = (lambda: None, lambda: None)


# A number for each task that has acquired a lock, to detect a task that would wait for itself.
_tasks: weakref.WeakKeyDictionary[asyncio.Task[Any], int] = weakref.WeakKeyDictionary()
_numbers = itertools.count()


def _task(loop: asyncio.AbstractEventLoop) -> int | None:
    task = asyncio.current_task(loop)
    if task is None:
        return None
    number = _tasks.get(task)
    if number is None:
        number = _tasks[task] = next(_numbers)
    return number


def _known_reactor(loop: asyncio.AbstractEventLoop) -> _native.Reactor | None:
    global _latest
    latest_loop, latest = _latest
    if latest_loop() is loop and (reactor := latest()) is not None:
        return reactor
    known = _reactors.get(loop)
    if known is None:
        return None
    _latest = (weakref.ref(loop), known)
    return known()


def _reactor(loop: asyncio.AbstractEventLoop) -> _native.Reactor:
    reactor = _known_reactor(loop)
    if reactor is None:
        reactor = _native.Reactor(loop)
        os.set_blocking(reactor.fileno(), False)
        loop.add_reader(reactor.fileno(), reactor.run)
        _reactors[loop] = weakref.ref(reactor)
    return reactor


def _start(loop: asyncio.AbstractEventLoop, operation: _native.Operation, waiter: asyncio.Future[Any]) -> int:
    return _reactor(loop).start(operation, waiter)


def _cancel(loop: asyncio.AbstractEventLoop, task: int) -> None:
    reactor = _known_reactor(loop)
    # Without a reactor, the task was dropped with the loop.
    if reactor is not None:
        reactor.cancel(task)


async def _run(operation: _native.Operation, loop: asyncio.AbstractEventLoop | None = None) -> Any:
    """Runs an operation on the running loop, which is given where it is known, since asking for it takes long on some versions
    of Python. If the wait ends early, the operation is cancelled."""
    if loop is None:
        loop = asyncio.get_running_loop()
    waiter: asyncio.Future[Any] = loop.create_future()
    task = _reactor(loop).start(operation, waiter)
    try:
        return await waiter
    except BaseException:
        _cancel(loop, task)
        if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
            # The result came at the moment when the wait ended, and nobody will use it.
            lost = waiter.result()
            if isinstance(lost, (_native.Lease, _native.Leases)):
                unheard: asyncio.Future[Any] = loop.create_future()
                unheard.add_done_callback(lambda done: done.cancelled() or done.exception())
                _start(loop, lost._begin_release(), unheard)
        raise


def _run_on(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, None]) -> None:
    """Runs a coroutine on the loop of another thread, until it or the loop ends."""
    try:
        running = asyncio.run_coroutine_threadsafe(coroutine, loop)
    except RuntimeError:
        # The loop is closed, and everything on it has ended.
        coroutine.close()
        return
    # A loop that is closed does not notify its waiters.
    while not concurrent.futures.wait([running], _LOOK).done:
        if loop.is_closed():
            # Python warns of a coroutine that was never started.
            if inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
                coroutine.close()
            return
    running.result()


# Seconds between checks of a loop on which a callback runs.
_LOOK = 0.5

# Tasks that nobody awaits.
_callbacks: set[asyncio.Future[Any]] = set()


def _refuse_uncallable(callback: object) -> None:
    if not callable(callback):
        raise TypeError(f"a callback must be callable, and {callback!r} is not")


@shown_as(connecting)
async def connect(stores: Stores | None = None, **options: Unpack[ConnectOptions]) -> Client:
    """Opens a store; see :func:`leasehold.connect`."""
    return Client(await _run(_connector(stores, **options).begin_connect()))


class Client:
    """A connection to a store, and everything that keeps its leases alive; made by :func:`connect`.

    Any number of tasks and event loops may use it. Its methods are those of :class:`leasehold.Client`, awaited.
    """

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
    async def acquire(self, name: str, **options: Unpack[LockOptions]) -> Lease:
        """See :meth:`leasehold.Client.acquire`."""
        loop = asyncio.get_running_loop()
        return Lease(await _run(_begin_acquire(self._native, name, _task(loop), options), loop))

    @shown_as(trying)
    async def try_acquire(self, name: str, **options: Unpack[TryOptions]) -> Lease | None:
        """See :meth:`leasehold.Client.try_acquire`."""
        _refuse_wait(options)
        lease = await _run(_request(self._native, name, options).begin_try_acquire())
        return None if lease is None else Lease(lease)

    @shown_as(running)
    def once(self, name: str, **options: Unpack[OnceOptions]) -> Once:
        """See :meth:`leasehold.Client.once`; used by ``async with``, or as a decorator of coroutine functions."""
        return Once(self, name, options)

    @shown_as(acquiring_all)
    async def lock_all(self, names: Iterable[str], **options: Unpack[AllOptions]) -> Leases:
        """See :meth:`leasehold.Client.lock_all`; used as ``async with await client.lock_all(...)``."""
        names = _several(names)
        try:
            operation = self._native.begin_acquire_all(names, **options)
        except TypeError:
            refuse_unknown("lock_all", acquiring_all, options)
            raise
        return Leases(await _run(operation))

    @shown_as(watching_any)
    def lock_any(self, names: Iterable[str], *, on_lost: OnLost = None, **options: Unpack[AnyOptions]) -> LockAny:
        """See :meth:`leasehold.Client.lock_any`; used by ``async with``, or as a decorator of coroutine functions."""
        from leasehold._aio_permits import LockAny

        return LockAny(self._native, _several(names), on_lost, options)

    @shown_as(watching_permits)
    def semaphore(self, name: str, permits: int, *, on_lost: OnLost = None, **options: Unpack[AnyOptions]) -> Semaphore:
        """See :meth:`leasehold.Client.semaphore`; used by ``async with``, or as a decorator of coroutine functions."""
        from leasehold._aio_permits import Semaphore

        return Semaphore(self._native, name, permits, on_lost, options)

    async def set_permits(self, name: str, permits: int) -> None:
        """See :meth:`leasehold.Client.set_permits`."""
        refuse_name(name)
        await _run(self._native.begin_set_permits(name, permits))

    @shown_as(watching_shared)
    def rw_lock(
        self, name: str, *, readers: int | None = None, on_lost: OnLost = None, **options: Unpack[AllOptions]
    ) -> RwLock:
        """See :meth:`leasehold.Client.rw_lock`."""
        from leasehold._aio_permits import RwLock

        return RwLock(self._native, name, readers, on_lost, options)

    async def set_readers(self, name: str, readers: int) -> None:
        """See :meth:`leasehold.Client.set_readers`."""
        refuse_name(name)
        await _run(self._native.begin_set_readers(name, readers))

    def list(self, prefix: str = "") -> AsyncGenerator[LockInfo, None]:
        """See :meth:`leasehold.Client.list`; used by ``async for``."""
        refuse_prefix(prefix)
        return _listed(self._native.pages(prefix))

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
                _refuse_uncallable(callback)

        def on_loop(callback: Callable[[Any], Awaitable[object] | object]) -> Callable[[Any], object]:
            async def call(argument: Any) -> None:
                result = callback(argument)
                if asyncio.iscoroutine(result) or isinstance(result, asyncio.Future):
                    await result

            return lambda argument: _run_on(loop, call(argument))

        started = None if on_start is None else (lambda lease, told=on_loop(on_start): told(Lease(lease)))
        stopped = None if on_stop is None else on_loop(on_stop)
        election = self._native.elect(name, ttl=ttl, owner=owner, on_start=started, on_stop=stopped)
        _reactor(loop).tie(election)
        return Election(election)

    async def inspect(self, name: str) -> LockInfo | None:
        """See :meth:`leasehold.Client.inspect`."""
        refuse_name(name)
        info: LockInfo | None = await _run(self._native.begin_inspect(name))
        return info

    async def inspect_run(self, name: str, slot: str | None = None) -> RunInfo:
        """See :meth:`leasehold.Client.inspect_run`."""
        refuse_name(name)
        refuse_slot(slot)
        info: RunInfo = await _run(self._native.begin_inspect_run(name, slot))
        return info

    async def forget_run(self, name: str, slot: str | None = None) -> Mark | None:
        """See :meth:`leasehold.Client.forget_run`."""
        refuse_name(name)
        refuse_slot(slot)
        mark: Mark | None = await _run(self._native.begin_forget_run(name, slot))
        return mark

    async def release_if(self, name: str, *, token: int | None = None, owner: str | None = None) -> ReleaseIfOutcome:
        """See :meth:`leasehold.Client.release_if`."""
        outcome: ReleaseIfOutcome = await _run(self._native.begin_release_if(name, token, owner))
        return outcome

    async def revoke(self, name: str, token: int, *, owner: str | None = None) -> RevokeOutcome:
        """See :meth:`leasehold.Client.revoke`."""
        outcome: RevokeOutcome = await _run(self._native.begin_revoke(name, token, owner))
        return outcome

    async def close(self) -> None:
        """See :meth:`leasehold.Client.close`."""
        await _run(self._native.begin_close())

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


async def _listed(pages: _native.Pages) -> AsyncGenerator[LockInfo, None]:
    while (page := await _run(pages.begin_next())) is not None:
        for lock in page:
            yield lock


async def _changed(changes: _native.Changes) -> AsyncGenerator[Change, None]:
    while True:
        yield await _run(changes.begin_next())


class Lost:
    """An event that is set once the lease is lost."""

    def __init__(self, native: _native.Lease) -> None:
        self._native = native

    def is_set(self) -> bool:
        """True if the lease ended without having been released."""
        return self._native.lost.is_set()

    async def wait(self) -> LeaseholdError:
        """Waits until the lease is lost, and returns the reason. After a release it waits forever."""
        error: LeaseholdError = await _run(self._native._begin_lost())
        return error

    @property
    def reason(self) -> LeaseholdError | None:
        """The reason of the loss; None while the lease is held or after it was released."""
        return self._native.lost.reason


class Lease:
    """A held lock; see :class:`leasehold.Lease`. Dropping the last reference to it releases it."""

    def __init__(self, native: _native.Lease) -> None:
        self._native = native

    @property
    def token(self) -> int:
        """The fencing token: grows with every grant of the resource, below 2**53."""
        return self._native.token

    @property
    def resource(self) -> str:
        """The name of the lock."""
        return self._native.resource

    @property
    def owner(self) -> str:
        """The label that others see."""
        return self._native.owner

    @property
    def lost(self) -> Lost:
        """The loss of the lease, as an event that can be awaited."""
        return Lost(self._native)

    def remaining(self) -> float:
        """Seconds for which the lease is valid if no further renewal succeeds; never waits."""
        return self._native.remaining()

    def check(self, min: Seconds | None = None) -> None:
        """Raises LeaseLostError unless at least ``min`` seconds of validity are left, NotOwnedError after a release."""
        self._native.check(min)

    def on_lost(self, callback: Callable[[LeaseholdError], object]) -> None:
        """Calls ``callback(error)`` once, on the running event loop, if the lease is lost. It may be a coroutine
        function, which then runs as a separate task.
        """
        loop = asyncio.get_running_loop()
        _refuse_uncallable(callback)

        def call(error: LeaseholdError) -> None:
            result = callback(error)
            if asyncio.iscoroutine(result) or isinstance(result, asyncio.Future):
                # The loop itself keeps no reference to a task.
                _callbacks.add(task := asyncio.ensure_future(result, loop=loop))
                task.add_done_callback(_callbacks.discard)

        def told(error: LeaseholdError) -> None:
            try:
                loop.call_soon_threadsafe(call, error)
            except RuntimeError:
                # The loop is closed, and the work under the lease has ended with it.
                pass

        self._native.on_lost(told)

    async def release(self) -> None:
        """Releases the lock; see :meth:`leasehold.Lease.release`. Cancelling does not stop the release."""
        await _run(self._native._begin_release())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await _run(self._native._begin_exit(kind is not None))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a lease belongs to the process that took it: pass its token on, not the lease")

    def __repr__(self) -> str:
        return repr(self._native)


class Permit(Lease):
    """A held permit of a semaphore; see :class:`leasehold.Permit`."""

    _native: _native.Permit

    @property
    def index(self) -> int:
        """The number of the permit, from 0: which of N equal things its holder may use."""
        return self._native.index


class Run(Lease):
    """A lease under which work is done that is done once; see :class:`leasehold.Run`."""

    _native: _native.Run

    async def finish(self) -> None:
        """Writes down that the work is done, and releases the lock; see :meth:`leasehold.Run.finish`. Cancelling does not
        stop it.
        """
        await _run(self._native._begin_finish())

    def mark_in(self, *, paramstyle: ParamStyle = "numeric_dollar") -> tuple[str, Any]:
        """A statement that writes the mark in a transaction of yours, and its parameters; see :meth:`leasehold.Run.mark_in`."""
        return self._native.mark_in(paramstyle=paramstyle)


class Leases:
    """Several leases that were taken together, in the order of their names; see :class:`leasehold.Leases`."""

    def __init__(self, native: _native.Leases) -> None:
        self._native = native

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, which: int | str) -> Lease:
        return Lease(self._native[which])

    def check(self, min: Seconds | None = None) -> None:
        """Raises LeaseLostError unless each has at least ``min`` seconds of validity left."""
        self._native.check(min)

    async def release(self) -> None:
        """Releases all of them, the last one taken first."""
        await _run(self._native._begin_release())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await _run(self._native._begin_exit(kind is not None))

    def __repr__(self) -> str:
        return repr(self._native)


class Acquirable:
    """A lock, or what is made of locks, with its settings; nothing is held until it is entered.

    ``async with`` holds it for a body, a decorator for each call of a coroutine function; ``acquire`` and ``release`` are those
    of ``asyncio.Lock``. Tasks may share it: each has its own lease.
    """

    def __init__(self, make: Callable[[Any], _native.Request], name: Any, on_lost: OnLost) -> None:
        if on_lost not in (None, "cancel"):
            raise ConfigError(f'on_lost is "cancel" or None, not {on_lost!r}')
        self._make = make
        self._name = name
        self._on_lost = on_lost
        self._request = make(name)
        self._held: list[tuple[asyncio.Task[Any] | None, Lease, _Watch | None]] = []

    def _namer(self, function: Callable[..., object]) -> Namer:
        return namer(function, self._name)

    async def acquire(self) -> bool:
        """Acquires the lock, within its ``wait``; False if others held it for that long. ``on_lost`` is for
        ``async with`` and decorators only.
        """
        try:
            await self._enter(None)
        except (LockTimeoutError, LockBusyError):
            return False
        return True

    async def release(self) -> None:
        """Releases the lease that this task holds through this object, or else that of another task. Raises the errors of
        :meth:`leasehold.Lock.release`.
        """
        lease, _ = self._take()
        await lease.release()

    async def __aenter__(self) -> Lease:
        return await self._enter(self._on_lost)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        lease, watch = self._take()
        loss = watch.end(error) if watch is not None else None
        if loss is not None:
            raise loss from error
        await lease.__aexit__(kind, error, traceback)

    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
        """Decorates: each call holds the lock. Fields of the name, as in ``"report-{day}"``, are filled from the
        arguments of the call.
        """
        refuse_generator(function)
        refuse_plain(function)
        name_of = self._namer(function)
        make, on_lost = self._make, self._on_lost

        @functools.wraps(function)
        async def locked(*args: P.args, **kwargs: P.kwargs) -> R:
            async with Acquirable(make, name_of(args, kwargs), on_lost):
                return await function(*args, **kwargs)

        return locked

    async def _enter(self, on_lost: OnLost) -> Lease:
        loop = asyncio.get_running_loop()
        native = await _run(self._request.begin_acquire(_task(loop)), loop)
        lease = Permit(native) if isinstance(native, _native.Permit) else Lease(native)
        task = asyncio.current_task(loop)
        watch = _Watch(lease, task) if on_lost == "cancel" and task is not None else None
        self._held.append((task, lease, watch))
        return lease

    def _take(self) -> tuple[Lease, _Watch | None]:
        """The last lease of this task, or else the last of any task."""
        me = asyncio.current_task()
        if not self._held:
            raise NotOwnedError("release of a lock that is not held through this object")
        own = [at for at, (task, _, _) in enumerate(self._held) if task is me]
        _, lease, watch = self._held.pop(own[-1] if own else -1)
        return lease, watch

    def __reduce__(self) -> NoReturn:
        raise TypeError("a lock belongs to its client, and both to this process: connect again in the other one")

    def __repr__(self) -> str:
        return f"<leasehold.aio.{type(self).__name__} {self._name!r} {'held here' if self._held else 'not held here'}>"


class Lock(Acquirable):
    """A named lock with its settings; made by :meth:`Client.lock`, and nothing is held until it is entered.

    ``async with lock as lease:`` holds it for a body, ``@lock`` for each call of a coroutine function; ``acquire``,
    ``release`` and ``locked`` are those of ``asyncio.Lock``. Tasks may share a ``Lock``: each has its own lease.
    """

    def __init__(self, client: Client, name: str, on_lost: OnLost, options: LockOptions) -> None:
        native = client._native
        super().__init__(lambda name: _request(native, name, options), name, on_lost)
        self._client = client

    @property
    def name(self) -> str:
        """The name of the lock; for a decorator with fields, the template."""
        name: str = self._name
        return name

    async def locked(self) -> bool:
        """True if anybody holds the lock, here or elsewhere. Asks the store; the answer is already old when it arrives."""
        return await self._client.inspect(self._name) is not None


class Once:
    """A job that is done once, with its settings; made by :meth:`Client.once`, and nothing runs until it is entered.

    ``async with once as run:`` gives the run, or None if there is nothing to do; ``once.outcome`` says why then. ``@once``
    decorates a coroutine function.
    """

    def __init__(self, client: Client, name: str, options: OnceOptions) -> None:
        self._client = client
        self._name = name
        self._options = options
        self._request = _run_request(client._native, name, options)
        self._entered: list[tuple[asyncio.Task[Any] | None, Run | None]] = []
        self._outcome: AlreadyDone | RunningElsewhere | None = None

    @property
    def name(self) -> str:
        """The name of the job; for a decorator with fields, the template."""
        return self._name

    @property
    def outcome(self) -> AlreadyDone | RunningElsewhere | None:
        """Why the last ``async with`` had nothing to do; None if it got the run."""
        return self._outcome

    async def __aenter__(self) -> Run | None:
        begun: _native.Run | AlreadyDone | RunningElsewhere = await _run(self._request.begin_begin())
        run, self._outcome = (Run(begun), None) if isinstance(begun, _native.Run) else (None, begun)
        self._entered.append((asyncio.current_task(), run))
        return run

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._entered:
            raise NotOwnedError("this run was not entered through this object")
        me = asyncio.current_task()
        own = [at for at, (task, _) in enumerate(self._entered) if task is me]
        _, run = self._entered.pop(own[-1] if own else -1)
        if run is not None:
            await run.__aexit__(kind, error, traceback)

    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]]
    ) -> Callable[P, Coroutine[Any, Any, Ran[R] | AlreadyDone | RunningElsewhere]]:
        """Decorates: each call is a run; see :meth:`leasehold.Once.__call__`."""
        refuse_generator(function)
        refuse_plain(function)
        request_of = requester(function, self._name, self._options)
        client = self._client

        @functools.wraps(function)
        async def ran(*args: P.args, **kwargs: P.kwargs) -> Ran[R] | AlreadyDone | RunningElsewhere:
            once = Once(client, *request_of(args, kwargs))
            async with once as run:
                if run is not None:
                    result = await function(*args, **kwargs)
            outcome = once.outcome
            return Ran(result) if outcome is None else outcome

        return ran

    def __reduce__(self) -> NoReturn:
        raise TypeError("a run belongs to its client, and both to this process: connect again in the other one")

    def __bool__(self) -> NoReturn:
        raise TypeError(NOT_A_CONDITION)

    def __repr__(self) -> str:
        return f"<leasehold.aio.Once {self._name!r}>"


class _Watch:
    """Cancels a task when a lease is lost."""

    def __init__(self, lease: Lease, task: asyncio.Task[Any]) -> None:
        loop = task.get_loop()
        self._task = task
        self._loss: LeaseholdError | None = None
        self._has_ended = False
        # Python 3.10 cannot count the cancellations of a task.
        self._cancelled_before: int = task.cancelling() if hasattr(task, "cancelling") else 0
        self._waiter: asyncio.Future[LeaseholdError] = loop.create_future()
        self._waiter.add_done_callback(self._told)
        self._id = _start(loop, lease._native._begin_lost(), self._waiter)

    def _told(self, waiter: asyncio.Future[LeaseholdError]) -> None:
        # It may have been scheduled before the end of the body, and called afterwards.
        if not self._has_ended and not waiter.cancelled():
            self._loss = waiter.result()
            self._task.cancel()

    def end(self, error: BaseException | None) -> LeaseholdError | None:
        """Ends the watch with the body. Returns the loss if only the loss has cancelled the body."""
        self._has_ended = True
        _cancel(self._task.get_loop(), self._id)
        if self._loss is None:
            return None
        left = self._task.uncancel() if hasattr(self._task, "uncancel") else 0
        is_ours = left <= self._cancelled_before and isinstance(error, asyncio.CancelledError)
        return self._loss if is_ours else None


class Election:
    """A candidacy; see :class:`leasehold.Election`."""

    def __init__(self, native: _native.Election) -> None:
        self._native = native

    @property
    def resource(self) -> str:
        """The name of the election's lock."""
        return self._native.resource

    @property
    def term(self) -> int | None:
        """The fencing token of the current term; None while somebody else leads, and after the lease of the term ended."""
        return self._native.term

    @property
    def last_error(self) -> LeaseholdError | None:
        """The error of the last campaign, if it failed: the store is down or refuses."""
        return self._native.last_error

    async def resign(self) -> None:
        """Stops campaigning; a current term ends, ``on_stop`` is called, and the lock is released. In a callback of this
        election it returns at once, and the term ends afterwards.
        """
        # The callbacks need the loop while this waits for them.
        await asyncio.to_thread(self._native.resign)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.resign()

    def __repr__(self) -> str:
        return repr(self._native)
