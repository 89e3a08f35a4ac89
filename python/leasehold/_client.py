"""Connections to stores."""

from __future__ import annotations

import atexit
import os
import sys
import threading

from leasehold import _callbacks, _native
from leasehold._errors import ConfigError
from leasehold._lock import Lock
from leasehold._misuse import SyncOnly
from leasehold._once import Once
from leasehold._options import (
    UNNAMED,
    Unnamed,
    acquiring,
    acquiring_all,
    any_of,
    connecting,
    named,
    permitting,
    refuse_name,
    refuse_prefix,
    refuse_key,
    refuse_unknown,
    running,
    sharing,
    shown_as,
    trying,
    warn,
)
from leasehold._permits import LockAny, Requests, RwLock, Semaphore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence
    from types import TracebackType
    from typing import Any, NoReturn

    from typing_extensions import Self, Unpack

    from leasehold._errors import LeaseholdError
    from leasehold._native import (
        Election,
        Lease,
        Leases,
        LockInfo,
        ReleaseIfOutcome,
        RevokeOutcome,
        SessionInfo,
        Shard,
        Shards,
    )
    from leasehold._runs import Completion, RunInfo
    from leasehold._types import AllOptions, AnyOptions, ConnectOptions, LockOptions, OnceOptions, Seconds, Stores, Strings, TryOptions
    from leasehold._watch import Change



def _end() -> None:
    """Releases what is still held, within 2 s: the interpreter must not wait for a store that is down."""
    _native.end()
    # Without it nothing is delivered yet: there is no such module, or another thread is just importing it.
    finish = getattr(sys.modules.get("leasehold._observe"), "finish", None)
    if finish is not None:
        # Deliver pending events; but a handler that hangs must not delay the exit.
        finish(patience=1)


atexit.register(_end)
_ends_with: int | None = None
# Warnings about stores, each of which is shown once.
_shown: set[str] = set()


@shown_as(connecting)
def connect(stores: Stores | None | Unnamed = UNNAMED, **options: Unpack[ConnectOptions]) -> Client:
    """Opens a store: ``sqlite:PATH`` for all processes of one machine, ``redis://HOST`` or ``dynamodb://TABLE`` for many
    machines, ``memory:`` for this process alone. A list of urls is a quorum of independent stores.

    A call that names no store uses the urls in the environment variable ``LEASEHOLD_STORE``. If that is not set, it uses a file
    in the user's state folder, which no other machine sees, and warns; ``LEASEHOLD_REQUIRE_STORE=1`` makes that an error. None
    and an empty text, as of a variable that is not set, raise ConfigError.

    owner: the label that others see beside a lock; default ``host:pid:thread`` of the caller that acquires.
    session: a name for the session that all leases of the client belong to, such as ``worker-7``. On DynamoDB, etcd and
        objects, one heartbeat renews them all.
    drift_ppm: the largest rate error of any clock involved, in parts per million; default 10,000 (1%).
    request_timeout: the longest wait for one reply of the store; default 0.5 s, 0.01 s to 60 s.
    max_ttl, quorum_id, create_quorum: for quorums only; see the guide.

    Raises ConfigError for an invalid url or setting, StoreRefusedError if permissions are missing,
    StoreUnavailableError if the store cannot be reached.
    """
    return Client(_connected(_connector(stores, **options)))


def _connector(stores: Stores | None | Unnamed, **options: Unpack[ConnectOptions]) -> _native.Connector:
    _refuse_greenlets()
    _callbacks.look_now()
    try:
        connector = _native.Connector(named(stores), **options)
    except TypeError:
        refuse_unknown("connect", connecting, options)
        raise
    return connector


def _connected(connector: _native.Connector) -> _native.Client:
    """Connects, and shows the warnings about the stores that a program without `logging` would not hear of, once each."""
    client, unheard = connector.connect()
    if "logging" not in sys.modules:
        for message in unheard:
            if message not in _shown:
                warn(message)
                _shown.add(message)
    return client


