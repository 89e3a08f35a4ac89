"""Django: functions and management commands that are done once, although cron starts them on several machines::

    class Command(OnceMixin, BaseCommand):
        once = {"every": timedelta(days=1), "ttl": 60}

        def handle(self, *args, **options):
            make_report(fence=self.run.token)

    @once("welcome-{user_id}", keep=timedelta(days=365))
    def send_welcome(user_id): ...

With ``save_result=True`` a function, and with ``once_saves_output = True`` a command, gives those who come later what the first one has
returned.

The store is that of :func:`leasehold.connect`, unless the setting ``LEASEHOLD_STORE`` names one. Each process connects
with its first run.

A run is no transaction: its completion is written after the body, so a body that commits and then dies is done again.
"""

from __future__ import annotations

import sys

from django.conf import settings
from django.core.management.base import CommandError

from leasehold import _hints
from leasehold._options import UNNAMED, Unnamed
from leasehold._runs import AlreadyDone, Replaced, RetryLater
from leasehold.contrib._clients import client_of, runs_once, shows_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar, ParamSpec, TypeVar

    from typing_extensions import Unpack

    from leasehold._native import Run
    from leasehold._runs import Ran, RunningElsewhere
    from leasehold._types import OnceOptions, Stores

    P = ParamSpec("P")
    R = TypeVar("R")

__all__ = ["OnceMixin", "once"]

_TRY_LATER = 75
"""The exit status of a command that another machine runs, as that of ``leasehold exec``."""


@shows_options
def once(
    name: str, *, save_result: bool = False, **options: Unpack[OnceOptions]
) -> Callable[[Callable[P, R]], Callable[P, Ran[R] | AlreadyDone | RunningElsewhere]]:
    """Decorates a function, as :meth:`leasehold.Client.once` does; connects with the first call."""
    return runs_once(_stores, name, options, save_result=save_result)


class OnceMixin:
    """For management commands, before ``BaseCommand``: ``handle`` is called once, with its run in ``self.run``.

    If it was done before, the command says so and succeeds. While another machine is at it, the command fails with the
    status 75.
    """

    once: ClassVar[OnceOptions] = {}
    """The options of :meth:`leasehold.Client.once`: one of key, every, cooldown and keep has to be there."""
    once_name: ClassVar[str | None] = None
    """The name of the job; by default that of the command's module."""
    once_saves_output: ClassVar[bool] = False
    """True keeps the text that ``handle`` returns, up to 4 KiB, which Django writes to stdout: a later start writes it, too."""
    run: Run
    """The run, while ``handle`` is called."""

    def execute(self, *args: Any, **options: Any) -> Any:
        """Calls the command, if it is to be done; called by Django."""
        name = self.once_name or type(self).__module__.rpartition(".")[2]
        once = client_of(_stores()).once(name, **self.once)
        with once as run:
            if run is not None:
                self.run = run
                output = super().execute(*args, **options)  # type: ignore[misc]
                if self.once_saves_output:
                    run.finish(result=output)
                return output
        outcome = once.outcome
        if isinstance(outcome, AlreadyDone):
            by = outcome.owner or "a client without a label"
            print(f"{name}: done already by {by}, token {outcome.token}", file=options.get("stderr") or sys.stderr)
            if not self.once_saves_output or not isinstance(outcome.result, str):
                return None
            print(outcome.result, file=options.get("stdout") or sys.stdout)
            return outcome.result
        if isinstance(outcome, Replaced):
            print(f"{name}: a newer call has taken the place of this one", file=options.get("stderr") or sys.stderr)
            return None
        if isinstance(outcome, RetryLater):
            raise CommandError(f"{name} has failed, and may not be tried again yet: {outcome.attempts}", returncode=_TRY_LATER)
        holder = getattr(outcome, "holder", None) or "held by another client"
        raise CommandError(f"{name} runs elsewhere: {holder}", returncode=_TRY_LATER)


def _stores() -> Stores | None | Unnamed:
    stores: Stores | None | Unnamed = getattr(settings, "LEASEHOLD_STORE", UNNAMED)
    return stores


_hints.resolve(globals())
