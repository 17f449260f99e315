"""Tables as files hold them: named columns, whatever the file; and the text of files in the encodings people have.

Cells of text files are text, just as they were written, for 007 is not 7.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from relook.errors import BadInput
from relook.sources import Names

if TYPE_CHECKING:
    import polars as pl

COLUMNS_MOST = 10_000
"""So many columns a table may have."""

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Sheet(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A table with named columns; one in a parquet file is read where it is needed only.

    `first_line` is the line of the first row in a file of lines; `settings` is how the file was written.
    """

    source: str
    kind: str
    frame: pl.LazyFrame
    columns: Names
    rows: int
    first_line: int | None = None
    settings: Mapping[str, str] = {}
    facts: Names = ()

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """Return some of its columns, read from the file where it is one that stays there."""
        with reading(self.source):
            return self.frame.select(columns).collect()

    def place(self, row: int) -> str:
        """Return where a row stands in the file, in words."""
        return f"{self.source}, " + (f"item {row}" if self.first_line is None else f"line {row + self.first_line}")


def texts(cells: pl.Series, sheet: Sheet, *, what: str) -> pl.Series:
    """Return cells as text; only text, whole numbers, true and false have one that is theirs alone."""
    import polars as pl

    if cells.dtype == pl.String:
        return cells
    fits = cells.dtype.is_integer() or isinstance(cells.dtype, pl.Categorical | pl.Enum | pl.Boolean | pl.Null)
    if not fits and not (what == "labels" and cells.dtype.is_float()):
        raise BadInput(
            f"{sheet.source}: text or whole numbers were needed for {what}, but column {cells.name} is {cells.dtype}; "
            "write it as text"
        )
    return cells.cast(pl.String)


def numbers(cells: pl.Series, sheet: Sheet) -> pl.Series:
    """Return cells as numbers, null where one is empty."""
    import polars as pl

    if cells.dtype.is_numeric() or cells.dtype == pl.Null:
        return cells.cast(pl.Float64)
    if cells.dtype == pl.String:
        found = cells.replace("", None).cast(pl.Float64, strict=False)
        bad = found.is_null() & cells.is_not_null() & (cells != "")
        if not bad.any():
            return found
        row = int(bad.arg_max() or 0)
        raise BadInput(
            f"{sheet.place(row)}: a number was needed in column {cells.name}, but {cells[row]!r} came; mend it"
        )
    raise BadInput(f"{sheet.source}: numbers were needed in column {cells.name}, but it is {cells.dtype}; leave it out")


@contextmanager
def reading(source: str) -> Iterator[None]:
    """Say of what goes wrong where a table is unpacked that its file is at fault."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, MemoryError) as error:
        raise unreadable(source, str(error)) from None


def unreadable(source: str, reason: str) -> BadInput:
    """Return what to say of a file that its reader gives up on."""
    first = (reason.splitlines() or ["it ends in the middle"])[0]
    return BadInput(f"{source}: a table was needed, but it cannot be read ({first[:200]}); export it again, in UTF-8")


def text(path: Path) -> tuple[bytes, str]:
    """Return the text of a file in UTF-8, and how it was encoded: UTF-8 with or without a mark, or UTF-16 with one."""
    content = path.read_bytes()
    if content.startswith(_UTF_16):
        encoding, content = "utf-16", _transcoded(content, path)
    elif content.startswith(codecs.BOM_UTF8):
        encoding, content = "utf-8-sig", content[len(codecs.BOM_UTF8) :]
    else:
        encoding = "utf-8"
    if not content.isascii():
        try:
            content.decode()
        except UnicodeDecodeError as error:
            raise BadInput(
                f"{path}, line {line(content, error.start)}: text in UTF-8 was needed, but the bytes "
                f"{content[error.start : error.start + 4].hex(' ')} came, so it cannot be read; "
                "export it again, in UTF-8"
            ) from None
    if b"\0" in content:
        raise BadInput(
            f"{path}, line {line(content, content.index(0))}: text was needed, but a byte of zero came; "
            "export it again, in UTF-8"
        )
    return content, encoding


def line(content: bytes, at: int) -> int:
    r"""Return the line of a place in a text, from 1.

    >>> line(b"a\nb", 2)
    2
    """
    return content.count(b"\n", 0, at) + 1


def check_columns(names: Sequence[str], place: str) -> None:
    """Refuse a heading with too many columns, or with two of one name."""
    if len(names) > COLUMNS_MOST:
        raise BadInput(f"{place}: {COLUMNS_MOST:,} columns at most were needed, but {len(names):,} came; write fewer")
    if len(set(names)) < len(names):
        double = next(name for at, name in enumerate(names) if name in names[:at])
        raise BadInput(f"{place}: columns must differ in name, but {double!r} comes twice in line 1; rename one")


def _transcoded(content: bytes, path: Path) -> bytes:
    try:
        return content.decode("utf-16").encode()
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{path}: text in UTF-16 was needed, as its first bytes say, but it cannot be read ({error.reason}); "
            "export it again, in UTF-8"
        ) from None
