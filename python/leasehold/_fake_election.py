"""Elections of fake clients."""

from __future__ import annotations

from leasehold import _callbacks
from leasehold._fake_shards import FakeShards

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from typing_extensions import Self

    from leasehold._errors import LeaseholdError
    from leasehold._fake_process import Process
    from leasehold._fake_shards import FakeShard
    from leasehold._types import LockOptions, Seconds


class Candidate(FakeShards):
    """A worker on the only shard of an election."""

    _names: Mapping[str, str] = {"on_gain": "on_start", "on_loss": "on_stop"}

    def _resource(self, index: int) -> str:
        return self.name

    @property
    def _key(self) -> str:
        return f"{self.name}\0"

    def _agrees(self) -> bool:
        return True

    def _lost(self, shard: FakeShard, error: LeaseholdError) -> None:
        # The others come first.
        line = self._process.clock._workers[self._key]
        line.append(line.pop(line.index(self)))
        super()._lost(shard, error)


class FakeElection:
    """A candidacy; see :class:`leasehold.Election`. Candidates campaign whenever one joins or resigns, a term ends, or the clock
    moves, in the order in which they joined. The callbacks run there.
    """

    def __init__(
        self,
        process: Process,
        name: str,
        *,
        ttl: Seconds | None = None,
        owner: str | None = None,
        on_start: Callable[..., object] | None = None,
        on_stop: Callable[..., object] | None = None,
    ) -> None:
        self.resource = name
        """The name of the election's lock."""
        options: LockOptions = {"owner": owner} if ttl is None else {"owner": owner, "ttl": ttl}
        if on_stop is not None:
            _callbacks.check(on_stop)
        callbacks = {"on_gain": on_start, "on_loss": on_stop and (lambda shard, error: on_stop(error))}
        self._candidate = Candidate(process, name, 1, callbacks, None, options)

    @property
    def token(self) -> int | None:
        """The fencing token of the current term; None while somebody else leads, and after the lease of the term ended."""
        held = self._candidate.held
        return held[0].token if held else None

    @property
    def last_error(self) -> LeaseholdError | None:
        """The error of the last campaign, if it failed, or that of a callback."""
        return self._candidate.last_error

    def _fail(self, name: str, failure: BaseException) -> None:
        """Ends the term, since a callback has raised after it returned."""
        self._candidate._fail(0, name, failure)

    def resign(self) -> None:
        """Stops campaigning; a current term ends, ``on_stop`` is called, and the lock is released. In a callback of this election
        it only begins. If the last term has ended since a callback raised, that exception is raised here.
        """
        self._candidate.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._candidate.__exit__(kind, error, traceback)

    def __repr__(self) -> str:
        state = "standing" if self.token is None else f"leading, token={self.token}"
        return f"<FakeElection {self.resource!r} {'over' if self._candidate._is_stopping else state}>"
