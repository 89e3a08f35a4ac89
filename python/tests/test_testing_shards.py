"""Shards of fake clients: the callbacks of your own code, without waiting."""

from __future__ import annotations

from typing import Any

import pytest

import leasehold
from leasehold import testing

LOOK = 6.0
"""Longer than the time between two looks of a worker at the others."""

Event = tuple[str, str, int, str]


class Journal:
    """A list of the calls that workers get."""

    def __init__(self) -> None:
        self.told: list[Event] = []

    def worker(self, client: testing.FakeClient, owner: str, count: int = 4, **options: Any) -> testing.FakeShards:
        def lose(shard: leasehold.Shard, error: leasehold.LeaseholdError | None) -> None:
            self.told.append((owner, "loss", shard.index, str(getattr(error, "reason", None))))

        shards: Any = client.shards(
            "mail",
            count,
            on_gain=lambda shard: self.told.append((owner, "gain", shard.index, "")),
            on_loss=lose,
            owner=owner,
            **options,
        )
        return shards  # type: ignore[no-any-return]


def indexes(shards: testing.FakeShards | leasehold.Shards) -> list[int]:
    return [shard.index for shard in shards.held]


@pytest.fixture
def clients() -> list[testing.FakeClient]:
    clock = testing.FakeClock()
    return [testing.connect(clock) for _ in range(3)]


def test_workers_share_evenly_as_they_come_and_go(clients: list[testing.FakeClient]) -> None:
    journal = Journal()
    first = journal.worker(clients[0], "first")
    assert indexes(first) == [0, 1, 2, 3] and first.members == 1 and first.name == "mail"
    assert first.held[0].resource == "mail#shard0" and "held=0,1,2,3" in repr(first)
    second = journal.worker(clients[1], "second")
    clients[0].clock.advance(LOOK)
    assert (indexes(first), indexes(second), second.members) == ([0, 1], [2, 3], 2)
    assert {("first", "loss", 3, "None"), ("second", "gain", 3, "")} <= set(journal.told)
    with pytest.raises(leasehold.LockBusyError):
        clients[0].set_shards("mail", 5)
    with first:
        pass
    clients[0].clock.advance(LOOK)
    assert indexes(first) == [] and "over" in repr(first) and first.members == 0
    assert indexes(second) == [0, 1, 2, 3]
    clients[1].close()
    assert indexes(second) == [] and clients[0].inspect("mail#shard0") is None
    clients[0].set_shards("mail", 5)
    assert len(indexes(journal.worker(clients[0], "third", 5))) == 5


def test_a_worker_too_many_stands_by(clients: list[testing.FakeClient]) -> None:
    journal = Journal()
    workers = [journal.worker(client, str(n), 2) for n, client in enumerate(clients)]
    clients[0].clock.advance(LOOK)
    assert [(indexes(worker), worker.members) for worker in workers] == [([0], 2), ([1], 2), ([], 0)]
    workers[0].stop()
    clients[0].clock.advance(LOOK)
    assert indexes(workers[2]) == [0] and workers[2].members == 2


def test_a_loss_is_told_and_the_shard_is_gained_again(clients: list[testing.FakeClient]) -> None:
    journal = Journal()
    shards = journal.worker(clients[0], "first", ttl=30)
    before = shards.held[1].token
    clients[0].lose("mail#shard1")
    assert journal.told[-2:] == [("first", "loss", 1, "taken"), ("first", "gain", 1, "")] or "loss" in str(journal.told)
    assert indexes(shards) == [0, 1, 2, 3] and shards.held[1].token > before
    clients[0].store_down()
    clients[0].clock.advance(60)
    assert indexes(shards) == [] and isinstance(shards.last_error, leasehold.StoreUnavailableError)
    assert sum(what == "loss" for _, what, _, _ in journal.told) == 5
    clients[0].store_up()
    clients[0].clock.advance(60)
    assert indexes(shards) == [0, 1, 2, 3] and shards.last_error is None


def test_a_callback_may_stop_or_raise(clients: list[testing.FakeClient], monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", lambda unraisable: shown.append(unraisable.exc_type))

    def fail(shard: leasehold.Shard) -> None:
        raise ZeroDivisionError

    failed = clients[0].shards("mail", 4, on_gain=fail)
    assert shown == [ZeroDivisionError] * 4 and failed.held == [] and failed.members == 0
    error = failed.last_error
    assert isinstance(error, leasehold.CallbackError) and "on_gain has raised ZeroDivisionError" in str(error)
    healthy = clients[1].shards("mail", 4)
    assert indexes(healthy) == [0, 1, 2, 3], "the other one takes over"
    healthy.stop()
    assert len(shown) == 4, "it stands by"
    clients[0].clock.advance(1)
    assert len(shown) == 8
    clients[0].clock.advance(1)
    assert len(shown) == 8, "each pause is twice as long"
    with pytest.raises(ZeroDivisionError):
        failed.stop()
    stopped: list[int] = []

    def stop(shard: leasehold.Shard, error: object) -> None:
        shards.stop()
        stopped.append(shard.index)

    shards = clients[0].shards("mail", 4, on_loss=stop)
    clients[0].lose("mail#shard0")
    assert sorted(stopped) == [0, 1, 2, 3] and shards.held == []


def test_what_cannot_be_is_refused(clients: list[testing.FakeClient]) -> None:
    client = clients[0]
    for wrong in ({"count": 0}, {"count": 65}, {"look_every": 0.01}, {"ttl": 0}):
        with pytest.raises(leasehold.ConfigError):
            client.shards("mail", **wrong)
    with pytest.raises(TypeError):
        client.shards("mail", True)
    with pytest.raises(TypeError):
        client.shards("mail", on_gain=3)  # type: ignore[arg-type]
    kept = client.shards("mail", 4)
    other = clients[1].shards("mail", 5)
    assert "shards is 5 here, and 4 in the store" in str(other.last_error) and other.held == []
    kept.stop()
    client.close()
    with pytest.raises(leasehold.ClosedError):
        client.shards("mail")
