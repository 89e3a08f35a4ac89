"""Delivers the client's events and samples to loggers and observers. Imported when there may be a listener."""

from __future__ import annotations

import os
import sys
import threading

from leasehold import _native
from leasehold._callbacks import allocate_lock, start_new_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logging import Logger
    from typing import Any

    from leasehold.metrics import Observer

LOGGER = "leasehold"
# Python has no name for the level below DEBUG.
_LEVELS = (5, 10, 20, 30, 40)
_NONE = 100
# The process in which the delivering thread runs; a forked child has none.
_delivers_in: int | None = None
_starting = allocate_lock()
# Fetched items, whether some are being delivered, and locks that are released once all are.
_guard = allocate_lock()
_fetched: list[tuple[Any, ...]] = []
_is_delivering = False
_waiters: list[Any] = []
observers: list[Observer] = []


def _after_fork() -> None:
    # A thread of the parent may have held them.
    global _starting, _guard, _is_delivering
    _starting, _guard, _is_delivering = allocate_lock(), allocate_lock(), False
    # The parent delivers these.
    _fetched.clear()
    _waiters.clear()


# Windows has no forks.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def look() -> None:
    """Records only the levels and samples that have listeners. The native half calls this now and then."""
    global _delivers_in
    level = _level()
    # Without `logging`, the native half writes about long waits to stderr. A logger that is off wants no such lines.
    if level == _NONE and not observers and _delivers_in is None and "logging" not in sys.modules:
        return
    bell = _native.observe(level, bool(observers))
    # A second caller need not wait.
    if _delivers_in != os.getpid() and _starting.acquire(blocking=False):
        try:
            if _delivers_in != os.getpid():
                start_new_thread(_deliver_for_ever, (bell,))
                _delivers_in = os.getpid()
        except RuntimeError:
            # The interpreter is exiting and starts no more threads.
            pass
        finally:
            _starting.release()


def _level() -> int:
    # If nobody has imported `logging`, nobody has set up a handler.
    get_logger = getattr(sys.modules.get("logging"), "getLogger", None)
    if get_logger is None:
        return _NONE
    logger: Logger = get_logger(LOGGER)
    return next((level for level in _LEVELS if logger.isEnabledFor(level)), _NONE)


def _deliver_for_ever(bell: int) -> None:
    threading.current_thread().name = "leasehold-observe"
    if sys.platform == "win32":
        import msvcrt

        bell = msvcrt.open_osfhandle(bell, os.O_RDONLY)
    while True:
        _deliver()
        os.read(bell, 64)


def _deliver() -> None:
    """Delivers recorded events and samples."""
    global _is_delivering
    with _guard:
        _fetch()
        items = _fetched.copy()
        _fetched.clear()
        _is_delivering = True
    for item in items:
        if len(item) == 5:
            _log(*item)
        else:
            _observe(*item)
    with _guard:
        _is_delivering = False
        if not _fetched:
            for waiter in _waiters:
                waiter.release()
            _waiters.clear()


def finish(patience: float) -> None:
    """Waits until the thread has delivered everything, for at most this many seconds. The caller, at the exit of the
    interpreter, runs no handler itself: a handler that hangs would block the exit.
    """
    if _delivers_in != os.getpid():
        return
    waiter = allocate_lock()
    waiter.acquire()
    with _guard:
        # The thread has been woken, and finds the items here.
        _fetch()
        if not _fetched and not _is_delivering:
            return
        _waiters.append(waiter)
    waiter.acquire(timeout=patience)


def _fetch() -> None:
    items, dropped = _native.observed()
    _fetched.extend(items)
    if dropped:
        message = "lock.events_dropped: nobody came to fetch them in time"
        _fetched.append(("lock.events_dropped", 30, None, message, {"dropped": dropped}))


def _log(name: str, level: int, unix_ms: int | None, message: str, fields: dict[str, str | float]) -> None:
    import logging

    logger = logging.getLogger(LOGGER)
    told = " ".join(f"{key}={value!r}" for key, value in fields.items())
    extra = {"event": name, **fields}
    try:
        if not logger.isEnabledFor(level):
            return
        record = logger.makeRecord(LOGGER, level, "(leasehold)", 0, f"{message} %s", (told,), None, extra=extra)
        if unix_ms is not None:
            # The time of the event, not of its delivery.
            record.created = unix_ms / 1000
            record.msecs = float(unix_ms % 1000)
        logger.handle(record)
    except BaseException as error:
        _show(error, logger)


def _observe(name: str, kind: str, value: float, labels: dict[str, str]) -> None:
    from leasehold.metrics import Sample

    sample = Sample(name, kind, value, labels)
    for observer in tuple(observers):
        try:
            observer(sample)
        except BaseException as error:
            _show(error, observer)


def _show(error: BaseException, of: object) -> None:
    # Even SystemExit must not end the thread: there may be other listeners.
    import traceback

    try:
        print(f"leasehold: {of!r} has raised", file=sys.stderr)
        traceback.print_exception(type(error), error, error.__traceback__)
    except Exception:
        # There is nowhere to print it.
        pass
