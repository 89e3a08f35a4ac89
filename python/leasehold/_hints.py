"""The annotations of public functions and classes, for those who look at them while a program runs: ``help()``, notebooks,
``typing.get_type_hints`` and what builds on it.

They are texts, and some of their names are imported below ``if TYPE_CHECKING:`` only, because importing them takes long. Here
that happens when somebody looks.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_namespaces: dict[str, dict[str, object]] = {}
_Function = type(lambda: None)


class Hints(dict):  # type: ignore[type-arg]
    """Annotations by the names of parameters: each a module and a text, which is evaluated when it is read."""

    def __getitem__(self, key: str) -> Any:
        return _evaluated(*super().__getitem__(key))

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default

    def __iter__(self) -> Iterator[str]:
        # `dict(hints)` would copy the texts of a mapping that iterates as a dict does.
        return super().__iter__()

    def items(self) -> Any:
        return [(key, self[key]) for key in self]

    def values(self) -> Any:
        return [self[key] for key in self]

    def returning(self, other: Hints) -> Hints:
        """The same parameters, but for ``self``, and the result of another function."""
        texts = Hints(dict.items(self))
        texts.pop("self", None)
        texts["return"] = super(Hints, other).__getitem__("return")
        return texts


def of_function(function: Any, module: str | None = None) -> Hints:
    """The annotations of a function, to take their place."""
    function = _innermost(function)
    texts = function.__annotations__
    # Its `__module__` may name the one that users import it from.
    of: str = module or function.__globals__["__name__"]
    return texts if isinstance(texts, Hints) else Hints({name: (of, text) for name, text in texts.items()})


def _innermost(function: Any) -> Any:
    """The one that shows the signature of a decorated function."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def _annotate(function: Any, module: str | None = None) -> None:
    function.__annotations__ = _innermost(function).__annotations__ = of_function(function, module)


def resolve(public: dict[str, Any]) -> None:
    """Makes the annotations of a module's public functions and classes known to those who look."""
    for name in public["__all__"]:
        value = public.get(name)
        if isinstance(value, _Function):
            _annotate(value)
        elif isinstance(value, type):
            for each in value.__mro__:
                resolve_class(each)


def resolve_class(of: type, module: str | None = None) -> None:
    """As :func:`resolve`, for one class; the module is the one that defines it, if none of its functions tells."""
    for member in vars(of).values():
        function = getattr(member, "fget", None) or getattr(member, "__func__", member)
        if isinstance(function, _Function) and function.__globals__["__name__"].partition(".")[0] == "leasehold":
            _annotate(function, module)
            module = module or function.__globals__["__name__"]
    if module is None and of.__module__.startswith("leasehold."):
        module = of.__module__
    texts = vars(of).get("__annotations__")
    if module is not None and texts and not isinstance(texts, Hints):
        of.__annotations__ = Hints({name: (module, text) for name, text in texts.items()})


def _evaluated(module: str, text: object) -> object:
    # Those of a NamedTuple.
    text = getattr(text, "__forward_arg__", text)
    if not isinstance(text, str):
        return text
    if module not in _namespaces:
        _namespaces[module] = _namespace(module)
    try:
        return eval(text, _namespaces[module])
    except NameError:
        # Of a library that is not installed, or of a module without its source.
        return text


def _namespace(name: str) -> dict[str, object]:
    """The names of a module, with those that it imports for type checkers only."""
    import ast
    import importlib.util
    import typing

    module = sys.modules[name]
    # Python 3.10 has neither.
    names = {each: getattr(typing, each, typing.Any) for each in ("Self", "Unpack")}
    names.update(vars(module))
    loader = getattr(importlib.util.find_spec(name), "loader", None)
    source = loader.get_source(name) if loader is not None and hasattr(loader, "get_source") else None
    for block in ast.parse(source or "").body:
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING":
            for statement in block.body:
                try:
                    exec(compile(ast.Module([statement], []), name, "exec"), names)
                except ImportError:
                    # Of a library that is not installed, or a name that the other module has for type checkers only.
                    if isinstance(statement, ast.ImportFrom) and f"{statement.module}" in sys.modules:
                        others = _namespace(f"{statement.module}")
                        names.update({each.name: others[each.name] for each in statement.names if each.name in others})
    return names
