"""Records in thrift's compact form, as a parquet file describes itself with: numbers of fields, and their values."""

from __future__ import annotations

from typing import Any

DEPTH, PARTS = 12, 2_000_000
"""So deep a record may nest, and of so many parts it may be made."""

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)


class Torn(Exception):
    """Bytes that are no record."""


def structs(content: bytes) -> tuple[dict[int, Any], int]:
    """Return the first record of some bytes, and where it ends.

    >>> structs(bytes([0x15, 0x08, 0x18, 0x02, 0x68, 0x69, 0x00]))
    ({1: 4, 2: b'hi'}, 7)
    """
    reader = _Reader(content)
    try:
        return reader.struct(DEPTH), reader.at
    except IndexError:
        raise Torn("it ends in the middle") from None


class _Reader:
    __slots__ = ("at", "content", "parts")

    def __init__(self, content: bytes) -> None:
        self.content, self.at, self.parts = content, 0, 0

    def struct(self, depth: int) -> dict[int, Any]:
        found: dict[int, Any] = {}
        field = 0
        if not depth:
            raise Torn("it nests too deep")
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._integer()
            found[field] = self._value(head & 15, depth=depth)
        return found

    def _value(self, kind: int, *, depth: int) -> Any:
        self.parts += 1
        if self.parts > PARTS:
            raise Torn("it has too many parts")
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind in _INTEGERS:
            return self._integer()
        if kind == _STRUCT:
            return self.struct(depth - 1)
        if kind in (_LIST, _SET):
            return self._list(depth=depth)
        if kind == _BYTE:
            return self._byte()
        if kind not in (_BINARY, _DOUBLE):
            raise Torn(f"a part of kind {kind}")
        return self._bytes(8 if kind == _DOUBLE else self._varint())

    def _list(self, *, depth: int) -> list[Any]:
        head = self._byte()
        length = self._varint() if head >> 4 == 15 else head >> 4
        if length > len(self.content) - self.at:
            raise Torn("a list is longer than it")
        kind = _BYTE if head & 15 in (_TRUE, _FALSE) else head & 15
        return [self._value(kind, depth=depth) for _ in range(length)]

    def _bytes(self, length: int) -> bytes:
        if length > len(self.content) - self.at:
            raise Torn("a text is longer than it")
        self.at += length
        return self.content[self.at - length : self.at]

    def _byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def _integer(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7
            if shift > 63:
                raise Torn("a number is too long")
