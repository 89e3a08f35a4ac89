"""The client, the guard, and helpers for a host with a connection to a Redis."""

from __future__ import annotations

from leasehold._errors import ConfigError
from leasehold._native import Protocol, protocol_redis, protocol_runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import NoReturn

    from typing_extensions import Self

    from leasehold._types import Seconds
    from leasehold.protocol._values import (
        Config,
        Credentials,
        Holding,
        Input,
        LockOptions,
        Now,
        Output,
        Response,
        RunResult,
        Stats,
        Stepped,
        Store,
    )


class _Native:
    def __init__(self, native: Protocol) -> None:
        self._native = native

    def __reduce__(self) -> NoReturn:
        raise TypeError("this belongs to its process: make another one in the other process")


class Client(_Native):
    """The machine for all locks of one set of nodes. Every method first expires what is due at its ``now``.

    ``seed`` is at least 32 random bytes, drawn once. ``fresh`` is at least 16 bytes, drawn from the operating system
    for each call (``os.urandom(16)``), so that no fork and no cloned machine repeats a nonce.

    One thread at a time may call it: a concurrent call of another thread raises a ``RuntimeError``. Invalid values
    raise ``ConfigError`` (a ``ValueError``), values of a wrong type ``TypeError``; then nothing has changed.
    """

    @classmethod
    def create(cls, config: Config, seed: bytes, now: Now) -> Self:
        """A client of the configured nodes, whose operations the host performs: it gets ``Output.Transmit``."""
        return cls(Protocol.make("client", "create", config, seed, now))

    @classmethod
    def create_wired(cls, config: Config, stores: Sequence[Store.Case], seed: bytes, now: Now) -> Self:
        """A client that writes its requests in the formats of stores: ``stores`` has one for each of ``config.nodes``, in
        their order. The client then chooses ``poll``, and ``watch`` applies to ``Store.Redis`` only: the host
        subscribes to :func:`channel`.
        """
        return cls(Protocol.make("client", "create-wired", config, stores, seed, now))

    def acquire(self, lock: int, resource: str, options: LockOptions, fresh: bytes, now: Now) -> None:
        """Starts an acquisition under a lock id of the host's choice. Raises :class:`CommandRejectedError`."""
        self._native.call("acquire", lock, resource, options, fresh, now)

    def release(self, lock: int, now: Now) -> None:
        """Releases a lock, or abandons its acquisition. Takes effect at once here, and is cleaned up in the background.
        A pending acquisition ends with ``Event.Failed``, a lease with ``Event.Released``. Raises
        :class:`CommandRejectedError` for a lock that is no longer alive.
        """
        self._native.call("release", lock, now)

    def finish(self, lock: int, run_result: RunResult | None, now: Now) -> None:
        """Finishes a run that is held: the store writes the completion that the work is done and frees the resource, in one step.
        It ends with ``Event.Finished``, or with ``Event.Lost`` if the record was not ours any more and no completion was written.
        A result is for those who come later. Raises :class:`CommandRejectedError` for a lock without ``LockOptions.run``, for one
        that is not held, and for a result above 4,096 bytes.
        """
        self._native.call("finish", lock, run_result, now)

    def declare_lost(self, lock: int, now: Now) -> None:
        """Declares a lease lost: the host has reported the loss from its own reading of the deadline, so the lease must stay
        lost. Raises :class:`CommandRejectedError` for a lock that is no longer alive.
        """
        self._native.call("declare-lost", lock, now)

    def close(self, now: Now) -> None:
        """Cancels all acquisitions and releases all leases; no new commands are accepted. Keep driving until
        :meth:`is_idle`.
        """
        self._native.call("close", now)

    def handle_response(self, id: int, response: Response.Case, now: Now) -> None:
        """Passes in the result of a request. A result of an unknown request is counted and ignored."""
        self._native.call("handle-response", id, response, now)

    def handle_timeout(self, fresh: bytes, now: Now) -> None:
        """Does everything that is due."""
        self._native.call("handle-timeout", fresh, now)

    def notified(self, resource: str, now: Now) -> None:
        """A hint that a resource was released; it may be wrong. A name that no lock can have is ignored."""
        self._native.call("notified", resource, now)

    def subscribed(self, node: int, resource: str, now: Now) -> None:
        """The node confirms that wake-ups on a resource will come."""
        self._native.call("subscribed", node, resource, now)

    def credentials_renewed(self, node: int, now: Now) -> None:
        """The node has fresh credentials: waiting acquisitions may try again."""
        self._native.call("credentials-renewed", node, now)

    def set_credentials(self, node: int, credentials: Credentials.Case, now: Now) -> None:
        """Sets the credentials for requests to a node, requested or not. Requests that wait for them are sent."""
        self._native.call("set-credentials", node, credentials, now)

    def node_votes(self, node: int, loss: bytes | None, now: Now) -> None:
        """Reports that a node of a quorum votes. ``loss`` (16 bytes) names its last loss of data, after which its
        counters are in doubt, if there was one.
        """
        self._native.call("node-votes", node, loss, now)

    def reseed(self, seed: bytes) -> None:
        """Replaces the seed, for hosts that know that they were copied."""
        self._native.call("reseed", seed)

    def poll_output(self, now: Now) -> Output.Case:
        """The next thing for the host to do; ``Output.WakeAt`` means that there is nothing more."""
        output: Output.Case = self._native.call("poll-output", now)
        return output

    def step(self, fresh: bytes, now: Now, inputs: Iterable[Input.Case] = ()) -> Stepped:
        """The whole loop in one call: takes the inputs, does what is due, and returns all outputs. A command that is
        not accepted is returned as ``Output.Rejected``.
        """
        stepped: Stepped = self._native.call("step", fresh, now, inputs)
        return stepped

    def remaining_ns(self, lock: int, now: Now) -> int:
        """The remaining validity of a lease, in nanoseconds; 0 when it is not held."""
        left: int = self._native.call("remaining-ns", lock, now)
        return left

    def holder(self, lock: int) -> Holding | None:
        """The holder that blocks a pending acquisition, as far as the store shows it."""
        holding: Holding | None = self._native.call("holder", lock)
        return holding

    def state(self, lock: int) -> str | None:
        """The name of the state that a lock is in, for logs and tests; None when it is not alive."""
        state: str | None = self._native.call("state", lock)
        return state

    def stats(self) -> Stats:
        """Counts of the client's state and history."""
        stats: Stats = self._native.call("stats")
        return stats

    def is_idle(self) -> bool:
        """True if nothing is alive, in flight or undrained."""
        idle: bool = self._native.call("is-idle")
        return idle


