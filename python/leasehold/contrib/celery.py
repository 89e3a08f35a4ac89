"""Celery: tasks that are done once, and a beat on several machines.

A broker delivers a message again when its worker dies, and also when a task takes longer than the broker waits for it. With
``once``, the second delivery waits for the first, and does nothing if that one has finished::

    @app.task(acks_late=True, reject_on_worker_lost=True)
    @once()
    def charge(invoice): ...

    @app.task(acks_late=True, reject_on_worker_lost=True)
    @once("invoice-{invoice}", keep=timedelta(days=90))
    def bill(invoice): ...

With ``save_result=True`` the second delivery succeeds with the result of the first one, and without it with None.

``celery -A shop beat --scheduler leasehold.contrib.celery:Scheduler`` may run on any number of machines: each due entry is sent by
one of them, and the others go on if one dies.

The store is that of :func:`leasehold.connect`, unless the app's setting ``leasehold_store`` names one. Each process
connects with its first task, since a client does not survive a fork.
"""

from __future__ import annotations

import functools
import inspect
import time
from datetime import datetime, timedelta, timezone

from celery import current_task
from celery.beat import PersistentScheduler
from celery.schedules import crontab

from leasehold import _hints
from leasehold._errors import ConfigError, LockBusyError
from leasehold._once import requester
from leasehold._options import UNNAMED, Unnamed
from leasehold._results import NoResult
from leasehold._runs import AlreadyDone, Ran, Replaced, RetryLater, RunningElsewhere
from leasehold.contrib._clients import client_of, runs_once, shows_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ParamSpec, TypeVar

    from typing_extensions import Unpack

    from leasehold._types import OnceOptions, Stores

    P = ParamSpec("P")
    R = TypeVar("R")

__all__ = ["Scheduler", "once"]

_TTL = 10.0
"""Sending a message takes less than that."""


@shows_options
def once(
    name: str | None = None, *, retry_in: float = 5.0, save_result: bool = False, **options: Unpack[OnceOptions]
) -> Callable[[Callable[P, R]], Callable[P, R | None]]:
    """Decorates the function of a task, below ``@app.task``: it is called once, and the task's result is its own. A task
    whose work is done already succeeds with None. While another worker is at it, the task is retried every ``retry_in``
    seconds, without limit, since that worker may die; these count as its retries.

    save_result: True for a task whose later deliveries succeed with what the first one has returned, up to 4 KiB of what JSON can
        hold, or bytes. It is None where the store had no room for it. While a quorum has not settled it, the task is retried.
    name: as that of :meth:`leasehold.Client.once`, with fields for the arguments of the call; by default that of the task.
    options: those of :meth:`leasehold.Client.once`. Without a name, key, period and cooldown, each message is done once: the key
        is its id, and a plain call of the function is not a run.

    A plain call of a named one raises LockBusyError while another worker is at it. One without a name, called inside of another
    task, raises ConfigError: the message is that task's.
    """

    is_named = name is not None or not options.keys().isdisjoint(("key", "every", "cron", "cooldown"))

    def decorate(function: Callable[P, R]) -> Callable[P, R | None]:
        # Refuses unknown fields now.
        requester(function, name or "", options)

        @functools.wraps(function)
        def ran(*args: P.args, **kwargs: P.kwargs) -> R | None:
            called: Any = current_task
            if not is_named and (not called or called.request.id is None):
                return function(*args, **kwargs)
            if not is_named and not _is_body_of(called, ran):
                raise ConfigError(f"{ran.__qualname__} is called inside of the task {called.name}: name the run, as in @once(...)")
            of_call = options if is_named else {**options, "key": called.request.id}
            run_once = runs_once(_stores, name or _literal(called.name), of_call, save_result=save_result)
            outcome = run_once(function)(*args, **kwargs)
            if isinstance(outcome, Ran):
                return outcome.value
            if busy := _busy(outcome, save_result):
                if not called:
                    raise busy
                pause = outcome.attempts.retry_at - time.time() if isinstance(outcome, RetryLater) else 0
                # None would be the limit of the task, which is 3 by default.
                raise called.retry(exc=busy, countdown=max(retry_in, pause), max_retries=called.request.retries + 1)
            result: R | NoResult | None = getattr(outcome, "result", None) if save_result else None
            return None if isinstance(result, NoResult) else result

        return ran

    return decorate


def _busy(outcome: AlreadyDone | RunningElsewhere, saves: bool) -> LockBusyError | None:
    """Why the task has to be tried again, if it has to be."""
    if isinstance(outcome, RetryLater):
        return LockBusyError(f"it has failed, and may not be tried again yet: {outcome.attempts}")
    if isinstance(outcome, RunningElsewhere) and not isinstance(outcome, Replaced):
        return LockBusyError(f"another worker is running it: {outcome.holder or 'of an unknown label'}")
    if saves and isinstance(outcome, AlreadyDone) and outcome.result is NoResult.UNSETTLED:
        return LockBusyError("it is done, and a majority of the quorum does not show its result yet: ask again")
    return None


def _is_body_of(task: Any, function: Callable[..., object]) -> bool:
    """Tells if the task calls this function, perhaps through other decorators."""
    body = getattr(task, "_orig_run", task.run)
    return inspect.unwrap(getattr(body, "__func__", body)) is inspect.unwrap(function)


def _literal(name: str) -> str:
    return name.replace("{", "{{").replace("}", "}}")


def _stores() -> Stores | None | Unnamed:
    from celery import current_app

    return _stores_of(current_app)


def _stores_of(app: Any) -> Stores | None | Unnamed:
    stores: Stores | None | Unnamed = app.conf.get("leasehold_store", UNNAMED)
    return stores


class Scheduler(PersistentScheduler):  # type: ignore[misc]
    """A scheduler for several beats: an entry is sent once in each of its periods, or at each time of its crontab. All beats
    have the same schedule, and clocks that differ by less than its periods.

    A beat that cannot reach the store sends nothing, and logs it.
    """

    def apply_async(self, entry: Any, producer: Any = None, advance: bool = True, **kwargs: Any) -> Any:
        """Sends the task of an entry, unless another beat has sent it."""
        stores = _stores_of(self.app)
        # Another beat that sends it now may fail, or die.
        options: OnceOptions = {"ttl": _TTL, "wait": 2 * _TTL, **_occurrence(entry)}
        once = client_of(stores).once(f"celery-beat/{entry.name}", **options)
        with once as run:
            if run is not None:
                return super().apply_async(entry, producer=producer, advance=advance, **kwargs)
        if advance:
            self.reserve(entry)
        return None


def _occurrence(entry: Any) -> OnceOptions:
    schedule = entry.schedule
    if isinstance(schedule, crontab):
        begun, left, _ = schedule.remaining_delta(entry.last_run_at)
        due: datetime = begun + left
        return {"key": due.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%MZ")}
    every: timedelta = getattr(schedule, "run_every", timedelta(minutes=1))
    # Not the default of 7 days, which would pile up completions, nor more than that, which no quorum keeps, without need.
    keep = max(min(2 * every, timedelta(days=7)), every, timedelta(seconds=_TTL))
    return {"every": max(every, timedelta(seconds=1)), "keep": keep}


_hints.resolve(globals())
