"""Makes Markdown of the docstrings of the Python package, and shows the parameters that ``help`` shows.

The docstrings are written for ``help``: with roles, literal blocks, tables, examples and lists of parameters in plain text.
Those of native classes stand in their source in Rust, since stubs have none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe

ROLE = re.compile(r":(?:attr|class|func|meth|mod):`([^`]+)`")
RULE = re.compile(r"=+(?: +=+)+")
PARAMETER = re.compile(r"([a-z_]+(?:, [a-z_]+)*): ")
SHOWN_AS = "shown_as"

NATIVE = Path(__file__).resolve().parents[1] / "python" / "src"
ITEM = re.compile(r"(?:pub(?:\(\w+\))? )?(struct|enum|impl|fn) (\w+)")
RENAMED = re.compile(r"#\[pyo3\(.*\bname = \"(\w+)\"")


class Docstrings(griffe.Extension):
    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **kwargs: Any) -> None:
        native = dict(native_docs())
        for found in objects(pkg["_native"]):
            text = native.get(found.path.removeprefix("leasehold._native."))
            if text and found.docstring is None:
                found.docstring = griffe.Docstring(text, parent=found)
        for found in objects(pkg):
            if isinstance(found, griffe.Class) and found.name.endswith("Error") and found.name != "LeaseholdError":
                describe_error(found)
            if found.docstring is not None:
                found.docstring.value = "\n\n".join(markdown(found.docstring.value, found))
            if isinstance(found, griffe.Function):
                show_parameters(found, pkg)


def objects(parent: griffe.Object) -> Iterator[griffe.Object]:
    yield parent
    for member in parent.members.values():
        if isinstance(member, griffe.Object):
            yield from objects(member)


def native_docs() -> Iterator[tuple[str, str]]:
    """The comments before classes and their methods, by the names in Python."""
    for path in sorted(NATIVE.rglob("*.rs")):
        scope, name, comment = "", None, []
        for line in map(str.strip, path.read_text().splitlines()):
            if line.startswith("///"):
                comment.append(line[3:].removeprefix(" "))
            elif line.startswith("#["):
                name = found[1] if (found := RENAMED.match(line)) else name
            else:
                if item := ITEM.match(line):
                    kind, item_name = item.groups()
                    if kind == "impl":
                        scope = item_name
                    elif comment:
                        yield f"{scope}.{name or item_name}" if kind == "fn" else item_name, "\n".join(comment)
                name, comment = None, []


def describe_error(error: griffe.Class) -> None:
    """Shows its code, and not again what all errors have."""
    error.bases = []
    if error.docstring is not None and "code" in error.members:
        error.docstring.value += f"\n\nIts ``code`` is ``{str(error['code'].value)[1:-1]}``."


def show_parameters(function: griffe.Function, package: griffe.Module) -> None:
    for decorator in function.decorators:
        name = str(decorator.value).removeprefix(f"{SHOWN_AS}(").removesuffix(")")
        if str(decorator.value) != name:
            shown = package[f"_options.{name}"]
            function.parameters = griffe.Parameters(*(parameter for parameter in shown.parameters if parameter.name != "self"))


def markdown(text: str, place: griffe.Object) -> Iterator[str]:
    """The blocks that empty lines divide; a block in spaces belongs to the ``::`` before it."""
    literal: list[str] = []
    ends_in_colons = False
    for block in re.split(r"\n\n+", text.strip("\n")):
        if ends_in_colons and block.startswith("    "):
            literal.append(block)
            continue
        if literal:
            yield code("\n\n".join(literal))
            literal = []
        ends_in_colons = block.endswith("::")
        yield from prose(block.removesuffix(":") if ends_in_colons else block, place)
    if literal:
        yield code("\n\n".join(literal))


def code(text: str, language: str = "python") -> str:
    lines = text.splitlines()
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join([f"```{language}", *(line[indent:] for line in lines), "```"])


def prose(block: str, place: griffe.Object) -> Iterator[str]:
    lines = block.splitlines()
    if lines and lines[0].startswith(">>>"):
        yield code(re.sub(r" +# doctest: .*", "", block), "pycon")
    elif lines and RULE.fullmatch(lines[0]):
        yield linked(table(lines), place)
    elif sum(PARAMETER.match(line) is not None for line in lines) > 1 and PARAMETER.match(lines[0]):
        yield linked("\n".join(PARAMETER.sub(r"- **\1**: ", line, count=1) if PARAMETER.match(line) else line for line in lines), place)
    else:
        yield linked(block, place)


def table(lines: list[str]) -> str:
    spans = [found.span() for found in re.finditer("=+", lines[0])]
    rows = [[line[start : None if end == spans[-1][1] else end].strip() for start, end in spans] for line in lines if not RULE.fullmatch(line)]
    # A table with a head has a third rule.
    head = rows.pop(0) if RULE.fullmatch(lines[2]) else [""] * len(spans)
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(spans), *rows])


def linked(text: str, place: griffe.Object) -> str:
    def link(found: re.Match[str]) -> str:
        name = found[1]
        target = resolved(name, place)
        shown = f"`{name.removeprefix('leasehold.')}`"
        return shown if target is None else f'<autoref optional identifier="{target}">{shown}</autoref>'

    return ROLE.sub(link, text).replace("``", "`")


def resolved(name: str, place: griffe.Object) -> str | None:
    """The path of what a docstring names: in the class, in the module, or from the package on."""
    if name.startswith("leasehold"):
        return name
    scope: griffe.Object | None = place
    while scope is not None:
        if name.partition(".")[0] in scope.members:
            return f"{scope.path}.{name}"
        scope = scope.parent
    return None
