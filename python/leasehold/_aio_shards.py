"""Shards for asyncio."""

from __future__ import annotations

import asyncio

from leasehold._aio_lease import Lease, refuse_uncallable
from leasehold._aio_loop import OnLoop, perform, reactor_of
from leasehold._misuse import AsyncOnly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from types import TracebackType

    from typing_extensions import Self

    from leasehold import _native
    from leasehold._errors import LeaseholdError
    from leasehold._types import Seconds

    OnGain = Callable[["Shard"], Awaitable[object] | object] | None
    OnLoss = Callable[["Shard", LeaseholdError | None], Awaitable[object] | object] | None


class Shard(Lease):
    """A shard that this worker holds; see :class:`leasehold.Shard`."""

    _native: _native.Shard

    @property
    def index(self) -> int:
        """The number of the shard, from 0."""
        return self._native.index


class Shards(AsyncOnly):
    """A worker's part in the shards of a name; see :class:`leasehold.Shards`. It works from the call on, and may be awaited, which
    takes no time.
    """

    def __init__(self, native: _native.Shards) -> None:
        self._native = native

    @property
    def name(self) -> str:
        """The name that the workers share."""
        return self._native.name

    @property
    def held(self) -> list[Shard]:
        """The shards that are held now and not to be let go, in the order of their numbers."""
        return [Shard(shard) for shard in self._native.held]

    @property
    def members(self) -> int:
        """The number of workers at the last look, this one among them; 0 before it has joined, and while it stands by."""
        return self._native.members

    @property
    def last_error(self) -> LeaseholdError | None:
        """The error of the last try to join, look or acquire, if it failed, or that of a callback."""
        return self._native.last_error

    async def stop(self) -> None:
        """Leaves; see :meth:`leasehold.Shards.stop`. In a callback of these shards it returns at once."""
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


def start(
    native: _native.Client,
    name: str,
    count: int,
    on_gain: OnGain,
    on_loss: OnLoss,
    ttl: Seconds | None,
    owner: str | None,
    look_every: Seconds | None,
    settled: Callable[[], object] | None,
) -> Shards:
    """Joins the workers, with callbacks on the running loop."""
    loop = asyncio.get_running_loop()
    for callback in (on_gain, on_loss):
        if callback is not None:
            refuse_uncallable(callback)
    shards = native.shards(
        name,
        count,
        on_gain=None if on_gain is None else OnLoop(loop, on_gain, Shard, settled),
        on_loss=None if on_loss is None else OnLoop(loop, on_loss, Shard, settled),
        ttl=ttl,
        owner=owner,
        look_every=look_every,
    )
    reactor_of(loop).tie(shards)
    return Shards(shards)
