"""Operations of native code on event loops of asyncio."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import inspect
import itertools
import os
import weakref

from leasehold import _native
from leasehold._callbacks import Cancelled, LoopCallback
from leasehold._errors import LeaseholdError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import Any

    from leasehold._callbacks import Call
    from leasehold._native import Done
    from leasehold._within import Callback

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

NEVER = 100 * 365 * 24 * 60 * 60.0
"""Seconds until a timer that only keeps its callback."""

LOOK = 0.5
"""Seconds between checks of a loop on which a callback runs."""


def task_number(loop: asyncio.AbstractEventLoop) -> int | None:
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


def reactor_of(loop: asyncio.AbstractEventLoop) -> _native.Reactor:
    reactor = _known_reactor(loop)
    if reactor is None:
        reactor = _watched_by(loop)
        # A reactor without operations is false.
        if reactor is None:
            reactor = _kept_by(loop)
        _reactors[loop] = weakref.ref(reactor)
    return reactor


def _watched_by(loop: asyncio.AbstractEventLoop) -> _native.Reactor | None:
    """A reactor whose pipe the loop watches, if it watches pipes. Those of Windows do not."""
    if os.name == "nt":
        return None
    reactor = _native.Reactor(loop, True)
    descriptor = reactor.fileno()
    if descriptor is None:
        return None
    os.set_blocking(descriptor, False)
    try:
        loop.add_reader(descriptor, reactor.run)
    except NotImplementedError:
        return None
    return reactor


def _kept_by(loop: asyncio.AbstractEventLoop) -> _native.Reactor:
    """A reactor that the loop has for its lifetime, with a timer that never ends."""
    reactor = _native.Reactor(loop, False)
    loop.call_later(NEVER, reactor.run)
    return reactor


def start(loop: asyncio.AbstractEventLoop, operation: _native.Operation, waiter: asyncio.Future[Any]) -> int:
    return reactor_of(loop).start(operation, waiter)


def cancel(loop: asyncio.AbstractEventLoop, task: int) -> None:
    reactor = _known_reactor(loop)
    # Without a reactor, the task was dropped with the loop.
    if reactor is not None:
        reactor.cancel(task)


async def perform(operation: _native.Operation, loop: asyncio.AbstractEventLoop | None = None) -> Any:
    """Runs an operation on the running loop, which is given where it is known, since asking for it takes long on some versions
    of Python. If the wait ends early, the operation is cancelled."""
    if loop is None:
        loop = asyncio.get_running_loop()
    waiter: asyncio.Future[Any] = loop.create_future()
    task = reactor_of(loop).start(operation, waiter)
    try:
        return await waiter
    except BaseException:
        cancel(loop, task)
        if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
            # The result came at the moment when the wait ended, and nobody will use it.
            lost = waiter.result()
            if isinstance(lost, (_native.Lease, _native.Leases)) and loop.is_closed():
                # No loop is left that could await it.
                with contextlib.suppress(LeaseholdError):
                    lost.release()
            elif isinstance(lost, (_native.Lease, _native.Leases)):
                unheard: asyncio.Future[Any] = loop.create_future()
                unheard.add_done_callback(lambda done: done.cancelled() or done.exception())
                start(loop, lost._begin_release(), unheard)
        raise


calls: set[asyncio.Task[None]] = set()
"""The callbacks of clients of test clocks that run now."""


class OnLoop(LoopCallback):
    """Calls a callback on an event loop. Its first argument is given as ``first`` shows it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        callback: Callable[..., Awaitable[object] | object],
        first: Callable[[Any], object] | None = None,
        ended: Callable[[], object] | None = None,
    ) -> None:
        self._loop = loop
        self._callback = callback
        self._first = first
        self._ended = ended

    def __call__(self, *arguments: object) -> None:
        """Waits for its end, on a thread that is not the loop's."""
        run_on(self._loop, self._silently(arguments))

    def begin(self, owned: Callback, call: Call, arguments: tuple[object, ...], done: Done) -> None:
        """See :class:`LoopCallback`."""
        if asyncio._get_running_loop() is self._loop:
            self._start(owned, call, arguments, done)
        else:
            # A loop that is closed ends the callback, by dropping what its end is told to.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._start, owned, call, arguments, done)

    def _start(self, owned: Callback, call: Call, arguments: tuple[object, ...], done: Done) -> None:
        calls.add(task := self._loop.create_task(self._to_end(owned, call, arguments, done)))
        task.add_done_callback(calls.discard)

    async def _to_end(self, owned: Callback, call: Call, arguments: tuple[object, ...], done: Done) -> None:
        reactor = reactor_of(self._loop)
        reactor.callback_begins()
        try:
            with owned.running():
                await self._run(arguments)
        except asyncio.CancelledError:
            done.cancelled()
            raise
        except Exception as error:
            call.note(error, arguments, done)
            done.show(error, call)
        except BaseException as error:
            call.note(error, arguments, done)
            raise
        else:
            done.returned()
        finally:
            reactor.callback_has_ended()
            if self._ended is not None:
                self._ended()

    async def _silently(self, arguments: tuple[object, ...]) -> None:
        # A loop that ends may start this after it has cancelled all tasks, and never goes on with it: in silence, as those.
        setattr(asyncio.current_task(), "_log_destroy_pending", False)
        await self._run(arguments)

    async def _run(self, arguments: tuple[object, ...]) -> None:
        if self._first is not None:
            arguments = (self._first(arguments[0]), *arguments[1:])
        result = self._callback(*arguments)
        if asyncio.iscoroutine(result) or isinstance(result, asyncio.Future):
            await result

    def __repr__(self) -> str:
        return repr(self._callback)


def run_on(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, None]) -> None:
    """Runs a coroutine on the loop of another thread, until it or the loop ends."""
    try:
        running = asyncio.run_coroutine_threadsafe(coroutine, loop)
    except RuntimeError:
        # The loop is closed, and everything on it has ended.
        coroutine.close()
        return
    # A loop that is closed does not notify its waiters.
    while not concurrent.futures.wait([running], LOOK).done:
        if loop.is_closed():
            # Python warns of a coroutine that was never started.
            if inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
                coroutine.close()
            return
    if running.cancelled():
        raise Cancelled
    running.result()
