"""Tables as publishers wrote them, in CSV: the columns that are needed, each of the kind that it must be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from relook.errors import BadInput
from relook.sources import existing, listed

if TYPE_CHECKING:
    import polars as pl

Kind = Literal["text", "whole", "number"]


def sheet(path: Path, kinds: Mapping[str, Kind]) -> pl.DataFrame:
    r"""Return the columns of a table that are named, whole numbers and numbers as such.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "t.csv")
    >>> _ = file.write_text("id,n,else\na,3,x\n")
    >>> sheet(file, {"n": "whole", "id": "text"}).rows()
    [(3, 'a')]
    """
    import polars as pl

    source = existing(path)
    try:
        table = pl.read_csv(path, infer_schema=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        came = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise BadInput(f"{source}: a table in CSV was needed, but it is none ({came}); get it again") from None
    missing = [name for name in kinds if name not in table.columns]
    if missing:
        raise BadInput(
            f"{source}: a column {missing[0]!r} was needed, but it has {listed(table.columns)}; is it another file?"
        )
    if not table.height:
        raise BadInput(f"{source}: at least one row was needed, but it has a heading alone; get it again")
    return table.select(_column(table[name], kind, source=source) for name, kind in kinds.items())


def _column(cells: pl.Series, kind: Kind, *, source: str) -> pl.Series:
    """Return a column as the kind it must be."""
    import polars as pl

    if kind == "text":
        found = cells
    else:
        found = cells.str.strip_chars().cast(pl.Int64 if kind == "whole" else pl.Float64, strict=False)
    bad = found.is_null() | (~found.is_finite() if kind == "number" else False)
    if bad.any():
        row = int(bad.arg_max() or 0)
        wanted = {"text": "text", "whole": "a whole number"}.get(kind, "a number")
        raise BadInput(
            f"{source}, line {row + 2}: {wanted} was needed in column {cells.name}, but {cells[row]!r} came; "
            "get the file again"
        )
    return found
