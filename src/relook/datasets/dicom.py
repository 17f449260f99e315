"""DICOM files: pixels and a few tags go in under names that only the site's key leads back; nothing else does."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from relook.apart import Apart
from relook.collection import GIVEN, KEPT, VIEWS, Collection, Form
from relook.errors import BadInput
from relook.pseudonyms import SiteKey, site_key
from relook.radiograph import RELEASABLE, Header, is_dicom
from relook.sources import COLUMNS, Columns, Names, counted, listed

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = (".dcm", ".dicom", ".dic", ".ima")
"""What names of DICOM files end in where they end in anything; files are known by the mark in them."""


class Site(msgspec.Struct, frozen=True):
    """What a site decides: where its key lies, and what is let in although it may show a name or a face."""

    key: Path | None = None
    released: Names = ()

    def __post_init__(self) -> None:
        unknown = [reason for reason in self.released if reason not in RELEASABLE]
        if unknown:
            raise BadInput(
                f"DICOM: reasons to hold a file back were needed, of {listed(RELEASABLE)}, but {unknown[0]!r} came; "
                "release one of them, or none"
            )


SITE = Site()
"""The key at its usual place, and nothing released."""


class _Found(msgspec.Struct, frozen=True):
    """A file that is let in."""

    path: Path
    header: Header


def collection(
    path: Path, *, columns: Columns = COLUMNS, labels: Collection | None = None, site: Site = SITE
) -> Collection:
    """Return the images of a DICOM file, or of a folder of them, under pseudonyms.

    `labels` says what was answered about them: its ids, or its files where it has several an item, are paths in the
    folder, names of files, or SOP instance UIDs. Nothing else of it is taken but splits. Without it, folders that are
    named in `columns.classes` give their files that label.
    """
    if not path.exists():
        raise BadInput(f"{path}: a DICOM file or a folder of them was needed, but there is none of this name; check it")
    key = _key(path, site)
    files, facts = _files(path)
    with Apart(key) as apart:
        headers = {file: apart.header(file) for file in files}
    found, told = _let_in(path, headers, site=site)
    items, answers, classes, said = (
        _by_folder(path, found, columns=columns) if labels is None else _joined(path, found, labels=labels, key=key)
    )
    table = _table(items, labels)
    return Collection(
        source=str(path),
        form=Form("dicom", settings={"key": key.mark}),
        classes=classes,
        ids=table["id"],
        items=table.lazy(),
        answers=answers,
        pictures=_Radiographs(items, key),
        anonymous=True,
        facts=(*facts, *told, *said),
    )


def pseudonyms(path: Path, *, site: Site = SITE) -> dict[str, Path]:
    """Return which file each id stands for: for whoever holds the files and the key, and for nobody else."""
    with Apart(site_key(site.key)) as apart:
        headers = {file: apart.header(file) for file in _files(path)[0]}
    return {header.id: file for file, header in headers.items() if header is not None}


def _key(path: Path, site: Site) -> SiteKey:
    if site.key is not None and path.is_dir() and site.key.resolve().is_relative_to(path.resolve()):
        raise BadInput(
            f"{path}: a place away from the images was needed for the site's key, but it is {site.key.name} in this "
            "folder; keep it where nobody copies it along"
        )
    return site_key(site.key)


class _Item(msgspec.Struct, frozen=True):
    """Files that are judged together, and the row of their labels, or the name of their class."""

    id: str
    found: tuple[_Found, ...]
    row: int = -1
    label: str | None = None

    def names(self) -> list[list[str]]:
        """Return the names of the PNG files, a list a DICOM file."""
        several = sum(part.header.frames for part in self.found) > 1
        numbers = iter(range(1, VIEWS + 1))
        return [
            [f"{self.id}-{next(numbers)}.png" if several else f"{self.id}.png" for _ in range(part.header.frames)]
            for part in self.found
        ]


class _Radiographs:
    """Images that are decoded when they are written out."""

    __slots__ = ("_apart", "_items")

    def __init__(self, items: Sequence[_Item], key: SiteKey) -> None:
        self._items, self._apart = items, Apart(key)

    def write(self, item: int, folder: Path) -> Sequence[str]:
        """Write an item's images into a folder as PNG with every bit, and return the names of the files."""
        chosen = self._items[item]
        names = chosen.names()
        for part, own in zip(chosen.found, names, strict=True):
            self._apart.write(part.path, folder, names=own)
        return [name for own in names for name in own]


# Which files are let in.


