"""Items of compare-and-set for tests, in a store that interferes when told to."""

from __future__ import annotations

from collections import deque

from leasehold import cas
from leasehold._errors import ConfigError, StoreUnavailableError, TooManyConflictsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeVar

    from leasehold._errors import LeaseholdError

    E = TypeVar("E", bound=LeaseholdError)

_MOST_BYTES = 380 << 10


class FakeItemStore:
    """The items of fake clients, and what others do to them."""

    def __init__(self) -> None:
        self._items: dict[str, cas.Item] = {}
        self._next: dict[str, deque[bytes]] = {}
        self._is_up = True

    def write(self, name: str, value: bytes) -> cas.Item:
        """Writes an item now, as another client."""
        before = self._items.get(name)
        self._items[name] = cas.Item(value, 1 if before is None else before.version + 1)
        return self._items[name]

    def write_first(self, name: str, values: Iterable[bytes]) -> None:
        """Makes another client write these values, each just before the next write to the item, which then fails and is tried
        again.
        """
        self._next.setdefault(name, deque()).extend(values)

    def down(self) -> None:
        """From now on no request reaches the store."""
        self._is_up = False

    def up(self) -> None:
        """Requests reach the store again; its items are still there."""
        self._is_up = True


class Native:
    """Items as :class:`leasehold.cas.Items` uses its native ones."""

    def __init__(self, store: FakeItemStore) -> None:
        self._store = store

    def begin(self, name: str, tries: int) -> Update:
        if not name or any(ord(letter) < 32 for letter in name):
            raise ConfigError(f"{name!r} cannot be the name of an item: it is empty, or has control characters")
        return Update(self._store, name, tries)


class Update:
    """One update of one item."""

    def __init__(self, store: FakeItemStore, name: str, tries: int) -> None:
        self._store, self._name, self._most = store, name, tries
        self._tries = 0
        self._seen: cas.Item | None = None
        self._new: bytes | None = None

    def step(self) -> tuple[bool, cas.Item | None]:
        store, name = self._store, self._name
        if not store._is_up:
            raise self._failed(StoreUnavailableError(f"{name!r}: the test has taken the store down"))
        if self._new is not None:
            self._tries += 1
            others = store._next.get(name)
            if others:
                store.write(name, others.popleft())
            if store._items.get(name) == self._seen:
                return True, store.write(name, self._new)
            if self._tries >= self._most:
                message = f"{name!r}: tried {self._tries} times, and others were faster each time"
                raise self._failed(TooManyConflictsError(message))
        self._seen = store._items.get(name)
        return False, self._seen

    async def begin_step(self) -> tuple[bool, cas.Item | None]:
        return self.step()

    def write(self, value: bytes) -> None:
        if len(value) > _MOST_BYTES:
            raise self._failed(ConfigError(f"{self._name!r}: {len(value)} bytes are too many: a value has at most {_MOST_BYTES}"))
        self._new = value

    def _failed(self, error: E) -> E:
        error.resource, error.tries, error.fate = self._name, self._tries, "not_written"
        return error
