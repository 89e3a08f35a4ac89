"""The lock protocol as a state machine, for frameworks with their own I/O.

It owns no socket, clock, thread or randomness. The host performs the requests of :meth:`Client.poll_output`,
reports their results, and passes its clocks and fresh random bytes with every call that needs them. The values are
those of ``wit/leasehold.wit``: a record is a frozen dataclass, a variant is a class that holds one dataclass for each of its
cases (``Output.HttpRequest``), and its type is ``Output.Case``.

Durations in settings are seconds, as everywhere in the package: ``ttl``, ``wait``. Every other time is a whole
number with its unit in the name: instants of the host's monotonic clock, and differences of two of them, are nanoseconds
(``deadline_ns``), and durations reported by stores are milliseconds (``left_ms``).
"""

from __future__ import annotations

from leasehold import _hints
from leasehold._native import clocks
from leasehold.protocol import _values
from leasehold.protocol._client import Client, Guard, Reader, channel, encode, period_key, released_by, run_resource
from leasehold.protocol._errors import CommandRejectedError
from leasehold.protocol._values import *  # noqa: F403
from leasehold.protocol._values import Now

__all__ = [
    "Client",
    "CommandRejectedError",
    "Guard",
    "Reader",
    "channel",
    "encode",
    "now",
    "period_key",
    "released_by",
    "run_resource",
    *_values.__all__,
]


def now() -> Now:
    """The readings of this machine's clocks; the monotonic one counts suspended time."""
    return Now(*clocks())


_hints.resolve(globals())