def _files(path: Path) -> tuple[list[Path], Names]:
    """Return the DICOM files, and what was left out; links are not followed."""
    if path.is_file():
        if not is_dicom(path):
            raise _unmarked(path)
        return [path], ()
    files, others, links = [], 0, 0
    for file in _walked(path):
        if file.is_symlink():
            links += 1
        elif file.is_file() and is_dicom(file):
            files.append(file)
        elif file.suffix.lower() in SUFFIXES:
            raise _unmarked(file)
        else:
            others += 1
    if not files:
        raise BadInput(f"{path}: DICOM files were needed, but the folder holds none; name the folder that they lie in")
    facts = ((others, "file that is no DICOM", "Left out"), (links, "link", "Not followed"))
    return files, tuple(f"{what}: {_several(number, of)}." for number, of, what in facts if number)


def _walked(path: Path) -> Iterator[Path]:
    for folder, inner, names in os.walk(path):
        inner.sort()
        yield from (Path(folder, name) for name in sorted(names))


def _unmarked(path: Path) -> BadInput:
    return BadInput(
        f"{path}: a DICOM file was needed, but the mark DICM is not in it; export it again, with its file header"
    )


def _several(number: int, what: str) -> str:
    return (
        f"{number:,} {what}" if number == 1 else f"{number:,} {what.replace('file', 'files').replace('link', 'links')}"
    )


def _let_in(path: Path, headers: Mapping[Path, Header | None], *, site: Site) -> tuple[list[_Found], Names]:
    """Return the files that are let in, and what is to be known of the others."""
    known = [_Found(file, header) for file, header in headers.items() if header is not None]
    if not known:
        raise BadInput(f"{path}: DICOM images were needed, but no file holds one; name the folder that they lie in")
    found, why = _parted(known, site)
    told = ", ".join(f"{reason} {number:,}" for reason, number in sorted(why.items()))
    if not found:
        raise BadInput(
            f"{path}: images that may be shown were needed, but all of {counted(len(known), 'file')} are held back "
            f"({told}); look at them, and release what is safe"
        )
    _check_copies(found)
    facts = (
        (len(known) - len(found), "held back, as names or faces may show: {} (" + told + ")"),
        (len(headers) - len(known), "without an image, such as reports or a DICOMDIR, left out: {}"),
        *_doubts([part.header for part in found]),
    )
    return found, tuple(f"Files {text.format(f'{number:,}')}." for number, text in facts if number)


def _parted(known: Sequence[_Found], site: Site) -> tuple[list[_Found], Counter[str]]:
    """Return the files that nothing speaks against, and how many are held back for each reason."""
    found, why = [], Counter[str]()
    for part in known:
        reasons = set(part.header.held) - set(site.released)
        why.update(reasons)
        if not reasons:
            found.append(part)
    return found, why


def _doubts(headers: Sequence[Header]) -> tuple[tuple[int, str], ...]:
    """Return how many files that are let in leave something open, each with what it is."""
    unsure = sum(header.unsure for header in headers)
    strangers = sum(not header.known_patient for header in headers)
    return (
        (unsure, "that do not say whether text is burned into the picture: {}; look at some"),
        (strangers, "without a patient, each a group of its own: {}"),
        (
            sum(header.dropped for header in headers),
            "with words that the standard does not define, which are left out: {}",
        ),
    )


def _check_copies(found: Sequence[_Found]) -> None:
    seen: dict[str, Path] = {}
    for part in found:
        first = seen.setdefault(part.header.id, part.path)
        if first != part.path:
            raise BadInput(
                f"{part.path}: an image of its own was needed, but {first} is the same SOP instance; remove one"
            )


# What was said about them.


def _by_folder(
    path: Path, found: Sequence[_Found], *, columns: Columns
) -> tuple[list[_Item], pl.DataFrame, Names, Names]:
    """Take the names of folders for labels where the user has named them as classes: they may as well be patients."""
    import polars as pl

    if not columns.classes:
        raise BadInput(
            f"{path}: names of classes were needed, as a folder of DICOM may be named after a patient, but none came; "
            "say --classes a,b,c, or give a table of labels"
        )
    classes = columns.classes
    items = [_Item(part.header.id, (part,), label=_class_of(part.path, path, classes=classes)) for part in found]
    items.sort(key=lambda item: item.id)
    labels = [(row, item.label) for row, item in enumerate(items) if item.label is not None]
    answers = pl.DataFrame(
        {"item": [row for row, _ in labels], "annotator": [GIVEN] * len(labels), "label": [name for _, name in labels]},
        schema={"item": pl.UInt32, "annotator": pl.String, "label": pl.String},
    )
    return items, answers, classes, _without(len(items) - len(labels))


def _class_of(file: Path, root: Path, *, classes: Names) -> str | None:
    folders = file.relative_to(root).parts[:-1] if root != file else ()
    return next((name for name in folders if name in classes), None)


def _without(number: int) -> Names:
    return (f"Items without a label: {number:,}.",) if number else ()


