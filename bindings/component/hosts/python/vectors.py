"""Runs the golden vectors against the component: vectors.py COMPONENT FOLDER.

What a file says is turned into values of the WIT, guided by the component's own types, and compared as such.
"""

import json
import sys
import time
from pathlib import Path

from leasehold_component import Machine, Program, Record, Variant
from values import snake
from wasmtime.component import EnumType, ListType, OptionType, RecordType, VariantType

# Of fields that a file leaves out where the WIT has no option.
DEFAULTS = {"owner": "", "lock-delay-ms": 0, "durability": "not-declared", "birth": "no", "retention-ms": 604_800_000}
# Bytes that a file has as text; others are hexadecimal.
TEXTS = {"body", "replies"}
# Cases that are called otherwise.
CASES = {"answered": "outcomes"}


ANSWERS = {"http_response", "redis_replies"}
# Calls that are no method of that name.
METHODS = {"timeout": "handle-timeout", **dict.fromkeys(["response", *ANSWERS], "handle-response")}


def value(ty, said):
    """What a file says, as a value of a type."""
    if isinstance(ty, OptionType):
        if said is None or said == {"foreign": {}}:
            return None
        is_holder = isinstance(said, dict) and list(said) == ["lease"]
        return value(ty.payload, said["lease"] if is_holder else said)
    if isinstance(ty, ListType):
        return bytes.fromhex(said) if isinstance(said, str) else [value(ty.element, item) for item in said]
    if isinstance(ty, EnumType):
        return said.replace("_", "-")
    if isinstance(ty, VariantType):
        ((case, content),) = said.items()
        case = CASES.get(case, case.replace("_", "-"))
        payload = dict(ty.cases)[case]
        return Variant(case, None if payload is None else value(payload, content))
    if isinstance(ty, RecordType):
        return whole(ty, said)
    return said


def whole(ty, said):
    fields = ty.fields
    names = [name for name, _ in fields]
    if names == ["args"]:
        return Record(args=[argument.encode() for argument in said])
    if isinstance(said, list):
        # A header or a sort key.
        return Record(**dict(zip(names, said, strict=True)))
    if names == ["lock", "event"]:
        # A file has the lock within the event.
        ((_, content),) = said.items()
        return Record(lock=content["lock"], event=value(fields[1][1], said))
    if len(fields) == 1 and isinstance(fields[0][1], VariantType) and names[0] not in said:
        # A record around a variant, which a file does without.
        return Record(**{snake(names[0]): value(fields[0][1], said)})
    made = {}
    for name, field in fields:
        key = snake(name)
        in_ns = key[:-3] + "_ns"
        if name in TEXTS and key in said:
            made[key] = said[key].encode()
        elif key in said:
            made[key] = value(field, said[key])
        elif key.endswith("_ms") and in_ns in said:
            # Rounded up, as the component does.
            made[key] = -(-said[in_ns] // 1_000_000)
        else:
            made[key] = None if isinstance(field, OptionType) else DEFAULTS[name]
    return Record(**made)


def shown(what):
    if isinstance(what, Record):
        fields = {name: shown(field) for name, field in vars(what).items()}
        if "headers" in fields:
            fields["headers"].sort(key=lambda header: header["name"])
        return fields
    if isinstance(what, Variant):
        return {what.tag: shown(what.payload)}
    return [shown(item) for item in what] if isinstance(what, list) else what


class Played:
    def __init__(self, program: Program, vector: dict) -> None:
        start = vector["start"]
        self.machine = Machine(program)
        self.now = {"monotonic_ns": start["monotonic_ns"], "unix_ms": start["unix_ms"]}
        create = "[static]client.create-wired" if "stores" in vector else "[static]client.create"
        said = {**vector, "now": self.now}
        made = self.machine.call(
            create, *[value(ty, said[of]) for of, ty in self.machine.function(create)[1].parameters]
        )
        if isinstance(made, Variant):
            raise AssertionError(f"create: {shown(made)}")
        self.machine.client = made
        self.output_type = self.machine.function("[method]client.poll-output")[1].result
        self.calls = 2

    def step(self, step: dict) -> None:
        self.now = {"monotonic_ns": step["at_ns"], "unix_ms": step.get("unix_ms", self.now["unix_ms"])}
        outputs, wake_at = self.make(step)
        expected = [value(self.output_type, output) for output in step["outputs"]]
        if shown(outputs) != shown(expected) or wake_at != step["wake_at_ns"]:
            raise AssertionError(
                f"{step['do']}\nexpected {shown(expected)} and to wake at {step['wake_at_ns']}\n"
                f"found {shown(outputs)} and {wake_at}"
            )

    def make(self, step: dict):
        """One method call, and everything that comes of it."""
        ((name, said),) = step["do"].items()
        response = {name: said} if name in ANSWERS else said.get("result")
        name = METHODS.get(name, name.replace("_", "-"))
        said = {**said, "fresh": step.get("entropy"), "now": self.now, "response": response}
        parameters = self.machine.function(f"[method]client.{name}")[1].parameters[1:]
        answer = self.machine.method(name, *[value(ty, said.get(of)) for of, ty in parameters])
        self.calls += 1
        outputs = []
        if answer is not None:
            # A result without a value is its error, or nothing.
            outputs.append(Variant("rejected", Record(lock=said["lock"], error=answer)))
        while True:
            output = self.machine.method("poll-output", Record(**self.now))
            self.calls += 1
            if output.tag == "wake-at":
                return outputs, output.payload.at_ns
            outputs.append(output)


def main(component: str, folder: str) -> None:
    program = Program(component)
    operations, requests = (sorted(Path(folder).glob(pattern)) for pattern in ("*.json", "wire/*.json"))
    assert len(operations) > 20 and len(requests) > 10, "the vectors are there"
    files = operations + requests
    steps = calls = 0
    began = time.monotonic()
    for file in files:
        vector = json.loads(file.read_text())
        assert vector["format"] == 1, file
        played = Played(program, vector)
        for n, step in enumerate(vector["steps"]):
            try:
                played.step(step)
            except Exception as error:
                raise AssertionError(f"{file.name}, step {n}: {vector['why']}\n{error}") from error
        steps += len(vector["steps"])
        calls += played.calls
    print(f"{len(files)} golden vectors, {steps} steps in {calls} calls ({time.monotonic() - began:.1f} s): "
          "the component does what the core does")


if __name__ == "__main__":
    main(*sys.argv[1:])