def _refuse_greenlets() -> None:
    """Raises ConfigError if gevent or eventlet has patched threads or sockets: a waiting call would stop all
    greenlets, also the holder of the lock, and callbacks would never run.
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
                "leasehold.aio in a process of asyncio, the command leasehold exec, or from greenlets `leasehold serve`, a daemon "
                "that is asked over HTTP"
            )


class Client(SyncOnly):
    """A connection to a store, and everything that keeps its leases alive; made by :func:`connect`.

    Any number of threads may use it. As a context manager, it is closed at the end.
    """

    __module__ = "leasehold"

    def __init__(self, native: _native.Client) -> None:
        self._native = native
        _end_with_child()

    @property
    def stores(self) -> Strings:
        """The urls of the stores, without secrets."""
        return self._native.stores

    @shown_as(acquiring)
    def lock(self, name: str, **options: Unpack[LockOptions]) -> Lock:
        """A lock for ``with``, as a decorator, or in place of a ``threading.Lock``. Nothing is
        held yet. The options are those of :meth:`acquire`.
        """
        return Lock(self, name, options)

    @shown_as(acquiring)
    def acquire(self, name: str, **options: Unpack[LockOptions]) -> Lease:
        """Acquires a lock. Durations are in seconds, as a number or a ``timedelta``.

        ttl: how long the lease lasts without renewal, 0.1 s to 24 h, default 30 s. If this process dies, others wait that
            long; if it stalls for that long, the lease is lost.
        wait: how long to try, by default without limit; 0 tries once.
        owner: the label that others see, at most 256 bytes; default ``host:pid:thread``.
        data: bytes that others can read beside the lock, at most 4 KiB; none by default.
        lock_delay: how long the lock stays closed after a lease has expired; default 0.
        max_hold: ends renewal this long after the grant, at least the ttl; off by default.
        renew_every: time between renewals, at most half the ttl; default a third of it.
        renew: False for no renewal at all.
        fair: False to try to take the lock ahead of the queue first; if it is held, the call queues as usual. One Redis,
            PostgreSQL, SQLite and memory keep a queue.
        watch_holder: True to find out whether the holder lives, however short the wait is. On DynamoDB, etcd and objects only
            those who watch its record can tell: beyond the wait, it is watched until it is renewed, for about a third of the
            holder's ttl, or has stood for all of its ttl and is taken over. Elsewhere it changes nothing.

        Raises LockBusyError (wait=0) or LockTimeoutError when somebody else holds the lock, StoreUnavailableError or
        StoreRefusedError if the store fails, ClosedError for a closed client, and ConfigError for invalid settings, for an
        inherited client, and if this thread holds the lock and would wait for itself forever.
        """
        return self._request(name, options).acquire()

    @shown_as(trying)
    def try_acquire(self, name: str, **options: Unpack[TryOptions]) -> Lease | None:
        """Tries once: None when somebody else holds the lock. The options are those of :meth:`acquire`, except ``wait``.

        Raises the errors of :meth:`acquire`, except LockBusyError and LockTimeoutError.
        """
        _refuse_wait(options)
        return self._request(name, options).try_acquire()

    @shown_as(running)
    def once(self, name: str, *, save_result: bool = False, **options: Unpack[OnceOptions]) -> Once:
        """A job that is done once: for ``with``, which gives a :class:`Run` or None, or as a decorator, which answers
        :class:`Ran`, :class:`AlreadyDone` or :class:`RunningElsewhere`. A lock says "not at the same time"; a run says "not
        twice": when the body ends, a completion is written that turns away all who come later. An exception leaves no completion.

        One of key, every, cooldown and keep has to be given; ConfigError is raised without any.

        key: the occurrence of the job: a date, an invoice, a batch. Each is done once.
        every: in place of a key, one occurrence in each period by this machine's clock, 1 s or longer; ``offset`` moves the
            start of the periods, which is 1970 in UTC.
        at, tz: with every, the time of day and the zone in which periods begin, such as ``at="02:00", tz="Europe/Berlin"``; they
            are whole days then. The key is the local time, so a time that comes twice, or never, when clocks are set is done once.
        cron, tz: in place of a key, one occurrence for each time of a cron expression in that zone, such as ``cron="0 2 * * 1-5"``.
        cooldown: in place of both: once done, the job is not done again for this long, from the end of the work.
        keep: how long the completion stands: at least the ttl and the period, at most 100 years, on a quorum 7 days. By default 7
            days, or twice the period if that is longer than 7 days.
        wait: how long to stand by while somebody else runs, to learn that it is done or to take over; default 0, which
            steps aside at once.
        ttl, owner, data, lock_delay, max_hold, renew_every, renew: see :meth:`acquire`.
        trust_quorum: an operator's word that no completion was lost, for a quorum whose nodes have lost their data.
        even_if_done: run although a completion stands, which the end of the body replaces; for a repair by hand.
        replace: True to take the run over from its runner, whose lease is then lost with the reason "revoked". The call waits until that one
            has let go, or its lease has run out; of several calls that wait the newest runs, and the others get :class:`Replaced`.
            ``wait`` is the longest wait; by default there is none. Work that was done before is not done again, unless with
            even_if_done.
        watch_holder: True to find out whether the runner lives, however short the wait is: see :meth:`acquire`.
        max_attempts: how often the work may be begun: each attempt counts, also one whose process dies. After that, entering raises
            :class:`GivenUpError`, with why the last one failed, until somebody forgets the run. Attempts are remembered for as long
            as a completion is kept. Default: without limit.
        retry_after: the pause from the start of an attempt to the start of the next one; until then the answer is
            :class:`RetryLater`. Default 0; needs max_attempts.
        save_result: True for a decorated function whose later callers get what it returned, in :class:`AlreadyDone`: bytes, or
            what JSON can hold, at most 4 KiB. In ``with``, ``run.finish(result=...)`` leaves it.

        Work is done at least once until its completion stands, and not again while it stands. A run that lost its lease may overlap
        its successor: pass ``run.token`` to what it writes to, which rejects older ones.

        Raises ConfigError for settings that cannot be, such as a key together with a cooldown. Entering raises the errors of
        :meth:`acquire`, without LockBusyError and LockTimeoutError. Leaving raises LeaseLostError if the lease was lost, so
        that no completion was written, and FinishUnconfirmedError if no answer says that the completion stands.
        """
        once = Once(self, name, options)
        once._saves = save_result
        return once

    @shown_as(acquiring_all)
    def lock_all(self, names: Iterable[str], **options: Unpack[AllOptions]) -> Leases:
        """Acquires several locks, all or none, in sorted order, so that two callers with the same locks cannot block
        each other forever. ``wait`` is for all of them together. Use it in ``with``.

        Raises the error of :meth:`acquire` for the first lock that could not be acquired, and LeaseLostError if one was lost
        while waiting for another.
        """
        names = _several(names)
        try:
            return self._native.acquire_all(names, **options)
        except TypeError:
            refuse_unknown("lock_all", acquiring_all, options)
            raise

    @shown_as(any_of)
    def lock_any(self, names: Iterable[str], **options: Unpack[AnyOptions]) -> LockAny:
        """The first of several locks that is free, at most 64: one GPU, port or licence of a pool. For ``with``, which gives a
        lease whose ``resource`` says which it is, as a decorator, or in place of a ``threading.Lock``. Nothing is held yet.

        The locks are tried one by one, from a random one on; if all are held, all are waited for at the same time. ``wait`` is
        for any of them. The options are those of :meth:`acquire`, as far as they are listed. Raises its errors;
        StoreUnavailableError comes before LockBusyError and LockTimeoutError.
        """
        return LockAny(Requests(self._native, "any"), _several(names), options)

    @shown_as(permitting)
    def semaphore(self, name: str, permits: int, **options: Unpack[AnyOptions]) -> Semaphore:
        """One of so many permits, 1 to 64. For ``with``, which gives a :class:`Permit`, as a decorator, or in place of a
        ``threading.Lock``. Nothing is held yet.

        Each permit is a lock, so there are never more holders than permits; that of a dead holder comes back after its ttl. All
        clients name the same number: the first one writes it down, and another one raises ConfigError. The options are those of
        :meth:`acquire`, as far as they are listed, and so are the errors.
        """
        return Semaphore(Requests(self._native, "permit", permits), name, options)

    def set_permits(self, name: str, permits: int) -> None:
        """Changes the number of permits of a semaphore, while nobody holds one. Raises LockBusyError while somebody does."""
        refuse_name(name)
        self._native.set_permits(name, permits)

    @shown_as(sharing)
    def rw_lock(self, name: str, *, readers: int | None = None, **options: Unpack[AllOptions]) -> RwLock:
        """A lock that many readers hold together, or one writer alone: ``with client.rw_lock(name).read():``, or ``.write()``.

        readers: the most readers at a time, 1 to 64, default 16. All clients name the same number: the first one writes it down,
            and another one raises ConfigError. A write takes one lock more than this.

        The other options are those of :meth:`acquire`, as far as they are listed, and so are the errors. A writer keeps later
        readers out while it waits. A reader cannot become a writer: release the read lock first.
        """
        return RwLock(self._native, name, readers, options)

    def set_readers(self, name: str, readers: int) -> None:
        """Changes the number of readers of a lock, while nobody holds it. Raises LockBusyError while somebody does."""
        refuse_name(name)
        self._native.set_readers(name, readers)

    def list(self, prefix: str = "") -> Generator[LockInfo, None, None]:
        """The locks that are held and whose names begin with ``prefix``, in no promised order, one page after the other.

        It is for looking, never for deciding: a lock that is taken or released meanwhile may be missing, or be shown all the
        same. Each page is a bounded request that blocks nobody. Keys of other programs are left out. DynamoDB reads the whole
        table for it.

        Raises StoreUnavailableError, StoreRefusedError, and ConfigError for a prefix that no name can have.
        """
        refuse_prefix(prefix)
        return _listed(self._native.pages(prefix))

    def runs(self, prefix: str = "") -> Generator[RunInfo, None, None]:
        """The runs whose resources begin with ``prefix``, in no promised order: those whose completion stands, and those that
        somebody is at. A resource is ``name@key``, so ``"nightly@"`` has all occurrences of one job.

        It is for looking, never for deciding, and costs what :meth:`list` costs; on Redis and DynamoDB each run is read, too.

        Raises the errors of :meth:`list`.
        """
        refuse_prefix(prefix)
        return _listed(self._native.run_pages(prefix))

    def watch(self, name: str, *, every: Seconds | None = None) -> Generator[Change, None, None]:
        """The changes of a lock's holder, without end, by reading it again and again; ``break`` ends it. The first one is the
        state now. A holder that comes and goes between two readings is not seen: use it to look, never to decide.

        every: the time between two readings, at least 0.1 s, default 1 s.

        Trouble of the store is a :class:`Change`. Raises ConfigError for an invalid name or time, ClosedError for a closed client.
        """
        refuse_name(name)
        return _changed(self._native.changes(name, every))

    def elect(
        self,
        name: str,
        *,
        ttl: Seconds | None = None,
        owner: str | None = None,
        on_start: Callable[[Lease], object] | None = None,
        on_stop: Callable[[LeaseholdError | None], object] | None = None,
    ) -> Election:
        """Runs as a candidate in an election, on a separate thread, until the election is resigned or dropped.

        ``on_start(lease)`` is called each time this candidate is elected; it should start the work and return.
        ``on_stop(error)`` is called each time a term ends, with the reason when it was lost and None when this candidate
        resigned; the work must have stopped when it returns. Dropping the election resigns without waiting for ``on_stop``.

        An exception of either is logged as an ERROR and ends the term; ``on_stop`` is called after that of ``on_start`` too.
        The candidate stands again after 1 s, and after twice as long each further time, up to a minute. The end of a ``with``
        block and ``resign()`` raise it, unless a later term has begun well.

        Raises ConfigError for an invalid name, ttl or owner, TypeError for a callback that is not a plain function.
        """
        refuse_name(name)
        return self._native.elect(name, ttl=ttl, owner=owner, on_start=on_start, on_stop=on_stop)

    def shards(
        self,
        name: str,
        count: int = 16,
        *,
        on_gain: Callable[[Shard], object] | None = None,
        on_loss: Callable[[Shard, LeaseholdError | None], object] | None = None,
        ttl: Seconds | None = None,
        owner: str | None = None,
        look_every: Seconds | None = None,
    ) -> Shards:
        """Works on shards beside other workers, on separate threads, until it is stopped or dropped. Each shard is a lock, so
        it has one holder at a time, and each worker gets a fair share.

        count: the number of shards, 1 to 64. All workers name the same number.
        ttl: the shards of a worker that dies are free after so long.
        look_every: the time between two looks at the other workers, at least 0.1 s, default 5 s.

        ``on_gain(shard)`` is called with each shard that this worker gets; it should start the work and return.
        ``on_loss(shard, error)`` is called when a shard ends, with the reason when it was lost and None when it is to be let
        go; the work on it must have stopped when it returns, and it is renewed until then. The calls of one shard come one
        after the other, those of different shards at the same time. An exception of either is logged as an ERROR and ends the
        shard, which this worker leaves to others for 1 s, and twice as long each further time, up to a minute. The end of a
        ``with`` block and ``stop()`` raise it, unless this worker has got that shard again.

        Raises ConfigError for an invalid name, count or time, TypeError for a callback that is not a plain function. Later
        errors are in ``last_error``.
        """
        refuse_name(name)
        return self._native.shards(
            name, count, on_gain=on_gain, on_loss=on_loss, ttl=ttl, owner=owner, look_every=look_every
        )

    def set_shards(self, name: str, count: int) -> None:
        """Changes the number of shards of a name, while no worker runs. Raises LockBusyError while one does."""
        refuse_name(name)
        self._native.set_shards(name, count)

    def inspect(self, name: str) -> LockInfo | None:
        """The holder of a lock, or None if it is free. The answer is already old when it arrives: never decide by it.
        Whether a job of :meth:`once` is done tells :meth:`inspect_run`: the names of runs are no names of locks.

        Raises StoreUnavailableError, StoreRefusedError, and ConfigError for an invalid name.
        """
        refuse_name(name)
        return self._native.inspect(name)

    def inspect_run(self, name: str, key: str | None = None) -> RunInfo:
        """The holder and the completion of one occurrence of a job. Raises the errors of :meth:`inspect`."""
        refuse_name(name)
        refuse_key(key)
        return self._native.inspect_run(name, key)

    def forget_run(self, name: str, key: str | None = None) -> Completion | None:
        """Removes the completion of one occurrence of a job, so that it is done again; returns the completion, if one stood. For
        people: waits until nobody runs it, up to 10 s, and then raises LockTimeoutError. Otherwise raises the errors of
        :meth:`inspect`, and FinishUnconfirmedError.
        """
        refuse_name(name)
        refuse_key(key)
        return self._native.forget_run(name, key)

    def release_if(self, name: str, *, token: int | None = None, owner: str | None = None) -> ReleaseIfOutcome:
        """Releases a lock if its holder matches, for a supervisor that knows that this holder is dead. One conditional write
        releases exactly the compared lease, so a new holder keeps the lock.

        token: the holder's fencing token, which is unique for each grant.
        owner: the holder's label; ``*`` matches any characters, as in ``worker-7:1234:*`` for all threads of a process.

        The answer is true if the lock was released; ``holder`` is the released holder, or the current one. If the released
        holder still works, two holders work from now on; it learns of the loss with its next renewal.

        Raises ConfigError if neither is given, StoreRefusedError if the holder is a client of another library, and otherwise
        the errors of :meth:`inspect`.
        """
        return self._native.release_if(name, token=token, owner=owner)

    def revoke(self, name: str, token: int, *, owner: str | None = None) -> RevokeOutcome:
        """Asks the holder of a lock to let go. With its next renewal, at most a third of its ttl later, it learns that its lease
        is lost, with the reason ``revoked``, and its lock is free as soon as its work has ended. Nobody else gets it before. A
        holder that is dead, or does not listen, keeps it until its ttl is over.

        token: the holder's fencing token, which is unique for each grant, so a new holder keeps the lock.
        owner: also the holder's label; ``*`` matches any characters.

        The answer is true if the lease is revoked, by this call or an earlier one; ``holder`` is its holder, or the current one.

        Raises StoreUnavailableError also if too few nodes of a quorum have revoked the lease; ask again then. Otherwise the
        errors of :meth:`release_if`.
        """
        return self._native.revoke(name, token, owner=owner)

    def sessions(self) -> Sequence[SessionInfo]:
        """The sessions of the clients that have locks, by their names: one for each client that was connected with
        ``session=``. It is for information, never for decisions, and costs as much as a :meth:`list` of all locks.

        Raises the errors of :meth:`list`.
        """
        return self._native.sessions()

    def revoke_session(self, label: str) -> Sequence[SessionInfo]:
        """Asks the holders of all sessions of this name to let go of all of their locks, as :meth:`revoke` does for one: those
        that are shown as ``NAME/2`` and so on, too; ``*`` matches any characters. The answer is the sessions that were revoked. If it fails halfway, some locks are revoked: ask
        again.

        Raises the errors of :meth:`sessions` and :meth:`revoke`, and ConfigError for an empty name.
        """
        return self._native.revoke_session(label)

    def _request(self, name: str, options: TryOptions) -> _native.Request:
        return _request(self._native, name, options)

    def _run_request(self, name: str, options: OnceOptions) -> _native.RunRequest:
        return _run_request(self._native, name, options)

    def close(self) -> None:
        """Releases all leases of this client, cancels all its waiters, and waits up to 2 s until the store has confirmed
        it. The client can acquire nothing afterwards. In a forked child it does nothing.

        Raises StoreUnavailableError if a release is not confirmed yet; it continues in the background.
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
            # The body's own exception matters more; an unconfirmed release expires by itself.
            if error is None:
                raise

    def __reduce__(self) -> NoReturn:
        raise TypeError("a client is a connection of this process: connect again in the other one")

    def __repr__(self) -> str:
        return f"<leasehold.Client {' '.join(self.stores)}>"


