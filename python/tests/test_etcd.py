"""Locks on an etcd, by its url."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import leasehold
import leasehold.aio
import pytest
from servers import PATIENCE, Server


@pytest.fixture(scope="module")
def etcd() -> Iterator[str]:
    """The url of a server that is stopped when these tests are over."""
    with Server("etcd") as server:
        yield server.url


def connect(url: str) -> leasehold.Client:
    return leasehold.connect(url, request_timeout=PATIENCE / 2)


def test_a_lock_is_exclusive_and_waited_for(etcd: str) -> None:
    with connect(etcd) as one, connect(etcd) as two:
        lease = one.acquire("invoice/42", ttl=30)
        assert two.try_acquire("invoice/42") is None
        info = two.inspect("invoice/42")
        assert info is not None and info.token == lease.token
        lease.release()
        with two.lock("invoice/42", ttl=30) as following:
            assert following.token > lease.token


def test_asyncio_takes_the_same_lock(etcd: str) -> None:
    async def main() -> None:
        async with await leasehold.aio.connect(etcd, request_timeout=PATIENCE / 2) as client:
            async with client.lock("job", ttl=30) as lease:
                with connect(etcd) as other:
                    assert other.try_acquire("job") is None
                lease.check()

    asyncio.run(main())


def test_a_host_without_etcd_is_told() -> None:
    with pytest.raises(leasehold.StoreUnavailableError):
        leasehold.connect("etcd://127.0.0.1:1")
