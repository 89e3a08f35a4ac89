"""Errors, units, secrets, and objects that cannot be pickled."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import leasehold
import leasehold.cas


@pytest.mark.parametrize(
    ("error", "base", "code", "temporary"),
    [
        (leasehold.LockTimeoutError, TimeoutError, "timed_out", True),
        (leasehold.NotOwnedError, RuntimeError, "not_owned", False),
        (leasehold.StoreUnavailableError, ConnectionError, "store_unavailable", True),
        (leasehold.StoreRefusedError, PermissionError, "store_refused", False),
        (leasehold.ConfigError, ValueError, "config", False),
        (leasehold.LockBusyError, Exception, "busy", True),
        (leasehold.LeaseLostError, Exception, "lost", False),
        (leasehold.ClosedError, ValueError, "closed", False),
        (leasehold.StaleTokenError, Exception, "stale_token", False),
        (leasehold.FinishUnconfirmedError, Exception, "finish_unconfirmed", False),
        (leasehold.InternalError, RuntimeError, "internal", False),
    ],
)
def test_errors_are_those_of_python_too_and_have_codes(
    error: type[leasehold.LeaseholdError], base: type[Exception], code: str, temporary: bool
) -> None:
    assert issubclass(error, leasehold.LeaseholdError) and issubclass(error, base)
    assert (error.code, error("told").code, error.temporary) == (code, code, temporary)


def test_errors_travel_between_processes(memory: str, name: str) -> None:
    client = leasehold.connect(memory)
    lease = client.acquire(name)
    with pytest.raises(leasehold.LockBusyError) as busy:
        client.acquire(name, wait=0)
    passed = pickle.loads(pickle.dumps(busy.value))
    assert type(passed) is leasehold.LockBusyError
    assert (str(passed), passed.resource, passed.holder) == (str(busy.value), name, None)
    lease.release()


def test_a_store_that_is_down_is_not_a_busy_lock() -> None:
    with pytest.raises(leasehold.StoreUnavailableError):
        leasehold.connect("redis://127.0.0.1:1", request_timeout=0.2).acquire("job", wait=0.1)


@pytest.mark.parametrize("url", ["", "  ", "nonsense", "redis://", "ftp://host", "redis://h/x", "sqlite:"])
def test_a_bad_url_says_what_is_wrong(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEASEHOLD_STORE", " ")
    with pytest.raises(leasehold.ConfigError):
        leasehold.connect(url)
    with pytest.raises(leasehold.ConfigError):
        leasehold.connect([])


@pytest.mark.parametrize("store", ["", None])
@pytest.mark.parametrize("connect", [leasehold.connect, leasehold.cas.connect])
def test_a_store_that_is_given_but_empty_is_not_the_default(
    connect: Callable[..., object], store: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEASEHOLD_STORE", "memory:")
    connect()
    with pytest.raises(leasehold.ConfigError, match="the store is an empty text, perhaps from a variable that is not set"):
        connect(store)
    monkeypatch.setenv("LEASEHOLD_STORE", "")
    with pytest.raises(leasehold.ConfigError, match="LEASEHOLD_STORE is set, but empty"):
        connect()


def test_a_store_must_be_a_url() -> None:
    with pytest.raises(TypeError, match="url"):
        leasehold.connect(7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="timeout"):
        leasehold.connect("memory:", timeout=3)  # type: ignore[call-arg]


def test_passwords_are_not_shown(redis: str) -> None:
    with pytest.raises(leasehold.LeaseholdError) as error:
        leasehold.connect("redis://user:hunter2@127.0.0.1:1", request_timeout=0.2)
    assert "hunter2" not in str(error.value) + repr(error.value)
    # A server without users takes any password of the default one, or says that it has none.
    try:
        client = leasehold.connect(redis.replace("//", "//:hunter2@"))
    except leasehold.LeaseholdError as refused:
        assert "hunter2" not in str(refused)
    else:
        assert "hunter2" not in repr(client) + repr(client.stores) + repr(client.lock("job"))
    with pytest.raises(leasehold.ConfigError) as bad:
        leasehold.connect("redis://user:hunter2@host:99999")
    assert "hunter2" not in str(bad.value)


@pytest.mark.parametrize("ttl", [0.1, 1, 1.5, timedelta(milliseconds=250), 24 * 3600])
def test_durations_are_seconds(memory: str, name: str, ttl: float | timedelta) -> None:
    client = leasehold.connect(memory)
    seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else ttl
    with client.acquire(name, ttl=ttl, renew=False):
        info = client.inspect(name)
        assert info is not None and info.ttl == seconds


@pytest.mark.parametrize(
    "ttl", [0, 0.05, -1, float("nan"), float("inf"), 1e300, 10**400, 24 * 3600 + 1, timedelta(seconds=-1), timedelta.max]
)
def test_durations_out_of_bounds_are_refused(memory: str, ttl: float | timedelta) -> None:
    client = leasehold.connect(memory)
    with pytest.raises(leasehold.ConfigError):
        client.acquire("job", ttl=ttl, wait=0)
    assert client.inspect("job") is None


@pytest.mark.parametrize("ttl", ["30s", "30", b"30", [30], object()])
def test_other_types_are_not_durations(memory: str, ttl: object) -> None:
    client = leasehold.connect(memory)
    with pytest.raises(TypeError, match="seconds"):
        client.lock("job", ttl=ttl)  # type: ignore[arg-type]


# Whole thousands of seconds give a warning, since they may be milliseconds.
@pytest.mark.filterwarnings("ignore::UserWarning")
@given(st.floats() | st.integers() | st.timedeltas())
def test_any_duration_is_accepted_or_refused_with_a_clear_error(length: float | timedelta) -> None:
    try:
        lease = _client.acquire("any", ttl=length, wait=0, renew=False)
    except leasehold.ConfigError:
        return
    except OverflowError:
        pytest.fail("an overflow is no clear refusal")
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    assert 0.1 <= seconds <= 24 * 3600
    lease.release()


_client = leasehold.connect("memory:")


def test_contradictions_are_refused(memory: str) -> None:
    client = leasehold.connect(memory)
    with pytest.raises(leasehold.ConfigError, match="contradict"):
        client.lock("job", renew=False, renew_every=1)
    with pytest.raises(leasehold.ConfigError):
        client.acquire("")
    with pytest.raises(leasehold.ConfigError):
        leasehold.connect("memory:", max_ttl=30)


def test_an_infinite_wait_is_accepted(memory: str, name: str) -> None:
    client = leasehold.connect(memory)
    client.acquire(name, wait=float("inf")).release()
    client.acquire(name, wait=None, ttl=None).release()


@pytest.mark.parametrize("way", [pickle.dumps, copy.copy, copy.deepcopy])
def test_clients_locks_and_leases_cannot_be_copied(memory: str, way: Callable[[object], object]) -> None:
    client = leasehold.connect(memory)
    lease, leases, election = client.acquire("a"), client.lock_all(["b"]), client.elect("c")
    for held in (client, client.lock("d"), lease, leases, election):
        with pytest.raises(TypeError, match="process"):
            way(held)
    client.close()


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy])
def test_a_copied_error_has_the_same_attributes(memory: str, name: str, way: Callable[[object], object]) -> None:
    client = leasehold.connect(memory)
    with client.lock(name), pytest.raises(leasehold.LockBusyError) as busy:
        client.acquire(name, wait=0)
    copied = way(busy.value)
    assert isinstance(copied, leasehold.LockBusyError) and copied is not busy.value
    assert (str(copied), copied.resource, copied.holder) == (str(busy.value), name, busy.value.holder)
    assert copied.holder is not None
