"""Lock names with fields that are filled from the arguments of a decorated function."""

from __future__ import annotations

from leasehold._errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def namer(function: Callable[..., object], template: str, what: str = "lock name") -> Callable[[tuple[object, ...], Mapping[str, object]], str]:
    """Returns a function that fills the template in for each call. Checks now that every field is a parameter of the function.

    A literal brace is doubled, as in any format string.
    """
    # Slow to import, and only needed for decorators.
    import inspect

    signature = inspect.signature(function)
    try:
        fields = _fields(template)
    except ValueError as error:
        raise ConfigError(f"the {what} {template!r} is not a valid format string: {error}") from None
    for field in fields:
        name = field.partition(".")[0].partition("[")[0]
        if name not in signature.parameters:
            known = ", ".join(signature.parameters) or "none"
            message = f"the {what} {template!r} has the field {field!r}, which is not a parameter of the function"
            raise ConfigError(f"{message} (it has {known})")
    if not fields:
        constant = template.format()
        return lambda args, kwargs: constant

    def name_of(args: tuple[object, ...], kwargs: Mapping[str, object]) -> str:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return template.format(**bound.arguments)

    return name_of


def _fields(template: str) -> list[str]:
    import string

    fields = []
    for _, field, spec, _ in string.Formatter().parse(template):
        if field is not None:
            # The width of a field can be a field as well.
            fields += [field, *_fields(spec or "")]
    return fields