def _listed(pages: _native.Pages | _native.RunPages) -> Generator[Any, None, None]:
    while (page := pages.next()) is not None:
        yield from page


def _changed(changes: _native.Changes) -> Generator[Change, None, None]:
    while True:
        yield changes.next()


def _request(native: _native.Client, name: str, options: TryOptions) -> _native.Request:
    refuse_name(name)
    try:
        return native.request(name, **options)
    except TypeError:
        refuse_unknown("acquire", acquiring, options)
        raise


def _run_request(native: _native.Client, name: str, options: OnceOptions) -> _native.RunRequest:
    refuse_name(name)
    try:
        return native.run_request(name, **options)
    except TypeError:
        refuse_unknown("once", running, options)
        refuse_key(options.get("key"))
        raise


def _begin_acquire(native: _native.Client, name: str, task: int | None, options: TryOptions) -> _native.Operation:
    refuse_name(name)
    try:
        return native.begin_acquire(name, task, **options)
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
    """Releases leases at the end of forked children of multiprocessing, which run its own handlers but no exit handlers."""
    global _ends_with
    processes = sys.modules.get("multiprocessing.process")
    if processes is None or processes.parent_process() is None or _ends_with == os.getpid():
        return
    from multiprocessing.util import Finalize

    Finalize(None, _end_of_child, exitpriority=0)
    _ends_with = os.getpid()


def _several(names: Iterable[str]) -> list[str]:
    if isinstance(names, str):
        raise TypeError("names must be a list of names: a str would be read as a list of letters")
    several = list(names)
    for name in several:
        refuse_name(name)
    return several
