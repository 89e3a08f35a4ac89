"""Connections to stores."""

from __future__ import annotations

import atexit
import os
import sys
import threading

from leasehold import _callbacks, _native
from leasehold._errors import ConfigError
from leasehold._lock import Lock
from leasehold._options import acquiring, acquiring_all, connecting, refuse_name, refuse_unknown, shown_as, trying

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import NoReturn

    from typing_extensions import Self, Unpack

    from leasehold._errors import LeaseholdError
    from leasehold._native import Election, Lease, Leases, LockInfo, ReleaseIfOutcome
    from leasehold._types import AllOptions, ConnectOptions, LockOptions, Seconds, Stores, TryOptions



def _end() -> None:
    """Releases what is still held, within 2 s: the interpreter must not wait for a store that is down."""
    _native.end()
    observe = sys.modules.get("leasehold._observe")
    if observe is not None:
        # What somebody listens to; but a handler that hangs must not hold up the end.
        observe.finish(patience=1)


atexit.register(_end)
_ends_with: int | None = None


@shown_as(connecting)
def connect(stores: Stores | None = None, **options: Unpack[ConnectOptions]) -> Client:
    """Opens a store: ``sqlite:PATH`` for all processes of one machine, ``redis://HOST`` or ``dynamodb://TABLE`` for many
    machines, ``memory:`` for this process alone. Without a url, those in the environment variable ``LEASEHOLD_STORE``,
    else a file in the user's state folder, with a warning: no other machine sees it. ``LEASEHOLD_REQUIRE_STORE=1`` makes that
    an error. A list of urls is a quorum of independent stores.

    owner: the label that others see beside a lock; default ``host:pid:thread`` of whoever acquires.
    drift_ppm: the largest rate error of any clock involved, in parts per million; default 10,000 (1%).
    request_timeout: the longest that one reply of the store is awaited; default 0.5 s, 0.01 s to 60 s.
    max_ttl, quorum_id, create_quorum: of quorums only; see the guide.

    Raises ConfigError for a url or setting that cannot be, StoreRefusedError where permissions are missing,
    StoreUnavailableError where the store cannot be reached.
    """
    return Client(_connector(stores, **options).connect())


def _connector(stores: Stores | None, **options: Unpack[ConnectOptions]) -> _native.Connector:
    _refuse_greenlets()
    _callbacks.look_now()
    try:
        return _native.Connector(stores, **options)
    except TypeError:
        refuse_unknown("connect", connecting, options)
        raise


def _refuse_greenlets() -> None:
    """Raises ConfigError where threads and sockets of the process are not what they seem: a call that waits would stop all
    greenlets, the one among them that holds the lock, and callbacks would never run.
    """
    gevent, eventlet = sys.modules.get("gevent.monkey"), sys.modules.get("eventlet.patcher")
    for name, is_patched in (
        ("gevent", gevent and gevent.is_module_patched),
        ("eventlet", eventlet and eventlet.is_monkey_patched),
    ):
        if is_patched and any(is_patched(module) for module in ("threading", "thread", "socket")):
            raise ConfigError(
                f"{name} has patched this process, and leasehold would stop all of its greenlets while one waits: use a "
                "pool of threads or of processes (Celery: --pool threads or prefork; gunicorn: --worker-class gthread), "
                "leasehold.aio in a process of asyncio, or the command leasehold exec"
            )


