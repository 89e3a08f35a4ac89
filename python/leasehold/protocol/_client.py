"""The client, the guard, and what a host with a connection to a Redis needs."""

from __future__ import annotations

from leasehold._native import Protocol, protocol_redis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import NoReturn

    from typing_extensions import Self

    from leasehold.protocol._values import (
        Config,
        Credentials,
        Holding,
        Input,
        LockOptions,
        Now,
        Output,
        Response,
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

    ``seed`` are at least 32 random bytes, drawn once. ``fresh`` are at least 16 that are drawn from the operating system
    for the very call that carries them (``os.urandom(16)``), so that no fork and no cloned machine repeats a nonce.

    One thread at a time may call it: another one that tries meanwhile gets a ``RuntimeError``. Values that cannot be
    raise ``ConfigError`` (a ``ValueError``), those of a wrong type ``TypeError``, and then nothing has happened.
    """

    @classmethod
    def create(cls, config: Config, seed: bytes, now: Now) -> Self:
        """A client of the configured nodes, whose operations the host performs: it is told ``Output.Transmit``."""
        return cls(Protocol.make("client", "create", config, seed, now))

    @classmethod
    def create_wired(cls, config: Config, stores: Sequence[Store.Case], seed: bytes, now: Now) -> Self:
        """A client that writes its requests in the formats of stores: ``stores`` has one for each of ``config.nodes``, in
        their order. How to ``poll`` is then decided here, and ``watch`` counts for ``Store.Redis`` alone: the host
        subscribes to :func:`channel`.
        """
        return cls(Protocol.make("client", "create-wired", config, stores, seed, now))

    def acquire(self, lock: int, resource: str, options: LockOptions, fresh: bytes, now: Now) -> None:
        """Starts an acquisition under a lock id of the host's choice. Raises :class:`CommandRejectedError`."""
        self._native.call("acquire", lock, resource, options, fresh, now)

    def release(self, lock: int, now: Now) -> None:
        """Gives a lock back, or gives up on getting it: takes effect at once here, and is cleaned up in the background.
        A pending acquisition ends with ``Event.Failed``, a lease with ``Event.Released``. Raises
        :class:`CommandRejectedError` for what is no longer alive.
        """
        self._native.call("release", lock, now)

    def declare_lost(self, lock: int, now: Now) -> None:
        """The host's own reading of the deadline has told somebody that the lease is lost, so it must stay lost. Raises
        :class:`CommandRejectedError` for what is no longer alive.
        """
        self._native.call("declare-lost", lock, now)

    def close(self, now: Now) -> None:
        """Cancels all that is pending and releases all that is held; nothing new is accepted. Go on driving until
        :meth:`is_idle`.
        """
        self._native.call("close", now)

    def handle_response(self, id: int, response: Response.Case, now: Now) -> None:
        """The result of a request. One that belongs to no open request is counted and ignored."""
        self._native.call("handle-response", id, response, now)

    def handle_timeout(self, fresh: bytes, now: Now) -> None:
        """Does what is due."""
        self._native.call("handle-timeout", fresh, now)

    def notified(self, resource: str, now: Now) -> None:
        """A hint that a resource was released; it may be wrong. A name that no lock can have is ignored."""
        self._native.call("notified", resource, now)

    def subscribed(self, node: int, resource: str, now: Now) -> None:
        """The node confirms that wake-ups on a resource will come."""
        self._native.call("subscribed", node, resource, now)

    def credentials_renewed(self, node: int, now: Now) -> None:
        """The node has fresh credentials: whoever waits may try again."""
        self._native.call("credentials-renewed", node, now)

    def set_credentials(self, node: int, credentials: Credentials.Case, now: Now) -> None:
        """What the requests to a node carry from now on, asked for or not; those that wait for it leave."""
        self._native.call("set-credentials", node, credentials, now)

    def node_votes(self, node: int, loss: bytes | None, now: Now) -> None:
        """A look at a node of a quorum has shown that it votes; ``loss`` (16 bytes) names the loss of data since which its
        counters are in doubt, where it had one.
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
        """The whole loop in one call: takes the inputs, does what is due, and answers with all outputs. A command that is
        not accepted comes back as ``Output.Rejected``.
        """
        stepped: Stepped = self._native.call("step", fresh, now, inputs)
        return stepped

    def remaining_ns(self, lock: int, now: Now) -> int:
        """How much validity a lease has left, in nanoseconds; 0 when it is not held."""
        left: int = self._native.call("remaining-ns", lock, now)
        return left

    def holder(self, lock: int) -> Holding | None:
        """Who stands in the way of a pending acquisition, as far as the store shows it."""
        holding: Holding | None = self._native.call("holder", lock)
        return holding

    def state(self, lock: int) -> str | None:
        """The name of the state that a lock is in, for logs and tests; None when it is not alive."""
        state: str | None = self._native.call("state", lock)
        return state

    def stats(self) -> Stats:
        """What the client keeps and has seen."""
        stats: Stats = self._native.call("stats")
        return stats

    def is_idle(self) -> bool:
        """Whether nothing is alive, in flight or undrained."""
        idle: bool = self._native.call("is-idle")
        return idle


class Guard(_Native):
    """The mark of one guarded item, to be kept beside it. ``leasehold.fence`` has guards that keep it themselves."""

    def __init__(self, high_water: int | None = None) -> None:
        """A mark as read from storage; None where the item was never claimed."""
        super().__init__(Protocol.make("guard", "create", high_water))

    @property
    def high_water(self) -> int | None:
        """The highest token seen, to be written back to storage."""
        mark: int | None = self._native.call("high-water")
        return mark

    def claim(self, token: int) -> None:
        """Makes ``token`` the only one accepted from now on, apart from higher ones, before the item is read. Raises
        StaleTokenError.
        """
        self._native.call("claim", token)

    def check(self, token: int, *, number: int | None = None) -> None:
        """Whether a write with ``token`` may happen. ``number`` starts at 1, grows with each write, and refuses delayed
        writes of the same lease as well. Raises StaleTokenError, and ConfigError for an item that was never claimed.
        """
        if number is None:
            self._native.call("check", token)
        else:
            self._native.call("check-in-order", token, number)


class Reader(_Native):
    """Tells whole replies of a Redis apart in what comes over one connection."""

    def __init__(self, max_reply_bytes: int | None = None) -> None:
        """A reader that has read nothing. The longest that one reply may be is 1,048,576 bytes by default."""
        super().__init__(Protocol.make("reader", "create", max_reply_bytes))

    def push(self, data: bytes) -> None:
        """What has arrived, in pieces of any size."""
        self._native.call("push", data)

    def take(self, replies: int) -> bytes | None:
        """The next so many replies, for ``Response.RedisReplies``; None as long as they are not all there. Raises
        StoreUnavailableError where the server does not speak RESP or says too much: close the connection then.
        """
        taken: bytes | None = self._native.call("take", replies)
        return taken


def encode(commands: Iterable[Iterable[bytes]]) -> bytes:
    """Commands for a Redis as the bytes to be sent, one after the other."""
    encoded: bytes = protocol_redis("encode", commands)
    return encoded


def channel(resource: str) -> bytes:
    """The channel on which the release of a resource is told, for ``Output.Subscribe``. Raises ConfigError for a name that
    no lock can have.
    """
    name: bytes = protocol_redis("channel", resource)
    return name


def released_by(channel: bytes, message: bytes) -> str | None:
    """The resource that a message on a channel says is free, for :meth:`Client.notified`; None if it is none of ours."""
    resource: str | None = protocol_redis("released-by", channel, message)
    return resource
