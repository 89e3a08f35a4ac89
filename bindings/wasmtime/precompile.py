"""Compiles the component for `Component::deserialize`, with the settings of `src/component.rs`.

Usage: precompile.py COMPONENT OUTPUT, with the PyPI package `wasmtime` of the same major version as the crate. It brings
the compiler as a binary, which saves compiling the compiler.
"""

import sys
from pathlib import Path

from wasmtime import Config, Engine, _ffi
from wasmtime.component import Component

# Proposals that the crate, built without them, would refuse to load.
ABSENT = [
    "wasm_threads",
    "shared_memory",
    "wasm_gc",
    "gc_support",
    "wasm_function_references",
    "wasm_exceptions",
    "wasm_stack_switching",
]


def main(component: str, output: str) -> None:
    config = Config()
    config.consume_fuel = True
    for name in ABSENT:
        setattr(config, name, False)
    # The package has no property for this one.
    _ffi.wasmtime_config_concurrency_support_set(config.ptr(), False)
    compiled = Component(Engine(config), Path(component).read_bytes()).serialize()
    Path(output).write_bytes(compiled)
    print(f"{output}: {len(compiled)} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
