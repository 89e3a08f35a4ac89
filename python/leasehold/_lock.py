"""A lock that is taken again and again: by ``with``, by a decorator, or as a ``threading.Lock``."""

from __future__ import annotations

import functools
import sys
import threading

from leasehold._errors import LockBusyError, LockTimeoutError, NotOwnedError
from leasehold._functions import refuse_deferred, refuse_result
from leasehold._names import namer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import NoReturn, ParamSpec, TypeVar

    from leasehold._client import Client
    from leasehold._native import Lease
    from leasehold._types import LockOptions, Seconds

    P = ParamSpec("P")
    R = TypeVar("R")
    L = TypeVar("L", Lease, Lease | None)

_LATER = "a coroutine would run after the lock is released: use a client of leasehold.aio, or take the lock inside of it"


class Lock:
    """A named lock with its settings; made by :meth:`Client.lock`, and nothing is held until it is entered.

    ``with lock as lease:`` holds it for a body, ``@lock`` for each call of a function; ``acquire``, ``release`` and
    ``locked`` are those of ``threading.Lock``. Threads may share a ``Lock``: each has its own lease.
    """

    def __init__(self, client: Client, name: str, options: LockOptions) -> None:
        self._client = client
        self._name = name
        self._options = options
        # Refuses what cannot be now, and not in the middle of somebody's work.
        self._request = client._native.request(name, **options)
        self._mutex = threading.Lock()
        self._held: list[tuple[int, Lease]] = []

    @property
    def name(self) -> str:
        """What is locked; for a decorator with fields, their template."""
        return self._name

    def acquire(self, blocking: bool = True, timeout: Seconds = -1) -> bool:
        """As ``threading.Lock.acquire``: whether the lock was had. A thread that would wait for itself gets a ConfigError.

        With ``timeout=-1`` it waits as long as the lock's own ``wait`` says. Raises what :meth:`Client.acquire` raises
        when the store is down or refuses: that is never the same as a lock that others hold.
        """
        if not blocking and timeout != -1:
            raise ValueError("can't specify a timeout for a non-blocking call")
        request = self._request
        if not blocking:
            return self._keep(request.try_acquire) is not None
        if timeout != -1:
            options = self._options.copy()
            options["wait"] = timeout
            request = self._client._native.request(self._name, **options)
        try:
            self._keep(request.acquire)
        except (LockTimeoutError, LockBusyError):
            return False
        return True

    def release(self) -> None:
        """Releases what this thread holds through this object, or else what another one does.

        Raises :class:`LeaseLostError` if the lease was lost before, :class:`NotOwnedError` (a ``RuntimeError``) if
        nothing is held, :class:`StoreUnavailableError` if the store has not confirmed within 2 s: then the release goes
        on in the background.
        """
        self._take().release()

    def locked(self) -> bool:
        """Whether anybody holds the lock, here or elsewhere. Asks the store; the answer is old when it arrives."""
        return self._client.inspect(self._name) is not None

    def __enter__(self) -> Lease:
        return self._keep(self._request.acquire)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._take().__exit__(kind, error, traceback)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorates: each call holds the lock. Fields of the name, as in ``"report-{day}"``, are filled from the
        arguments of the call.
        """
        refuse_deferred(function, _LATER)
        name_of = namer(function, self._name)
        acquire, options = self._client.acquire, self._options

        @functools.wraps(function)
        def locked(*args: P.args, **kwargs: P.kwargs) -> R:
            with acquire(name_of(args, kwargs), **options):
                result = function(*args, **kwargs)
                refuse_result(result, _LATER)
                return result

        return locked

    def _keep(self, acquire: Callable[[], L]) -> L:
        lease: L | None = None
        held: tuple[int, Lease] | None = None
        try:
            lease = acquire()
            if lease is not None:
                held = (threading.get_ident(), lease)
                with self._mutex:
                    self._held.append(held)
            return lease
        except BaseException:
            # A signal's handler can raise between any two steps, and nobody else knows of the lease.
            if held is not None:
                with self._mutex:
                    self._held = [other for other in self._held if other is not held]
            if lease is not None:
                lease.__exit__(*sys.exc_info())
            raise

    def _take(self) -> Lease:
        """The lease that this thread took last, or else the last one of all."""
        me = threading.get_ident()
        with self._mutex:
            own = [at for at, (thread, _) in enumerate(self._held) if thread == me]
            if not self._held:
                raise NotOwnedError("release of a lock that is not held through this object")
            return self._held.pop(own[-1] if own else -1)[1]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a lock belongs to its client, and both to this process: connect again in the other one")

    def __repr__(self) -> str:
        return f"<leasehold.Lock {self._name!r} {'held here' if self._held else 'not held here'}>"
