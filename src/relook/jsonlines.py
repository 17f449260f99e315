"""Tables with a JSON object a line: text, numbers, true, false and lists of them, each kind in columns of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from relook.errors import BadInput
from relook.sheets import COLUMNS_MOST, Sheet, reading, text

if TYPE_CHECKING:
    import polars as pl

_LONG = 1 << 63
_KINDS: dict[type, str] = {bool: "true or false", int: "numbers", float: "numbers", str: "text"}


def read(path: Path) -> Sheet:
    """Return the table of a file of JSON lines, columns in the order in which they come first; null where one lacks."""
    import polars as pl

    content, encoding = text(path)
    columns: dict[str, _Column] = {}
    rows = 0
    for rows, row in enumerate(_objects(content, path), 1):
        for name, value in row.items():
            if name not in columns:
                columns[name] = _Column(name, str(path))
                if len(columns) > COLUMNS_MOST:
                    raise BadInput(
                        f"{path}, line {rows}: {COLUMNS_MOST:,} keys at most were needed, but more came; write fewer"
                    )
            columns[name].add(value, row=rows - 1)
    with reading(str(path)):
        frame = pl.DataFrame({name: column.series(rows) for name, column in columns.items()})
    return Sheet(
        source=str(path),
        kind="jsonl",
        frame=frame.lazy(),
        columns=tuple(columns),
        rows=rows,
        first_line=1,
        settings={"newline": "\r\n" if b"\r\n" in content[:65_536] else "\n", "encoding": encoding},
    )


def _objects(content: bytes, path: Path) -> Iterator[dict[str, Any]]:
    decoder = msgspec.json.Decoder(dict[str, Any])
    lines = content.rstrip().split(b"\n") if content.strip() else []
    for number, row in enumerate(lines, 1):
        try:
            yield decoder.decode(row)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise BadInput(
                f"{path}, line {number}: a JSON object was needed, but it cannot be read ({error}); "
                "export it again, in UTF-8, one object a line"
            ) from None


class _Column:
    """The values of one key, and where they stand: all of one kind, or all lists of one kind."""

    __slots__ = ("kind", "listed", "name", "rows", "source", "values")

    def __init__(self, name: str, source: str) -> None:
        self.name, self.source = name, source
        self.kind: type | None = None
        self.listed: bool | None = None
        self.rows: list[int] = []
        self.values: list[Any] = []

    def add(self, value: Any, *, row: int) -> None:
        """Take the value of a row, and refuse one of another kind than those before it."""
        if value is None:
            return
        listed = isinstance(value, list)
        if self.listed not in (None, listed):
            raise self._mixed("lists" if self.listed else "no lists", "a list" if listed else "none", row=row)
        self.listed = listed
        for part in value if listed else (value,):
            self._check(part, row=row)
        self.rows.append(row)
        self.values.append(value)

    def _check(self, part: Any, *, row: int) -> None:
        kind = type(part)
        if kind is self.kind or part is None:
            return
        if kind not in _KINDS or (kind is int and not -_LONG <= part < _LONG):
            came = "a number beyond 64 bits" if kind is int else "a nested object or list"
            raise BadInput(
                f"{self.source}, line {row + 1}: text, numbers, true or false, or lists of them, were needed under "
                f"{self.name!r}, but {came} came; write a key for each part"
            )
        if self.kind is not None and _KINDS[kind] != _KINDS[self.kind]:
            raise self._mixed(_KINDS[self.kind], _KINDS[kind], row=row)
        self.kind = kind if self.kind is None else float

    def _mixed(self, needed: str, came: str, *, row: int) -> BadInput:
        return BadInput(
            f"{self.source}, line {row + 1}: {needed} were needed under {self.name!r}, as in the lines before, "
            f"but {came} came; write one kind"
        )

    def series(self, rows: int) -> pl.Series:
        """Return the column, with null where a row has no such key."""
        import polars as pl

        kinds: dict[type | None, Any] = {bool: pl.Boolean, int: pl.Int64, float: pl.Float64, str: pl.String}
        dtype: Any = kinds.get(self.kind, pl.String)
        values: list[Any] = [None] * rows
        for row, value in zip(self.rows, self.values, strict=True):
            values[row] = value
        return pl.Series(self.name, values, dtype=pl.List(dtype) if self.listed else dtype, strict=False)
