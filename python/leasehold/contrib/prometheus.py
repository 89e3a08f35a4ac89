"""The metrics of leasehold in a registry of ``prometheus_client``.

>>> from prometheus_client import CollectorRegistry
>>> from leasehold.contrib.prometheus import Exporter
>>> registry = CollectorRegistry()
>>> exporter = Exporter(registry)
>>> registry.get_sample_value("leasehold_lost_total", {"reason": "expired"})
0.0

Names, labels and units are those of :mod:`leasehold.metrics`, and so are those of Rust and Node. Counters begin with the labels
that are known, so that the first loss is seen as an increase. Processes that share ``PROMETHEUS_MULTIPROC_DIR`` are added up as
usual. A sample arrives a moment after it was taken.
"""

from __future__ import annotations

from prometheus_client import REGISTRY, Counter, Histogram

from leasehold import _hints, metrics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prometheus_client import CollectorRegistry

__all__ = ["BUCKETS", "Exporter"]

_COUNTERS = {
    "leasehold_acquire_total": (
        "Acquisitions that ended, by outcome.",
        "outcome",
        ("acquired", "busy", "timed_out", "throttled", "unavailable", "abstains", "refused", "cancelled", "done"),
    ),
    "leasehold_renew_total": ("Renewals that ended, by outcome.", "outcome", ("renewed", "recovered", "delayed")),
    "leasehold_lost_total": (
        "Leases that were lost while held, by reason.",
        "reason",
        ("expired", "max_hold", "taken_over", "released", "record_gone", "revoked"),
    ),
    "leasehold_release_total": ("Releases that ended, by outcome.", "outcome", ("confirmed", "unconfirmed")),
    "leasehold_run_total": (
        "Runs, by outcome.",
        "outcome",
        ("finished", "finish_unconfirmed", "skipped", "taken_over", "forgotten", "given_up"),
    ),
    "leasehold_callback_failures_total": (
        "Callbacks that ended with an error, by their name.",
        "callback",
        ("on_start", "on_stop", "on_gain", "on_loss", "on_lost"),
    ),
    "leasehold_events_dropped_total": ("Events that nobody took in time, with their samples.", None, ()),
}
_HISTOGRAMS = {
    "leasehold_wait_seconds": "Time from the call to the grant or failure.",
    "leasehold_hold_seconds": "Time from the grant to the end of the lease.",
    "leasehold_renew_duration_seconds": "Time that one request for renewal took.",
    "leasehold_validity_left_seconds": "Validity that was left when a renewal succeeded: the earliest warning.",
}

BUCKETS: Mapping[str, Sequence[float]] = {
    "leasehold_wait_seconds": (0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 10, 30, 60, 300),
    "leasehold_hold_seconds": (0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800, 7200),
    "leasehold_renew_duration_seconds": (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5),
    "leasehold_validity_left_seconds": (0.1, 0.5, 1, 2, 5, 10, 15, 20, 30, 60, 300),
}
"""The upper bounds of the histograms' buckets, in seconds, unless others are given."""


class Exporter:
    """Counts into a registry from now on, until it is stopped. A registry takes one exporter at a time.

    buckets: other upper bounds for some of the histograms, by their names.

    Raises ValueError for a registry that has these metrics, and for buckets of a histogram that there is not.
    """

    def __init__(
        self, registry: CollectorRegistry = REGISTRY, *, buckets: Mapping[str, Sequence[float]] | None = None
    ) -> None:
        bounds = {**BUCKETS, **(buckets or {})}
        unknown = bounds.keys() - _HISTOGRAMS.keys()
        if unknown:
            raise ValueError(f"there are no histograms {', '.join(sorted(unknown))}; there are {', '.join(_HISTOGRAMS)}")
        self._registry = registry
        self._metrics: dict[str, Counter | Histogram] = {}
        try:
            for name, (help, label, values) in _COUNTERS.items():
                counter = Counter(name, help, [label] if label else [], registry=registry)
                self._metrics[name] = counter
                for value in values:
                    counter.labels(value)
            for name, help in _HISTOGRAMS.items():
                self._metrics[name] = Histogram(name, help, buckets=bounds[name], registry=registry)
        except BaseException:
            self._unregister()
            raise
        metrics.subscribe(self._observe)

    def stop(self) -> None:
        """Counts no more, and takes the metrics out of the registry. Raises ValueError if it was stopped before."""
        metrics.unsubscribe(self._observe)
        self._unregister()

    def _unregister(self) -> None:
        for metric in self._metrics.values():
            self._registry.unregister(metric)
        self._metrics = {}

    def _observe(self, sample: metrics.Sample) -> None:
        metric = self._metrics.get(sample.name)
        if metric is None:
            # Of a later version, or after the end.
            return
        child = metric.labels(**sample.labels) if sample.labels else metric
        if isinstance(child, Counter):
            child.inc(sample.value)
        else:
            child.observe(sample.value)


_hints.resolve(globals())
