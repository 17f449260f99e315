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

from relook.collection import KEPT, VIEWS, Collection, Form
from relook.errors import BadInput
from relook.pictures import inside
from relook.sources import COLUMNS, LABEL_NAMES, Columns, Missing, Names, counted, listed
from relook.tree import Tree, tree, with_images

if TYPE_CHECKING:
    import polars as pl

FILE_NAMES = ("file_name", "filename", "file", "path", "image", "image_path", "id")
"""What a column of paths may be called, best first."""

_MARKS = {".csv": ",", ".tsv": "\t"}
_HEADING_MOST = 1 << 20


def collection(path: Path, *, said: Collection, missing: Missing = "refused") -> Collection:
    """Return what a table says, with the files that its rows name in a folder.

    Files are named by their paths from the folder or from the table on, by their names where these are unique, with or
    without the ending: the way that finds the most is taken, and told. Rows without a file and images without a row are
    refused, or left out and counted where missing ones are allowed.
    """
    import polars as pl

    found = with_images(path)
    named, column = _named(said)
    known, way = _matched(found, said, names={name for names in named for name in names})
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
        form=_with_column(said, column),
        ids=said.ids.filter(kept),
        items=items.filter("kept").drop("kept"),
        answers=_answers_of(said.answers, kept),
        first_line=None if rows else said.first_line,
        facts=(*said.facts, *_facts(found, way, rows=said.ids.gather(rows).to_list(), without=without)),
    )


def table_in(path: Path, *, columns: Columns = COLUMNS) -> Path | None:
    """Return the table in a folder that names the files and the labels of its images, where there is one."""
    found = tree(path)
    named = [path / name for name in found.tables if _tells(_heading(path / name), columns)]
    if len(named) > 1:
        names = listed([table.name for table in named])
        raise BadInput(f"{path}: one table of labels was needed, but it holds {names}; take out all but one")
    return named[0] if named else None


def _named(said: Collection) -> tuple[list[list[str]], str | None]:
    """Return the files that each row names, and the column of the table that does, where it was not asked for."""
    import polars as pl

    if "files" in said.columns:
        column, named = None, said.items.select("files").collect()["files"]
    else:
        lowered = {name.lower(): name for name in reversed(said.columns)}
        kept = next((lowered[KEPT + name] for name in FILE_NAMES if KEPT + name in lowered), "id")
        column = None if kept == "id" else kept.removeprefix(KEPT)
        named = said.items.select(pl.concat_list(pl.col(kept).cast(pl.String)).list.drop_nulls()).collect()[kept]
    most = max((len(names or ()) for names in named), default=0)
    if most > VIEWS:
        raise BadInput(
            f"{said.source}: at most {VIEWS} images an item were needed, but {most} came; name fewer columns"
        )
    return [[inside(name, called=said.source) for name in names or () if name] for names in named], column


def _at(names: Sequence[str], known: Mapping[str, str]) -> list[str] | None:
    """Return where an item's files lie, or None where one is missing."""
    there = [known[name] for name in names if name in known]
    return there if len(there) == len(names) > 0 else None


def _left(found: Tree, files: Sequence[Sequence[str] | None]) -> list[str]:
    used = {name for names in files if names is not None for name in names}
    return [name for name in found.images if name not in used]


def _matched(found: Tree, said: Collection, *, names: set[str]) -> tuple[Mapping[str, str], str]:
    """Return where the files lie that a table names, and the way in which most of them were found."""
    table = posixpath.dirname(Path(said.source).absolute().as_posix())
    beside = posixpath.relpath(table, Path(found.root).absolute().as_posix()) + "/"
    bases = [(posixpath.basename(name), name) for name in found.images]
    ways = {
        "their paths from the folder on": {name: name for name in found.images},
        "their paths from the table on": {
            name.removeprefix(beside): name for name in found.images if name.startswith(beside)
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


def _with_column(said: Collection, column: str | None) -> Form:
    if column is None:
        return said.form
    return msgspec.structs.replace(said.form, columns={**said.form.columns, "files": column})


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
    lowered = [name.lower() for name in heading]
    asked = columns.files or ((columns.id,) if columns.id else ())
    named = all(name in heading for name in asked) if asked else any(name in lowered for name in FILE_NAMES)
    label = columns.label or columns.question
    return named and (label in heading if label else any(name in lowered for name in LABEL_NAMES))


def _heading(path: Path) -> Names:
    """Return the names of a table's columns, or none where it cannot be read: then it names nothing."""
    import polars as pl

    suffix = path.suffix.lower()
    try:
        if suffix == ".parquet":
            return tuple(pl.read_parquet_schema(path))
        with path.open(encoding="utf-8-sig", newline="") as file:
            line = file.readline(_HEADING_MOST)
        if suffix in _MARKS:
            return tuple(next(csv.reader([line], delimiter=_MARKS[suffix]), ()))
        return tuple(msgspec.json.decode(line, type=dict[str, object]))
    except (
        OSError,
        UnicodeDecodeError,
        csv.Error,
        msgspec.MsgspecError,
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
    ):
        return ()
