"""Tables with a mark between cells, csv and tsv: every line is looked at, because a short one would be filled.

Cells in quotes may hold marks, ends of lines and doubled quotes, as RFC 4180 says; what it leaves open is refused.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec
import numpy as np
from numpy.typing import NDArray

from relook.cells import marked, restored
from relook.errors import BadInput
from relook.sheets import COLUMNS_MOST, Sheet, check_columns, line, reading, text
from relook.sources import Names, counted, listed, whole

SEPARATORS: Mapping[str, str] = MappingProxyType({"csv": ",", "tsv": "\t"})
"""The mark between the cells of each kind."""

_OTHER_MARKS = {
    ";": ("semicolons", "export it with commas between cells"),
    "\t": ("tabs", "name it .tsv"),
    ",": ("commas", "name it .csv"),
}
_QUOTE, _LF, _CR = 34, 10, 13
_BLOCK = 1 << 20
_HEADING_MOST = 1 << 22


def read(path: Path, kind: str) -> Sheet:
    """Return the table of a csv or tsv file as text: an empty cell is null, one in quotes is empty text."""
    import polars as pl

    separator = SEPARATORS[kind]
    content, encoding = text(path)
    content = content.rstrip(b"\r\n")
    names, start = _heading(content, separator, path=path)
    lines = _Lines(str(path), content, start, ord(separator), len(names))
    rows, broken = lines.checked() if start < len(content) else (0, False)
    schema = dict.fromkeys((str(place) for place in range(len(names))), pl.String)
    frame = pl.DataFrame(schema=schema)
    if rows:
        with reading(str(path)):
            # One byte order mark is the reader's; a second one is a cell's own.
            body = codecs.BOM_UTF8 * content.startswith(codecs.BOM_UTF8, start) + content[start:]
            frame = pl.read_csv(body, separator=separator, has_header=False, schema=schema)
    marks = sum(map(marked, frame))
    frame = pl.DataFrame({name: restored(cells) for name, cells in zip(names, frame, strict=True)})
    return Sheet(
        source=str(path),
        kind=kind,
        frame=frame.lazy(),
        columns=names,
        rows=rows,
        # A cell of two lines moves the lines below it.
        first_line=None if broken or b"\n" in content[: start - 1] else 2,
        settings={"separator": separator, "newline": "\r\n" if b"\r\n" in content[: start + 1] else "\n"}
        | {"encoding": encoding},
        facts=_facts(marks, path),
    )


def _facts(marks: int, path: Path) -> Names:
    if not marks:
        return ()
    return (f"{path}: {counted(marks, 'cell')} had an apostrophe that keeps a spreadsheet from running it: taken off.",)


def _heading(content: bytes, separator: str, *, path: Path) -> tuple[Names, int]:
    """Return the names of the columns, and where the first row starts."""
    import polars as pl

    end = _first_end(content[:_HEADING_MOST])
    endless = end is None and len(content) > _HEADING_MOST
    if endless or content[:end].count(separator.encode()) > 2 * COLUMNS_MOST:
        raise BadInput(f"{path}: a heading in line 1 was needed, but it is too long; write fewer columns")
    first = content[:end].decode().removesuffix("\r")
    try:
        (heading,) = csv.reader(io.StringIO(first, newline=""), delimiter=separator, strict=True)
    except (csv.Error, ValueError) as error:
        raise BadInput(f"{path}: the names of columns were needed in line 1, but {error}; mend the heading") from None
    _check_heading(heading, path)
    names = tuple(restored(pl.Series(heading, dtype=pl.String)).to_list())
    check_columns(names, str(path))
    return names, len(content) if end is None else end + 1


def _first_end(content: bytes) -> int | None:
    """Return where the first line ends that ends outside of quotes."""
    quotes = at = 0
    while (end := content.find(b"\n", at)) >= 0:
        quotes += content.count(b'"', at, end)
        if quotes % 2 == 0:
            return end
        at = end + 1
    return None


def _check_heading(heading: list[str], path: Path) -> None:
    for mark, (called, cure) in _OTHER_MARKS.items():
        if len(heading) == 1 and mark in heading[0]:
            raise BadInput(f"{path}: one column was found, but line 1 has {called}; {cure}")
    if all(_is_number(name) for name in heading) and (len(heading) == 1 or not whole(tuple(heading))):
        raise BadInput(f"{path}: the names of columns were needed in line 1, but {listed(heading)} came; add a heading")


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


class _Lines(msgspec.Struct, frozen=True, eq=False):
    """The lines below a heading, told apart by numpy."""

    source: str
    content: bytes
    start: int
    separator: int
    columns: int

    def checked(self) -> tuple[int, bool]:
        """Return how many rows there are, and whether a cell of one has several lines; refuse any that is torn."""
        pending, rows, inside, broken = 0, 1, 0, False
        bytes_ = np.frombuffer(self.content, np.uint8)
        for first in range(self.start, len(bytes_), _BLOCK):
            block = bytes_[first : first + _BLOCK]
            hits = np.flatnonzero((block == self.separator) | (block == _LF))
            quotes = np.flatnonzero(block == _QUOTE)
            if len(quotes) or inside:
                self._check_quotes(bytes_, quotes + first, inside=inside)
                within = (np.searchsorted(quotes, hits) + inside) % 2 == 1
                broken = broken or bool((block[hits[within]] == _LF).any())
                hits = hits[~within]
            self._check_returns(bytes_, block, first=first, quotes=quotes, inside=inside)
            inside = (inside + len(quotes)) % 2
            ends = np.flatnonzero(block[hits] == _LF)
            cells = np.diff(ends, prepend=-1)
            cells[:1] += pending
            self._check_cells(cells, hits[ends] + first)
            pending = pending + len(hits) if not len(ends) else len(hits) - 1 - int(ends[-1])
            rows += len(ends)
        if inside:
            raise self._wrong(
                int(np.flatnonzero(bytes_ == _QUOTE)[-1]), "a quote to close the cell was", came="it stays open"
            )
        self._check_cells(np.array([pending + 1]), np.array([len(bytes_)]))
        return rows, broken

    def _check_cells(self, cells: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        wrong = cells != self.columns
        if self.columns == 1 and len(ends):
            wrong |= self._blank(ends)
        if wrong.any():
            row = int(wrong.argmax())
            came = "none" if self._blank(ends[row : row + 1])[0] else str(cells[row])
            at, needed = line(self.content, int(ends[row])), counted(self.columns, "cell")
            raise BadInput(
                f"{self.source}, line {at}: {needed} were needed, as many as the heading has, but {came} came; "
                "mend the line"
            )

    def _blank(self, ends: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Say which ends of lines come right after another one."""
        bytes_ = np.frombuffer(self.content, np.uint8)
        before = bytes_[ends - 1]
        return (before == _LF) | ((before == _CR) & (bytes_[ends - 2] == _LF))

    def _check_quotes(self, bytes_: NDArray[np.uint8], quotes: NDArray[np.int64], *, inside: int) -> None:
        """Refuse a quote in the middle of a cell: programs differ on what it means."""
        opening, closing = quotes[inside::2], quotes[1 - inside :: 2]
        before = bytes_[opening - 1]
        bad = opening[~((before == self.separator) | (before == _LF) | (before == _QUOTE))]
        after = bytes_[np.minimum(closing + 1, len(bytes_) - 1)]
        fits = (after == self.separator) | (after == _LF) | (after == _CR) | (after == _QUOTE)
        wrong = np.concatenate([bad, closing[~fits & (closing + 1 < len(bytes_))]])
        if len(wrong):
            raise self._wrong(int(wrong.min()), "quotes around a whole cell were", came="one stands inside")

    def _check_returns(
        self, bytes_: NDArray[np.uint8], block: NDArray[np.uint8], *, first: int, quotes: NDArray[np.int64], inside: int
    ) -> None:
        returns = np.flatnonzero(block == _CR)
        if not len(returns):
            return
        outside = returns[(np.searchsorted(quotes, returns) + inside) % 2 == 0] + first
        alone = outside[bytes_[np.minimum(outside + 1, len(bytes_) - 1)] != _LF]
        if len(alone):
            raise self._wrong(int(alone[0]), "ends of lines in one piece were", came="a carriage return stands alone")

    def _wrong(self, at: int, needed: str, *, came: str) -> BadInput:
        return BadInput(
            f"{self.source}, line {line(self.content, at)}: {needed} needed, but {came}; put the cell in quotes, "
            "and double each quote in it"
        )
