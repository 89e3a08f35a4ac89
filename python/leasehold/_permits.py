"""One lock of several, semaphores, and locks for readers and writers."""

from __future__ import annotations

from leasehold._lock import Acquirable
from leasehold._names import namer
from leasehold._options import any_of, refuse_name, refuse_unknown, sharing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from leasehold import _native
    from leasehold._lock import Namer
    from leasehold._native import Permit
    from leasehold._types import AllOptions, AnyOptions, Kind


def request(
    native: _native.Client, kind: Kind, names: list[str], count: int | None, options: Mapping[str, Any]
) -> _native.Request:
    """The request for what is made of locks with these names, or with names that begin with this one."""
    for name in names:
        refuse_name(name)
    what, signature = _CALLS[kind]
    refuse_unknown(what, signature, options)
    if kind == "permit" and count is None:
        raise TypeError("permits must be the number of permits, an int, not None")
    return native.composed(kind, names, count, **options)


_CALLS: dict[Kind, tuple[str, Callable[..., None]]] = {
    "any": ("lock_any", any_of),
    "permit": ("semaphore", any_of),
    "read": ("rw_lock", sharing),
    "write": ("rw_lock", sharing),
}


def any_namer(function: Callable[..., object], names: list[str]) -> Namer:
    """Returns a function that fills all names in for each call of the decorated one."""
    namers = [namer(function, name) for name in names]
    return lambda args, kwargs: [name_of(args, kwargs) for name_of in namers]


class Requests:
    """Makes requests of one kind."""

    def __init__(self, native: _native.Client, kind: Kind, count: int | None = None) -> None:
        self._native = native
        self._kind = kind
        self._count = count

    def _request(self, name: str | list[str], options: Mapping[str, Any]) -> _native.Request:
        names = [name] if self._kind != "any" else name
        return request(self._native, self._kind, names, self._count, options)  # type: ignore[arg-type]


class LockAny(Acquirable):
    """One lock of several; made by :meth:`Client.lock_any`, and nothing is held until it is entered.

    ``with any as lease:`` holds the first that is free for a body, and ``lease.resource`` says which it is; ``@any`` holds
    one for each call of a function.
    """

    __module__ = "leasehold"

    @property
    def names(self) -> list[str]:
        """The names of the locks."""
        return list(self._name)

    def _namer(self, function: Callable[..., object]) -> Namer:
        return any_namer(function, self._name)


class Semaphore(Acquirable):
    """A number of permits; made by :meth:`Client.semaphore`, and nothing is held until it is entered.

    ``with semaphore as permit:`` holds one for a body, and ``permit.index`` says which; ``@semaphore`` holds one for each
    call of a function.
    """

    __module__ = "leasehold"

    def __init__(self, client: Requests, name: str, options: AnyOptions) -> None:
        super().__init__(client, name, options)

    if TYPE_CHECKING:

        def __enter__(self) -> Permit: ...

    @property
    def name(self) -> str:
        """The name of the semaphore; for a decorator with fields, the template."""
        name: str = self._name
        return name


class RwLock:
    """A lock that many readers hold together, or one writer alone; made by :meth:`Client.rw_lock`.

    ``with lock.read():`` and ``with lock.write():`` hold it for a body, ``@lock.read()`` and ``@lock.write()`` for each call
    of a function.
    """

    __module__ = "leasehold"

    def __init__(self, native: _native.Client, name: str, readers: int | None, options: AllOptions) -> None:
        self._native = native
        self._name = name
        self._readers = readers
        self._options = options
        # Refuses impossible settings now, and not in the middle of some work.
        request(native, "read", [name], readers, options)

    @property
    def name(self) -> str:
        """The name of the lock; for decorators with fields, the template."""
        return self._name

    def read(self) -> Acquirable:
        """Holds it together with other readers. The fencing token is above those of all writers before, and below those of all
        writers after.
        """
        return Acquirable(Requests(self._native, "read", self._readers), self._name, self._options)

    def write(self) -> Acquirable:
        """Holds it alone: waits until all readers are gone, and lets no new ones in meanwhile. The fencing token is above those
        of all readers and writers before.

        Raises ConfigError if this thread reads, and would wait for itself forever: release the read lock first.
        """
        return Acquirable(Requests(self._native, "write", self._readers), self._name, self._options)

    def __repr__(self) -> str:
        return f"<leasehold.RwLock {self._name!r}>"
