"""Guards of the protected side."""

from __future__ import annotations

import io
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from conftest import PATIENCE
from hypothesis import given
from hypothesis import strategies as st

import leasehold
from leasehold.fence import (
    CosmosGuard,
    DynamodbGuard,
    Guard,
    Guards,
    ObjectGuard,
    PostgresGuard,
    PostgresRowGuard,
    RedisGuard,
)


def test_a_later_claim_refuses_earlier_writers() -> None:
    guards = Guards(10)
    written: list[str] = []

    def write(what: str) -> str:
        written.append(what)
        return "done"

    guards.claim("invoice/42", 33)
    assert guards.write("invoice/42", 33, lambda: write("early")) == "done"
    guards.claim("invoice/42", 34)
    with pytest.raises(leasehold.StaleTokenError, match="34") as stale:
        guards.write("invoice/42", 33, lambda: write("late"))
    assert stale.value.resource == "invoice/42"
    with pytest.raises(leasehold.StaleTokenError):
        guards.claim("invoice/42", 33)
    with pytest.raises(leasehold.ConfigError):
        guards.check("never claimed", 34)
    assert (guards.high_water("invoice/42"), guards.high_water("other"), written) == (34, None, ["early"])
    guards.write("invoice/42", 34, lambda: None, number=2)
    with pytest.raises(leasehold.StaleTokenError):
        guards.check("invoice/42", 34, number=1)
    guards.forget("invoice/42")
    with pytest.raises(leasehold.ConfigError):
        guards.check("invoice/42", 34)


def test_a_write_that_returns_a_coroutine_is_refused() -> None:
    guard, ran = Guard(), []
    guard.claim(1)

    async def later() -> None:
        ran.append("late")

    with pytest.raises(TypeError, match="after the guard has ended"):
        guard.write(1, later)  # type: ignore[unused-coroutine]
    # And the item is free for the next.
    assert guard.write(1, lambda: 7) == 7 and not ran


def test_a_write_may_raise_and_take_its_time() -> None:
    guard = Guard()
    guard.claim(1)
    with pytest.raises(ZeroDivisionError):
        guard.write(1, lambda: 1 // 0)
    total = 0

    def add() -> None:
        nonlocal total
        before = total
        sum(range(1000))
        total = before + 1

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(guard.write, 1, add) for _ in range(400)]:
            done.result(PATIENCE)
    assert total == 400 and guard.high_water == 1


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 6)), max_size=30))
def test_a_guard_accepts_tokens_not_below_its_mark(steps: list[tuple[bool, int]]) -> None:
    guard, mark = Guard(), None
    for is_claim, token in steps:
        passes = (mark is None or token >= mark) if is_claim else (mark is not None and token >= mark)
        try:
            guard.claim(token) if is_claim else guard.check(token)
        except leasehold.LeaseholdError:
            assert not passes
        else:
            assert passes
            mark = token
        assert guard.high_water == mark


def test_redis_scripts_guard_in_the_server(redis: str, name: str) -> None:
    mark = RedisGuard.mark_key(name)
    evaluate = _Redis(redis)
    RedisGuard.outcome(name, 34, evaluate(RedisGuard.CLAIM_SCRIPT, [mark], "34"))
    RedisGuard.outcome(name, 34, evaluate(RedisGuard.CHECK_AND_SET_SCRIPT, [mark, name], "34", "110"))
    late = evaluate(RedisGuard.CHECK_AND_SET_SCRIPT, [mark, name], "33", "0")
    with pytest.raises(leasehold.StaleTokenError, match="34"):
        RedisGuard.outcome(name, 33, late)
    own = RedisGuard.CHECK + (
        "local passed, reply = leasehold_check(KEYS[1], ARGV[1])\n"
        "if not passed then return reply end\nreturn tonumber(redis.call('GET', KEYS[2]))"
    )
    assert evaluate(own, [mark, name], "34") == 110
    with pytest.raises(leasehold.ConfigError):
        RedisGuard.outcome(name, 1, evaluate(RedisGuard.CHECK_SCRIPT, [RedisGuard.mark_key("unclaimed")], "1"))
    with pytest.raises(leasehold.ConfigError):
        RedisGuard.mark_key("")


class _Redis:
    """The part of a client that the scripts need; they return integers."""

    def __init__(self, url: str) -> None:
        self._port = int(url.rpartition(":")[2])

    def __call__(self, script: str, keys: list[str], *args: str) -> int:
        words = [word.encode() for word in ("EVAL", script, str(len(keys)), *keys, *args)]
        request = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        with socket.create_connection(("127.0.0.1", self._port), PATIENCE) as connection:
            connection.sendall(request)
            with connection.makefile("rb") as answer:
                line = answer.readline()
        assert line.startswith(b":"), line
        return int(line[1:])


def test_guards_for_databases_have_their_parts() -> None:
    guard = PostgresGuard(schema="app", table="marks")
    assert '"app"."marks"' in guard.create_sql + guard.claim_sql + guard.check_sql + guard.read_sql
    assert "leasehold_fence" in PostgresGuard().claim_sql
    assert PostgresGuard().parameters("invoice/42", 34) == ("invoice/42", 34)
    PostgresGuard.outcome("invoice/42", 34, 34)
    with pytest.raises(leasehold.StaleTokenError):
        PostgresGuard.outcome("invoice/42", 33, 34)
    with pytest.raises(leasehold.ConfigError):
        PostgresGuard().parameters("invoice/42", 2**53)
    items = DynamodbGuard("fence")
    assert list(items.names().values()) == ["fence"]
    assert list(items.values(34).values()) == ["34"]
    (name,), (value,) = items.names(), items.values(34)
    assert all(name in text and value in text for text in (items.CLAIM_CONDITION, items.CHECK_CONDITION, items.SET))
    with pytest.raises(leasehold.ConfigError):
        DynamodbGuard("")


