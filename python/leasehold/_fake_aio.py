"""Fake clients for asyncio, made of those for threads: their operations are coroutines."""

from __future__ import annotations

import asyncio
from copy import copy
from dataclasses import replace

from leasehold import aio
from leasehold._errors import ConfigError, LockBusyError, LockTimeoutError
from leasehold._fake_clock import ENDLESS
from leasehold._fake_permits import TURNS
from leasehold._fake_process import Process
from leasehold._fakes import FakeLeases, to_ns
from leasehold._runs import RunningElsewhere
from leasehold.protocol import Wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator
    from types import TracebackType
    from typing import Any, NoReturn

    from typing_extensions import Self, Unpack

    from leasehold._errors import LeaseholdError
    from leasehold._fake_clock import FakeClock
    from leasehold._fake_lease import FakeLease
    from leasehold._types import AllOptions, AnyOptions, Kind, LockOptions, OnceOptions, Seconds
    from leasehold.protocol import Config

    Callback = Callable[..., Awaitable[object] | object]

_STEP = 1.0
"""The longest step of a wait, in seconds."""


class FakeAsyncClient(aio.Client):
    """A client for asyncio without a server; made by :func:`connect_async`. It has no shards."""

    def __init__(self, clock: FakeClock, owner: str, config: Config) -> None:
        self._process = Process(clock, owner, config)
        self._elections: list[FakeAsyncElection] = []
        super().__init__(AsyncProcess(self._process))  # type: ignore[arg-type]

    @property
    def clock(self) -> FakeClock:
        """The clock of this client."""
        return self._process.clock

    def lose(self, name: str) -> None:
        """See :meth:`FakeClient.lose`."""
        self._process.lose(name)

    def store_down(self) -> None:
        """See :meth:`FakeClient.store_down`."""
        self.clock._set_up(False)

    def store_up(self) -> None:
        """See :meth:`FakeClient.store_up`."""
        self.clock._set_up(True)

    async def settle(self) -> None:
        """Waits until the callbacks of this client's elections, as far as they are due, have ended."""
        for election in self._elections:
            await election._told()

    def elect(
        self,
        name: str,
        *,
        ttl: Seconds | None = None,
        owner: str | None = None,
        on_start: Callback | None = None,
        on_stop: Callback | None = None,
    ) -> FakeAsyncElection:
        """See :meth:`leasehold.aio.Client.elect`. The callbacks run as tasks, in order: see :meth:`settle`."""
        election = FakeAsyncElection(self._process, name, ttl, owner, on_start, on_stop)
        self._elections.append(election)
        return election

    def shards(
        self,
        name: str,
        count: int = 16,
        *,
        on_gain: Callback | None = None,
        on_loss: Callback | None = None,
        ttl: Seconds | None = None,
        owner: str | None = None,
        look_every: Seconds | None = None,
    ) -> NoReturn:
        """Raises ConfigError: fakes have shards for threads only."""
        raise ConfigError(f"a fake client for asyncio has no shards: test {name!r} with testing.connect(), or with memory:NAME")

    async def close(self) -> None:
        """See :meth:`leasehold.aio.Client.close`."""
        await super().close()
        await self.settle()


class FakeAsyncElection(aio.Election):
    """A candidacy of a fake client; see :class:`leasehold.aio.Election`."""

    def __init__(
        self,
        process: Process,
        name: str,
        ttl: Seconds | None,
        owner: str | None,
        on_start: Callback | None,
        on_stop: Callback | None,
    ) -> None:
        for callback in (on_start, on_stop):
            if callback is not None and not callable(callback):
                raise TypeError(f"a callback must be callable, and {callback!r} is not")
        self._loop = asyncio.get_running_loop()
        self._last: asyncio.Task[None] | None = None
        self._on_stop = on_stop
        self._has_stopped = True
        self._on_start = on_start
        fake = process.elect(name, ttl=ttl, owner=owner, on_start=self._started, on_stop=self._stopped)
        self._fake = fake
        super().__init__(fake)  # type: ignore[arg-type]

    async def resign(self) -> None:
        """See :meth:`leasehold.aio.Election.resign`."""
        await self.__aexit__(None, None, None)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._last is not asyncio.current_task():
            # The lock is held until the work has stopped.
            self._stopped(None)
            await self._told()
        self._native.__exit__(kind, error, traceback)

    def __await__(self) -> Generator[Any, None, Self]:
        yield from self._told().__await__()
        return self

    def _started(self, lease: FakeLease) -> None:
        self._has_stopped = False
        self._tell("on_start", self._on_start, aio.Lease(lease))  # type: ignore[arg-type]

    def _stopped(self, error: LeaseholdError | None) -> None:
        if not self._has_stopped:
            self._has_stopped = True
            self._tell("on_stop", self._on_stop, error)

    def _tell(self, name: str, callback: Callback | None, argument: object) -> None:
        if callback is not None:
            self._last = self._loop.create_task(self._call(self._last, name, callback, argument))

    async def _call(
        self, before: asyncio.Task[None] | None, name: str, callback: Callback, argument: object
    ) -> None:
        if before is not None and not before.done():
            await asyncio.wait([before])
        try:
            result = callback(argument)
            if asyncio.iscoroutine(result) or isinstance(result, asyncio.Future):
                await result
        except Exception as error:
            context = {"message": "a callback of a fake election has raised", "exception": error}
            self._loop.call_exception_handler(context)
            self._fake._fail(name, error)

    async def _told(self) -> None:
        while self._last is not None and not self._last.done():
            await asyncio.wait([self._last])


