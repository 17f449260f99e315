"""Parquet files made to lie: the records that describe one are taken apart, changed, and put together again."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_TRUE, _FALSE, _DOUBLE, _BINARY, _LIST, _STRUCT = 1, 2, 7, 8, 9, 12


class Part(NamedTuple):
    """A part of a record: its kind, and its value; parts of lists and records are parts."""

    kind: int
    value: Any


def parsed(content: bytes, at: int = 0) -> tuple[Part, int]:
    """Return the record at a place, and where it ends."""
    fields: dict[int, Part] = {}
    field = 0
    while content[at]:
        head, at = content[at], at + 1
        if head >> 4:
            field += head >> 4
        else:
            field, at = _integer(content, at)
        fields[field], at = _value(content, at, head & 15)
    return Part(_STRUCT, fields), at + 1


def _value(content: bytes, at: int, kind: int) -> tuple[Part, int]:
    if kind in (_TRUE, _FALSE):
        return Part(kind, kind == _TRUE), at
    if kind == _STRUCT:
        return parsed(content, at)
    if kind == _LIST:
        head, at = content[at], at + 1
        length = head >> 4
        if length == 15:
            length, at = _varint(content, at)
        parts = []
        for _ in range(length):
            part, at = _value(content, at, head & 15)
            parts.append(part)
        return Part(_LIST, (head & 15, parts)), at
    if kind == _BINARY:
        length, at = _varint(content, at)
        return Part(kind, content[at : at + length]), at + length
    number, at = _integer(content, at)
    return Part(kind, number), at


def built(record: Part) -> bytes:
    """Return the bytes of a record."""
    content, before = bytearray(), 0
    for field, part in record.value.items():
        content += bytes([(field - before) << 4 | part.kind]) if 0 < field - before < 16 else _long(field, part.kind)
        content += _bytes(part)
        before = field
    return bytes(content) + b"\0"


def _long(field: int, kind: int) -> bytes:
    return bytes([kind]) + _zigzag(field)


def _bytes(part: Part) -> bytes:
    if part.kind in (_TRUE, _FALSE):
        return b""
    if part.kind == _STRUCT:
        return built(part)
    if part.kind == _LIST:
        kind, parts = part.value
        return bytes([0xF0 | kind]) + _unsigned(len(parts)) + b"".join(_bytes(inner) for inner in parts)
    if part.kind == _BINARY:
        return _unsigned(len(part.value)) + part.value
    return _zigzag(part.value)


def _varint(content: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte, at = content[at], at + 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, at


def _integer(content: bytes, at: int) -> tuple[int, int]:
    number, at = _varint(content, at)
    return (number >> 1) ^ -(number & 1), at


def _unsigned(number: int) -> bytes:
    content = bytearray()
    while number > 127:
        content.append(number & 127 | 128)
        number >>= 7
    return bytes(content) + bytes([number])


def _zigzag(number: int) -> bytes:
    return _unsigned((number << 1) ^ (number >> 63) if -(1 << 63) <= number < 1 << 63 else number & (1 << 64) - 1)


def footer(content: bytes) -> Part:
    """Return the record that a parquet file ends with."""
    length = int.from_bytes(content[-8:-4], "little")
    return parsed(content[-8 - length : -8])[0]


def with_footer(content: bytes, record: Part) -> bytes:
    """Return a parquet file with another record at its end."""
    length = int.from_bytes(content[-8:-4], "little")
    told = built(record)
    return content[: -8 - length] + told + len(told).to_bytes(4, "little") + content[-4:]


def changed(record: Part, path: tuple[int, ...], change: Callable[[Any], Any]) -> Part:
    """Return a record of which one part, by its path, has another value; a list's parts go by their place."""
    first, *rest = path
    if record.kind == _LIST:
        kind, parts = record.value
        inner = list(parts)
        inner[first] = _changed(inner[first], tuple(rest), change)
        return Part(_LIST, (kind, inner))
    return Part(_STRUCT, {**record.value, first: _changed(record.value[first], tuple(rest), change)})


def _changed(part: Part, path: tuple[int, ...], change: Callable[[Any], Any]) -> Part:
    return changed(part, path, change) if path else part._replace(value=change(part.value))


def places(record: Part, path: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Yield the paths of all numbers and texts of a record."""
    if record.kind == _STRUCT:
        for field, part in record.value.items():
            yield from places(part, (*path, field))
    elif record.kind == _LIST:
        for place, part in enumerate(record.value[1]):
            yield from places(part, (*path, place))
    elif record.kind not in (_TRUE, _FALSE):
        yield path
