"""Tables in memory: frames of pandas and polars, and whatever speaks arrow, in the same layouts as files.

Arrow's own door (`__arrow_c_stream__`) is enough for polars, pyarrow, duckdb and others; frames of pandas are taken
column by column, because theirs needs pyarrow, which relook does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relook import layouts
from relook.collection import Collection
from relook.errors import BadInput
from relook.sheets import Sheet, check_columns, reading
from relook.sources import COLUMNS, Columns

if TYPE_CHECKING:
    import polars as pl

INDEX = "__index_level_0__"
"""What an index without a name is called, as pandas itself calls it in files."""


def collection(frame: Any, *, columns: Columns = COLUMNS, source: str = "frame") -> Collection:
    """Return the items of a frame and what was said about them; `source` is what messages call it.

    >>> import polars as pl
    >>> found = collection(pl.DataFrame({"id": ["a", "b"], "label": ["dog", "cat"]}))
    >>> found.classes, found.labels().given.tolist()
    (('cat', 'dog'), [1, 0])
    """
    import polars as pl

    with reading(source):
        lazy = _taken(frame, source)
        kinds = lazy.collect_schema()
        rows = int(lazy.select(pl.len()).collect().item())
    check_columns(kinds.names(), source)
    for name, kind in kinds.items():
        if not _is_plain(kind.inner if isinstance(kind, pl.List) else kind):
            raise BadInput(
                f"{source}: text, numbers or lists of them were needed in column {name}, but it is {kind}; make a "
                "column of each part, or leave it out"
            )
    return layouts.collection(
        Sheet(source=source, kind="frame", frame=lazy, columns=tuple(kinds.names()), rows=rows), columns=columns
    )


def _is_plain(kind: Any) -> bool:
    import polars as pl

    return not (kind.is_nested() or isinstance(kind, pl.Object | pl.Unknown) or "Extension" in type(kind).__name__)


def _taken(frame: Any, source: str) -> pl.LazyFrame:
    import polars as pl

    if isinstance(frame, pl.LazyFrame | pl.DataFrame):
        return frame.lazy()
    reason = ""
    if type(frame).__module__.partition(".")[0] == "pandas":
        if hasattr(frame, "columns"):
            return _of_pandas(frame, source).lazy()
    elif hasattr(frame, "__arrow_c_stream__"):
        try:
            return pl.DataFrame(frame).lazy()
        except (TypeError, ValueError, AttributeError, NotImplementedError, pl.exceptions.PolarsError) as error:
            reason = f", which polars does not take ({str(error)[:200]})"
    raise BadInput(
        f"{source}: a frame of pandas or polars, or an arrow table, was needed, but {type(frame).__name__} "
        f"came{reason}; make one of plain columns"
    )


def _of_pandas(frame: Any, source: str) -> pl.DataFrame:
    """Return a frame of pandas, its index as a column where it is more than row numbers."""
    import polars as pl

    index = frame.index
    if index.nlevels > 1:
        raise BadInput(f"{source}: an index of one level was needed, but {index.nlevels} came; call reset_index")
    counts = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1 and index.name is None
    found = [] if counts else [(str(INDEX if index.name is None else index.name), index)]
    found += [(str(name), frame.iloc[:, place]) for place, name in enumerate(frame.columns)]
    check_columns([name for name, _ in found], source)
    return pl.DataFrame({name: _cells(name, cells, source=source) for name, cells in found})


def _cells(name: str, cells: Any, *, source: str) -> pl.Series:
    """Return a column of pandas, null where pandas says that something is missing."""
    import polars as pl

    missing = cells.isna()
    values = [None if gone else value for value, gone in zip(cells.tolist(), missing.tolist(), strict=True)]
    try:
        return pl.Series(name, values, strict=True)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise BadInput(
            f"{source}: values of one kind were needed in column {name}, but others came ({reason[:200]}); "
            "convert it, such as with astype(str)"
        ) from None
