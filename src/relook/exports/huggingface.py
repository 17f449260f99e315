"""A folder that `datasets.load_dataset` opens: parquet files, or images beside a table of them, a part a split.

Which parts there are, what the columns hold and what the classes are called stands in `README.md`, as the Hub has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from relook import streams
from relook.cleaned import Cleaned
from relook.collection import KEPT, NUMBER
from relook.errors import BadInput
from relook.evidence import RULES
from relook.streams import Stream

if TYPE_CHECKING:
    import polars as pl

OWN = ("id", "label", "given", "status", "answers")
"""Columns that are always there: `label` is the final one."""

LABELS = ("label", "given")
"""Those that hold classes: by number in parquet, where the page names the classes; by name beside images, where
`datasets` does not look for names."""

ALL = "train"
"""What a set without splits is called: `load_dataset` has no other word for it."""

_SPLIT = re.compile(r"\w+(\.\w+)*")


def write(found: Cleaned, path: Path) -> None:
    """Write the folder."""
    path.mkdir()
    splits = _splits(found)
    for split in splits:
        if "files" in found.found.columns:
            _write_images(found, path / split, split=split)
        else:
            (path / "data").mkdir(exist_ok=True)
            streams.write(_part(found, split), path / "data" / f"{split}-00000-of-00001.parquet")
    (path / "README.md").write_text(_card(found, splits), "utf-8")


def _splits(found: Cleaned) -> list[str]:
    if "split" not in found.found.columns:
        return [ALL]
    names = found.found.items.select("split").unique(maintain_order=True).collect()["split"].to_list()
    bad = [name for name in names if name is None or not _SPLIT.fullmatch(name)]
    if bad:
        raise BadInput(
            f"export: names of splits from letters, digits and _ were needed, but {bad[0]!r} came; rename it in the "
            "source, or export one at a time with --split"
        )
    return names


def _contents(found: Cleaned) -> dict[str, str]:
    """Return the columns of items that go along, and what they are called there: known ones, then the source's own."""
    kinds = found.found.items.collect_schema()
    named: dict[str, str] = {}
    taken = {*OWN, "image", "images", *found.found.form.columns.values()}
    for name in kinds:
        short = name.removeprefix(NUMBER).removeprefix(KEPT)
        if name == "text" or name.startswith((NUMBER, KEPT)):
            free = name == "text" or short not in taken
            if kinds[name] in _called() and (free or name.startswith(NUMBER)):
                named[name] = short if free else name
                taken.add(short)
    return named


def _called() -> dict[Any, str]:
    """Return what `datasets` calls the types of columns that it shares with polars."""
    import polars as pl

    numbers = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Float32, pl.Float64)
    return {pl.String: "string", pl.Boolean: "bool"} | {kind: kind.__name__.lower() for kind in numbers}


def _part(found: Cleaned, split: str) -> Stream:
    kinds = found.found.items.collect_schema()
    named = _contents(found)
    schema = {**_own_kinds(), **{new: kinds[old] for old, new in named.items()}}
    return Stream(schema, lambda: (block.select(*schema) for block in _blocks(found, split, extra=())))


def _own_kinds() -> Any:
    import polars as pl

    return dict(zip(OWN, (pl.String, pl.Int64, pl.Int64, pl.String, pl.Int64), strict=True))


def _blocks(found: Cleaned, split: str, *, extra: tuple[str, ...]) -> Iterator[pl.DataFrame]:
    """Yield the rows of a split: classes as their numbers."""
    import polars as pl

    known, named = found.evidence, _contents(found)
    parted = ("split",) if "split" in found.found.columns else ()
    for items, block in found.blocks([*named, *extra, *parted]):
        numbers = {"label": known.final[items], "given": known.given[items], "answers": known.heard[items]}
        told = block.rename(named).with_columns(**numbers, status=found.statuses(items).cast(pl.String))
        told = told.with_columns(pl.col(LABELS).replace(-1, None)).cast(_own_kinds())
        yield told.filter(pl.col("split") == split) if parted else told


def _write_images(found: Cleaned, folder: Path, *, split: str) -> None:
    """Write images beside a table that names them: JSON lines, so that every text stays what it is."""
    import polars as pl

    folder.mkdir()
    with (folder / "metadata.jsonl").open("wb") as table:
        for block in _blocks(found, split, extra=("files",)):
            for name in block["files"].explode(empty_as_null=True).drop_nulls():
                found.place(name, folder / name)
            single = pl.col("files").list.first().alias("file_name")
            names = single if _views(found) == 1 else pl.col("files").alias("file_names")
            named = block.with_columns(
                found.labels(block[name].fill_null(-1).to_numpy()).alias(name) for name in LABELS
            )
            named.select(names, *OWN, *_contents(found).values()).write_ndjson(table)


def _views(found: Cleaned) -> int:
    import polars as pl

    return int(found.found.items.select(pl.col("files").list.len().max()).collect().item() or 1)


def _card(found: Cleaned, splits: list[str]) -> str:
    """Return the page about the set: in its head, for programs, the parts and the columns."""
    images = "files" in found.found.columns
    parts = [{"split": s, "path": f"{s}/**" if images else f"data/{s}-*.parquet"} for s in splits]
    head: dict[str, Any] = {"configs": [{"config_name": "default", "data_files": parts}]}
    if not images:
        classes = {"class_label": {"names": {str(number): name for number, name in enumerate(found.classes)}}}
        kinds = {name: classes if name in LABELS else kind for name, kind in _kinds(found).items()}
        head["dataset_info"] = {"features": [{"name": name, "dtype": kind} for name, kind in kinds.items()]}
    rule = found.evidence.rule
    lines = "\n".join(f"{name}: {msgspec.json.encode(value).decode()}" for name, value in head.items())
    return f"---\n{lines}\n---\n\n`label` is the final label by the rule `{rule}`: {RULES[rule]}.\n"


def _kinds(found: Cleaned) -> dict[str, str]:
    """Return the columns with their types, as `datasets` calls them."""
    called, kinds = _called(), found.found.items.collect_schema()
    own = {name: called[kind] for name, kind in _own_kinds().items()}
    return own | {new: called[kinds[old]] for old, new in _contents(found).items()}
