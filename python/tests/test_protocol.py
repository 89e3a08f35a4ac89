"""The protocol without I/O: inputs of a host are never trusted, and outputs are readable."""

from __future__ import annotations

import copy
import pickle
import threading
import typing
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import typing_extensions
from hypothesis import given, settings
from hypothesis import strategies as st

import leasehold
from leasehold import protocol
from leasehold.protocol import (
    Applied,
    Client,
    CommandError,
    CommandRejectedError,
    Config,
    Credentials,
    Event,
    Fault,
    Guard,
    Input,
    LockOp,
    LockOptions,
    NodeConfig,
    Now,
    Op,
    Outcome,
    Output,
    Quorum,
    Reader,
    Response,
    Store,
    Wait,
)

SEED, FRESH = bytes(range(32)), bytes(16)
NOW = Now(1_000_000_000, 1_700_000_000_000)


def client(**settings: Any) -> Client:
    return Client.create(Config([NodeConfig()], **settings), SEED, NOW)


def later(seconds: float) -> Now:
    return Now(NOW.monotonic_ns + int(seconds * 1e9), NOW.unix_ms + int(seconds * 1e3))


def drained(client: Client, now: Now = NOW) -> list[Output.Case]:
    outputs: list[Output.Case] = []
    while not isinstance(output := client.poll_output(now), Output.WakeAt):
        outputs.append(output)
    return outputs


def test_a_custom_host_gets_a_lease() -> None:
    machine = client()
    machine.acquire(1, "job", LockOptions(ttl=timedelta(seconds=6), wait=Wait.Once()), FRESH, NOW)
    match drained(machine):
        case [Output.Transmit(id=request, node=0, ops=[LockOp(1, "job", Op.Acquire(record_ttl_ms=ttl))])]:
            assert ttl == 6_000
        case outputs:
            raise AssertionError(outputs)
    answer = Outcome.Applied(Applied.Acquired(counter=7))
    machine.handle_response(request, Response.Outcomes([answer]), later(0.01))
    match drained(machine, later(0.01)):
        case [Output.Event(1, Event.Acquired(token=7, deadline_ns=deadline))]:
            left = machine.remaining_ns(1, later(0.01))
            assert deadline == later(0.01).monotonic_ns + left and 5e9 < left < 6e9
        case outputs:
            raise AssertionError(outputs)
    assert machine.state(1) == "Held" and machine.stats().held == 1 and not machine.is_idle()


def test_a_step_does_the_same() -> None:
    machine = client()
    stepped = machine.step(FRESH, NOW, [Input.Acquire(1, "job", LockOptions()), Input.Release(2)])
    match stepped.outputs:
        case [Output.Rejected(2, CommandError.UnknownLock()), Output.Transmit(id=request)]:
            pass
        case outputs:
            raise AssertionError(outputs)
    assert stepped.wake_at_ns is not None and stepped.wake_at_ns > NOW.monotonic_ns
    fault = Fault("unreachable", "nobody there")
    stepped = machine.step(FRESH, NOW, [Input.Response(request, Response.NotSent(fault.kind, fault.detail))])
    assert stepped.outputs == ()


