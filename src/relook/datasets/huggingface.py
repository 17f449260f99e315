"""Data sets of Hugging Face: a folder saved with `save_to_disk`, files of parquet or arrow, or a `Dataset` in memory.

Files are read here and not by `datasets`: no code that comes with a set is run, no pickle is opened, nothing is cached
elsewhere. Names of classes come from the features that the files tell of.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from relook import layouts
from relook.arrowfiles import InMemory, Part, check_installed, opened
from relook.collection import VIEWS, Collection
from relook.errors import BadInput, MissingExtra
from relook.features import NO_CLASS, Features, Kinds, decoded, kinds, of_page
from relook.headers import header
from relook.pictures import content_of, inside
from relook.sheets import Sheet
from relook.sources import COLUMNS, LABEL_NAMES, Columns, Names, existing, listed

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = (".parquet", ".arrow")
"""Files that a folder of a data set holds."""

SPLIT_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev"), "validation"),
    **dict.fromkeys(("test", "testing", "eval", "evaluation"), "test"),
}
"""What a split may be called in the names of files, and what it is then called, as `datasets` has it."""

_SHARD = re.compile(r"(.+?)-\d{5}-of-\d{5}(?:-\w+)?")
_WORD = re.compile(r"[^A-Za-z]+")


class _Split(msgspec.Struct, frozen=True):
    """Rows of one split, what the features say of their columns, and whether paths in them may be followed."""

    name: str | None
    part: Part
    features: Features
    followed: bool = False


def collection(source: Any, *, columns: Columns = COLUMNS) -> Collection:
    """Return the items of a data set and what was said about them.

    `source` is a folder, a file, a `datasets.Dataset` or a `datasets.DatasetDict`. The label is the column named, else
    one called so, else the only one of classes; -1 there is no label.
    """
    check_installed()
    found = _in_memory(source) if not isinstance(source, Path) else _on_disk(source)
    called = str(source) if isinstance(source, Path) else "dataset"
    known = kinds(found[0].part.schema, found[0].features, source=called)
    for other in found[1:]:
        if kinds(other.part.schema, other.features, source=other.part.source) != known:
            raise BadInput(
                f"{other.part.source}: the columns of {found[0].part.source} were needed in every split, but others "
                "came; import one split at a time"
            )
    images = _image_columns(known, columns)
    frame = _frame(found, known)
    frame, said = _asked(frame, known, columns=_said(known, columns, images=images), source=called)
    sheet = Sheet(source=called, kind="huggingface", frame=frame.lazy(), columns=tuple(frame.columns), rows=len(frame))
    made = layouts.collection(sheet, columns=said)
    form = msgspec.structs.replace(made.form, settings={**made.form.settings, "features": known.told})
    left = (f"Columns that are no text, numbers or images are left out: {listed(known.others)}.",)
    facts = made.facts + (left if known.others else ())
    pictures = _pictures(found, images, made=made) if images else None
    return msgspec.structs.replace(made, form=form, facts=facts, pictures=pictures)


def from_hub(name: str, *, columns: Columns = COLUMNS) -> Collection:
    """Return a data set of the Hub by its name, from its data files only: code that comes with a set is never run."""
    try:
        import datasets
    except ImportError:
        raise MissingExtra(
            "Hugging Face: datasets was needed for the Hub, but it is not installed; pip install 'relook[hf]'"
        ) from None
    if int(datasets.__version__.split(".")[0]) < 4:
        raise MissingExtra(
            f"Hugging Face: datasets 4 or later was needed, which runs no code of data sets, but "
            f"{datasets.__version__} is installed; pip install -U 'relook[hf]'"
        )
    try:
        found = datasets.load_dataset(name)
    except Exception as error:  # noqa: BLE001  # whatever the network and the Hub bring about
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise BadInput(
            f"{name}: a data set of the Hub was needed, but it cannot be loaded ({reason}); check the name and the "
            "network, or save it with save_to_disk where there is one"
        ) from None
    return collection(found, columns=columns)


# Where the rows lie.


def _in_memory(source: Any) -> list[_Split]:
    if isinstance(source, dict) and source:
        return [part for name, one in source.items() for part in _one_in_memory(one, str(name))]
    return _one_in_memory(source, None)


def _one_in_memory(source: Any, name: str | None) -> list[_Split]:
    if type(source).__name__ != "Dataset" or not hasattr(source, "with_format"):
        raise BadInput(
            f"dataset: a path, a datasets.Dataset or a DatasetDict was needed, but {type(source).__name__} came; "
            "load it whole, without streaming"
        )
    table = source.with_format("arrow")[:]
    part = InMemory(table, f"dataset, split {name}" if name else "dataset")
    return [_Split(name, part, source.features.to_dict(), followed=True)]


def _on_disk(path: Path) -> list[_Split]:
    if path.is_file():
        existing(path)
        return [_Split(None, *_opened(path, {}))]
    if not path.is_dir():
        raise BadInput(f"{path}: a folder of a data set was needed, but there is none of this name; check the path")
    if (path / "dataset_dict.json").is_file():
        told = _json(path / "dataset_dict.json").get("splits")
        if not isinstance(told, list) or not told or not all(isinstance(name, str) for name in told):
            raise BadInput(
                f"{path}/dataset_dict.json: names of splits were needed, but {told!r:.60} came; save it again"
            )
        names = [inside(name, called=str(path)) for name in told]
        return [part for name in names for part in _saved(path / name, name)]
    if (path / "state.json").is_file():
        return _saved(path, None)
    return _loose(path)


def _saved(folder: Path, split: str | None) -> list[_Split]:
    """Return what `save_to_disk` left in a folder."""
    files = _json(folder / "state.json").get("_data_files")
    names = [one.get("filename") for one in files if isinstance(one, dict)] if isinstance(files, list) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise BadInput(f"{folder}/state.json: names of files were needed, but {files!r:.60} came; save it again")
    features = _json(folder / "dataset_info.json").get("features") if (folder / "dataset_info.json").exists() else None
    paths = [folder / inside(str(name), called=str(folder)) for name in names]
    return [_Split(split, *_opened(path, features or {})) for path in paths]


def _loose(folder: Path) -> list[_Split]:
    """Return the data files of a folder, their splits by their names, in the order of the splits."""
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in SUFFIXES and not path.is_symlink()]
    if not files:
        raise BadInput(
            f"{folder}: a data set saved by datasets, or files of parquet or arrow, were needed, but it holds none; "
            "save it with save_to_disk"
        )
    told = of_page(folder / "README.md")
    splits = [_split_of(path.relative_to(folder)) for path in files]
    order = [name for name in dict.fromkeys((*SPLIT_NAMES.values(), *splits)) if name in splits]
    found = [(split, path) for name in order for split, path in zip(splits, files, strict=True) if split == name]
    return [_Split(split, *_opened(path, told)) for split, path in found]


def _split_of(path: Path) -> str | None:
    """Return the split that the name of a file, or of a folder around it, tells."""
    shard = _SHARD.fullmatch(path.stem)
    if shard:
        return SPLIT_NAMES.get(shard[1], shard[1])
    words = (word.lower() for part in (path.stem, *reversed(path.parts[:-1])) for word in _WORD.split(part))
    return next((SPLIT_NAMES[word] for word in words if word in SPLIT_NAMES), None)


def _opened(path: Path, told: Features) -> tuple[Part, Features]:
    """Return the rows of a file and its features: its own, else those told of beside it."""
    existing(path)
    part = opened(path)
    known = (part.schema.metadata or {}).get(b"huggingface")
    about = {} if known is None else decoded(known, f"{path}, its schema").get("info")
    own = about.get("features") if isinstance(about, dict) else None
    return part, own or told


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise BadInput(
            f"{path}: the record that datasets saves beside its files was needed, but it is gone; save it again"
        )
    return decoded(path.read_bytes(), str(path))


# What the columns hold.


def _frame(found: Sequence[_Split], known: Kinds) -> pl.DataFrame:
    """Return all that is plain, classes by name, with a column of splits where there are any."""
    import polars as pl

    parts = []
    for split in found:
        table = split.part.frame(known.plain)
        cells = [_named(table[name], names, source=split.part.source) for name, names in known.classes.items()]
        cells += [_named_lists(table[name], names, source=split.part.source) for name, names in known.several.items()]
        table = table.with_columns(cells)
        if split.name is not None and "split" not in table.columns:
            table = table.with_columns(split=pl.lit(split.name))
        parts.append(table)
    return pl.concat(parts, how="diagonal_relaxed")


def _named(numbers: pl.Series, names: Names, *, source: str) -> pl.Series:
    """Return the names of classes for their numbers, and null where there is no class."""
    import polars as pl

    _check_range(numbers, names, source=source)
    return numbers.cast(pl.Int64).replace_strict(dict(enumerate(names)), default=None, return_dtype=pl.String)


def _named_lists(lists: pl.Series, names: Names, *, source: str) -> pl.Series:
    """Return lists of the names of classes for lists of their numbers."""
    import polars as pl

    for ends in (lists.list.min(), lists.list.max()):
        _check_range(ends, names, source=source)
    told = pl.element().cast(pl.Int64).replace_strict(dict(enumerate(names)), default=None, return_dtype=pl.String)
    return lists.list.eval(told.drop_nulls())


def _check_range(numbers: pl.Series, names: Names, *, source: str) -> None:
    import polars as pl

    # A column in which nothing is has no numbers to compare.
    known = numbers.cast(pl.Int64) if numbers.dtype == pl.Null else numbers
    bad = (known < NO_CLASS) | (known >= len(names))
    if bad.any():
        row = int(bad.arg_max() or 0)
        raise BadInput(
            f"{source}, item {row}: a class was needed in column {numbers.name}, 0 to {len(names) - 1}, but "
            f"{numbers[row]} came; save the set with all names"
        )


def _image_columns(known: Kinds, columns: Columns) -> Names:
    """Return the columns of images: those asked for, else all, but only if none is asked for by its paths."""
    if columns.files is None:
        return known.images
    return columns.files if set(columns.files) <= set(known.images) else ()


def _said(known: Kinds, columns: Columns, *, images: Names) -> Columns:
    """Return what the user says, and what the features say where the user does not."""
    label = columns.label
    if label is None and columns.question is None and not any(name.lower() in LABEL_NAMES for name in known.plain):
        candidates = list(known.classes) or list(known.several)
        label = candidates[0] if len(candidates) == 1 else None
    names = label or next((name for name in LABEL_NAMES if name in known.plain), "")
    classes = columns.classes or known.classes.get(names) or known.several.get(names)
    files = None if images else columns.files
    return msgspec.structs.replace(columns, label=label, classes=classes, files=files)


def _asked(frame: pl.DataFrame, known: Kinds, *, columns: Columns, source: str) -> tuple[pl.DataFrame, Columns]:
    """Turn lists of classes into a question, or into answers of the annotators in a list beside them."""
    import polars as pl

    if columns.question is not None and columns.question not in frame.columns:
        return _question(frame, known, columns=columns, source=source)
    label = columns.label or next((name for name in LABEL_NAMES if name in frame.columns), "")
    if label not in known.several:
        return frame, columns
    people = columns.annotator
    if people is None or people not in frame.columns or not isinstance(frame[people].dtype, pl.List):
        raise BadInput(
            f"{source}: one class an item was needed, but column {label} holds lists of them; ask for one class with "
            "--question, or name the column with lists of their annotators with --annotator"
        )
    if (frame[people].list.len() != frame[label].list.len()).any():
        row = int((frame[people].list.len() != frame[label].list.len()).arg_max() or 0)
        raise BadInput(
            f"{source}, item {row}: an annotator for each class was needed, but {people} has another number than "
            f"{label}; mend it"
        )
    return frame.explode(label, people, empty_as_null=True), columns


def _question(frame: pl.DataFrame, known: Kinds, *, columns: Columns, source: str) -> tuple[pl.DataFrame, Columns]:
    """Ask of lists of classes whether one is among them."""
    import polars as pl

    asked = columns.question
    found = [name for name, names in known.several.items() if asked in names and columns.label in (None, name)]
    if len(found) != 1:
        raise BadInput(
            f"{source}: one column whose classes include {asked!r} was needed for the question, but "
            f"{listed(found) or 'none'} came; name it with --label"
        )
    cells = pl.col(found[0])
    yes = pl.when(cells.is_not_null()).then(cells.list.contains(asked).replace_strict({True: "yes", False: "no"}))
    classes = (
        None if columns.classes is None or set(columns.classes) == set(known.several[found[0]]) else columns.classes
    )
    return frame.with_columns(yes.alias(str(asked))), msgspec.structs.replace(columns, label=None, classes=classes)


# Images.


def _pictures(found: Sequence[_Split], images: Names, *, made: Collection) -> _Images:
    rows = sum(split.part.rows for split in found)
    if rows != len(made):
        raise BadInput(
            f"{made.source}: images of an item a row were needed, but {rows:,} rows tell of {len(made):,} items; save "
            "each item once, with lists of its classes and annotators"
        )
    return _Images(found, images)


class _Images:
    """Images as bytes in columns, written into files as they are."""

    __slots__ = ("_columns", "_ends", "_splits")

    def __init__(self, splits: Sequence[_Split], columns: Names) -> None:
        self._splits, self._columns = splits, columns
        self._ends = list(accumulate(split.part.rows for split in splits))

    def write(self, item: int, folder: Path) -> Sequence[str]:
        """Write an item's images into a folder, and return the names of the files."""
        number = bisect_right(self._ends, item)
        split = self._splits[number]
        row = item - (self._ends[number - 1] if number else 0)
        place = f"{split.part.source}, item {row}"
        found = [content for name in self._columns for content in _contents(split, name, row=row, place=place)]
        if len(found) > VIEWS:
            raise BadInput(
                f"{place}: at most {VIEWS} images were needed, but {len(found)} came; leave some of them out"
            )
        names = []
        for view, content in enumerate(found, 1):
            kind = header(content, place=place).kind.lower()
            names.append(f"{item:08d}{f'-{view}' if len(found) > 1 else ''}.{kind}")
            (folder / names[-1]).write_bytes(content)
        return names


def _contents(split: _Split, column: str, *, row: int, place: str) -> Iterator[bytes]:
    """Yield the bytes of the images in a cell."""
    cell = split.part.cell(column, row)
    for image in cell if isinstance(cell, list) else [cell]:
        if image is None or (image["bytes"] is None and image["path"] is None):
            continue
        if image["bytes"] is not None:
            yield image["bytes"]
        elif split.followed:
            yield content_of(Path(image["path"]).parent, Path(image["path"]).name)
        else:
            raise BadInput(
                f"{place}: the bytes of an image were needed in column {column}, but only its path came, which is not "
                "followed; save the set with save_to_disk where the image lies"
            )
