"""Fixtures for pytest: put ``pytest_plugins = ["leasehold.contrib.pytest"]`` into ``conftest.py``.

>>> def test_an_invoice_is_charged_once(leasehold_client, leasehold_clock): ...   # doctest: +SKIP

``leasehold_client`` and ``leasehold_async_client`` are fakes of :mod:`leasehold.testing` on one clock, ``leasehold_clock``.
``leasehold_store`` is for code that connects by itself, and for threads that compete.
"""

from __future__ import annotations

import itertools

import pytest

from leasehold import _hints, testing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from leasehold.testing import FakeAsyncClient

__all__ = ["leasehold_async_client", "leasehold_client", "leasehold_clock", "leasehold_store"]

_numbers = itertools.count()


@pytest.fixture
def leasehold_clock() -> testing.FakeClock:
    """The clock of the test's fake clients. Others, such as rivals, are made with ``testing.connect(leasehold_clock)``."""
    return testing.FakeClock()


@pytest.fixture
def leasehold_client(leasehold_clock: testing.FakeClock) -> testing.FakeClient:
    """A client without a server, on the clock of the test."""
    return testing.connect(leasehold_clock)


@pytest.fixture
def leasehold_async_client(leasehold_clock: testing.FakeClock) -> FakeAsyncClient:
    """A client for asyncio without a server, on the clock of the test."""
    return testing.connect_async(leasehold_clock)


@pytest.fixture
def leasehold_store(monkeypatch: pytest.MonkeyPatch) -> str:
    """The url of a store in memory that no other test uses. ``connect()`` without a url opens it."""
    url = f"memory:pytest-{next(_numbers)}"
    monkeypatch.setenv("LEASEHOLD_STORE", url)
    return url


_hints.resolve(globals())