CANNOT_BE: list[tuple[Callable[[], object], str]] = [
    (lambda: Client.create(Config([]), SEED, NOW), "0 nodes"),
    (lambda: Client.create(Config([NodeConfig()] * 32), SEED, NOW), "32 nodes"),
    (lambda: client(drift_ppm=1), "1 ppm"),
    (lambda: client(drift_ppm=2**32), "config.drift_ppm: 4294967296 is above the largest"),
    (lambda: client(drift_ppm=-1), "config.drift_ppm: this int is not within"),
    (lambda: client(request_timeout=61), "request timeout is 61000 ms"),
    (lambda: client(request_timeout=-1), "config.request_timeout: "),
    (lambda: client(request_timeout=float("inf")), "cannot be infinite"),
    (lambda: client(request_timeout=float("nan")), "config.request_timeout: "),
    (lambda: client(quorum=Quorum(b"short")), "quorum id has 5 bytes"),
    (lambda: Client.create(Config([NodeConfig(whatever("guess"))]), SEED, NOW), "\"guess\" is not one of acquire, read"),
    (lambda: Client.create(Config([NodeConfig()]), b"short", NOW), "seed has 5 bytes"),
    (lambda: Client.create_wired(Config([NodeConfig()]), [], SEED, NOW), "0 stores were given for 1 nodes"),
    (lambda: wired(Store.RedisHttp("webdis", "http://example.com", "with_credentials")), "store 0: "),
    (lambda: wired(Store.Dynamodb("t", "r", "ftp://x")), "store 0: "),
    (lambda: client().acquire(1, "", LockOptions(), FRESH, NOW), "name of the resource is empty"),
    (lambda: client().acquire(1, "a\nb", LockOptions(), FRESH, NOW), "control character"),
    (lambda: client().acquire(1, "\ud800", LockOptions(), FRESH, NOW), "resource: this str is not Unicode"),
    (lambda: client().acquire(1, "x" * 1025, LockOptions(), FRESH, NOW), "1025 bytes"),
    (lambda: client().acquire(1, "job", LockOptions(ttl=0.01), FRESH, NOW), "ttl is 10 ms"),
    (lambda: client().acquire(1, "job", LockOptions(data=bytes(4097)), FRESH, NOW), "4097 bytes"),
    (lambda: client().acquire(1, "job", LockOptions(), b"", NOW), "fresh has 0 bytes"),
    (lambda: client().acquire(-1, "job", LockOptions(), FRESH, NOW), "lock: this int"),
    (lambda: client().handle_timeout(b"", NOW), "fresh has 0 bytes"),
    (lambda: client().handle_timeout(FRESH, Now(2**64, 0)), "now.monotonic_ns: "),
    (lambda: client().set_credentials(0, Credentials.Token("x"), NOW), "store 0: "),
    (lambda: client().set_credentials(9, Credentials.Token("x"), NOW), "store 9: "),
    (lambda: client().node_votes(0, b"", NOW), "loss has 0 bytes"),
    (lambda: client().reseed(b""), "seed has 0 bytes"),
    (lambda: client().step(FRESH, NOW, [Input.Reseed(b"")]), "seed has 0 bytes"),
    (lambda: Guard(2**53), "is not a token"),
    (lambda: Guard().check(1), "never claimed"),
    (lambda: protocol.channel(""), "name of the resource is empty"),
    (lambda: Reader(2**32), "max_reply_bytes: 4294967296"),
]


@pytest.mark.parametrize(("call", "message"), CANNOT_BE, ids=lambda value: value if isinstance(value, str) else "")
def test_invalid_values_are_refused_with_their_names(call: Callable[[], object], message: str) -> None:
    with pytest.raises(leasehold.ConfigError, match=message):
        call()


def whatever(value: object) -> Any:
    return value


def every_case_is_there(output: Output.Case) -> str:
    """Only type-checked: a type checker reports a missing case."""
    match output:
        case Output.Transmit() | Output.HttpRequest() | Output.RedisCommands() | Output.Statement():
            return f"{output.id} until {output.deadline_ns}"
        case Output.Event(lock=lock, event=Event.Acquired(token=token)):
            return f"{lock} with {token}"
        case Output.Event() | Output.Rejected():
            return f"{output.lock}"
        case Output.Subscribe() | Output.Unsubscribe():
            return output.resource
        case Output.NeedCredentials(node):
            return f"{node}"
        case Output.WakeAt(at_ns):
            return f"{at_ns}"
        case _:
            typing_extensions.assert_never(output)


