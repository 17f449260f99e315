"""A table from a file, by what its name ends in."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from relook import delimited, jsonlines, parquet
from relook.errors import BadInput
from relook.sheets import Sheet
from relook.sources import existing

KINDS: Mapping[str, str] = MappingProxyType(
    {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
)
"""Kinds of tables by what the names of their files end in."""


def sheet(path: Path) -> Sheet:
    r"""Return the table that a csv, tsv, JSON lines or parquet file holds.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "pets.csv")
    >>> _ = file.write_text("id,label\n007,dog\n")
    >>> sheet(file).read(["id", "label"]).rows()
    [('007', 'dog')]
    """
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise BadInput(
            f"{path}: a table was needed, its name ending in {', '.join(KINDS)}, but {path.suffix or 'no suffix'} "
            "came; save it so"
        )
    existing(path)
    if kind == "parquet":
        return parquet.read(path)
    return jsonlines.read(path) if kind == "jsonl" else delimited.read(path, kind)
