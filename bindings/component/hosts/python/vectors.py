"""Runs the golden vectors against the component: vectors.py COMPONENT FOLDER.

What a file says is turned into values of the WIT, guided by the component's own types, and compared as such.
"""

import json
import sys
import time
from pathlib import Path

from lock import Machine, loaded, record
from wasmtime.component import EnumType, ListType, OptionType, Record, RecordType, Variant, VariantType

# Of fields that a file leaves out where the WIT has no option.
DEFAULTS = {
    "owner": "",
    "lock-delay-ms": 0,
    "durability": "not-declared",
    "birth": "no",
    "retention-ms": 604_800_000,
    "unless-done": False,
    "trust-quorum": False,
    "even-if-done": False,
    "unsettled": False,
    "result-dropped": False,
}
# Bytes that a file has as text; others are hexadecimal.
TEXTS = {"body", "replies"}
# Cases that are called otherwise.
CASES = {"answered": "outcomes"}
POLL = "[method]client.poll-output"
ANSWERS = {"http_response", "redis_replies", "rows", "server_error"}
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
        return Variant(case, payload and value(payload, content))
    if isinstance(ty, RecordType):
        return whole(ty, said)
    return said


def whole(ty, said):
    names = [name for name, _ in ty.fields]
    types = dict(ty.fields)
    if names == ["args"]:
        return record(args=[argument.encode() for argument in said])
    if isinstance(said, list):
        # A header or a sort key.
        return record(**dict(zip(names, said, strict=True)))
    if names == ["lock", "event"]:
        # A file has the lock within the event.
        ((_, content),) = said.items()
        return record(lock=content["lock"], event=value(types["event"], said))
    if len(names) == 1 and isinstance(types[names[0]], VariantType) and names[0] not in said:
        # A record around a variant, which a file does without.
        return record(**{names[0]: value(types[names[0]], said)})
    return record(**{name: field(name, ty, said) for name, ty in types.items()})


def field(name, ty, said):
    key = name.replace("-", "_")
    in_ns = f"{key[:-3]}_ns"
    if name in TEXTS and key in said:
        return said[key].encode()
    if key in said:
        return value(ty, said[key])
    if key.endswith("_ms") and in_ns in said:
        # Rounded up, as the component does.
        return -(-said[in_ns] // 1_000_000)
    return None if isinstance(ty, OptionType) else DEFAULTS[name]


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
    def __init__(self, engine, component, vector: dict) -> None:
        start = vector["start"]
        self.machine = Machine(engine, component)
        self.types = {}
        self.now = {"monotonic_ns": start["monotonic_ns"], "unix_ms": start["unix_ms"]}
        create = "create-wired" if "stores" in vector else "create"
        made = self.call(f"[static]client.{create}", {**vector, "now": self.now})
        if isinstance(made, Variant):
            raise AssertionError(f"create: {shown(made)}")
        self.machine.client = made
        self.output_type = self.machine.function(POLL).type(self.machine.store).result
        self.calls = 2

    def call(self, name: str, said: dict, *first):
        """With what is said of its other parameters, by their names."""
        function = self.machine.function(name)
        if name not in self.types:
            self.types[name] = function.type(self.machine.store).params
        arguments = [value(ty, said.get(of.replace("-", "_"))) for of, ty in self.types[name][len(first) :]]
        return function(self.machine.store, *first, *arguments)

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
        answer = self.call(f"[method]client.{name}", said, self.machine.client)
        self.calls += 1
        outputs = []
        if answer is not None:
            # A result without a value is its error, or nothing.
            outputs.append(Variant("rejected", record(lock=said["lock"], error=answer)))
        while True:
            output = self.machine.call("poll-output", record(**self.now))
            self.calls += 1
            if output.tag == "wake-at":
                return outputs, vars(output.payload)["at-ns"]
            outputs.append(output)


def main(component: str, folder: str) -> None:
    engine, program = loaded(component)
    operations, requests = (sorted(Path(folder).glob(pattern)) for pattern in ("*.json", "wire/*.json"))
    assert len(operations) > 20 and len(requests) > 10, "the vectors are there"
    files = operations + requests
    steps = calls = 0
    began = time.monotonic()
    for file in files:
        vector = json.loads(file.read_text())
        assert vector["format"] == 1, file
        played = Played(engine, program, vector)
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
