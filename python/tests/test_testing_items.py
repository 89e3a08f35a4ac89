"""Fake items of compare-and-set: they behave like real ones."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

import pytest

import leasehold
from leasehold import cas, testing

_names = itertools.count()


def one_more(old: bytes | None) -> bytes:
    return str(int(old or b"0") + 1).encode()


def fakes() -> tuple[cas.Items, cas.Items]:
    store = testing.FakeItemStore()
    return testing.connect_items(store), testing.connect_items(store, tries=2)


def reals() -> tuple[cas.Items, cas.Items]:
    url = f"memory:testing-items-{next(_names)}"
    return cas.connect(url), cas.connect(url, tries=2)


@pytest.mark.parametrize("two", [fakes, reals])
def test_fake_items_do_what_real_ones_do(two: Callable[[], tuple[cas.Items, cas.Items]]) -> None:
    items, few = two()
    assert items.read("a") is None and items.update("a", lambda old: None) is None
    assert items.update("a", one_more) == few.read("a") == cas.Item(b"1", 1)

    def interfere(old: bytes | None) -> bytes:
        items.update("a", one_more)
        return one_more(old)

    with pytest.raises(leasehold.TooManyConflictsError, match="tried 2 times") as raised:
        few.update("a", interfere)
    assert (raised.value.tries, raised.value.fate, raised.value.resource) == (2, "not_written", "a")
    assert items.read("a") == cas.Item(b"3", 3)
    for bad in ("", "a\nb"):
        with pytest.raises(leasehold.ConfigError):
            items.update(bad, one_more)
    with pytest.raises(leasehold.ConfigError, match="at most"):
        items.update("a", lambda old: bytes((380 << 10) + 1))


def test_others_write_first_as_often_as_told() -> None:
    store = testing.FakeItemStore()
    items = testing.connect_items(store)
    seen: list[bytes | None] = []

    def told(old: bytes | None) -> bytes:
        seen.append(old)
        return b"mine"

    store.write("a", b"theirs")
    store.write_first("a", [b"quicker", b"quickest"])
    assert items.update("a", told) == cas.Item(b"mine", 4)
    assert seen == [b"theirs", b"quicker", b"quickest"]
    store.down()
    with pytest.raises(leasehold.StoreUnavailableError) as raised:
        items.update("a", told)
    assert raised.value.fate == "not_written"
    store.up()
    assert items.read("a") == cas.Item(b"mine", 4)


def test_fake_items_serve_asyncio() -> None:
    async def body() -> None:
        store = testing.FakeItemStore()
        items = testing.connect_items_async(store)

        async def slow(old: bytes | None) -> bytes:
            await asyncio.sleep(0)
            return one_more(old)

        await asyncio.gather(*(items.update("a", slow) for _ in range(4)))
        store.write_first("a", [b"10"])
        assert await items.update("a", one_more) == cas.Item(b"11", 6) == await items.read("a")

    asyncio.run(body())
