"""Images in a folder and a table that tells of them: each row names its file, or up to eight.

Any reader may have read the table. What it says stays as it is; here its rows find their files.
"""

from __future__ import annotations

import csv
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from relook import layouts, sheets
from relook.collection import VIEWS, Collection
from relook.delimited import SEPARATORS
from relook.errors import BadInput
from relook.pictures import inside
from relook.roles import FILES_NAMES, first
from relook.sources import COLUMNS, ID_NAMES, LABEL_NAMES, Columns, Missing, Names, counted, listed
from relook.tables import KINDS, sheet
from relook.tree import Tree, tree, with_images

if TYPE_CHECKING:
    import polars as pl

_HEADING_MOST = 1 << 20


def collection(path: Path, *, table: Path, columns: Columns = COLUMNS, missing: Missing = "refused") -> Collection:
    """Return what a table says of the images in a folder, whose files its rows name.

    Files are named by their paths from the folder or from the table on, or by their names where these are unique, with
    or without the ending: the way that finds the most is taken, and told. Rows without a file and images without a row
    are refused, or left out and counted where missing ones are allowed.
    """
    return illustrated(path, layouts.collection(sheet(table), columns=columns), missing=missing)


def illustrated(path: Path, said: Collection, *, missing: Missing = "refused") -> Collection:
    """Return what was said of items with their files in a folder, which they name as `files`, else by their ids."""
    import polars as pl

    found = with_images(path)
    table = posixpath.relpath(Path(said.source).absolute().as_posix(), Path(path).absolute().as_posix())
    found = found if table.startswith("..") else found.without(table)
    named = _named(said)
    known, way = _matched(found, {name for names in named for name in names}, beside=posixpath.dirname(table))
    files = [_at(names, known) for names in named]
    kept = pl.Series("kept", [names is not None for names in files], pl.Boolean)
    rows = (~kept).arg_true().to_list()
    without = _left(found, files)
    if missing == "refused" or len(rows) == len(files):
        _check_rows(found, said, rows=rows, named=named)
        _check_files(found, without)
    told = pl.DataFrame({"files": pl.Series(files, dtype=pl.List(pl.String)), "kept": kept})
    items = pl.concat([said.items.drop("files", strict=False), told.lazy()], how="horizontal")
    return msgspec.structs.replace(
        said,
        ids=said.ids.filter(kept),
        items=items.filter("kept").drop("kept"),
        answers=_answers_of(said.answers, kept),
        first_line=None if rows else said.first_line,
        facts=(*said.facts, *_facts(found, way, rows=said.ids.gather(rows).to_list(), without=without)),
    )


def table_in(path: Path, *, columns: Columns = COLUMNS) -> Path | None:
    """Return the table in a folder that names the files and the labels of its images, where there is one."""
    known = [path / name for name in tree(path).beside if Path(name).suffix.lower() in KINDS]
    named = [table for table in known if _tells(_heading(table), columns)]
    if len(named) > 1:
        names = listed([table.name for table in named])
        raise BadInput(f"{path}: one table of labels was needed, but it holds {names}; take out all but one")
    return named[0] if named else None


def _named(said: Collection) -> list[list[str]]:
    """Return the files that each row names."""
    import polars as pl

    one = pl.col("files") if "files" in said.columns else pl.concat_list("id").alias("files")
    rows = said.items.select(one).collect()["files"].to_list()
    named = [[name for name in names or () if name] for names in rows]
    most = max(map(len, named))
    if most > VIEWS:
        raise BadInput(
            f"{said.source}: at most {VIEWS} images an item were needed, but {most} came; name fewer columns"
        )
    return [[inside(name, called=said.source) for name in names] for names in named]


def _at(names: Sequence[str], known: Mapping[str, str]) -> list[str] | None:
    """Return where an item's files lie, or None where one is missing."""
    there = [known[name] for name in names if name in known]
    return there if len(there) == len(names) > 0 else None


