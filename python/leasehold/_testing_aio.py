"""Fake clients for asyncio."""

from __future__ import annotations

import asyncio

from leasehold import aio
from leasehold._aio_loop import calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from typing import Any

    from typing_extensions import Self

    from leasehold import _native
    from leasehold._errors import LeaseholdError
    from leasehold._types import Seconds
    from leasehold.testing import FakeClock


class FakeAsyncClient(aio.Client):
    """A client for asyncio without a server; made by :func:`connect_async`."""

    def __init__(self, clock: FakeClock, native: _native.Client) -> None:
        super().__init__(native)
        self._clock = clock
        self._settled = clock.settle

    @property
    def clock(self) -> FakeClock:
        """The clock of this client."""
        return self._clock

    def lose(self, name: str) -> None:
        """See :meth:`FakeClient.lose`."""
        self._clock._native.lose(self._native, name)

    def store_down(self) -> None:
        """See :meth:`FakeClock.store_down`."""
        self._clock.store_down()

    def store_up(self) -> None:
        """See :meth:`FakeClock.store_up`."""
        self._clock.store_up()

    async def settle(self) -> None:
        """Lets happen what is due now, and waits until the callbacks of elections and shards that run on this loop have ended."""
        self._clock.settle()
        while others := _others():
            await asyncio.wait(others)
            self._clock.settle()

    def elect(
        self,
        name: str,
        *,
        ttl: Seconds | None = None,
        owner: str | None = None,
        on_start: Callable[[aio.Lease], Awaitable[object] | object] | None = None,
        on_stop: Callable[[LeaseholdError | None], Awaitable[object] | object] | None = None,
    ) -> FakeAsyncElection:
        """See :meth:`leasehold.aio.Client.elect`. The callbacks run as tasks, in order: see :meth:`settle`."""
        election = super().elect(name, ttl=ttl, owner=owner, on_start=on_start, on_stop=on_stop)
        return FakeAsyncElection(election._native, self)

    async def close(self) -> None:
        """See :meth:`leasehold.aio.Client.close`."""
        await super().close()
        await self.settle()


class FakeAsyncElection(aio.Election):
    """A candidacy of a fake client; see :class:`leasehold.aio.Election`. Awaiting it waits for the callbacks that are due."""

    def __init__(self, native: _native.Election, client: FakeAsyncClient) -> None:
        super().__init__(native)
        self._client = client

    def __await__(self) -> Generator[Any, None, Self]:
        yield from self._client.settle().__await__()
        return self


def _others() -> set[asyncio.Task[None]]:
    """The callbacks on this loop, without the one that asks."""
    loop, me = asyncio.get_running_loop(), asyncio.current_task()
    return {call for call in calls if call is not me and call.get_loop() is loop}