OF_WRONG_TYPES: list[tuple[Callable[[], object], str]] = [
    (lambda: Client.create(whatever(None), SEED, NOW), "config.nodes: NoneType has no such field"),
    (lambda: Client.create(Config(whatever("ab")), SEED, NOW), "config.nodes: str is no sequence"),
    (lambda: Client.create(Config(whatever(5)), SEED, NOW), "config.nodes: int is no sequence"),
    (lambda: Client.create(Config([NodeConfig(watch=whatever(1))]), SEED, NOW), "watch: int is no bool"),
    (lambda: client(drift_ppm=True), "config.drift_ppm: bool is no int"),
    (lambda: client(drift_ppm=1.0), "config.drift_ppm: float is no int"),
    (lambda: client(request_timeout="1"), "a length of time is"),
    (lambda: client().acquire(whatever("1"), "job", LockOptions(), FRESH, NOW), "lock: str is no int"),
    (lambda: client().acquire(1, whatever(b"job"), LockOptions(), FRESH, NOW), "resource: bytes is no str"),
    (lambda: client().acquire(1, "job", LockOptions(wait=whatever(5)), FRESH, NOW), "options.wait: int is no case of Wait"),
    (lambda: client().acquire(1, "job", LockOptions(wait=whatever(Input.Close())), FRESH, NOW), "is no case of Wait"),
    (lambda: client().acquire(1, "job", LockOptions(), whatever("0" * 16), NOW), "fresh: str is no bytes"),
    (lambda: client().acquire(1, "job", LockOptions(), FRESH, whatever(5)), "now.monotonic_ns: int has no such field"),
    (lambda: client().handle_response(1, whatever(None), NOW), "response: NoneType is no case of Response"),
    (lambda: client().handle_response(1, Response.Outcomes([whatever(3)]), NOW), r"response.outcomes\[0\]: int is no case"),
    (lambda: client().handle_response(1, Response.HttpResponse(200, [whatever(("a",))], b""), NOW), "there are 2"),
    (lambda: client().step(FRESH, NOW, whatever([None])), r"inputs\[0\]: NoneType is no case of Input"),
]


@pytest.mark.parametrize(("call", "message"), OF_WRONG_TYPES, ids=lambda value: value if isinstance(value, str) else "")
def test_values_of_wrong_types_are_refused_by_name(call: Callable[[], object], message: str) -> None:
    with pytest.raises((TypeError, leasehold.ConfigError), match=message):
        call()


def wired(store: Store.Case) -> Client:
    return Client.create_wired(Config([NodeConfig()]), [store], SEED, NOW)


def test_a_command_that_is_not_accepted_says_why() -> None:
    machine = client(limits=protocol.Limits(locks=1))
    machine.acquire(1, "job", LockOptions(), FRESH, NOW)
    calls: list[tuple[Callable[[], None], CommandError.Case]] = [
        (lambda: machine.acquire(1, "job", LockOptions(), FRESH, NOW), CommandError.DuplicateLock()),
        (lambda: machine.acquire(2, "job", LockOptions(), FRESH, NOW), CommandError.TooManyLocks(1)),
        (lambda: machine.release(9, NOW), CommandError.UnknownLock()),
        (lambda: machine.declare_lost(9, NOW), CommandError.UnknownLock()),
    ]
    for call, reason in calls:
        with pytest.raises(CommandRejectedError) as raised:
            call()
        assert raised.value.reason == reason and not str(raised.value).startswith("(")
        assert pickle.loads(pickle.dumps(raised.value)).reason == reason
    machine.close(NOW)
    with pytest.raises(CommandRejectedError, match="closed"):
        machine.acquire(3, "job", LockOptions(), FRESH, NOW)


def test_repr_shows_no_secrets() -> None:
    machine = wired(Store.RedisHttp("upstash", "https://example.upstash.io", "with_credentials"))
    secret = Credentials.Token("hunter2-hush")
    machine.set_credentials(0, secret, NOW)
    machine.acquire(1, "job", LockOptions(), FRESH, NOW)
    (request,) = drained(machine)
    assert isinstance(request, Output.HttpRequest)
    assert ("authorization", "Bearer hunter2-hush") in request.headers
    others = (Credentials.Aws("id", "hunter2", "hunter2"), Credentials.Password("me", "hunter2"))
    assert "hunter2" not in f"{request} {secret} {others}"
    assert "body" not in repr(request)


def test_replies_of_servers_are_not_trusted() -> None:
    half = b'{"result":["granted"]}'
    for status, body in [(200, b"{"), (200, b"\xff"), (0, b""), (65535, b"x" * 2_000_000), (200, half)]:
        machine = wired(Store.RedisHttp("upstash", "https://example.upstash.io", "anonymous"))
        machine.acquire(1, "job", LockOptions(wait=Wait.Once()), FRESH, NOW)
        (request,) = drained(machine)
        assert isinstance(request, Output.HttpRequest)
        response = Response.HttpResponse(status, [("a", "b")], body)
        machine.handle_response(request.id, response, NOW)
        assert machine.state(1) != "Held"
    machine = wired(Store.Redis())
    machine.acquire(1, "job", LockOptions(wait=Wait.Once()), FRESH, NOW)
    (commands,) = drained(machine)
    assert isinstance(commands, Output.RedisCommands) and protocol.encode(commands.commands).startswith(b"*")
    machine.handle_response(commands.id, Response.RedisReplies(b"nonsense"), NOW)
    assert machine.state(1) != "Held"


