"""Files of arrow and parquet as Hugging Face's `datasets` writes them: images are bytes in a column beside others.

Every part is checked before it is believed: no type that runs code is opened, nothing is unpacked that could fill the
memory, and no number in a file leads outside of it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from relook.errors import BadInput, MissingExtra
from relook.parquet import described, scanned
from relook.sheets import COLUMNS_MOST
from relook.sheets import reading as unpacking

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

ROWS_FREE, ROWS_A_BYTE = 1 << 20, 64
"""So many rows a file may claim in any case; above that, so many a byte of its own."""

IMAGE_MOST = 64 << 20
"""An image in a parquet file has at most so many bytes."""

_FILE_MARK = b"ARROW1\0\0"
_EXTENSION = b"ARROW:extension:name"
_TOGETHER = 8
_HEADER, _COMPRESSION = 2, 3
"""The places of a message's header, and of what a batch of rows is packed with."""


class Part(Protocol):
    """Rows of one file, or of one table in memory."""

    source: str
    schema: pa.Schema
    rows: int

    def frame(self, columns: Sequence[str]) -> pl.DataFrame:
        """Return some of its columns."""
        ...

    def cell(self, column: str, row: int) -> Any:
        """Return what one cell holds; rows are asked for in their order."""
        ...


class InMemory:
    """A table that is there, or mapped from the disk."""

    __slots__ = ("_table", "rows", "schema", "source")

    def __init__(self, table: pa.Table, source: str) -> None:
        self._table, self.source, self.schema, self.rows = table, source, table.schema, table.num_rows

    def frame(self, columns: Sequence[str]) -> pl.DataFrame:
        """Return some of its columns."""
        import polars as pl
        import pyarrow as pa

        # Without what the file says beside its columns, which nobody has checked.
        bare = pa.table({name: self._table.column(name) for name in columns})
        with reading(self.source):
            return pl.DataFrame(pl.from_arrow(bare))

    def cell(self, column: str, row: int) -> Any:
        """Return what one cell holds."""
        return self._table.column(column)[row].as_py()


class InParquet:
    """A parquet file, of which rows are unpacked a few at a time."""

    __slots__ = ("_at", "_batches", "_column", "_described", "_file", "_here", "rows", "schema", "source")

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self.source = str(path)
        self._described = described(path, groups="allowed")
        with reading(self.source):
            self._file = pq.ParquetFile(path, memory_map=True)
            self.schema, self.rows = self._file.schema_arrow, self._file.metadata.num_rows
        self._column: str | None = None
        self._at, self._here = 0, cast("Sequence[Any]", ())
        self._batches: Iterator[Any] = iter(())

    def frame(self, columns: Sequence[str]) -> pl.DataFrame:
        """Return some of its columns."""
        frame = scanned(Path(self.source), self._described, columns=columns)
        with unpacking(self.source):
            return frame.collect()

    def cell(self, column: str, row: int) -> Any:
        """Return what one cell holds; the rows after it are at hand, those before it are unpacked again."""
        if column != self._column or row < self._at:
            self._column = column
            self._check(column)
            self._start()
        with reading(self.source):
            while row >= self._at + len(self._here):
                self._at += len(self._here)
                batch = next(self._batches)
                batch.validate(full=True)
                self._here = batch.column(0)
            return self._here[row - self._at].as_py()

    def _check(self, column: str) -> None:
        """Refuse images that are larger than a few of them may be."""
        import polars as pl

        images = pl.scan_parquet(self.source, glob=False, hive_partitioning=False).select(pl.col(column))
        kind = images.collect_schema()[column]
        if isinstance(kind, pl.List):
            images = images.select(pl.col(column).explode())
        sizes = images.select(pl.col(column).struct.field("bytes").bin.size().max())
        with unpacking(self.source):
            most = sizes.collect(engine="streaming").item() or 0
        if most > IMAGE_MOST:
            raise BadInput(
                f"{self.source}: images of at most {IMAGE_MOST >> 20} MB were needed in column {column}, but one of "
                f"{most >> 20} MB came; make it smaller"
            )

    def _start(self) -> None:
        self._at, self._here = 0, ()
        self._batches = self._file.iter_batches(_TOGETHER, columns=[str(self._column)])


