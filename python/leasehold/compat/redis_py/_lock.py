"""What locks with and without asyncio have in common."""

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
"""As good as no limit, to wait for a lock that this thread holds itself, but not for ever."""

# A lock of redis-py outlives its object: it is held until it is released, or its time is over. So are these. Leases that
# are over are no keys of anything: their client would live as long.
_kept: dict[int, _native.Lease] = {}
_numbers = itertools.count()
# Which lease of a name ends by itself, the last one of several servers.
_timed: dict[str, int] = {}


def _keep(lease: _native.Lease, is_timed: bool) -> int:
    name, number = lease.resource, next(_numbers)
    _kept[number] = lease
    if is_timed:
        _timed[name] = number
    # Never called after a release. It must not refer to the lease.
    lease.on_lost(lambda _: _forget(name, number))
    return number


def _forget(name: str, number: int) -> None:
    _kept.pop(number, None)
    if _timed.get(name) == number:
        _timed.pop(name, None)


# One client of ours for each pool of theirs, in each process.
_clients: weakref.WeakKeyDictionary[Any, tuple[int, _native.Client]] = weakref.WeakKeyDictionary()
_clients_of_urls: dict[str, tuple[int, _native.Client]] = {}


class BaseLock:
    def __init__(
        self,
        redis: Any,
        name: str | bytes,
        timeout: float | None = None,
        sleep: float = 0.1,
        blocking: bool = True,
        blocking_timeout: float | None = None,
        thread_local: bool = True,
        raise_on_release_error: bool = True,
    ) -> None:
        if timeout is not None and not 0 < timeout < float("inf"):
            raise ConfigError(f"timeout={timeout!r} is no time to hold a lock for: give seconds, above 0, or None")
        self.redis = redis
        self.name = name.decode() if isinstance(name, bytes) else name
        self.timeout = timeout
        self.sleep = sleep
        self.blocking = blocking
        self.blocking_timeout = blocking_timeout
        self.thread_local = bool(thread_local)
        self.raise_on_release_error = raise_on_release_error
        self._local: Any = threading.local() if self.thread_local else SimpleNamespace()
        # Refuses what cannot be now, and not in the middle of somebody's work.
        self._url = None if _native_of(redis) is not None else redis if isinstance(redis, str) else url_of(redis)

    @property
    def token(self) -> int | None:
        """The fencing token of :attr:`lease`, for the resource, which refuses older ones."""
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
        return _native.Connector(self._url)

    def _connected(self, client: _native.Client) -> _native.Client:
        # Whoever came second has connected for nothing.
        known = self._known_client()
        if known is not None:
            return known
        _client._end_with_child()
        if isinstance(self.redis, str):
            _clients_of_urls[self.redis] = (os.getpid(), client)
        else:
            _clients[_pool_of(self.redis)] = (os.getpid(), client)
        return client

    def _request(
        self, client: _native.Client, blocking: bool | None, blocking_timeout: float | None, token: object
    ) -> tuple[_native.Request, bool]:
        """What is to be asked for, and whether to wait for it."""
        if token is not None:
            raise ConfigError("a token of your own cannot be had: the lock is proven by one that nobody else can know")
        blocking = self.blocking if blocking is None else blocking
        wait = self.blocking_timeout if blocking_timeout is None else blocking_timeout
        if wait is None and self.name in _timed:
            # A client refuses a thread that waits for itself, not knowing that this wait has an end.
            wait = FOR_EVER
        ttl = max(min(self.timeout, DEFAULT_TTL), SHORTEST_TTL) if self.timeout else DEFAULT_TTL
        return client.request(self.name, ttl=ttl, wait=None if wait is None else max(wait, 0)), blocking

    def _had(self, lease: _native.Lease) -> None:
        if self.timeout:
            self._end_after(lease, self.timeout)
        self._local.lease = lease
        self._local.number = _keep(lease, bool(self.timeout))

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
        return info is not None and not info.foreign and info.token == lease.token and lease.remaining() > 0

    def _not_had(self) -> NoReturn:
        raise LockError("Unable to acquire lock within the time specified", self.name)

    def _unless_owned(self, is_ours: bool) -> None:
        if not is_ours:
            raise LockNotOwnedError("Cannot release a lock that's no longer owned", self.name)

    def _swallow(self, error: LockError) -> None:
        """At the end of a body, as ``raise_on_release_error`` says."""
        if self.raise_on_release_error:
            raise error
        import logging

        message = "Lock was unlocked or no longer owned when exiting context manager."
        logging.getLogger("leasehold").warning(message, extra={"event": "lock.lost", "resource": self.name})

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Errors of a lease as redis-py would say them."""
        try:
            yield
        except StoreUnavailableError as error:
            raise unreachable(error) from error
        except (LeaseLostError, NotOwnedError) as error:
            raise LockNotOwnedError(f"Cannot release a lock that's no longer owned: {error}", self.name) from error


def _now() -> float:
    """Seconds, of a clock that counts on while the machine is suspended, as the lease does."""
    return _native.clocks()[0] / 1e9


def _native_of(redis: Any) -> _native.Client | None:
    """Of a client of leasehold's."""
    native = getattr(redis, "_native", None)
    return native if isinstance(native, _native.Client) else None


def _pool_of(redis: Any) -> Any:
    return getattr(redis, "nodes_manager", None) or redis.connection_pool
