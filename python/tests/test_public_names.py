"""Each public name is documented, and shows its parameters to ``help()``, editors and ``inspect.signature``."""

from __future__ import annotations

import importlib
import inspect
import pydoc
import subprocess
import sys
import typing
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import leasehold
from leasehold import aio

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


def functions_and_classes(module: str) -> Iterator[tuple[str, Any]]:
    """The public ones of a module, those that make properties, and what is called by `with`."""
    of = importlib.import_module(module)
    for name, value in public(of):
        yield name, value.fget if isinstance(value, property) else value
    for name in of.__all__:
        for special in ("__init__", "__enter__", "__exit__", "__aenter__", "__call__"):
            if inspect.isfunction(function := getattr(getattr(of, name), special, None)):
                yield f"{name}.{special}", function


def of_the_package(value: object) -> bool:
    if not (inspect.isclass(value) or inspect.isfunction(value)) or typing.get_origin(value):
        return False
    # A decorator of another library may have wrapped it.
    return (value.__module__ or "").partition(".")[0] == "leasehold" and type(value).__module__ in ("builtins", "abc")


@pytest.mark.parametrize("module", MODULES)
def test_the_types_of_each_public_name_can_be_asked_for(module: str) -> None:
    unknown, texts = [], []
    for name, value in functions_and_classes(module):
        if not of_the_package(value):
            continue
        try:
            typing.get_type_hints(value)
        except NameError as error:
            unknown.append(f"{name}: {error}")
        if inspect.isfunction(value) and ".contrib." not in module:
            texts += [f"{name}: {each}" for each in inspect.signature(value).parameters.values() if isinstance(each.annotation, str)]
    assert not unknown, unknown
    assert not texts, "help() and notebooks show types, not their source text"


RESULTS = {
    "leasehold.connect": leasehold.Client,
    "leasehold.Client.lock": leasehold.Lock,
    "leasehold.Client.acquire": leasehold.Lease,
    "leasehold.Client.once": leasehold.Once,
    "leasehold.Client.semaphore": leasehold.Semaphore,
    "leasehold.aio.Client.lock": aio.Lock,
    "leasehold.aio.Client.once": aio.Once,
}


@pytest.mark.parametrize("name", RESULTS)
def test_help_shows_the_result_of_a_call(name: str) -> None:
    function = pydoc.locate(name)
    assert inspect.signature(function).return_annotation is RESULTS[name]  # type: ignore[arg-type]
    assert typing.get_type_hints(function)["return"] is RESULTS[name]
    assert f"-> {RESULTS[name].__module__}.{RESULTS[name].__name__}\n" in pydoc.plain(pydoc.render_doc(function))


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
