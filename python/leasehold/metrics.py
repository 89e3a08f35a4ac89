"""Counters and histograms of the client, for the metrics library of your choice.

>>> import leasehold.metrics
>>> leasehold.metrics.subscribe(lambda sample: print(sample.name, sample.value, sample.labels))

======================================  =========  ==========================================================
name                                    kind       labels; unit
======================================  =========  ==========================================================
``leasehold_acquire_total``             counter    outcome: acquired, busy, timed_out, unavailable, refused, ...
``leasehold_renew_total``               counter    outcome: renewed, recovered, delayed
``leasehold_lost_total``                counter    reason: expired, taken_over, record_gone, ...
``leasehold_release_total``             counter    outcome: confirmed, unconfirmed
``leasehold_run_total``                 counter    outcome: finished, finish_unconfirmed, skipped, taken_over, forgotten, given_up
``leasehold_callback_failures_total``   counter    callback: on_start, on_stop, on_gain, on_loss, on_lost
``leasehold_events_dropped_total``      counter    none
``leasehold_wait_seconds``              histogram  s, from the call to the grant or failure
``leasehold_hold_seconds``              histogram  s, from the grant to the end of the lease
``leasehold_renew_duration_seconds``    histogram  s, of one request for renewal
``leasehold_validity_left_seconds``     histogram  s, left when a renewal succeeded: the best early warning
======================================  =========  ==========================================================

No label names a resource, since each name would become a separate time series.
"""

from __future__ import annotations

from typing import NamedTuple

from leasehold import _hints, _observe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    Observer: TypeAlias = Callable[["Sample"], object]

__all__ = ["Sample", "subscribe", "unsubscribe"]


class Sample(NamedTuple):
    """One step of a counter, or one value of a histogram."""

    name: str
    kind: str
    """``counter`` or ``histogram``."""
    value: float
    """The increment of a counter; for a histogram, seconds."""
    labels: Mapping[str, str]


def subscribe(observer: Observer) -> None:
    """From now on calls ``observer(sample)`` for each sample, on a separate thread, a moment after it was taken. In a
    forked child this starts again with its first client. Exceptions of an observer are printed on the standard error stream
    only.

    A slow observer delays no lock: above 10,000 queued samples and events, further ones are dropped, and reported as the
    event ``lock.events_dropped``.
    """
    if not callable(observer):
        raise TypeError(f"an observer must be callable, and {observer!r} is not")
    _observe.observers.append(observer)
    _observe.look()


def unsubscribe(observer: Observer) -> None:
    """Ends a subscription. Raises ValueError if there is none."""
    _observe.observers.remove(observer)
    _observe.look()


_hints.resolve(globals())
