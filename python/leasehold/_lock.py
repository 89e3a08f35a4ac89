"""Locks, and what is made of them, that can be acquired repeatedly: by ``with``, by a decorator, or as a ``threading.Lock``."""

from __future__ import annotations

import functools

from leasehold._functions import refuse_deferred, refuse_result
from leasehold._misuse import SyncOnly
from leasehold._names import namer
from leasehold._native import LockBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn, ParamSpec, Protocol, TypeVar

    from leasehold._client import Client
    from leasehold._native import Request
    from leasehold._types import LockOptions

    P = ParamSpec("P")
    R = TypeVar("R")
    Namer = Callable[[tuple[object, ...], Mapping[str, object]], Any]

    class Requests(Protocol):
        """Makes a request of a name and its options."""

        def _request(self, name: Any, options: Any) -> Request: ...


_LATER = "a coroutine would run after the lock is released: use a client of leasehold.aio, or take the lock inside of it"


class Acquirable(LockBase, SyncOnly):
    """A lock, or what is made of locks, with its settings; nothing is held until it is entered.

    ``with`` holds it for a body, a decorator for each call of a function; ``acquire`` and ``release`` are those of
    ``threading.Lock``. Threads may share it: each has its own lease.
    """

    __module__ = "leasehold"

    def __init__(self, client: Requests, name: Any, options: Mapping[str, Any]) -> None:
        self._client = client
        self._name = name
        self._options = options

    def _namer(self, function: Callable[..., object]) -> Namer:
        return namer(function, self._name)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorates: each call holds the lock. Fields of the name, as in ``"report-{day}"``, are filled from the
        arguments of the call.
        """
        refuse_deferred(function, _LATER)
        name_of = self._namer(function)
        request, options = self._client._request, self._options

        @functools.wraps(function)
        def locked(*args: P.args, **kwargs: P.kwargs) -> R:
            with request(name_of(args, kwargs), options).acquire():
                result = function(*args, **kwargs)
                refuse_result(result, _LATER)
                return result

        return locked

    def __reduce__(self) -> NoReturn:
        raise TypeError("a lock belongs to its client, and both to this process: connect again in the other one")

    def __repr__(self) -> str:
        return f"<leasehold.{type(self).__name__} {self._name!r} {'held here' if self._is_held() else 'not held here'}>"


class Lock(Acquirable):
    """A named lock with its settings; made by :meth:`Client.lock`, and nothing is held until it is entered.

    ``with lock as lease:`` holds it for a body, ``@lock`` for each call of a function; ``acquire``, ``release`` and
    ``locked`` are those of ``threading.Lock``. Threads may share a ``Lock``: each has its own lease.
    """

    __module__ = "leasehold"

    _client: Client

    def __init__(self, client: Client, name: str, options: LockOptions) -> None:
        super().__init__(client, name, options)

    @property
    def name(self) -> str:
        """The name of the lock; for a decorator with fields, the template."""
        name: str = self._name
        return name

    def locked(self) -> bool:
        """True if anybody holds the lock, here or elsewhere. Asks the store; the answer is already old when it arrives."""
        return self._client.inspect(self._name) is not None
