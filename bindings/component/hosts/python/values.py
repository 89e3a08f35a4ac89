"""Values of the WIT on their way to the component and back.

The package `wasmtime` asks its library for the shape of every type at every call, and converts field by field. Here a
type is turned into a function once, by `writer` and `reader`, and memory is written and read in whole records; that
takes microseconds where it took milliseconds.

A record is a `Record`, whose attributes have `_` where the WIT has `-`; a variant is a `Variant`; an enum is its name;
an option is the value or `None`; `list<u8>` is `bytes`. A result is its value or its error: in this WIT the two are
never of the same kind.
"""

import ctypes
import sys
from struct import Struct
from types import SimpleNamespace as Record

from wasmtime import _ffi as ffi
from wasmtime.component import (
    Bool,
    BorrowType,
    EnumType,
    ListType,
    OptionType,
    OwnType,
    RecordType,
    ResourceAny,
    ResultType,
    String,
    U8,
    U16,
    U32,
    U64,
    Variant,
    VariantType,
)

# `wasmtime_component_val_t`: its kind, and up to three words, such as a size and an address.
VAL = Struct("=B7xQQQ")
# A text, and what stands before the value of a field.
NAME = Struct("=QQ")
WORD = Struct("=Q")
FIELD = NAME.size + VAL.size
FIRST, SECOND = 8, 16
assert sys.byteorder == "little" and VAL.size == ctypes.sizeof(ffi.wasmtime_component_val_t)
assert FIELD == ctypes.sizeof(ffi.wasmtime_component_valrecord_entry_t)

STRING = ffi.WASMTIME_COMPONENT_STRING.value
LIST = ffi.WASMTIME_COMPONENT_LIST.value
RECORD = ffi.WASMTIME_COMPONENT_RECORD.value
VARIANT = ffi.WASMTIME_COMPONENT_VARIANT.value
ENUM = ffi.WASMTIME_COMPONENT_ENUM.value
OPTION = ffi.WASMTIME_COMPONENT_OPTION.value
RESOURCE = ffi.WASMTIME_COMPONENT_RESOURCE.value
# Kinds of numbers, and the bits that each has.
NUMBERS = {
    Bool: (ffi.WASMTIME_COMPONENT_BOOL.value, 1),
    U8: (ffi.WASMTIME_COMPONENT_U8.value, 8),
    U16: (ffi.WASMTIME_COMPONENT_U16.value, 16),
    U32: (ffi.WASMTIME_COMPONENT_U32.value, 32),
    U64: (ffi.WASMTIME_COMPONENT_U64.value, 64),
}
BYTE_KIND = bytes([NUMBERS[U8][0]])
NONE = VAL.pack(OPTION, 0, 0, 0)


class Resource:
    """A resource that the component has handed out."""

    def __init__(self, address: int) -> None:
        pointer = ctypes.cast(address, ctypes.POINTER(ffi.wasmtime_component_resource_any_t))
        # The one at the address goes with the result that it stands in.
        self.any = ResourceAny._from_ptr(ffi.wasmtime_component_resource_any_clone(pointer))
        self.value = VAL.pack(RESOURCE, ctypes.addressof(self.any.ptr().contents), 0, 0)


def snake(name: str) -> str:
    return name.replace("-", "_")


def address_of(raw: bytes, keep: list) -> int:
    """Where the bytes are, for as long as `keep` is."""
    keep.append(raw)
    return ctypes.c_void_p.from_buffer(ctypes.c_char_p(raw)).value


# Names of fields and cases: as many as the WIT has.
NAMES: list[bytes] = []


def name_of(text: str) -> bytes:
    raw = text.encode()
    return NAME.pack(len(raw), address_of(raw, NAMES))


def writer(ty):
    """A function of a value of this type and a list. It answers the bytes of a value, and puts into the list what they
    point to."""
    if type(ty) in NUMBERS:
        return number_writer(*NUMBERS[type(ty)])
    if isinstance(ty, ListType):
        return write_bytes if isinstance(ty.element, U8) else list_writer(writer(ty.element))
    if isinstance(ty, RecordType):
        return record_writer([(name_of(name), snake(name), writer(field)) for name, field in ty.fields])
    if isinstance(ty, VariantType):
        return variant_writer({tag: (NAME.unpack(name_of(tag)), case and writer(case)) for tag, case in ty.cases})
    if isinstance(ty, EnumType):
        names = {name: VAL.pack(ENUM, *NAME.unpack(name_of(name)), 0) for name in ty.names}
        return lambda name, keep: names[name]
    if isinstance(ty, OptionType):
        return option_writer(writer(ty.payload))
    return {String: write_text, OwnType: write_resource, BorrowType: write_resource}[type(ty)]


