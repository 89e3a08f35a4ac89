"""Locks and runs with their settings, for asyncio."""

from __future__ import annotations

import asyncio
import functools

from leasehold._aio_lease import Lease, Permit, Run
from leasehold._aio_loop import cancel, perform, start, task_number
from leasehold._aio_pending import asked
from leasehold._client import _request, _run_request
from leasehold._errors import ConfigError, LeaseholdError, LockBusyError, LockTimeoutError, NotOwnedError
from leasehold._functions import refuse_generator, refuse_plain
from leasehold._misuse import AsyncOnly
from leasehold._names import namer
from leasehold._once import NOT_A_CONDITION, requester
from leasehold._results import as_read
from leasehold._runs import AlreadyDone, Ran, RunningElsewhere

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import TracebackType
    from typing import Any, Literal, NoReturn, ParamSpec, TypeVar

    from leasehold import _native
    from leasehold._lock import Namer
    from leasehold._types import LockOptions, OnceOptions
    from leasehold.aio import Client

    P = ParamSpec("P")
    R = TypeVar("R")
    OnLost = Literal["cancel"] | None


class Acquirable(AsyncOnly):
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

    @asked
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
        native = await perform(self._request.begin_acquire(task_number(loop)), loop)
        lease = Permit(native) if hasattr(native, "index") else Lease(native)
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

    @asked
    async def locked(self) -> bool:
        """True if anybody holds the lock, here or elsewhere. Asks the store; the answer is already old when it arrives."""
        return await self._client.inspect(self._name) is not None


class Once(AsyncOnly):
    """A job that is done once, with its settings; made by :meth:`Client.once`, and nothing runs until it is entered.

    ``async with once as run:`` gives the run, or None if there is nothing to do; ``once.outcome`` says why then. ``@once``
    decorates a coroutine function.
    """

    _saves = False

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
        begun: _native.Run | AlreadyDone | RunningElsewhere = await perform(self._request.begin_begin())
        run = None
        if isinstance(begun, (AlreadyDone, RunningElsewhere)):
            self._outcome = begun
        else:
            run, self._outcome = Run(begun), None
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
        client, saves = self._client, self._saves

        @functools.wraps(function)
        async def ran(*args: P.args, **kwargs: P.kwargs) -> Ran[R] | AlreadyDone | RunningElsewhere:
            value: Any
            once = Once(client, *request_of(args, kwargs))
            async with once as run:
                if run is not None:
                    value = await function(*args, **kwargs)
                    if saves:
                        await run.finish(result=value)
                        value = as_read(value)
            outcome = once.outcome
            return Ran(value) if outcome is None else outcome

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
        self._id = start(loop, lease._native._begin_lost(), self._waiter)

    def _told(self, waiter: asyncio.Future[LeaseholdError]) -> None:
        # It may have been scheduled before the end of the body, and called afterwards.
        if not self._has_ended and not waiter.cancelled():
            self._loss = waiter.result()
            self._task.cancel()

    def end(self, error: BaseException | None) -> LeaseholdError | None:
        """Ends the watch with the body. Returns the loss if only the loss has cancelled the body."""
        self._has_ended = True
        cancel(self._task.get_loop(), self._id)
        if self._loss is None:
            return None
        left = self._task.uncancel() if hasattr(self._task, "uncancel") else 0
        is_ours = left <= self._cancelled_before and isinstance(error, asyncio.CancelledError)
        return self._loss if is_ours else None
