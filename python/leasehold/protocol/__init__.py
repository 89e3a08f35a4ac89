"""The lock protocol as a state machine, for frameworks with I/O of their own.

It owns no socket, clock, thread or randomness. The host performs the requests that :meth:`Client.poll_output` hands out,
reports what became of them, and passes its clocks and fresh random bytes with every call that needs them. The values are
those of ``wit/leasehold.wit``: a record is a frozen dataclass, a variant is a class that holds one dataclass for each of its
cases (``Output.HttpRequest``), and its type is ``Output.Case``.

Settings that are lengths of time are seconds, as everywhere in the package: ``ttl``, ``wait``. Everything else is a whole
number with its unit in the name: instants of the host's monotonic clock, and lengths between two of them, are nanoseconds
(``deadline_ns``), and what stores say is in milliseconds (``left_ms``).
"""

from __future__ import annotations

from leasehold._native import clocks
from leasehold.protocol import _values
from leasehold.protocol._client import Client, Guard, Reader, channel, encode, released_by
from leasehold.protocol._errors import CommandRejectedError
from leasehold.protocol._values import *  # noqa: F403
from leasehold.protocol._values import Now

__all__ = ["Client", "CommandRejectedError", "Guard", "Reader", "channel", "encode", "now", "released_by", *_values.__all__]


def now() -> Now:
    """What the clocks of this machine show; the monotonic one counts on while the machine is suspended."""
    return Now(*clocks())
