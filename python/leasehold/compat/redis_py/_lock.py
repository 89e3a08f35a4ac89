"""The shared parts of locks with and without asyncio."""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from contextlib import contextmanager
from types import SimpleNamespace

from leasehold import _client, _native
from leasehold._errors import ConfigError, LeaseLostError, NotOwnedError, StoreUnavailableError
from leasehold.compat.redis_py._errors import LockError, LockNotOwnedError, unreachable
from leasehold.compat.redis_py._urls import url_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Literal, NoReturn

DEFAULT_TTL = 30.0
SHORTEST_TTL = 0.1

FOR_EVER = 100 * 365 * 86_400.0
"""Practically no limit, for a wait for a lock that this thread holds itself, but not forever."""
LOOKS_EVERY = 1.0
"""Seconds between checks while waiting for a lock of this process: deleting the key by hand frees the lock."""

# A lock of redis-py outlives its object: it is held until it is released, or its time is over. So are these. Leases that
# are over are removed, since they would keep their client alive.
# The value has the client and the thread of each lease.
_kept: dict[int, tuple[_native.Lease, _native.Client, int]] = {}
_numbers = itertools.count()
# The number of the lease of a name that ends by itself; with several servers, the last one.
_timed: dict[str, int] = {}


def _keep(client: _native.Client, lease: _native.Lease, is_timed: bool) -> int:
    name, number = lease.resource, next(_numbers)
    _kept[number] = lease, client, threading.get_ident()
    if is_timed:
        _timed[name] = number
    # Never called after a release. It must not refer to the lease.
    lease.on_lost(lambda _: _forget(name, number))
    return number


def _forget(name: str, number: int) -> None:
    _kept.pop(number, None)
    if _timed.get(name) == number:
        _timed.pop(name, None)


# One client of leasehold for each connection pool of redis-py, in each process.
_clients: weakref.WeakKeyDictionary[Any, tuple[int, _native.Client]] = weakref.WeakKeyDictionary()
_clients_of_urls: dict[str, tuple[int, _native.Client]] = {}


