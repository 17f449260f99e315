"""Tables in parquet files, which stay there; what a file claims to hold is checked before anything is unpacked.

A few bytes can claim to be a billion rows. The footer and the header of every page are read here, which costs little:
rows, sizes and types must fit each other and the length of the file, and only flat columns and lists are let in.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import mmap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from relook.errors import BadInput
from relook.sheets import COLUMNS_MOST, Sheet, check_columns, reading
from relook.thrift import Torn, structs

if TYPE_CHECKING:
    import polars as pl

ROWS_FREE, ROWS_A_BYTE = 1 << 20, 16
CELLS_FREE, CELLS_A_BYTE = 1 << 26, 64
UNPACKED_FREE, UNPACKED_A_BYTE = 256 << 20, 200
"""So many rows, cells and unpacked bytes a file may hold in any case; above that, so many a byte of its own."""

CELL_MOST = 16 << 20
REPEATED_FREE, REPEATED_A_BYTE = 1 << 34, 1 << 17
TEXT_FREE, TEXT_A_BYTE = 256 << 20, 64
"""So long a cell may be, and so much text a file may hold where what comes often is kept once."""

_MAGIC, _ENCRYPTED = b"PAR1", b"PARE"
_TOGETHER = 256
_FOOTER_MOST = 16 << 20
_HEADER = 4096
"""The header of a page is rarely longer."""

_ROWS_MOST = (1 << 32) - 2
_DEPTH = 8
_REPEATED, _LIST = 2, 3


Groups = Literal["refused", "allowed"]
"""Whether columns may lie in groups, such as the bytes and the name of an image."""


class Described(msgspec.Struct, frozen=True):
    """How much a parquet file holds; `repeated` is how much text a column may stand for that keeps each text once."""

    rows: int
    columns: tuple[str, ...]
    repeated: Mapping[str, int]


class _File(msgspec.Struct, frozen=True, eq=False):
    source: str
    bytes: mmap.mmap

    def torn(self, why: str) -> BadInput:
        return BadInput(f"{self.source}: a parquet file was needed, but its parts do not fit ({why}); write it again")

    def struct(self, start: int, end: int) -> tuple[dict[int, Any], int]:
        """Return the first record of a stretch of the file, and how long it is."""
        for stop in (min(end, start + _HEADER), end):
            try:
                return structs(self.bytes[start:stop])
            except Torn as error:
                if stop == end:
                    raise self.torn(str(error)) from None
        raise AssertionError


def read(path: Path) -> Sheet:
    """Return the table of a parquet file, of which every page was unpacked once."""
    import polars as pl

    source, found = str(path), described(path)
    check_columns(found.columns, source)
    with reading(source):
        known = tuple(pl.scan_parquet(path, glob=False, hive_partitioning=False).collect_schema())
    if known != found.columns:
        raise BadInput(f"{source}: one name a column was needed, but the file tells of two; write it again")
    frame = scanned(path, found, columns=found.columns)
    return Sheet(source=source, kind="parquet", frame=frame, columns=found.columns, rows=found.rows)


def scanned(path: Path, found: Described, *, columns: Sequence[str]) -> pl.LazyFrame:
    """Return some columns of a file that was described: text, numbers or lists, each unpacked once."""
    import polars as pl

    with reading(str(path)):
        frame = pl.scan_parquet(path, glob=False, hive_partitioning=False).select(columns)
        _check_categories(frame, found, path=path)
        _check_cells(frame, path)
    return frame


def _check_categories(frame: pl.LazyFrame, found: Described, *, path: Path) -> None:
    """Refuse categories that take their reader too long: it looks at the whole text of each cell."""
    import polars as pl

    most = max(REPEATED_FREE, REPEATED_A_BYTE * path.stat().st_size)
    for name, kind in frame.collect_schema().items():
        if isinstance(kind, pl.Categorical | pl.Enum) and found.repeated.get(name, 0) > most:
            raise BadInput(
                f"{path}: categories with less text were needed in column {name}, for {found.rows:,} rows; "
                "write it as text"
            )


def _check_cells(frame: pl.LazyFrame, path: Path) -> None:
    """Unpack every column once, a part at a time, and refuse text that is longer than it has any reason to be."""
    import polars as pl

    lengths = [_lengths(name, dtype) for name, dtype in frame.collect_schema().items()]
    longest, total = 0, 0
    for first in range(0, len(lengths), _TOGETHER):
        part = lengths[first : first + _TOGETHER]
        most = [length.max().alias(f"{place} most") for place, length in enumerate(part)]
        every = [length.cast(pl.Int64).sum().alias(f"{place} all") for place, length in enumerate(part)]
        row = frame.select(*most, *every).collect(engine="streaming").row(0)
        longest = max(longest, *(length or 0 for length in row[: len(part)]))
        total += sum(length or 0 for length in row[len(part) :])
    free = max(TEXT_FREE, TEXT_A_BYTE * path.stat().st_size)
    if longest > CELL_MOST or total > free:
        came = f"a cell of {longest >> 20:,} MB" if longest > CELL_MOST else f"{total >> 20:,} MB"
        raise BadInput(
            f"{path}: text of {CELL_MOST >> 20} MB a cell and {free >> 20:,} MB in all was needed at most, but {came} "
            "came; is it what it claims to be?"
        )


def _lengths(name: str, dtype: pl.DataType) -> pl.Expr:
    """Return the length of each text of a column; of other cells, whether there is one."""
    import polars as pl

    cells, inner = (pl.col(name).explode(), dtype.inner) if isinstance(dtype, pl.List) else (pl.col(name), dtype)
    if inner == pl.String:
        return cells.str.len_bytes()
    if isinstance(inner, pl.Categorical | pl.Enum):
        return cells.cat.len_bytes()
    return cells.bin.size() if inner == pl.Binary else cells.is_null()


def described(path: Path, *, groups: Groups = "refused") -> Described:
    """Return what a parquet file holds, and refuse one whose parts do not fit, or that unpacks into too much."""
    with path.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        file = _File(str(path), content)
        footer = _footer(file)
        names, listed = _leaves(footer, file, groups=groups)
        parts = _structs(footer, 4)
        _check_rows(footer, parts, file=file, columns=len(names))
        repeated = dict.fromkeys(names, 0)
        unpacked = 0
        for group in parts:
            chunks = _structs(group, 1)
            if len(chunks) != len(names):
                raise file.torn(f"{len(names)} columns, but {len(chunks)} in a group of rows")
            for name, chunk in zip(names, chunks, strict=True):
                rows = None if name in listed else _number(group, 3)
                size, dictionary, values = _unpacked(_struct(chunk, 3), file, rows=rows)
                unpacked += size
                repeated[name] += dictionary * values
            _check_unpacked(unpacked, file)
        return Described(_number(footer, 3), tuple(names), repeated)


def _footer(file: _File) -> dict[int, Any]:
    content = file.bytes
    if content[-4:] == _ENCRYPTED:
        raise BadInput(f"{file.source}: an open parquet file was needed, but it is encrypted; write it without a key")
    if len(content) < 12 or content[:4] != _MAGIC or content[-4:] != _MAGIC:
        raise BadInput(
            f"{file.source}: a parquet file was needed, but it does not start and end as one; write it again"
        )
    length = int.from_bytes(content[-8:-4], "little")
    if length > len(content) - 12:
        raise file.torn("its footer is longer than itself")
    if length > _FOOTER_MOST:
        raise BadInput(
            f"{file.source}: a footer of {_FOOTER_MOST >> 20} MB at most was needed, but {length >> 20} MB came; "
            "write larger groups of rows"
        )
    return file.struct(len(content) - 8 - length, len(content) - 8)[0]


def _leaves(footer: dict[int, Any], file: _File, *, groups: Groups) -> tuple[list[str], set[str]]:
    """Return the names of the columns in order, and which of them are lists."""
    for pair in _structs(footer, 5):
        if pair.get(1) == b"ARROW:schema" and _has_extension(pair.get(2)):
            raise BadInput(
                f"{file.source}: plain columns were needed, but it holds an extension type of arrow, which is not "
                "opened; write text, numbers or lists"
            )
    elements = iter(_structs(footer, 2)[1:])
    if groups == "allowed":
        nested = list(_inner(elements, file, place=""))
        return [name for name, _ in nested], {name for name, several in nested if several}
    names: list[str] = []
    listed: set[str] = set()
    for element in elements:
        name = _text(element, file)
        names.append(name)
        if _number(element, 5):
            _check_list(element, elements, place=f"{file.source}: column {name}")
            listed.add(name)
        elif _number(element, 3) == _REPEATED:
            raise _nested(f"{file.source}: column {name}")
        if len(names) > COLUMNS_MOST:
            raise BadInput(
                f"{file.source}: {COLUMNS_MOST:,} columns at most were needed, but more came; write a row an answer"
            )
    return names, listed


def _inner(
    elements: Iterator[dict[int, Any]], file: _File, *, place: str, most: int = COLUMNS_MOST
) -> Iterator[tuple[str, bool]]:
    """Yield the names of the columns that lie in groups of them, and whether each is a list."""
    for element in itertools.islice(elements, most):
        name, repeated = f"{place}{_text(element, file)}", _number(element, 3) == _REPEATED
        if name.count(".") > _DEPTH:
            raise _nested(f"{file.source}: column {name}")
        if _number(element, 5) > 0:
            inner = _inner(elements, file, place=f"{name}.", most=_number(element, 5))
            yield from ((leaf, repeated or several) for leaf, several in inner)
        else:
            yield name, repeated


def _check_list(element: dict[int, Any], inner: Iterator[dict[int, Any]], *, place: str) -> None:
    """Take the inner parts of a list, and refuse every other nest."""
    repeated, leaf = next(inner, {}), next(inner, {})
    flat = _number(element, 5) == 1 and _number(repeated, 5) == 1 and not _number(leaf, 5)
    if element.get(6) != _LIST or not flat or _number(repeated, 3) != _REPEATED or _number(leaf, 3) == _REPEATED:
        raise _nested(place)


def _nested(place: str) -> BadInput:
    return BadInput(f"{place} must hold text, numbers or lists of them, but it is nested; write a column for each part")


def _has_extension(schema: Any) -> bool:
    """Say whether arrow's own schema, in base 64, names an extension type: at any of the three places in a group."""
    try:
        return b"ARROW:extension:name" in base64.b64decode(schema if isinstance(schema, bytes) else b"")
    except binascii.Error:
        return True


