"""The least that a Python program needs to run the component, with the PyPI package `wasmtime` (48).

`Machine` calls methods of the WIT's `client` by name. Values are those of `wasmtime.component`: a record is any object
with the fields of the WIT as attributes, a variant is a `Variant`, bytes are `bytes`, an option is the value or `None`.
"""

from wasmtime import Config, Engine, Store, WasmtimeError
from wasmtime.component import Component, Linker

CLIENT = "leasehold:protocol/client@0.1.0"
MEMORY_BYTES = 256 << 20
FUEL = 2_000_000_000


class Program:
    """The compiled component. Compiling takes about a second: make one, and of it as many machines as needed."""

    def __init__(self, wasm: bytes) -> None:
        config = Config()
        config.consume_fuel = True
        self.engine = Engine(config)
        self.component = Component(self.engine, wasm)
        imports = self.component.type.imports(self.engine)
        if imports:
            raise ValueError(f"the component must import nothing, and imports {', '.join(imports)}")


class Machine:
    """One instance with one client. An exception of wasmtime means that the instance is lost."""

    def __init__(self, program: Program) -> None:
        self.store = Store(program.engine)
        self.store.set_limits(memory_size=MEMORY_BYTES)
        # Instantiating runs instructions too.
        self.store.set_fuel(FUEL)
        self.component = program.component
        self.instance = Linker(program.engine).instantiate(self.store, program.component)
        self.interface = self.component.get_export_index(CLIENT)
        self.functions = {}
        self.client = None

    def function(self, name: str):
        """The function and the types of its parameters, by name."""
        if name not in self.functions:
            index = self.component.get_export_index(name, self.interface)
            function = self.instance.get_func(self.store, index)
            if function is None:
                raise KeyError(name)
            self.functions[name] = function, function.type(self.store)
        return self.functions[name]

    def call(self, name: str, *arguments):
        function, _ = self.function(name)
        self.store.set_fuel(FUEL)
        result = function(self.store, *arguments)
        # Frees what the call has handed out.
        function.post_return(self.store)
        return result

    def method(self, name: str, *arguments):
        return self.call(f"[method]client.{name}", self.client, *arguments)


__all__ = ["Machine", "Program", "WasmtimeError"]