def number_writer(kind: int, bits: int):
    def write(number, keep):
        if number >> bits:
            raise OverflowError(f"{number} does not fit {bits} bits without a sign")
        return VAL.pack(kind, number, 0, 0)

    return write


def write_text(text, keep):
    raw = text.encode()
    return VAL.pack(STRING, len(raw), address_of(raw, keep), 0)


def write_resource(resource, keep):
    keep.append(resource)
    return resource.value


def write_bytes(raw, keep):
    """Every byte is a whole value."""
    values = bytearray(len(raw) * VAL.size)
    values[:: VAL.size] = BYTE_KIND * len(raw)
    values[FIRST :: VAL.size] = raw
    return VAL.pack(LIST, len(raw), address_of(bytes(values), keep), 0)


def list_writer(write_element):
    def write(elements, keep):
        values = b"".join([write_element(element, keep) for element in elements])
        return VAL.pack(LIST, len(elements), address_of(values, keep), 0)

    return write


def record_writer(fields):
    def write(record, keep):
        parts = []
        for name, attribute, write_field in fields:
            parts.append(name)
            parts.append(write_field(getattr(record, attribute), keep))
        return VAL.pack(RECORD, len(fields), address_of(b"".join(parts), keep), 0)

    return write


def variant_writer(cases):
    def write(variant, keep):
        tag, write_payload = cases[variant.tag]
        payload = address_of(write_payload(variant.payload, keep), keep) if write_payload else 0
        return VAL.pack(VARIANT, *tag, payload)

    return write


def option_writer(write_payload):
    def write(option, keep):
        return NONE if option is None else VAL.pack(OPTION, address_of(write_payload(option, keep), keep), 0, 0)

    return write


def reader(ty):
    """A function of bytes and an offset in them, at which a value of this type stands. It frees nothing."""
    if type(ty) in NUMBERS:
        return number_reader(NUMBERS[type(ty)][1])
    if isinstance(ty, ListType):
        return read_bytes if isinstance(ty.element, U8) else list_reader(reader(ty.element))
    if isinstance(ty, RecordType):
        return record_reader([(snake(name), reader(field)) for name, field in ty.fields])
    if isinstance(ty, VariantType):
        return variant_reader({tag.encode(): (tag, case and reader(case)) for tag, case in ty.cases})
    if isinstance(ty, OptionType):
        return option_reader(reader(ty.payload))
    if isinstance(ty, ResultType):
        return result_reader(ty.ok and reader(ty.ok), ty.err and reader(ty.err))
    return {String: read_text, EnumType: read_text, OwnType: read_resource}[type(ty)]


def word(raw: bytes, at: int) -> int:
    return WORD.unpack_from(raw, at)[0]


def number_reader(bits: int):
    # What stands beside a number of less than a word is anything.
    mask = (1 << bits) - 1
    return lambda raw, at: word(raw, at + FIRST) & mask


def read_text(raw, at):
    size, address = NAME.unpack_from(raw, at + FIRST)
    return ctypes.string_at(address, size).decode()


def read_bytes(raw, at):
    size, address = NAME.unpack_from(raw, at + FIRST)
    return ctypes.string_at(address, size * VAL.size)[FIRST :: VAL.size]


def read_resource(raw, at):
    return Resource(word(raw, at + FIRST))


def list_reader(read_element):
    def read(raw, at):
        size, address = NAME.unpack_from(raw, at + FIRST)
        values = ctypes.string_at(address, size * VAL.size)
        return [read_element(values, at) for at in range(0, len(values), VAL.size)]

    return read


def record_reader(fields):
    # Where the value of each stands, behind its name.
    fields = [(attribute, n * FIELD + NAME.size, read_field) for n, (attribute, read_field) in enumerate(fields)]
    size = len(fields) * FIELD

    def read(raw, at):
        values = ctypes.string_at(word(raw, at + SECOND), size)
        return Record(**{attribute: read_field(values, at) for attribute, at, read_field in fields})

    return read


def variant_reader(cases):
    def read(raw, at):
        _, size, address, payload = VAL.unpack_from(raw, at)
        tag, read_payload = cases[ctypes.string_at(address, size)]
        return Variant(tag, read_payload and read_payload(ctypes.string_at(payload, VAL.size), 0))

    return read


def option_reader(read_payload):
    def read(raw, at):
        payload = word(raw, at + FIRST)
        return read_payload(ctypes.string_at(payload, VAL.size), 0) if payload else None

    return read


def result_reader(read_ok, read_error):
    def read(raw, at):
        read_payload = read_ok if raw[at + FIRST] else read_error
        return read_payload and read_payload(ctypes.string_at(word(raw, at + SECOND), VAL.size), 0)

    return read