def _check_rows(footer: dict[int, Any], groups: Sequence[dict[int, Any]], *, file: _File, columns: int) -> None:
    rows, size = _number(footer, 3), len(file.bytes)
    if not columns or min([rows, *(_number(group, 3) for group in groups)]) < 0:
        raise file.torn("it has no column" if not columns else "rows below zero")
    if rows != sum(_number(group, 3) for group in groups):
        raise file.torn(f"{rows:,} rows, but {sum(_number(group, 3) for group in groups):,} in its groups")
    most = min(_ROWS_MOST, max(ROWS_FREE, ROWS_A_BYTE * size), max(CELLS_FREE, CELLS_A_BYTE * size) // columns)
    if rows > most:
        raise BadInput(
            f"{file.source}: {most:,} rows at most were needed for {size:,} bytes and {columns:,} columns, "
            f"but it claims {rows:,}; is it what it claims to be?"
        )


def _check_unpacked(unpacked: int, file: _File) -> None:
    most = max(UNPACKED_FREE, UNPACKED_A_BYTE * len(file.bytes))
    if unpacked > most:
        raise BadInput(
            f"{file.source}: {most >> 20:,} MB at most were needed for {len(file.bytes):,} bytes, but it unpacks into "
            f"{unpacked >> 20:,} MB; write it with less compression"
        )


def _unpacked(about: dict[int, Any], file: _File, *, rows: int | None) -> tuple[int, int, int]:
    """Return how many bytes a column of a group of rows unpacks into, those of its dictionary, and its values."""
    dictionary, first, length = _number(about, 11), _number(about, 9), _number(about, 7)
    at = dictionary if 4 <= dictionary < first else first
    end, values = at + length, _number(about, 5)
    if at < 4 or length < 0 or end > len(file.bytes) or (rows is not None and values != rows):
        raise file.torn("a column lies outside, or has another number of rows")
    size = found = once = 0
    while found < values:
        if at >= end:
            raise file.torn("a column ends before its last row")
        page, start = file.struct(at, end)
        inside, outside = _number(page, 3), _number(page, 2)
        if inside < 0 or outside < 0 or at + start + inside > end:
            raise file.torn("a page lies outside its column")
        at += start + inside
        size += outside
        came = _number(_struct(page, 8 if 8 in page else 5), 1)
        if came < 0 or (_number(page, 1) in (0, 3)) != bool(5 in page or 8 in page):
            raise file.torn("a page is of no kind")
        found += came
        once += outside if 7 in page else 0
    if found != values:
        raise file.torn("a page has more rows than its column")
    return size, once, values


def _structs(of: dict[int, Any], field: int) -> list[dict[int, Any]]:
    found = of.get(field, [])
    return [part if isinstance(part, dict) else {} for part in found] if isinstance(found, list) else []


def _struct(of: dict[int, Any], field: int) -> dict[int, Any]:
    found = of.get(field)
    return found if isinstance(found, dict) else {}


def _number(of: dict[int, Any], field: int) -> int:
    found = of.get(field, 0)
    return found if isinstance(found, int) else 0


def _text(element: dict[int, Any], file: _File) -> str:
    found = element.get(4)
    try:
        return found.decode() if isinstance(found, bytes) else ""
    except UnicodeDecodeError:
        raise file.torn("the name of a column is no text") from None
