"""Runs of fake clients."""

from __future__ import annotations

from leasehold._errors import ConfigError, LockTimeoutError
from leasehold._fake_lease import FakeLease
from leasehold._fakes import checker, to_ns, to_wait
from leasehold._options import refuse_key
from leasehold._runs import AlreadyDone, Completion, RunInfo, RunningElsewhere
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
    period_key,
    run_resource,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from leasehold._fake_process import Process
    from leasehold._types import OnceOptions, Seconds
    from leasehold.protocol import Completion as SeenCompletion

_DEFAULT_KEEP_NS = 7 * 86_400 * 10**9
_MAX_KEEP_NS = 36_500 * 86_400 * 10**9
_UNSPOKEN = (
    "say when the work may be done again: key (never for this key, such as a date), every (in the next period), cooldown (after this time), or keep (after this time, if the name alone identifies the work)"
)
"""As the real client says it."""
_FORGET_WAIT = 10.0
"""How long to wait for a runner before its completion is removed, as in the real client."""


class FakeRunRequest:
    """The options of a run, checked before it begins."""

    def __init__(self, process: Process, name: str, options: OnceOptions) -> None:
        refuse_key(options.get("key"))
        # Rejects what cannot be now, not in the middle of the work.
        checker().run_request(name, **options)
        given = {**options}
        key, every, offset = (given.pop(key, None) for key in ("key", "every", "offset"))
        cooldown, keep, trust = given.pop("cooldown", None), given.pop("keep", None), given.pop("trust_quorum", None)
        wait, renew, every_so_often = given.pop("wait", None), given.pop("renew", True), given.pop("renew_every", None)
        again = given.pop("even_if_done", None)
        given.pop("watch_holder", None)
        if every is not None:
            keep = _kept_for_a_period(keep, to_ns(every))  # type: ignore[arg-type]
        self._process = process
        self._name, self._key, self._every, self._offset = name, key, every, offset
        given["owner"] = given.get("owner") or process._owner
        given["wait"] = Wait.Once() if wait is None else to_wait(wait)
        if renew is False:
            given["renewal"] = Renewal.Off()
        elif every_so_often is not None:
            given["renewal"] = Renewal.Every(every_so_often)  # type: ignore[arg-type]
        given["run"] = RunOptions(keep if cooldown is None else cooldown, trust, again)  # type: ignore[arg-type]
        self._options = LockOptions(**given)  # type: ignore[arg-type]
        if key is None and every is None and cooldown is None and keep is None:
            raise ConfigError(_UNSPOKEN)

    def _resource(self, unix_ms: int) -> str:
        if self._every is None:
            return run_resource(self._name, self._key)  # type: ignore[arg-type]
        key = period_key(unix_ms, self._every, self._offset or 0)  # type: ignore[arg-type]
        return run_resource(self._name, key)

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
    """How long the completion of a period stands, as in the real client."""
    if keep is None:
        return max(_DEFAULT_KEEP_NS, min(2 * period_ns, _MAX_KEEP_NS)) / 1e9
    return keep


def inspect_run(process: Process, name: str, key: str | None) -> RunInfo:
    resource = run_resource(name, key)
    holder = process.inspect(resource)
    return RunInfo(resource, holder, _completion(process.clock._store.completion(resource, process.clock._read())))  # type: ignore[arg-type]


def forget_run(process: Process, name: str, key: str | None) -> Completion | None:
    clock, info = process.clock, inspect_run(process, name, key)
    if info.done is None:
        return None
    clock._until(clock._ns + to_ns(_FORGET_WAIT), lambda: process.inspect(info.resource) is None)
    if process.inspect(info.resource) is not None:
        raise LockTimeoutError(f"not free within the wait: {info.holder}")
    clock._store.forget(info.resource)
    return info.done


def _completion(seen: SeenCompletion | None) -> Completion | None:
    return None if seen is None else Completion(seen.at_unix_ms / 1e3, seen.owner or None, seen.token, seen.left_ms / 1e3)