class Client:
    """A connection to a store, and everything that keeps its leases alive; made by :func:`connect`.

    For any number of threads. A context manager: leaving it closes the client.
    """

    __module__ = "leasehold"

    def __init__(self, native: _native.Client) -> None:
        self._native = native
        _end_with_child()

    @property
    def stores(self) -> list[str]:
        """The urls of the stores, without secrets."""
        return self._native.stores

    @shown_as(acquiring)
    def lock(self, name: str, **options: Unpack[LockOptions]) -> Lock:
        """A lock to be entered by ``with``, to decorate a function, or to stand in for a ``threading.Lock``. Nothing is
        held yet. The options are those of :meth:`acquire`.
        """
        return Lock(self, name, options)

    @shown_as(acquiring)
    def acquire(self, name: str, **options: Unpack[LockOptions]) -> Lease:
        """Acquires a lock. Lengths of time are seconds, as a number or a ``timedelta``.

        ttl: how long the grant lasts without renewal, 0.1 s to 24 h, default 30 s. If this process dies, others wait that
            long; if it stalls for that long, the lease is lost.
        wait: how long to try, default for ever; 0 tries once.
        owner: the label that others see, at most 256 bytes; default ``host:pid:thread``.
        data: bytes that others can read beside the lock, at most 4 KiB; none by default.
        lock_delay: how long the lock stays closed after a lease ran out; default 0.
        max_hold: ends renewal this long after the grant, at least the ttl; off by default.
        renew_every: time between renewals, at most half the ttl; default a third of it.
        renew: False for no renewal at all.

        Raises LockBusyError (wait=0) or LockTimeoutError when somebody else holds the lock, StoreUnavailableError or
        StoreRefusedError for the store's own troubles, ClosedError for a closed client, and ConfigError for settings that
        cannot be, for an inherited client, and where this very thread holds the lock and would wait for itself for ever.
        """
        return self._request(name, options).acquire()

    @shown_as(trying)
    def try_acquire(self, name: str, **options: Unpack[TryOptions]) -> Lease | None:
        """Tries once: None when somebody else holds the lock. The options are those of :meth:`acquire`, but for ``wait``.

        Raises what :meth:`acquire` raises, but for LockBusyError and LockTimeoutError.
        """
        _refuse_wait(options)
        return self._request(name, options).try_acquire()

    @shown_as(acquiring_all)
    def lock_all(self, names: Iterable[str], **options: Unpack[AllOptions]) -> Leases:
        """Acquires several locks, all or none, in sorted order, so that two callers who want the same ones cannot block
        each other for ever. ``wait`` is for all of them together. Use it in ``with``.

        Raises what :meth:`acquire` raises, of the first lock that was not to be had, and LeaseLostError when one was lost
        while another was waited for.
        """
        names = _several(names)
        try:
            return self._native.acquire_all(names, **options)
        except TypeError:
            refuse_unknown("lock_all", acquiring_all, options)
            raise

    def elect(
        self,
        name: str,
        *,
        ttl: Seconds | None = None,
        owner: str | None = None,
        on_start: Callable[[Lease], object] | None = None,
        on_stop: Callable[[LeaseholdError | None], object] | None = None,
    ) -> Election:
        """Stands for election, on a thread of its own, until the election is resigned or dropped.

        ``on_start(lease)`` is called each time this candidate is elected; it should start the work and return.
        ``on_stop(error)`` is called each time a term ends, with the reason when it was lost and None when this candidate
        resigned; the work must have stopped when it returns. An exception of either ends the candidacy. Dropping the
        election resigns without waiting for ``on_stop``.

        Raises ConfigError for a name, ttl or owner that cannot be, TypeError for a callback that is no plain function.
        """
        refuse_name(name)
        return self._native.elect(name, ttl=ttl, owner=owner, on_start=on_start, on_stop=on_stop)

    def inspect(self, name: str) -> LockInfo | None:
        """Who holds a lock, None when nobody does. The answer is old when it arrives: use it to look, never to decide.

        Raises StoreUnavailableError, StoreRefusedError, and ConfigError for a name that cannot be.
        """
        refuse_name(name)
        return self._native.inspect(name)

    def release_if(self, name: str, *, token: int | None = None, owner: str | None = None) -> ReleaseIfOutcome:
        """Releases a lock if its holder is the one that is meant, for a supervisor that knows that this holder is dead. What
        was compared is released in one conditional write, so a holder that came in between is left alone.

        token: the holder's fencing token, which each grant has of its own.
        owner: the holder's label; ``*`` stands for any characters, as in ``worker-7:1234:*`` for all threads of a process.

        The answer is true if the lock was released; ``holder`` says whose it was, or who has it instead. If the holder
        still works, two do from now on; it learns of the loss with its next renewal.

        Raises ConfigError if neither is given, StoreRefusedError if a client of another library is meant, and otherwise what
        :meth:`inspect` raises.
        """
        return self._native.release_if(name, token=token, owner=owner)

    def _request(self, name: str, options: TryOptions) -> _native.Request:
        return _request(self._native, name, options)

    def close(self) -> None:
        """Releases all leases of this client, cancels all its waiters, and waits up to 2 s until the store has confirmed
        it. The client can acquire nothing afterwards. In a forked child nothing is done.

        Raises StoreUnavailableError when a release is not confirmed yet; it goes on in the background.
        """
        self._native.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.close()
        except ConnectionError:
            # The body's own exception says more; and what is not confirmed runs out by itself.
            if error is None:
                raise

    def __reduce__(self) -> NoReturn:
        raise TypeError("a client is a connection of this process: connect again in the other one")

    def __repr__(self) -> str:
        return f"<leasehold.Client {' '.join(self.stores)}>"


def _request(native: _native.Client, name: str, options: TryOptions) -> _native.Request:
    refuse_name(name)
    try:
        return native.request(name, **options)
    except TypeError:
        refuse_unknown("acquire", acquiring, options)
        raise


def _refuse_wait(options: TryOptions) -> None:
    if "wait" in options:
        raise TypeError("try_acquire() does not wait: use acquire(), with wait")


def _end_of_child() -> None:
    me = threading.current_thread()
    # Other threads of the child end after this, and may rely on their locks until then.
    if all(thread is me or thread.daemon for thread in threading.enumerate()):
        _end()


def _end_with_child() -> None:
    """Children of multiprocessing that were forked end without exit handlers, but with handlers of its own."""
    global _ends_with
    processes = sys.modules.get("multiprocessing.process")
    if processes is None or processes.parent_process() is None or _ends_with == os.getpid():
        return
    from multiprocessing.util import Finalize

    Finalize(None, _end_of_child, exitpriority=0)
    _ends_with = os.getpid()


def _several(names: Iterable[str]) -> list[str]:
    if isinstance(names, str):
        raise TypeError("several names are wanted, and a text would be taken for a list of letters")
    several = list(names)
    for name in several:
        refuse_name(name)
    return several
