"""All golden vectors of ``core/vectors``, against ``leasehold.protocol``: what a file says becomes dataclasses, guided
by their own annotations, and is compared as such.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import json
import types
import typing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from leasehold import protocol
from leasehold.protocol import Client, CommandRejectedError, Now, Output, Response

VECTORS = Path(__file__).parents[2] / "core" / "vectors"
OPERATIONS, REQUESTS = (sorted(VECTORS.glob(pattern)) for pattern in ("*.json", "wire/*.json"))

TEXTS = {"body", "replies"}
"""Fields whose bytes a file has as text; others are hexadecimal."""
DEFAULTS = {
    "owner": "",
    "durability": "not_declared",
    "birth": "no",
    "retention_ms": 604_800_000,
    "unless_done": False,
    "unsettled": False,
    "result_dropped": False,
}
"""Fields that a file leaves out although they exist."""
ANSWERS = {"http_response", "redis_replies", "rows", "server_error"}
METHODS = {"timeout": "handle_timeout", **dict.fromkeys(["response", *ANSWERS], "handle_response")}


def cases_of(ty: Any) -> dict[str, Any]:
    """The cases of a variant by name; nothing of other types."""
    return {case._of.partition(".")[2]: case for case in typing.get_args(ty) if "." in getattr(case, "_of", "")}


def value(ty: Any, said: Any) -> Any:
    """A JSON value of a file, as a value of a type."""
    of = typing.get_args(ty)
    if isinstance(ty, types.UnionType) or typing.get_origin(ty) is typing.Union:
        if said is None or said == {"foreign": {}}:
            return None
        if timedelta in of:
            return said / 1e9
        of = tuple(case for case in of if case is not types.NoneType)
        if cases := cases_of(ty):
            ((case, content),) = said.items()
            return value(cases[{"answered": "outcomes"}.get(case, case.replace("_", "-"))], content)
        (only,) = of
        if isinstance(said, dict) and list(said) == ["lease"]:
            said = said["lease"]
        return value(only, said)
    origin = typing.get_origin(ty)
    if origin is collections.abc.Sequence:
        return tuple(value(of[0], item) for item in said)
    if origin is tuple:
        return tuple(value(item, part) for item, part in zip(of, said, strict=True))
    if dataclasses.is_dataclass(ty):
        return whole(ty, said)
    if ty is bytes:
        return bytes.fromhex(said) if isinstance(said, str) else said
    if origin is typing.Literal:
        # A file has the names of the WIT.
        return said.replace("-", "_") if isinstance(said, str) else said
    return said


def whole(ty: Any, said: Any) -> Any:
    hints = {name: hint for name, hint in typing.get_type_hints(ty).items() if name != "_of"}
    if isinstance(said, list):
        return ty(*said)
    if list(hints) == ["lock", "event"]:
        # A file has the lock within the event.
        ((_, content),) = said.items()
        return ty(content["lock"], value(hints["event"], said))
    if len(hints) == 1 and (name := next(iter(hints))) not in said and cases_of(hints[name]):
        # A record around a variant, which a file leaves out.
        return ty(value(hints[name], said))
    made = {}
    for name, hint in hints.items():
        stem = name.removesuffix("_ms")
        if name in TEXTS and name in said:
            made[name] = said[name].encode()
        elif name == "commands" and name in said:
            made[name] = tuple(tuple(argument.encode() for argument in command) for command in said[name])
        elif name in said:
            made[name] = value(hint, said[name])
        elif name.endswith("_ms") and f"{stem}_ns" in said:
            # Rounded up, as for any host.
            made[name] = -(-said[f"{stem}_ns"] // 1_000_000)
        elif f"{name}_ns" in said:
            made[name] = value(hint, said[f"{name}_ns"])
        else:
            made[name] = None if types.NoneType in typing.get_args(hint) else DEFAULTS[name]
    return ty(**made)


def comparable(output: Any) -> Any:
    if isinstance(output, Output.HttpRequest):
        return dataclasses.replace(output, headers=tuple(sorted(output.headers)))
    return output


class Played:
    def __init__(self, vector: dict[str, Any]) -> None:
        self.now = Now(**vector["start"])
        create = Client.create_wired if "stores" in vector else Client.create
        self.client = create(**self.arguments(create, vector))

    def arguments(self, method: Any, said: dict[str, Any]) -> dict[str, Any]:
        names = method.__code__.co_varnames[1 : method.__code__.co_argcount]
        hints = typing.get_type_hints(method, vars(protocol) | vars(collections.abc) | {"Self": Client})
        return {name: self.now if name == "now" else value(hints[name], said.get(name)) for name in names}

    def step(self, step: dict[str, Any]) -> None:
        self.now = Now(step["at_ns"], step.get("unix_ms", self.now.unix_ms))
        found, wake_at = self.make(step)
        expected = [value(Output.Case, said) for said in step["outputs"]]
        assert [comparable(output) for output in found] == [comparable(output) for output in expected]
        assert wake_at == step["wake_at_ns"]

    def make(self, step: dict[str, Any]) -> tuple[list[Output.Case], int | None]:
        """One call, and all of its outputs."""
        ((name, said),) = step["do"].items()
        outputs: list[Output.Case] = []
        response = {name: said} if name in ANSWERS else said.get("result")
        said = {**said, "response": response, "fresh": step.get("entropy")}
        method = getattr(self.client, METHODS.get(name, name))
        try:
            method(**self.arguments(method.__func__, said))
        except CommandRejectedError as rejected:
            outputs.append(Output.Rejected(said["lock"], rejected.reason))
        while True:
            match self.client.poll_output(self.now):
                case Output.WakeAt(at):
                    return outputs, at
                case output:
                    outputs.append(output)


def test_all_vectors_are_there() -> None:
    assert len(OPERATIONS) >= 36 and len(REQUESTS) >= 14


@pytest.mark.parametrize("file", OPERATIONS + REQUESTS, ids=lambda file: file.stem)
def test_vector(file: Path) -> None:
    vector = json.loads(file.read_text())
    assert vector["format"] == 1
    played = Played(vector)
    for n, step in enumerate(vector["steps"]):
        try:
            played.step(step)
        except AssertionError as error:
            raise AssertionError(f"step {n}: {vector['why']}\n{step['do']}\n{error}") from None


def test_responses_are_of_the_protocol() -> None:
    # `value` relies on this: every case of a variant names its variant.
    assert {case._of for case in typing.get_args(Response.Case)} >= {"response.outcomes", "response.http-response"}
