"""Compare-and-set: updates of single items that need no lock.

>>> from leasehold import cas
>>> items = cas.connect("memory:")
>>> def one_more(old: bytes | None) -> bytes | None:
...     return str(int(old or b"0") + 1).encode()      # None would leave the item as it is
>>> items.update("visits", one_more)
Item(value=b'1', version=1)
>>> items.read("visits")
Item(value=b'1', version=1)

The function may run several times, so it must do nothing but compute. To *do* something once, use a lock or a run. An exception
of the function ends the update, and nothing is written. :func:`connect_async` is for asyncio, where the function may be async.

Any single store keeps items, by the same urls as locks; ``memory:`` serves tests. Never delete an item: write an empty value.
``docs/compare-and-set.md`` says when this beats a lock.
"""

from __future__ import annotations

from typing import NamedTuple

from leasehold import _hints, _native
from leasehold._aio_pending import asked
from leasehold._functions import refuse_result
from leasehold._options import UNNAMED, Unnamed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["AsyncItems", "Item", "Items", "connect", "connect_async"]

_LATER = "a coroutine gives no value here: use connect_async, whose functions may be async"


class Item(NamedTuple):
    """An item as it was read or written."""

    value: bytes
    """The value."""
    version: int
    """1 for the first value, and one more with each write."""


def _named(store: str | None | Unnamed) -> str | None:
    """The store as the native half takes it: None is the default."""
    if isinstance(store, Unnamed):
        return None
    return "" if store is None else store


def connect(store: str | None | Unnamed = UNNAMED, *, tries: int = 10) -> Items:
    """Connects to the store that a url names; without one as :func:`leasehold.connect`. An update is tried at most ``tries``
    times, with random pauses that grow from 50 ms to 2 s.
    """
    return Items(_native.Items.connect(_named(store)), tries)


async def connect_async(store: str | None | Unnamed = UNNAMED, *, tries: int = 10) -> AsyncItems:
    """As :func:`connect`, for asyncio."""
    from leasehold._aio_loop import perform

    return AsyncItems(await perform(_native.Items.begin_connect(_named(store))), tries)


class Items:
    """The items of one store; made by :func:`connect`. Any number of threads may use it."""

    def __init__(self, native: _native.Items, tries: int) -> None:
        self._native, self._tries = native, tries

    def read(self, name: str) -> Item | None:
        """The item as it is; None if there is none."""
        return _item(self._native.begin(name, 1).step()[1])

    def update(self, name: str, new: Callable[[bytes | None], bytes | None]) -> Item | None:
        """Gives ``new`` the value of an item, None if there is none yet, and writes what it returns if nobody has written
        meanwhile; otherwise it is called again with the newer value. If it returns None, nothing is written, and the result is
        None. ``new`` runs on the calling thread. A value has at most 380 KiB. A write whose answer is lost is applied once.

        Raises :class:`leasehold.TooManyConflictsError` if others were faster each time. The ``fate`` of any other error says
        whether the value may have been written.
        """
        update = self._native.begin(name, self._tries)
        while True:
            written, item = update.step()
            if written:
                return _item(item)
            value = new(item[0] if item else None)
            if value is None:
                return None
            refuse_result(value, _LATER)
            update.write(_bytes(value))


class AsyncItems:
    """The same for asyncio; made by :func:`connect_async`. Any number of tasks and event loops may use it."""

    def __init__(self, native: _native.Items, tries: int) -> None:
        self._native, self._tries = native, tries

    @asked
    async def read(self, name: str) -> Item | None:
        """See :meth:`Items.read`."""
        from leasehold._aio_loop import perform

        return _item((await perform(self._native.begin(name, 1).begin_step()))[1])

    async def update(
        self, name: str, new: Callable[[bytes | None], Awaitable[bytes | None] | bytes | None]
    ) -> Item | None:
        """See :meth:`Items.update`. ``new`` runs on the event loop, and may be async. If the task is cancelled, the value may
        have been written.
        """
        import inspect

        from leasehold._aio_loop import perform

        update = self._native.begin(name, self._tries)
        while True:
            written, item = await perform(update.begin_step())
            if written:
                return _item(item)
            value = new(item[0] if item else None)
            if inspect.isawaitable(value):
                value = await value
            if value is None:
                return None
            update.write(_bytes(value))


def _item(found: tuple[bytes, int] | None) -> Item | None:
    return None if found is None else Item(*found)


def _bytes(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"the new value of an item is bytes, or None to leave it as it is, not {type(value).__name__}")
    return value


_hints.resolve(globals())