def sample(start: str) -> str:
    """A block of code in the page about fencing."""
    page = (Path(__file__).resolve().parents[2] / "docs/fencing.md").read_text()
    code, _, _ = page.partition(f"```python\n{start}")[2].partition("```")
    assert code
    return start + code


def test_the_update_of_the_documentation_has_these_parts() -> None:
    table, items = Mock(), DynamodbGuard("fence")
    exec(sample("table.update_item("), {"table": table, "lease": SimpleNamespace(token=34)})
    update: dict[str, Any] = table.update_item.call_args.kwargs
    assert update["ConditionExpression"] == items.CHECK_CONDITION
    assert update["UpdateExpression"].endswith(items.SET)
    assert update["ExpressionAttributeNames"] == items.names()
    assert set(items.values(34)) < set(update["ExpressionAttributeValues"])


class Conflict(Exception):
    response = {"ResponseMetadata": {"HTTPStatusCode": 412}}


class Bucket:
    """One object, whose first writer meets a conflict."""

    exceptions = SimpleNamespace(ClientError=Conflict)

    def __init__(self, body: bytes) -> None:
        self.body, self.conflicts = body, 1

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        return {"Body": io.BytesIO(self.body), "ETag": self.body.hex()}

    def put_object(self, *, Bucket: str, Key: str, Body: bytes, IfMatch: str) -> None:
        self.conflicts -= 1
        if self.conflicts >= 0 or IfMatch != self.body.hex():
            raise Conflict
        self.body = Body


def test_the_loop_of_the_documentation_writes_after_a_conflict_and_never_late() -> None:
    names: dict[str, Any] = {}
    exec(sample("from leasehold.fence import ObjectGuard\n"), names)
    bucket = Bucket(ObjectGuard.claim("invoice/42", 34, None))
    names["put"](bucket, "invoice/42", 34, b"paid")
    assert (ObjectGuard.data(bucket.body), bucket.conflicts) == (b"paid", -1)
    bucket.body = ObjectGuard.claim("invoice/42", 35, bucket.body)
    with pytest.raises(leasehold.StaleTokenError):
        names["put"](bucket, "invoice/42", 34, b"late")
    assert ObjectGuard.data(bucket.body) == b"paid"


def test_patches_of_cosmos_db_have_their_parts() -> None:
    guard = CosmosGuard("fence")
    assert guard.check_condition(34) == 'FROM c WHERE c["fence"] <= 34'
    assert guard.claim_condition(34) == 'FROM c WHERE (NOT IS_DEFINED(c["fence"]) OR c["fence"] <= 34)'
    assert guard.set(34) == {"op": "set", "path": "/fence", "value": 34}
    with pytest.raises(leasehold.ConfigError, match="letters"):
        CosmosGuard('a"b')


def test_a_mark_in_front_of_the_data_of_an_object_refuses_late_writers() -> None:
    claimed = ObjectGuard.claim("invoice/42", 34, None)
    written = ObjectGuard.write("invoice/42", 34, claimed, b"\xffpaid")
    assert (claimed, written, ObjectGuard.data(written)) == (b"34 ", b"34 \xffpaid", b"\xffpaid")
    later = ObjectGuard.claim("invoice/42", 35, written)
    assert later == b"35 \xffpaid"
    late_calls: list[Callable[[], object]] = [
        lambda: ObjectGuard.write("invoice/42", 34, later, b"late"),
        lambda: ObjectGuard.claim("invoice/42", 34, later),
    ]
    for late in late_calls:
        with pytest.raises(leasehold.StaleTokenError, match="35") as stale:
            late()
        assert stale.value.resource == "invoice/42"
    with pytest.raises(leasehold.StaleTokenError, match="gone"):
        ObjectGuard.write("invoice/42", 35, None, b"late")
    with pytest.raises(leasehold.StoreRefusedError):
        ObjectGuard.claim("invoice/42", 35, b"{}")
    assert ObjectGuard.data(b"{}") is None


def test_numbers_that_no_guard_can_take_are_named() -> None:
    guards = Guards(10)
    guards.claim("item", 1)
    calls: list[Callable[[int], object]] = [
        lambda token: guards.claim("item", token),
        lambda token: guards.write("item", token, lambda: None),
        lambda token: guards.check("item", token),
        lambda token: guards.check("item", 1, number=token),
        lambda token: Guard().claim(token),
        lambda token: PostgresGuard().parameters("item", token),
        lambda token: PostgresGuard.outcome("item", token, 1),
        lambda token: PostgresRowGuard.claim_outcome(token, [1]),
        lambda token: DynamodbGuard.values(token),
        lambda token: CosmosGuard("fence").set(token),
        lambda token: ObjectGuard.claim("item", token, None),
        lambda token: RedisGuard.outcome("item", token, 1),
    ]
    for call in calls:
        for token in (-1, 2**64, -(2**70), 10**30):
            with pytest.raises(leasehold.ConfigError, match=str(token)):
                call(token)
        with pytest.raises(TypeError):
            call("1")  # type: ignore[arg-type]
    with pytest.raises(leasehold.ConfigError, match="-1"):
        Guards(-1)
    for mark in (2**63, -(2**70)):
        with pytest.raises(leasehold.ConfigError, match="not a mark"):
            PostgresGuard.outcome("item", 1, mark)
        with pytest.raises(leasehold.ConfigError, match="not a mark"):
            RedisGuard.outcome("item", 1, mark)