class BaseLock:
    def __init__(
        self,
        redis: Any,
        name: str | bytes | int | float,
        timeout: float | None = None,
        sleep: float = 0.1,
        blocking: bool = True,
        blocking_timeout: float | None = None,
        thread_local: bool = True,
        raise_on_release_error: bool = True,
    ) -> None:
        if timeout is not None and not 0 < timeout < float("inf"):
            raise ConfigError(f"timeout={timeout!r} is not a valid time to hold a lock: give seconds above 0, or None")
        self.redis = redis
        # As redis-py names the key.
        self.name = bytes(name).decode() if isinstance(name, (bytes, memoryview)) else _text(name)
        self.timeout = timeout
        self.sleep = sleep
        self.blocking = blocking
        self.blocking_timeout = blocking_timeout
        self.thread_local = bool(thread_local)
        self.raise_on_release_error = raise_on_release_error
        self._local: Any = threading.local() if self.thread_local else SimpleNamespace()
        # Rejects invalid settings now, not in the middle of the work.
        self._url = None if _native_of(redis) is not None else redis if isinstance(redis, str) else url_of(redis)

    @property
    def token(self) -> int | None:
        """The fencing token of :attr:`lease`, for the resource, which rejects older ones."""
        lease = self._lease
        return None if lease is None else lease.token

    @property
    def _lease(self) -> _native.Lease | None:
        lease: _native.Lease | None = getattr(self._local, "lease", None)
        return lease

    def _known_client(self) -> _native.Client | None:
        """A client to the same server, once somebody has connected it."""
        if self._url is None:
            return _native_of(self.redis)
        known = _clients_of_urls.get(self._url) if isinstance(self.redis, str) else _clients.get(_pool_of(self.redis))
        return known[1] if known is not None and known[0] == os.getpid() else None

    def _connector(self) -> _native.Connector:
        return _client._connector(self._url)

    def _connected(self, client: _native.Client) -> _native.Client:
        # Another caller may have connected first; then use its client.
        known = self._known_client()
        if known is not None:
            return known
        _client._end_with_child()
        if isinstance(self.redis, str):
            _clients_of_urls[self.redis] = (os.getpid(), client)
        else:
            _clients[_pool_of(self.redis)] = (os.getpid(), client)
        return client

    def _until(self, blocking: bool | None, blocking_timeout: float | None, token: object) -> float | None:
        """The end of the tries, by :func:`_now`; None without a limit."""
        if token is not None:
            raise ConfigError(
                "the token cannot be chosen: a random value, new for each attempt, proves the holder; "
                "lock.token is the fencing token"
            )
        if not (self.blocking if blocking is None else blocking):
            return 0.0
        wait = self.blocking_timeout if blocking_timeout is None else blocking_timeout
        if wait is None and self.name in _timed:
            # A client rejects a thread that waits for itself; it does not know that this wait has an end.
            wait = FOR_EVER
        return None if wait is None else _now() + max(wait, 0)

    def _request(self, client: _native.Client, until: float | None) -> tuple[_native.Request, bool]:
        """The request for the next wait, and True if that is the last try."""
        left = None if until is None else max(until - _now(), 0)
        holders = [thread for _, thread in _standing(client, self.name)]
        # The client rejects a thread that would wait for itself forever.
        looks = bool(holders) and left != 0 and (left is not None or threading.get_ident() not in holders)
        if looks:
            left = LOOKS_EVERY if left is None else min(left, LOOKS_EVERY)
        return client.request(self.name, ttl=self._ttl, wait=left), not looks

    @property
    def _ttl(self) -> float:
        return max(min(self.timeout, DEFAULT_TTL), SHORTEST_TTL) if self.timeout else DEFAULT_TTL

    def _had(self, client: _native.Client, lease: _native.Lease) -> None:
        if self.timeout:
            self._end_after(lease, self.timeout)
        self._local.lease = lease
        self._local.number = _keep(client, lease, bool(self.timeout))

    def _taken(self) -> _native.Lease:
        lease = self._lease
        if lease is None:
            raise LockError("Cannot release a lock that's not owned or is already unlocked.", self.name)
        self._local.lease = None
        _forget(lease.resource, self._local.number)
        return lease

    def _held(self, what: str) -> _native.Lease:
        lease = self._lease
        if lease is None:
            raise LockError(f"Cannot {what} an unlocked lock", self.name)
        if not self.timeout:
            raise LockError(f"Cannot {what} a lock with no timeout", self.name)
        return lease

    def _extend(self, lease: _native.Lease, is_ours: bool, additional_time: float, replace_ttl: bool) -> Literal[True]:
        after = additional_time if replace_ttl else self._local.ends_at - _now() + additional_time
        if not is_ours or not self._end_after(lease, after):
            raise LockNotOwnedError("Cannot extend a lock that's no longer owned", self.name)
        return True

    def _end_after(self, lease: _native.Lease, seconds: float) -> bool:
        ends_at = _now() + seconds
        has_end = lease._end_after(max(seconds, 0.0))
        self._local.ends_at = ends_at
        return has_end

    def _is_ours(self, lease: _native.Lease, info: _native.LockInfo | None) -> bool:
        return info is not None and lease._is_shown_by(info) and lease.remaining() > 0

    def _looked(self, client: _native.Client, lease: _native.Lease, is_ours: bool) -> bool:
        """Ends a lease whose key somebody has deleted or replaced, so that waiters of this process can get the lock."""
        if not is_ours and len(client.stores) == 1:
            lease._end_gone()
        return is_ours

    def _not_had(self) -> NoReturn:
        raise LockError("Unable to acquire lock within the time specified", self.name)

    def _swallow(self, lost: LockError, error: BaseException | None) -> None:
        """Raises or logs a loss at the end of a body, which may have raised, as set by ``raise_on_release_error``."""
        if self.raise_on_release_error:
            # An exception of a native method has no context yet.
            for raised in (lost, lost.__cause__):
                if raised is not None and error is not None:
                    raised.__context__ = error
            raise lost
        import logging

        message = "Lock was unlocked or no longer owned when exiting context manager."
        logging.getLogger("leasehold").warning(message, extra={"event": "lock.lost", "resource": self.name})

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Translates errors of a lease to those of redis-py."""
        try:
            yield
        except StoreUnavailableError as error:
            raise unreachable(error) from error
        except (LeaseLostError, NotOwnedError) as error:
            raise LockNotOwnedError(f"Cannot release a lock that's no longer owned: {error}", self.name) from error


def _now() -> float:
    """Seconds of a clock that counts suspended time, as leases do."""
    return _native.clocks()[0] / 1e9


def _standing(client: _native.Client, name: str) -> list[tuple[_native.Lease, int]]:
    """The leases of this process on this name, and the threads that hold them."""
    return [
        (lease, thread)
        for lease, of, thread in tuple(_kept.values())
        if of is client and lease.resource == name and lease.remaining() > 0
    ]


def _text(name: object) -> str:
    if isinstance(name, str):
        return name
    if isinstance(name, (int, float)) and not isinstance(name, bool):
        return repr(name)
    raise TypeError(f"name must be the name of a lock, a str, bytes or a number, not {type(name).__name__}: {name!r}")


def _native_of(redis: Any) -> _native.Client | None:
    """The native client of a leasehold client; None for other objects."""
    native = getattr(redis, "_native", None)
    return native if isinstance(native, _native.Client) else None


def _pool_of(redis: Any) -> Any:
    return getattr(redis, "nodes_manager", None) or redis.connection_pool