def _joined(
    path: Path, found: Sequence[_Found], *, labels: Collection, key: SiteKey
) -> tuple[list[_Item], pl.DataFrame, Names, Names]:
    """Bring labels to their files; files that nothing is said about are items without a label."""
    import polars as pl

    items = _matched(path, found, labels=labels, key=key)
    if not items:
        raise BadInput(
            f"{labels.source}: names of files in {path} were needed, but none of {counted(len(labels), 'row')} has "
            "one; name a column of file names or SOP instance UIDs with --id"
        )
    lost = len(labels) - len(items)
    taken = {part.header.id for item in items for part in item.found}
    items += [_Item(part.header.id, (part,)) for part in found if part.header.id not in taken]
    items.sort(key=lambda item: item.id)
    rows = pl.DataFrame({"item": [item.row for item in items]}, schema={"item": pl.Int64}).with_row_index("place")
    answers = labels.answers.with_columns(pl.col("item").cast(pl.Int64), pl.col("annotator", "label").cast(pl.String))
    answers = answers.join(rows, on="item", maintain_order="left").drop("item").rename({"place": "item"})
    facts = (f"Labels whose file is not there or is held back: {lost:,}.",) if lost else ()
    return items, answers, labels.classes, (*facts, *_without(len(items) - answers["item"].n_unique()))


def _matched(path: Path, found: Sequence[_Found], *, labels: Collection, key: SiteKey) -> list[_Item]:
    """Return the rows of labels whose files are all there."""
    by_id, by_name = {part.header.id: part for part in found}, _by_name(path, found)
    items: list[_Item] = []
    rows: dict[str, int] = {}
    for row, names in enumerate(_names(labels)):
        parts = [
            by_id.get(key.pseudonym("item", name)) or _only(by_name, name, place=labels.place(row)) for name in names
        ]
        own = tuple(part for part in parts if part is not None)
        if not own or len(own) < len(parts):
            continue
        for part in own:
            if rows.setdefault(part.header.id, row) != row:
                raise BadInput(
                    f"{labels.place(row)}: a file of its own was needed, but {labels.place(rows[part.header.id])} has "
                    "it too; remove one of them"
                )
        items.append(_together(own, row, place=labels.place(row), key=key))
    return items


def _names(labels: Collection) -> list[list[str]]:
    if "files" in labels.columns:
        return labels.items.select("files").collect()["files"].to_list()
    return [[name] for name in labels.ids.to_list()]


def _by_name(root: Path, found: Sequence[_Found]) -> dict[str, list[_Found]]:
    """Return files by their path in the folder, by their name, and by their name without what it ends in."""
    named: dict[str, list[_Found]] = {}
    for part in found:
        inside = part.path.relative_to(root).as_posix() if root != part.path else part.path.name
        for name in {inside, part.path.name, part.path.stem}:
            named.setdefault(name, []).append(part)
    return named


def _only(named: Mapping[str, list[_Found]], name: str, *, place: str) -> _Found | None:
    parts = named.get(name, [])
    if len(parts) > 1:
        raise BadInput(
            f"{place}: one file was needed, but {counted(len(parts), 'file')} have the name {name!r}; say the path in "
            "the folder, or the SOP instance UID"
        )
    return parts[0] if parts else None


def _together(parts: tuple[_Found, ...], row: int, *, place: str, key: SiteKey) -> _Item:
    """Return an item of one file or several, such as a frontal and a lateral one."""
    images = sum(part.header.frames for part in parts)
    if images > VIEWS:
        raise BadInput(f"{place}: at most {VIEWS} images were needed, but {images} came; leave some of them out")
    if len({part.header.group for part in parts}) > 1:
        raise BadInput(f"{place}: images of one patient were needed, but several patients came; mend the row")
    ids = [part.header.id for part in parts]
    return _Item(ids[0] if len(ids) == 1 else key.pseudonym("items", *ids), parts, row)


def _table(items: Sequence[_Item], labels: Collection | None) -> pl.DataFrame:
    """Return the items with their patients, their splits, and what was let in of their tags."""
    import polars as pl

    every = set[str]().union(*(part.header.values for item in items for part in item.found))
    columns: dict[str, list[Any]] = {
        "id": [item.id for item in items],
        "group": [item.found[0].header.group for item in items],
        **{KEPT + name: [_value(item, name) for item in items] for name in sorted(every)},
    }
    if labels is not None and "split" in labels.columns:
        # The last one is that of items without a row.
        splits = [*labels.items.select("split").collect()["split"], None]
        columns["split"] = [splits[item.row] for item in items]
    return pl.DataFrame(columns, schema_overrides=dict.fromkeys(columns, pl.String))


def _value(item: _Item, name: str) -> str | None:
    """Return what an item's files say; where they differ, each of them."""
    values = [part.header.values.get(name) for part in item.found]
    return values[0] if len(set(values)) == 1 else "|".join(value or "" for value in values)
