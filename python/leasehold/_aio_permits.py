"""One lock of several, semaphores, and locks for readers and writers, for asyncio."""

from __future__ import annotations

from functools import partial

from leasehold._aio_lock import Acquirable
from leasehold._permits import any_namer, request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from leasehold import _native
    from leasehold._aio_lease import Permit
    from leasehold._aio_lock import OnLost
    from leasehold._lock import Namer
    from leasehold._types import AllOptions, AnyOptions, Kind


class LockAny(Acquirable):
    """One lock of several; see :class:`leasehold.LockAny`."""

    def __init__(self, native: _native.Client, names: list[str], on_lost: OnLost, options: AnyOptions) -> None:
        super().__init__(lambda names: request(native, "any", names, None, options), names, on_lost)

    @property
    def names(self) -> list[str]:
        """The names of the locks."""
        return list(self._name)

    def _namer(self, function: Callable[..., object]) -> Namer:
        return any_namer(function, self._name)


class Semaphore(Acquirable):
    """A number of permits; see :class:`leasehold.Semaphore`."""

    def __init__(self, native: _native.Client, name: str, permits: int, on_lost: OnLost, options: AnyOptions) -> None:
        super().__init__(lambda name: request(native, "permit", [name], permits, options), name, on_lost)

    if TYPE_CHECKING:

        async def __aenter__(self) -> Permit: ...

    @property
    def name(self) -> str:
        """The name of the semaphore; for a decorator with fields, the template."""
        name: str = self._name
        return name


class RwLock:
    """A lock that many readers hold together, or one writer alone; see :class:`leasehold.RwLock`."""

    def __init__(
        self, native: _native.Client, name: str, readers: int | None, on_lost: OnLost, options: AllOptions
    ) -> None:
        self._name = name
        self._on_lost = on_lost
        self._make = partial(self._requested, native, readers, options)
        # Refuses impossible settings now, and not in the middle of some work.
        self._make("read", name)

    @staticmethod
    def _requested(
        native: _native.Client, readers: int | None, options: AllOptions, kind: Kind, name: str
    ) -> _native.Request:
        return request(native, kind, [name], readers, options)

    @property
    def name(self) -> str:
        """The name of the lock; for decorators with fields, the template."""
        return self._name

    def read(self) -> Acquirable:
        """See :meth:`leasehold.RwLock.read`; used by ``async with``, or as a decorator of coroutine functions."""
        return Acquirable(partial(self._make, "read"), self._name, self._on_lost)

    def write(self) -> Acquirable:
        """See :meth:`leasehold.RwLock.write`; used by ``async with``, or as a decorator of coroutine functions."""
        return Acquirable(partial(self._make, "write"), self._name, self._on_lost)

    def __repr__(self) -> str:
        return f"<leasehold.aio.RwLock {self._name!r}>"
