"""From the client's events and samples to loggers and observers. Imported once anybody may listen."""

from __future__ import annotations

import os
import sys
import threading

from leasehold import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logging import Logger

    from leasehold.metrics import Observer

LOGGER = "leasehold"
# Python has no name for the level below DEBUG.
_LEVELS = (5, 10, 20, 30, 40)
_NONE = 100
# Of which process the thread is that delivers; a forked child has none.
_delivers_in: int | None = None
_starting = threading.Lock()
_delivering = threading.Lock()
observers: list[Observer] = []


def _after_fork() -> None:
    # A thread of the parent's may have held them.
    global _starting, _delivering
    _starting, _delivering = threading.Lock(), threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def look() -> None:
    """Has noted what somebody listens to, and nothing else. Called by the native half now and then."""
    global _delivers_in
    level = _level()
    if level == _NONE and not observers and _delivers_in is None:
        return
    bell = _native.observe(level, bool(observers))
    # Whoever comes second need not wait.
    if _delivers_in != os.getpid() and _starting.acquire(blocking=False):
        try:
            if _delivers_in != os.getpid():
                threading.Thread(target=_deliver_for_ever, args=(bell,), name="leasehold-observe", daemon=True).start()
                _delivers_in = os.getpid()
        except RuntimeError:
            # The interpreter ends, and starts no threads any more.
            pass
        finally:
            _starting.release()


def _level() -> int:
    # Where nobody has imported it, nobody has set up a handler.
    get_logger = getattr(sys.modules.get("logging"), "getLogger", None)
    if get_logger is None:
        return _NONE
    logger: Logger = get_logger(LOGGER)
    return next((level for level in _LEVELS if logger.isEnabledFor(level)), _NONE)


def _deliver_for_ever(bell: int) -> None:
    while True:
        deliver()
        os.read(bell, 64)


def deliver(patience: float = -1) -> None:
    """Passes on what was noted, unless another thread is at it for longer than the patience."""
    if not _delivering.acquire(timeout=patience):
        return
    try:
        items, dropped = _native.observed()
        for item in items:
            if len(item) == 5:
                _log(*item)
            else:
                _observe(*item)
        if dropped:
            message = "lock.events_dropped: nobody came to fetch them in time"
            _log("lock.events_dropped", 30, None, message, {"dropped": dropped})
    finally:
        _delivering.release()


def _log(name: str, level: int, unix_ms: int | None, message: str, fields: dict[str, str | float]) -> None:
    import logging

    logger = logging.getLogger(LOGGER)
    if not logger.isEnabledFor(level):
        return
    told = " ".join(f"{key}={value!r}" for key, value in fields.items())
    extra = {"event": name, **fields}
    try:
        record = logger.makeRecord(LOGGER, level, "(leasehold)", 0, f"{message} %s", (told,), None, extra=extra)
        if unix_ms is not None:
            # When it happened, and not when it was told.
            record.created = unix_ms / 1000
            record.msecs = float(unix_ms % 1000)
        logger.handle(record)
    except Exception as error:
        _show(error, logger)


def _observe(name: str, kind: str, value: float, labels: dict[str, str]) -> None:
    from leasehold.metrics import Sample

    sample = Sample(name, kind, value, labels)
    for observer in tuple(observers):
        try:
            observer(sample)
        except Exception as error:
            _show(error, observer)


def _show(error: Exception, of: object) -> None:
    import traceback

    print(f"leasehold: {of!r} has raised", file=sys.stderr)
    traceback.print_exception(type(error), error, error.__traceback__)
