"""What runs callbacks of the native half, on a thread of its own for each call."""

from __future__ import annotations

from leasehold._functions import refuse_deferred, refuse_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from leasehold._native import Done

_AWAITED = "nobody awaits a callback: use a client of leasehold.aio, or a plain function"


def check(callback: object) -> None:
    """Raises TypeError for what cannot be called, or would be awaited in vain."""
    if not callable(callback):
        raise TypeError(f"a callback can be called, and {callback!r} cannot")
    refuse_deferred(callback, _AWAITED)


def run(callback: Callable[[object], object], argument: object, done: Done) -> None:
    # Python alone is on this stack while the callback runs, so that the end of the interpreter can unwind it.
    try:
        refuse_result(callback(argument), _AWAITED)
    except BaseException as error:
        done.raised(error)
    else:
        done.returned()