class AsyncProcess:
    """A process as :class:`leasehold.aio.Client` uses its native client."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.stores = process.stores
        self.pages = process.pages
        self.changes = process.changes

    def request(self, name: str, **options: Unpack[LockOptions]) -> AsyncRequest:
        return AsyncRequest(self._process, self._process.request(name, **options))

    def run_request(self, name: str, **options: Unpack[OnceOptions]) -> AsyncRequest:
        return AsyncRequest(self._process, self._process.run_request(name, **options))

    def composed(
        self, kind: Kind, names: list[str], count: int | None = None, **options: Unpack[AnyOptions]
    ) -> AsyncRequest:
        return AsyncRequest(self._process, self._process.composed(kind, names, count, **options))

    def begin_acquire(
        self, name: str, task: int | None, **options: Unpack[LockOptions]
    ) -> Coroutine[Any, Any, FakeLease]:
        return self.request(name, **options).begin_acquire(task)

    async def begin_acquire_all(self, names: list[str], **given: Unpack[AllOptions]) -> FakeLeases:
        clock, leases = self._process.clock, FakeLeases([])
        options: LockOptions = {**given}  # type: ignore[typeddict-item]
        wait = options.get("wait")
        end = None if wait is None else clock._ns + to_ns(wait)
        try:
            for name in sorted(set(names)):
                if end is not None:
                    options["wait"] = max(0, end - clock._ns) / 1e9
                leases._leases.append(await self.request(name, **options).begin_acquire())
        except BaseException:
            leases.__exit__(BaseException, None, None)
            raise
        return leases

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        prefix, _, call = name.partition("begin_")
        if prefix or not call:
            raise AttributeError(name)
        plain = getattr(self._process, call)

        async def begin(*arguments: object) -> Any:
            return plain(*arguments)

        return begin


class AsyncRequest:
    """A request whose wait lets other tasks run before it moves the clock."""

    def __init__(self, process: Process, request: Any) -> None:
        self._clock = process.clock
        self._wait: Wait.Case = request._options.wait
        self._once = copy(request)
        self._once._options = replace(request._options, wait=Wait.Once())

    async def begin_acquire(self, task: int | None = None) -> FakeLease:
        def attempt() -> FakeLease | LockBusyError:
            try:
                lease: FakeLease = self._once.acquire()
                return lease
            except LockBusyError as busy:
                return busy

        answer = await self._patiently(attempt, lambda answer: isinstance(answer, LockBusyError))
        if not isinstance(answer, LockBusyError):
            lease: FakeLease = answer
            return lease
        if isinstance(self._wait, Wait.Once):
            raise answer
        late = LockTimeoutError(f"{answer}, for the whole wait")
        late.resource, late.holder = answer.resource, answer.holder
        raise late

    async def begin_try_acquire(self) -> FakeLease | None:
        lease: FakeLease | None = self._once.try_acquire()
        return lease

    async def begin_begin(self) -> Any:
        return await self._patiently(self._once.begin, lambda answer: isinstance(answer, RunningElsewhere))

    async def _patiently(self, attempt: Callable[[], Any], is_busy: Callable[[Any], bool]) -> Any:
        """Tries until the answer is another one, or the wait is over."""
        clock, wait = self._clock, self._wait
        patience = 0 if isinstance(wait, Wait.Once) else to_ns(wait.wait if isinstance(wait, Wait.For) else ENDLESS)
        end = clock._ns + patience
        while is_busy(answer := attempt()):
            if clock._ns >= end:
                if isinstance(wait, Wait.Forever):
                    raise RuntimeError("it stayed locked for an hour of the fake clock: set wait=, or this test never ends")
                break
            for _ in range(TURNS):
                await asyncio.sleep(0)
            if is_busy(answer := attempt()):
                clock.advance(min(end - clock._ns, to_ns(_STEP)) / 1e9)
            else:
                break
        return answer