@settings(max_examples=100)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.floats(), st.lists))
def test_random_values_raise_errors_and_never_panic(value: Any) -> None:
    # Any other exception, above all a panic, fails the test.
    for call in (
        lambda: Client.create(value, value, value),
        lambda: Client.create(Config(value, value, value, value, value), value, NOW),
        lambda: Client.create_wired(Config([NodeConfig()]), [Store.Dynamodb(value, value, value, value)], SEED, NOW),
        lambda: client().acquire(value, value, value, value, value),
        lambda: client().acquire(1, "job", LockOptions(value, value, value, value, value, value, value), FRESH, NOW),
        lambda: client().handle_response(value, Response.HttpResponse(value, value, value), NOW),
        lambda: client().handle_response(0, Response.Outcomes([Outcome.Applied(Applied.Acquired(value))]), NOW),
        lambda: client().step(value, value, value),
        lambda: Guard(value).claim(value),
        lambda: Reader().push(value),
        lambda: Reader().take(value),
        lambda: protocol.encode(value),
        lambda: protocol.channel(value),
        lambda: protocol.released_by(value, value),
    ):
        try:
            call()
        except (TypeError, leasehold.LeaseholdError):
            pass


@settings(max_examples=100)
@given(st.lists(st.binary(max_size=64), max_size=8))
def test_a_reader_accepts_any_bytes(pieces: list[bytes]) -> None:
    reader = Reader(1_000)
    for piece in pieces:
        reader.push(piece)
        try:
            reader.take(1)
        except leasehold.StoreUnavailableError:
            break


def test_a_reader_splits_replies() -> None:
    reader = Reader()
    reader.push(b"+OK\r\n:4")
    assert reader.take(2) is None
    reader.push(b"2\r\nrest")
    assert reader.take(2) == b"+OK\r\n:42\r\n"
    name = protocol.channel("job")
    assert protocol.released_by(name, b"job") in ("job", None) and protocol.released_by(b"other", b"") is None


def test_one_thread_at_a_time_and_no_way_back_in() -> None:
    machine = client()

    class Odd:
        """A value that calls the client while it is read."""

        unix_ms = 0

        @property
        def monotonic_ns(self) -> int:
            with pytest.raises(RuntimeError, match="in use"):
                machine.poll_output(NOW)
            thread = threading.Thread(target=tried)
            thread.start()
            thread.join()
            return 0

    refused: list[BaseException] = []

    def tried() -> None:
        try:
            machine.stats()
        except RuntimeError as error:
            refused.append(error)

    machine.poll_output(whatever(Odd()))
    assert len(refused) == 1
    assert machine.is_idle()


def test_a_guard_restores_its_mark() -> None:
    guard = Guard()
    assert guard.high_water is None
    guard.claim(33)
    guard.check(33, number=2)
    with pytest.raises(leasehold.StaleTokenError, match="out of order"):
        guard.check(33, number=1)
    guard = Guard(guard.high_water)
    guard.claim(34)
    with pytest.raises(leasehold.StaleTokenError, match="33 is stale"):
        guard.check(33)


def test_values_can_be_copied_and_clients_cannot() -> None:
    event = Output.Event(1, Event.Acquired(5, 6, False))
    assert copy.deepcopy(event) == event == pickle.loads(pickle.dumps(event)) and hash(event) == hash(copy.copy(event))
    assert repr(event) == "Output.Event(lock=1, event=Event.Acquired(token=5, deadline_ns=6, recovered=False))"
    with pytest.raises(AttributeError):
        event.lock = 2  # type: ignore[misc]
    with pytest.raises(TypeError, match="belongs to its process"):
        pickle.dumps(client())


def test_the_clocks_of_this_machine() -> None:
    before, after = protocol.now(), protocol.now()
    assert after.monotonic_ns >= before.monotonic_ns > 0 and before.unix_ms > 1_700_000_000_000


def test_a_url_that_may_hold_a_password_is_not_shown() -> None:
    assert "hunter2" not in repr(Store.RedisHttp("webdis", "http://u:hunter2@h/", "anonymous"))