def opened(path: Path) -> Part:
    """Return the rows of an arrow or parquet file, by what its first bytes are."""
    check_installed()
    with path.open("rb") as file:
        mark = file.read(4)
    return InParquet(path) if mark == b"PAR1" or path.suffix == ".parquet" else _mapped(path)


def check_installed() -> None:
    """Say what to install where there is no pyarrow."""
    from importlib.util import find_spec

    if find_spec("pyarrow") is None:
        raise MissingExtra(
            "Hugging Face: pyarrow was needed to read their files, but it is not installed; pip install 'relook[hf]'"
        )


@contextmanager
def reading(source: str) -> Iterator[None]:
    """Say of what goes wrong where a file is read that the file is at fault."""
    import polars as pl
    import pyarrow as pa

    try:
        yield
    except BadInput:
        raise
    except (pa.ArrowException, ValueError, LookupError, TypeError, OSError, MemoryError, OverflowError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise _unreadable(source, reason) from None
    except (struct.error, StopIteration, RecursionError, pl.exceptions.PanicException) as error:
        raise _unreadable(source, type(error).__name__) from None


def _unreadable(source: str, reason: str) -> BadInput:
    return BadInput(f"{source}: a file of datasets was needed, but it cannot be read ({reason}); save the set again")


def _mapped(path: Path) -> InMemory:
    """Return the rows of an arrow file, message by message."""
    import pyarrow as pa

    with reading(str(path)):
        source = pa.memory_map(str(path))
        if source.read(len(_FILE_MARK)) != _FILE_MARK:
            source.seek(0)
        reader = pa.ipc.MessageReader.open_stream(source)
        schema = _schema(reader.read_next_message(), path)
        batches = list(_batches(reader, schema, path=path))
        return InMemory(pa.Table.from_batches(batches, schema), str(path))


def _schema(message: pa.ipc.Message, path: Path) -> pa.Schema:
    import pyarrow as pa

    if message.type != "schema":
        raise BadInput(f"{path}: an arrow file was needed, but its first part is no schema; save the set again")
    # Before arrow reads it: what an extension type is made by may be anybody's code.
    if _EXTENSION in message.metadata.to_pybytes():
        raise BadInput(
            f"{path}: plain columns were needed, but it has one of an extension type, which is not opened; save it "
            "without that column"
        )
    schema = pa.ipc.read_schema(message)
    if len(schema) > COLUMNS_MOST or len(set(schema.names)) < len(schema):
        raise BadInput(
            f"{path}: at most {COLUMNS_MOST:,} columns of different names were needed, but {len(schema):,} came; save "
            "fewer"
        )
    return schema


def _batches(reader: Any, schema: pa.Schema, *, path: Path) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    left = max(ROWS_FREE, ROWS_A_BYTE * path.stat().st_size)
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        if message.type != "record batch" or _is_packed(message.metadata.to_pybytes()):
            raise BadInput(
                f"{path}: rows as datasets saves them were needed, not packed and without dictionaries, but others "
                "came; save the set again"
            )
        batch = pa.ipc.read_record_batch(message, schema)
        left -= batch.num_rows
        if left < 0:
            raise BadInput(f"{path}: as many rows as it has room for were needed, but it claims more; save it again")
        batch.validate(full=True)
        yield batch


def _is_packed(metadata: bytes) -> bool:
    """Say whether a batch of rows is compressed, which may unpack to anything."""
    (root,) = struct.unpack_from("<I", metadata)
    place = _field(metadata, root, number=_HEADER)
    (away,) = struct.unpack_from("<I", metadata, place)
    return bool(_field(metadata, place + away, number=_COMPRESSION))


def _field(table: bytes, at: int, *, number: int) -> int:
    """Return the place of a field of a flat buffer's table, or 0 where it is left out."""
    (back,) = struct.unpack_from("<i", table, at)
    if not 0 <= at - back < len(table):
        raise struct.error
    (size,) = struct.unpack_from("<H", table, at - back)
    if size < 6 + 2 * number:
        return 0
    (inside,) = struct.unpack_from("<H", table, at - back + 4 + 2 * number)
    return at + inside if inside else 0
