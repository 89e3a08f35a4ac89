"""Sessions: the leases of one client, listed and revoked together."""

from __future__ import annotations

import asyncio

import pytest
from conftest import REQUEST_TIMEOUT, connect

import leasehold
from leasehold import aio

LONG = 300.0
"""For leases that must not be lost by themselves."""


def test_a_session_is_listed_with_its_locks_and_revoked_as_a_whole(store: str, name: str) -> None:
    label, locks = f"worker-{name}", [f"{name}/1", f"{name}/2"]
    with leasehold.connect(store, session=label, request_timeout=REQUEST_TIMEOUT) as worker, connect(store) as other:
        held = [worker.acquire(lock, ttl=LONG, renew_every=0.1) for lock in locks]
        with other.lock(f"{name}/3", ttl=LONG):
            (session,) = [session for session in other.sessions() if session.label == label]
            assert [info.resource for info in session.locks] == locks and not session.revoked and session.since
            assert all(info.session == label for info in session.locks)
            (revoked,) = other.revoke_session(label)
            assert (revoked.label, revoked.revoked) == (label, True)
            for lease in held:
                assert lease.lost.wait(60)
                with pytest.raises(leasehold.LeaseLostError, match="revoked"):
                    lease.check()
        assert other.revoke_session("nobody") == []


def test_names_of_sessions_are_checked(store: str) -> None:
    for label in ("", "two words", "x" * 65):
        with pytest.raises(leasehold.ConfigError, match="1 to 64"):
            leasehold.connect(store, session=label)
    with connect(store) as client, pytest.raises(leasehold.ConfigError):
        client.revoke_session("")


def test_sessions_on_asyncio(store: str, name: str) -> None:
    label = f"aio-{name}"

    async def main() -> None:
        async with aio.connect(store, session=label, request_timeout=REQUEST_TIMEOUT) as client:
            async with client.lock(name, ttl=LONG, renew_every=0.1) as lease:
                assert label in [session.label for session in await client.sessions()]
                assert [session.label for session in await client.revoke_session(label)] == [label]
                await asyncio.wait_for(lease.lost.wait(), 60)

    with pytest.raises(leasehold.LeaseLostError):
        asyncio.run(main())