class Guard(_Native):
    """The mark of one guarded item, to be stored beside it. ``leasehold.fence`` has guards that store it themselves."""

    def __init__(self, high_water: int | None = None) -> None:
        """A mark as read from storage; None if the item was never claimed."""
        super().__init__(Protocol.make("guard", "create", high_water))

    @property
    def high_water(self) -> int | None:
        """The highest token seen, to be written back to storage."""
        mark: int | None = self._native.call("high-water")
        return mark

    def claim(self, token: int) -> None:
        """From now on only ``token`` and higher ones are accepted. Call it before reading the item. Raises
        StaleTokenError.
        """
        self._native.call("claim", token)

    def check(self, token: int, *, number: int | None = None) -> None:
        """Checks that a write with ``token`` is allowed. ``number`` starts at 1 and grows with each write; with it, delayed
        writes of the same lease are rejected as well. Raises StaleTokenError, and ConfigError for an item that was never
        claimed.
        """
        if number is None:
            self._native.call("check", token)
        else:
            self._native.call("check-in-order", token, number)


class Reader(_Native):
    """Splits the bytes of a Redis connection into whole replies."""

    def __init__(self, max_reply_bytes: int | None = None) -> None:
        """A reader that has read nothing. The longest that one reply may be is 1,048,576 bytes by default."""
        super().__init__(Protocol.make("reader", "create", max_reply_bytes))

    def push(self, data: bytes) -> None:
        """Adds received bytes, in pieces of any size."""
        self._native.call("push", data)

    def take(self, replies: int) -> bytes | None:
        """The next replies, for ``Response.RedisReplies``; None until all of them have arrived. Raises
        StoreUnavailableError if the server does not speak RESP or sends too much: close the connection then.
        """
        taken: bytes | None = self._native.call("take", replies)
        return taken


def encode(commands: Iterable[Iterable[bytes]]) -> bytes:
    """Encodes commands for a Redis as the bytes to send, one after the other."""
    encoded: bytes = protocol_redis("encode", commands)
    return encoded


def channel(resource: str) -> bytes:
    """The channel for releases of a resource, for ``Output.Subscribe``. Raises ConfigError for an invalid name.
    """
    name: bytes = protocol_redis("channel", resource)
    return name


def released_by(channel: bytes, message: bytes) -> str | None:
    """The resource whose release a message reports, for :meth:`Client.notified`; None if the message is not ours."""
    resource: str | None = protocol_redis("released-by", channel, message)
    return resource


def run_resource(name: str, key: str | None = None) -> str:
    """The resource of one occurrence of a job: ``name@key``. Raises ConfigError for names and keys that cannot be."""
    resource: str = protocol_runs("run-resource", name, key)
    return resource


def period_key(unix_ms: int, every: Seconds, offset: Seconds = 0) -> str:
    """The key of a job that runs once in every period: the start of the period in UTC, such as ``2026-11-24T00:00:00Z``.
    Raises ConfigError for a period below 1 s or above 100 years, and for an offset that is not below the period.
    """
    key: str = protocol_runs("period-key", unix_ms, _ms(every), _ms(offset))
    return key


def _ms(length: Seconds) -> int:
    seconds = length if isinstance(length, (int, float)) else length.total_seconds()
    if not 0 <= seconds < 2**53:
        raise ConfigError(f"{length!r} is not a length of time: give seconds, from 0 on")
    return round(seconds * 1000)
