"""Each public name is documented, and shows its parameters to ``help()``, editors and ``inspect.signature``."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
import typing
from collections.abc import Iterator
from types import ModuleType

import pytest

MODULES = [
    "leasehold",
    "leasehold.aio",
    "leasehold.cas",
    "leasehold.compat.redis_py",
    "leasehold.compat.redis_py.asyncio",
    "leasehold.contrib.apscheduler",
    "leasehold.contrib.celery",
    "leasehold.contrib.django",
    "leasehold.contrib.prometheus",
    "leasehold.contrib.pytest",
    "leasehold.fence",
    "leasehold.metrics",
    "leasehold.protocol",
    "leasehold.testing",
]


def public(module: ModuleType) -> Iterator[tuple[str, object]]:
    """The public names of a module, with those of its classes."""
    for name in module.__all__:
        value = getattr(module, name)
        yield name, value
        if inspect.isclass(value) and not typing.get_origin(value):
            for base in value.__mro__:
                if base.__module__.partition(".")[0] != "leasehold":
                    continue
                yield from ((f"{name}.{key}", getattr(value, key)) for key in vars(base) if not key.startswith("_"))


def is_described(value: object) -> bool:
    return inspect.isclass(value) or inspect.isroutine(value) or isinstance(value, property) or inspect.isgetsetdescriptor(value)


OTHERS_CALL = {"OnceMixin.execute", "Scheduler", "Scheduler.apply_async"}
"""Overrides of Django and Celery, which pass on what those add."""


@pytest.mark.parametrize("module", MODULES)
def test_each_public_name_is_documented(module: str) -> None:
    of = importlib.import_module(module)
    assert inspect.getdoc(of)
    bare = [name for name, value in public(of) if is_described(value) and not inspect.getdoc(value)]
    assert not bare, bare


@pytest.mark.parametrize("module", MODULES)
def test_each_parameter_has_a_name(module: str) -> None:
    hidden = []
    for name, value in public(importlib.import_module(module)):
        is_error = inspect.isclass(value) and issubclass(value, Exception)
        if not (inspect.isclass(value) or inspect.isroutine(value)) or is_error or name in OTHERS_CALL:
            continue
        parameters = inspect.signature(value).parameters.values()
        hidden += [f"{name}({each})" for each in parameters if each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
    assert not hidden, hidden


WITHOUT_UNIX = """
import asyncio, concurrent.futures, logging, multiprocessing, os, random, signal, sqlite3, subprocess, sys, tempfile, threading, uuid

for name in ["fork", "register_at_fork", "getuid", "geteuid", "getppid", "set_blocking", "killpg", "setsid", "waitid", "uname"]:
    vars(os).pop(name, None)
for name in ["SIGKILL", "SIGSTOP", "SIGCONT", "SIGHUP", "SIGCHLD", "pthread_sigmask", "pthread_kill", "set_wakeup_fd"]:
    vars(signal).pop(name, None)
for name in ["fcntl", "grp", "pwd", "resource", "termios", "posix"]:
    sys.modules[name] = None
for name in sys.argv[1:]:
    __import__(name)
"""


def test_modules_import_nothing_that_only_unix_has() -> None:
    own = [name for name in MODULES if ".contrib" not in name and ".compat" not in name]
    ended = subprocess.run([sys.executable, "-c", WITHOUT_UNIX, "leasehold._command", *own], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