def _left(found: Tree, files: Sequence[Sequence[str] | None]) -> list[str]:
    used = {name for names in files if names is not None for name in names}
    return [name for name in found.images if name not in used]


def _matched(found: Tree, names: set[str], *, beside: str) -> tuple[Mapping[str, str], str]:
    """Return where the files lie that a table names, and the way in which most of them were found."""
    under = f"{beside}/"
    bases = [(posixpath.basename(name), name) for name in found.images]
    ways = {
        "their paths from the folder on": {name: name for name in found.images},
        "their paths from the table on": {
            name.removeprefix(under): name for name in found.images if name.startswith(under)
        },
        "the names of the files": _single(bases),
        "their paths without the ending": _single((posixpath.splitext(name)[0], name) for name in found.images),
        "the names of the files without the ending": _single(
            (posixpath.splitext(base)[0], name) for base, name in bases
        ),
    }
    number = {way: sum(name in known for name in names) for way, known in ways.items()}
    best = max(ways, key=lambda way: number[way])
    return ways[best], best


def _single(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return what each key leads to, without keys that lead to several."""
    found: dict[str, str] = {}
    several = set()
    for key, name in pairs:
        if found.setdefault(key, name) != name:
            several.add(key)
    return {key: name for key, name in found.items() if key not in several}


def _check_rows(found: Tree, said: Collection, *, rows: Sequence[int], named: Sequence[Sequence[str]]) -> None:
    if rows:
        names = listed([name for row in rows[:9] for name in named[row]]) or "an empty cell"
        raise BadInput(
            f"{said.place(rows[0])}: files that lie in {found.root} were needed, but {counted(len(rows), 'row')} of "
            f"{len(named):,} came without one ({names}); add them, or say --allow-missing to leave the rows out"
        )


def _check_files(found: Tree, without: Sequence[str]) -> None:
    if without:
        raise BadInput(
            f"{found.root}: a row for each image was needed, but {counted(len(without), 'image')} of "
            f"{len(found.images):,} have none ({listed(without)}); add them, or say --allow-missing to leave them out"
        )


def _answers_of(answers: pl.DataFrame, kept: pl.Series) -> pl.DataFrame:
    """Return the answers about the items that stay, under the numbers these have then."""
    renumbered = kept.to_frame().with_row_index("item").filter("kept").drop("kept").with_row_index("row")
    joined = answers.join(renumbered, on="item", maintain_order="left")
    return joined.drop("item").rename({"row": "item"})


def _facts(found: Tree, way: str, *, rows: Sequence[str], without: Sequence[str]) -> Names:
    told = [f"{found.root}: {counted(len(found.images) - len(without), 'image')} found by {way}."]
    if rows:
        told.append(f"{found.root}: {counted(len(rows), 'row')} left out whose file is missing: {listed(rows)}.")
    if without:
        told.append(f"{found.root}: {counted(len(without), 'image')} left out that no row names: {listed(without)}.")
    return (*told, *found.facts())


def _tells(heading: Names, columns: Columns) -> bool:
    """Say whether a table with these columns names files and labels."""
    asked = columns.files or ((columns.id,) if columns.id else ())
    named = all(name in heading for name in asked) if asked else first(heading, (*FILES_NAMES, *ID_NAMES)) is not None
    label = columns.label or columns.question
    return named and (label in heading if label else first(heading, LABEL_NAMES) is not None)


def _heading(path: Path) -> Names:
    """Return the names of a table's columns, or none where it cannot be read: then it names nothing."""
    import polars as pl

    kind = KINDS[path.suffix.lower()]
    try:
        if kind == "parquet":
            return tuple(pl.read_parquet_schema(path))
        line = sheets.text(path)[0][:_HEADING_MOST].decode(errors="replace").partition("\n")[0]
        if kind in SEPARATORS:
            return tuple(next(csv.reader([line], delimiter=SEPARATORS[kind]), ()))
        return tuple(msgspec.json.decode(line, type=dict[str, object]))
    except (
        BadInput,
        OSError,
        csv.Error,
        msgspec.MsgspecError,
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
    ):
        return ()
