"""The least that a Python program needs to run the component, with the PyPI package `wasmtime` (48).

`Machine` calls methods of the WIT's `client` by name, and functions of any other interface. How values look is said in
`values.py`.
"""

import ctypes
from pathlib import Path

from values import VAL, Record, reader, writer
from wasmtime import Config, Engine, Store, WasmtimeError
from wasmtime import _ffi as ffi
from wasmtime.component import Component, Linker, Variant

CLIENT = "leasehold:protocol/client@0.1.0"
FENCE = "leasehold:protocol/fence@0.1.0"
# What a guest cannot answer for: the memory it may have, and instructions for one call, about a second of them.
MEMORY_BYTES = 256 << 20
FUEL = 4_000_000_000
# Proposals of WebAssembly that the component has no use for. A host that is built without them, as the one in Rust is,
# would refuse to load what was compiled with them.
ABSENT = [
    "wasm_threads",
    "shared_memory",
    "wasm_gc",
    "gc_support",
    "wasm_function_references",
    "wasm_exceptions",
    "wasm_stack_switching",
]


def engine() -> Engine:
    """With the settings of `bindings/wasmtime/precompile.py`, so that all hosts can load the same `.cwasm`."""
    config = Config()
    config.consume_fuel = True
    for name in ABSENT:
        setattr(config, name, False)
    # The package has no property for this one.
    ffi.wasmtime_config_concurrency_support_set(config.ptr(), False)
    return Engine(config)


class Program:
    """The compiled component. Compiling takes about a second: make one, and of it as many machines as needed.

    A file that was compiled before, `.cwasm`, is loaded instead. It is machine code: keep it where only those can write
    who may change the program itself.
    """

    def __init__(self, file: str) -> None:
        self.engine = engine()
        load = Component.deserialize if Path(file).suffix == ".cwasm" else Component
        self.component = load(self.engine, Path(file).read_bytes())
        imports = self.component.type.imports(self.engine)
        if imports:
            raise ValueError(f"the component must import nothing, and imports {', '.join(imports)}")
        self.plans: dict[tuple[str, str], Plan] = {}


class Plan:
    """How to call a function: the types of what goes in, what comes out, and functions that convert both."""

    def __init__(self, function, store: Store) -> None:
        ty = function.type(store)
        self.parameters = ty.params
        self.result = ty.result
        self.writers = [writer(ty) for _, ty in self.parameters]
        self.arguments = ffi.wasmtime_component_val_t * len(self.writers)
        self.read = self.result and reader(self.result)
        self.results = 1 if self.read else 0


class Machine:
    """One instance with one client. An exception of wasmtime means that the instance is lost."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.store = Store(program.engine)
        self.store.set_limits(memory_size=MEMORY_BYTES)
        # Instantiating runs instructions too.
        self.store.set_fuel(FUEL)
        self.instance = Linker(program.engine).instantiate(self.store, program.component)
        self.functions: dict[tuple[str, str], tuple] = {}
        self.client = None

    def function(self, name: str, interface: str = CLIENT):
        """The function with its plan."""
        if (name, interface) not in self.functions:
            component = self.program.component
            index = component.get_export_index(name, component.get_export_index(interface))
            function = index and self.instance.get_func(self.store, index)
            if function is None:
                raise KeyError(name)
            plan = self.program.plans.get((name, interface))
            if plan is None:
                plan = self.program.plans[name, interface] = Plan(function, self.store)
            self.functions[name, interface] = function, plan
        return self.functions[name, interface]

    def call(self, name: str, *arguments, interface: str = CLIENT):
        function, plan = self.function(name, interface)
        # What the arguments point to.
        keep: list = []
        pairs = zip(plan.writers, arguments, strict=True)
        given = plan.arguments.from_buffer_copy(b"".join([write(argument, keep) for write, argument in pairs]))
        # Zeros are a value that needs no freeing.
        result = ffi.wasmtime_component_val_t()
        at = ctypes.byref(result)
        # Every call has the whole of it, whatever the last one left.
        self.store.set_fuel(FUEL)
        context = self.store._context()
        error = ffi.wasmtime_component_func_call(
            ctypes.byref(function._func), context, given, len(given), at, plan.results
        )
        if error:
            raise WasmtimeError._from_ptr(error)
        try:
            return plan.read and plan.read(ctypes.string_at(at, VAL.size), 0)
        finally:
            ffi.wasmtime_component_val_delete(at)

    def method(self, name: str, *arguments):
        return self.call(f"[method]client.{name}", self.client, *arguments)


__all__ = ["CLIENT", "FENCE", "Machine", "Program", "Record", "Variant", "WasmtimeError", "engine"]
