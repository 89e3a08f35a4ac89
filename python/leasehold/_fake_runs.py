"""Runs of fake clients."""

from __future__ import annotations

from leasehold._errors import ConfigError, LockTimeoutError
from leasehold._fake_lease import FakeLease
from leasehold._fakes import to_ns, to_wait
from leasehold._options import refuse_slot
from leasehold._runs import AlreadyDone, Mark, RunInfo, RunningElsewhere
from leasehold.protocol import Client as Machine
from leasehold.protocol import (
    Config,
    Failure,
    LockOptions,
    NodeConfig,
    Now,
    Renewal,
    RunOptions,
    Wait,
    period_slot,
    run_resource,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from leasehold._fake_process import Process
    from leasehold._types import OnceOptions, Seconds
    from leasehold.protocol import Mark as SeenMark

_DEFAULT_KEEP_NS = 7 * 86_400 * 10**9
_MAX_KEEP_NS = 36_500 * 86_400 * 10**9
_UNSPOKEN = (
    "say when the work is to be done again: slot (never for this one, such as a date), every (in the next period), "
    "cooldown (after so long), or keep (after so long, and the name says which work it is)"
)
"""As the real client says it."""
_FORGET_WAIT = 10.0
"""How long to wait for a runner before its mark is removed, as in the real client."""


class FakeRunRequest:
    """The options of a run, checked before it begins."""

    def __init__(self, process: Process, name: str, options: OnceOptions) -> None:
        given = {**options}
        slot, every, offset = (given.pop(key, None) for key in ("slot", "every", "offset"))
        cooldown, keep, trust = given.pop("cooldown", None), given.pop("keep", None), given.pop("trust_quorum", None)
        wait, renew_every = given.pop("wait", None), given.pop("renew_every", None)
        again = given.pop("even_if_done", None)
        given.pop("watch_holder", None)
        refuse_slot(slot)
        if slot is not None and every is not None:
            raise ConfigError("a run has a slot or a period, not both: leave out slot or every")
        if cooldown is not None and (slot is not None or every is not None):
            raise ConfigError("a run has a slot or a cooldown, not both")
        if cooldown is not None and keep is not None:
            raise ConfigError("the cooldown is how long the mark stands, so keep says nothing more")
        if offset is not None and every is None:
            raise ConfigError("an offset moves the start of a period, so it needs one: every")
        if every is not None:
            keep = _kept_for_a_period(keep, to_ns(every))  # type: ignore[arg-type]
        self._process = process
        self._name, self._slot, self._every, self._offset = name, slot, every, offset
        given["owner"] = given.get("owner") or process._owner
        given["wait"] = Wait.Once() if wait is None else to_wait(wait)
        if renew_every is not None:
            given["renewal"] = Renewal.Every(renew_every)  # type: ignore[arg-type]
        given["run"] = RunOptions(keep if cooldown is None else cooldown, trust, again)  # type: ignore[arg-type]
        self._options = LockOptions(**given)  # type: ignore[arg-type]
        if slot is None and every is None and cooldown is None and keep is None:
            raise ConfigError(_UNSPOKEN)
        # Rejects invalid options now, not in the middle of the work.
        start = Now(0, 0)
        machine = Machine.create(Config([NodeConfig()]), bytes(32), start)
        machine.acquire(0, self._resource(0), self._options, bytes(16), start)

    def _resource(self, unix_ms: int) -> str:
        if self._every is None:
            return run_resource(self._name, self._slot)  # type: ignore[arg-type]
        slot = period_slot(unix_ms, self._every, self._offset or 0)  # type: ignore[arg-type]
        return run_resource(self._name, slot)

    def begin(self) -> FakeLease | AlreadyDone | RunningElsewhere:
        process = self._process
        with process.clock._mutex:
            resource = self._resource(process.clock._read().unix_ms)
            answer = process.attempt(resource, self._options)
            if isinstance(answer, Failure.Done):
                return AlreadyDone(answer.at_unix_ms / 1e3, answer.owner or None, answer.token, answer.left_ms / 1e3)
            if isinstance(answer, (Failure.Busy, Failure.TimedOut)):
                return RunningElsewhere(process.error(resource, answer).holder)
            if isinstance(answer, FakeLease):
                return answer
            raise process.error(resource, answer)


def _kept_for_a_period(keep: Seconds | None, period_ns: int) -> Seconds | None:
    """How long the mark of a period stands, as in the real client."""
    if keep is None:
        return max(_DEFAULT_KEEP_NS, min(2 * period_ns, _MAX_KEEP_NS)) / 1e9
    if to_ns(keep) < period_ns:
        raise ConfigError("keep is shorter than the period, in which the job would be done again")
    return keep


def inspect_run(process: Process, name: str, slot: str | None) -> RunInfo:
    resource = run_resource(name, slot)
    holder = process.inspect(resource)
    return RunInfo(resource, holder, _mark(process.clock._store.mark(resource, process.clock._read())))  # type: ignore[arg-type]


def forget_run(process: Process, name: str, slot: str | None) -> Mark | None:
    clock, info = process.clock, inspect_run(process, name, slot)
    if info.done is None:
        return None
    clock._until(clock._ns + to_ns(_FORGET_WAIT), lambda: process.inspect(info.resource) is None)
    if process.inspect(info.resource) is not None:
        raise LockTimeoutError(f"{info.resource!r} was run for the whole wait")
    clock._store.forget(info.resource)
    return info.done


def _mark(seen: SeenMark | None) -> Mark | None:
    return None if seen is None else Mark(seen.at_unix_ms / 1e3, seen.owner or None, seen.token, seen.left_ms / 1e3)
