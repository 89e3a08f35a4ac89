"""The options of requests, wherever Python declares them, are those of ``bindings/options.txt``, which all languages share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from leasehold import _native, _options, _types
from leasehold._client import Client
from leasehold.aio import Client as AsyncClient

LIST = Path(__file__).parents[2] / "bindings/options.txt"
KINDS = {"length": "Seconds", "number": "int", "text": "str", "flag": "bool", "bytes": "bytes", "function": "Callable["}


def listed() -> dict[str, dict[str, str]]:
    requests: dict[str, dict[str, str]] = {}
    lines = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    for line in lines:
        words = line.partition(" = ")[0].split()
        if not line.startswith(" "):
            requests[words[0]] = {}
        elif not words[2:] or "python" in words[2:]:
            requests[next(reversed(requests))][words[0]] = KINDS[words[1]]
    return requests


def without(request: str, *names: str) -> dict[str, str]:
    return {name: kind for name, kind in listed()[request].items() if name not in names}


def kinds(annotations: Mapping[str, object]) -> dict[str, str]:
    """The kind of each annotation: a text, or what the text has become where somebody has asked for it."""
    return {name: kind_of(told) for name, told in annotations.items()}


def kind_of(told: object) -> str:
    text = getattr(told, "__forward_arg__", None) or inspect.formatannotation(told)
    first: str = text.strip("'").split(" | ")[0]
    return "Callable[" if "Callable[" in first else "Seconds" if first == "float" else first


def keywords(function: Callable[..., object]) -> dict[str, str]:
    parameters = inspect.signature(function).parameters.values()
    return kinds({each.name: each.annotation for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY})


# `readers` and `permits` say what is locked, and watching over it has one setting more.
MORE = {"readers", "on_lost", "save_result"}


@pytest.mark.parametrize(
    ("signature", "expected"),
    [
        (_options.connecting, without("connect")),
        (_options.trying, without("lock", "wait")),
        (_options.acquiring, without("lock")),
        (_options.acquiring_all, without("all")),
        (_options.any_of, without("any")),
        (_options.permitting, without("any")),
        (_options.sharing, without("all")),
        (_options.watching, without("lock")),
        (_options.watching_any, without("any")),
        (_options.watching_permits, without("any")),
        (_options.watching_shared, without("all")),
        (_options.running, without("run")),
    ],
)
def test_signatures_are_as_listed(signature: Callable[..., object], expected: dict[str, str]) -> None:
    assert {name: kind for name, kind in keywords(signature).items() if name not in MORE} == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (_types.ConnectOptions, without("connect")),
        (_types.TryOptions, without("lock", "wait")),
        (_types.LockOptions, without("lock")),
        (_types.AllOptions, without("all")),
        (_types.AnyOptions, without("any")),
        (_types.OnceOptions, without("run")),
    ],
)
def test_types_are_as_listed(options: Any, expected: dict[str, str]) -> None:
    assert kinds(options.__annotations__) == expected


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_methods_are_as_listed(client: Any) -> None:
    assert keywords(client.elect) == without("elect")
    assert keywords(client.release_if) == without("holder")
    if client is Client:
        assert keywords(client.shards) == without("shards", "count")
        count = inspect.signature(client.shards).parameters["count"].annotation
        assert kinds({"count": count}) == {"count": listed()["shards"]["count"]}


def test_native_code_takes_what_is_listed() -> None:
    """What native code has no parameter for would be a TypeError of a call only."""
    taken = set(inspect.signature(_native.Client.run_request).parameters)
    assert set(without("run")) <= taken
    assert set(without("lock")) <= set(inspect.signature(_native.Client.request).parameters)
