"""A folder a class: each image in the folder of the class that its item has in the end, as torchvision reads them.

An image keeps its path within its class. Where another of that path is there already, because both came from folders
of their own, it takes the names of those into its own. Images of items without a label lie beside the folders.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from relook.cleaned import Cleaned
from relook.errors import BadInput
from relook.sources import listed

if TYPE_CHECKING:
    import polars as pl

SPLIT_FIRST = "split/class"
"""What a folder's form says where the classes lie in folders of their splits."""

_UNSAFE = re.compile(r'[<>:"/\\|?*\x00-\x1f]')
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def write(found: Cleaned, path: Path) -> None:
    """Write the folder."""
    if "files" not in found.found.columns:
        raise BadInput("export: items with images were needed for folders of them, but these have none; name a table")
    for name, place in _places(found).iter_rows():
        found.place(name, path / place)


def safe(name: str) -> str:
    """Return a name that a file may have on every system.

    >>> safe("cat/dog?"), safe(".."), safe("con"), safe("Ω")
    ('cat_dog_', '__', '_con', 'Ω')
    """
    plain = _UNSAFE.sub("_", name)
    plain = plain[: len(plain.rstrip(" ."))] + "_" * (len(plain) - len(plain.rstrip(" .")))
    return f"_{plain}" if _RESERVED.fullmatch(plain) else plain


def _places(found: Cleaned) -> pl.DataFrame:
    """Return where every image goes."""
    import polars as pl

    folders = np.array([*_folders(found), ""])
    splits = ["split"] if _by_split(found) else []
    above = len(splits) if found.found.form.kind == "folder" else 0
    tables = []
    for items, block in found.blocks(["files", *splits]):
        named = block.with_columns(folder=pl.Series(folders[found.evidence.final[items]]))
        named = named.explode("files", empty_as_null=True).filter(pl.col("files").is_not_null())
        within = pl.col("files").str.splitn("/", above + 2).struct.field(f"field_{above + 1}")
        own = pl.coalesce(within, pl.col("files")) if found.found.form.kind == "folder" else pl.col("files")
        tables.append(named.with_columns(own=own))
    table = pl.concat(tables)
    top = [pl.col(name) for name in (*splits, "folder")]

    def joined(name: pl.Expr) -> pl.Expr:
        return (
            pl.concat_str(*top, name, separator="/").str.strip_chars_start("/").str.replace_all("//", "/", literal=True)
        )

    table = table.with_columns(place=joined(pl.col("own")))
    taken = pl.col("place").is_duplicated() & ~pl.col("files").eq(pl.col("place"))
    moved = joined(pl.col("files").str.replace_all("/", "_", literal=True))
    table = table.select("files", place=pl.when(taken).then(moved).otherwise("place"))
    twice = table.filter(pl.col("place").is_duplicated())
    if twice.height:
        raise BadInput(
            f"export: a name of its own was needed for each image, but {listed(twice['files'].to_list(), 3)} share "
            f"one, {twice['place'][0]}; rename one, or take --as huggingface"
        )
    return table


def _by_split(found: Cleaned) -> bool:
    form = found.found.form
    return form.settings.get("folders") == SPLIT_FIRST if form.kind == "folder" else "split" in found.found.columns


def _folders(found: Cleaned) -> list[str]:
    """Return the folder of each class."""
    folders = [safe(name) for name in found.classes]
    lowered = [name.casefold() for name in folders]
    double = [name for name in found.classes if lowered.count(safe(name).casefold()) > 1]
    if double:
        raise BadInput(
            f"export: a folder for each class was needed, but {listed(double)} would be one on some systems; rename a "
            "class, or take --as huggingface"
        )
    return folders
