"""Metrics in registries of the real ``prometheus_client``."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest
from conftest import PATIENCE, eventually
from prometheus_client import CollectorRegistry, generate_latest
from test_processes import run

import leasehold
from leasehold.contrib.prometheus import BUCKETS, Exporter

ROOT = Path(__file__).parents[2]


def documented() -> set[str]:
    """The metrics that all languages have."""
    page = (ROOT / "docs/reliability.md").read_text()
    return set(re.findall(r"^\| `(leasehold_\w+)` \|", page, re.MULTILINE))


def test_the_metrics_are_those_of_all_languages() -> None:
    registry = CollectorRegistry()
    exporter = Exporter(registry)
    text = generate_latest(registry).decode()
    names = {re.sub(r"_(bucket|sum|count)$", "", line.split("{")[0].split()[0]) for line in text.splitlines() if line[0] != "#"}
    assert {name for name in names if not name.endswith("_created")} == documented()
    exporter.stop()
    assert generate_latest(registry) == b""


def test_what_happens_is_counted(memory: str, name: str) -> None:
    registry = CollectorRegistry()
    exporter = Exporter(registry)

    def value(metric: str, **labels: str) -> float:
        return registry.get_sample_value(metric, labels) or 0.0

    with leasehold.connect(memory) as client:
        with client.lock(name, ttl=60, renew_every=0.1):
            assert client.try_acquire(name) is None
            eventually("it is renewed", lambda: value("leasehold_validity_left_seconds_count") > 0)
        # On a machine that stalls, it may be acquired again before the caller has it.
        lease = client.acquire(name, ttl=1, renew=False)
        assert lease.lost.wait(PATIENCE)
        eventually("the loss is counted", lambda: value("leasehold_lost_total", reason="expired") >= 1)
        eventually("the grants are counted", lambda: value("leasehold_acquire_total", outcome="acquired") >= 2)
        assert value("leasehold_acquire_total", outcome="busy") == 1
        eventually("the release is counted", lambda: value("leasehold_release_total", outcome="confirmed") == 1)
        eventually("the holds are counted", lambda: value("leasehold_hold_seconds_count") >= 2)
        assert value("leasehold_renew_total", outcome="renewed") > 0
    assert name not in generate_latest(registry).decode(), "no label names a resource"
    exporter.stop()
    with pytest.raises(ValueError):
        exporter.stop()


def test_a_registry_has_one_exporter_and_buckets_can_be_chosen() -> None:
    registry = CollectorRegistry()
    exporter = Exporter(registry, buckets={"leasehold_wait_seconds": (1, 2)})
    text = generate_latest(registry).decode()
    assert 'leasehold_wait_seconds_bucket{le="2.0"} 0.0' in text and 'wait_seconds_bucket{le="30.0"}' not in text
    with pytest.raises(ValueError, match="Duplicated"):
        Exporter(registry)
    # A refused one takes nothing away.
    assert generate_latest(registry).decode() == text
    exporter.stop()
    Exporter(registry).stop()
    with pytest.raises(ValueError, match="there are no histograms leasehold_wait; there are leasehold_wait_seconds"):
        Exporter(registry, buckets={"leasehold_wait": (1,)})
    assert all(list(bounds) == sorted(bounds) for bounds in BUCKETS.values())


def test_the_example_of_the_guide_serves_metrics() -> None:
    page = (ROOT / "docs/monitoring/README.md").read_text()
    [example] = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    example = example.replace("9464", str(port)).replace("redis://locks", "memory:")
    script = f"""{example}
import urllib.request
with client.lock("job"):
    pass
end = time.monotonic() + PATIENCE
while time.monotonic() < end:
    text = urllib.request.urlopen("http://127.0.0.1:{port}/metrics").read().decode()
    if 'leasehold_release_total{{outcome="confirmed"}} 1.0' in text:
        print("served")
        break
"""
    assert run(script) == "served"
