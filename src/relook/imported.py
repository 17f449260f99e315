"""An imported set: a folder with a table of items, one of answers, and a manifest that says where all came from.

It is written whole or not at all: everything is made in a folder beside it, which then takes its name. Importing the
same source again changes nothing.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from relook import __version__, npfiles, pictures
from relook.cells import write_csv
from relook.collection import GIVEN, NUMBER, Collection, Form
from relook.errors import BadInput
from relook.pictures import Step
from relook.sources import Names, counted, listed
from relook.thumbnails import THUMBNAILS, LinkedImages
from relook.types import Dataset, FloatArray
from relook.whole import beside, synced

if TYPE_CHECKING:
    import polars as pl

SCHEMA = 1
_A_ROW = 200
"""Bytes that a row of items takes for its id and what relook adds, such as the hash of an image."""

MANIFEST, ITEMS, ANSWERS = "manifest.json", "items.parquet", "answers.parquet"
IMAGES, CONFLICTS, MISSING, EXTRA = "images", "conflicts.csv", "missing.csv", "extra.csv"

TRUTH = "truth"
"""The true distributions of a set that was made noisy on purpose, N x C, in `truth.npy`: it can be simulated on."""


class SourceFile(msgspec.Struct, frozen=True):
    """A file that was read: where it lay, how long it is, and its SHA-256."""

    path: str
    bytes: int
    hash: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What an imported set is and where it came from.

    `root` is the folder that the paths of images start from: none for images that lie in the set itself. `hashes` are
    the SHA-256 of the files beside the manifest. `noise` says what made the given labels wrong, where that was done on
    purpose: the model, its settings, the seed and the rate.
    """

    schema: int = SCHEMA
    software: str = __version__
    name: str
    content: str
    classes: Names
    items: int
    answers: int
    form: Form
    sources: tuple[SourceFile, ...] = ()
    root: str | None = None
    hashes: dict[str, str] = {}
    noise: dict[str, int | float | str] = {}
    facts: Names = ()


class Origin(msgspec.Struct, frozen=True, eq=False):
    """What a collection is imported with: the files it was read from, the folder its images lie in, and its vectors.

    Vectors are `embeddings`, `probabilities` or `truth`, a row an item, of NaN where it is missing. `missing` are the
    ids of items that vectors have no row for, by what lacks them, and `extra` those of rows that belong to no item;
    `noise` is how labels were made wrong on purpose.
    """

    sources: tuple[SourceFile, ...] = ()
    root: Path | None = None
    vectors: Mapping[str, FloatArray] = {}
    missing: Mapping[str, Sequence[str]] = {}
    extra: Mapping[str, Sequence[str]] = {}
    noise: Mapping[str, int | float | str] = {}


UNKNOWN = Origin()
"""A collection that was made in memory."""


class Imported(msgspec.Struct, frozen=True):
    """An imported set on disk; its tables are read when they are asked for."""

    folder: Path
    manifest: Manifest

    def __len__(self) -> int:
        return self.manifest.items

    @property
    def root(self) -> Path:
        """The folder that the paths of images start from."""
        return self.folder / IMAGES if self.manifest.root is None else Path(self.manifest.root)

    def items(self, split: str | None = None) -> pl.LazyFrame:
        """Return the table of items, or those of one split, with the number of their row as `item`."""
        import polars as pl

        table = pl.scan_parquet(self.folder / ITEMS).with_row_index("item")
        if split is None:
            return table
        if "split" not in table.collect_schema().names():
            raise BadInput(f"{self.folder}: a column of splits was needed for --split, but it has none; leave it out")
        known = table.select("split").unique().collect()["split"].drop_nulls().sort().to_list()
        if split not in known:
            raise BadInput(
                f"{self.folder}: the name of a split was needed ({listed(known)}), but {split!r} came; "
                "check the spelling"
            )
        return table.filter(pl.col("split") == split)

    def collection(self, split: str | None = None) -> Collection:
        """Return what the set, or one split of it, holds."""
        import polars as pl

        items, answers = self.items(split), pl.read_parquet(self.folder / ANSWERS)
        rows = items.select("item", "id").collect()
        if split is not None:
            renumbered = rows.select("item").with_row_index("row")
            answers = answers.join(renumbered, on="item", maintain_order="left").drop("item").rename({"row": "item"})
        return Collection(
            source=str(self.folder),
            form=self.manifest.form,
            classes=self.manifest.classes,
            ids=rows["id"],
            answers=answers,
            items=items.drop("item", "bytes", "hash", strict=False),
            facts=self.manifest.facts,
        )

    def vectors(self, name: str, split: str | None = None) -> FloatArray | None:
        """Return the embeddings or the probabilities that came along, mapped from the disk, or None."""
        path = self.folder / f"{name}.npy"
        if not path.is_file():
            return None
        values: FloatArray = npfiles.single(path).array()
        return values if split is None else values[self.items(split).select("item").collect()["item"].to_numpy()]

    def images(self, split: str | None = None) -> LinkedImages:
        """Return the first image of each item; small ones are kept in the set once they have been looked at."""
        known = self.items(split).select("files", "hash").collect()
        files, hashes = (known[name].to_list() for name in ("files", "hash"))
        return LinkedImages(self.root, files, hashes=hashes, kept=self.folder / THUMBNAILS)

    def dataset(self, split: str | None = None) -> Dataset:
        """Return the set, or one split of it, as what is ranked and simulated on; images are opened when looked at."""
        found = self.collection(split)
        columns = found.columns
        parts: dict[str, Any] = {"truth": self.vectors(TRUTH, split)}
        if "files" in columns:
            parts["images"] = self.images(split)
        numbers = [name for name in columns if name.startswith(NUMBER)]
        words = {part: column for part, column in (("texts", "text"), ("groups", "group")) if column in columns}
        known = self.items(split).select(*numbers, *words.values()).collect()
        if numbers:
            parts["features"] = known.select(numbers).to_numpy()
        parts |= {part: known[column].fill_null("").to_list() for part, column in words.items()}
        return Dataset(self.manifest.name, found.classes, found.ids.to_list(), found.labels(), **parts)


def source_file(path: Path) -> SourceFile:
    """Return a file's place, length and SHA-256."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return SourceFile(str(path), path.stat().st_size, digest)


def read(folder: Path) -> Imported:
    """Return the imported set of a folder."""
    path = folder / MANIFEST
    if not path.is_file():
        raise BadInput(f"{folder}: an imported set was needed, but it has no {MANIFEST}; make one with relook import")
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: a manifest was needed, but it is none ({error}); import the source again") from None
    if manifest.schema > SCHEMA:
        raise BadInput(
            f"{path}: a set of schema {SCHEMA} at most was needed, but relook {manifest.software} made one of "
            f"{manifest.schema}; install a newer relook"
        )
    return Imported(folder, manifest)


def verify(found: Imported, *, only: Sequence[str] | None = None) -> None:
    """Refuse a set whose files, or those that are named, are not those that its manifest tells of."""
    for name in found.manifest.hashes if only is None else only:
        expected = found.manifest.hashes[name]
        path = found.folder / name
        if not path.is_file() or source_file(path).hash != expected:
            came = "others came" if path.is_file() else "it is gone"
            raise BadInput(f"{path}: the bytes that were imported were needed, but {came}; import the source again")


def write(
    found: Collection, folder: Path, *, origin: Origin = UNKNOWN, step: Step | None = None
) -> tuple[Imported, bool]:
    """Write an imported set, whole or not at all, and say whether anything changed.

    A folder that holds the very same set already is left as it is; one that holds anything else is refused.
    """
    check_target(folder)
    with beside(folder) as made:
        manifest = _written(found, made, origin=origin, step=step)
        manifest = msgspec.structs.replace(manifest, name=folder.name)
        (made / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
        if folder.exists() and any(folder.iterdir()):
            there = read(folder)
            if there.manifest.hashes != manifest.hashes or there.manifest.classes != manifest.classes:
                raise BadInput(
                    f"{folder}: a new folder was needed, but another set is there already; remove it, or name another"
                )
            return there, False
        synced(made)
        with suppress(FileNotFoundError):
            folder.rmdir()
        made.rename(folder)
    return Imported(folder, manifest), True


def room(found: Collection, folder: Path, *, source: Path, origin: Origin = UNKNOWN) -> tuple[int, int]:
    """Return about how many bytes an imported set would take, and how many are free where it would lie.

    Tables are taken for as large as the files that they come from, which are not read for it, and so are images that
    must be written out.
    """
    tables = sum(each.bytes for each in origin.sources) if found.pictures is None else 0
    rows = tables + _A_ROW * len(found) + int(found.answers.estimated_size())
    vectors = sum(values.nbytes for values in origin.vectors.values())
    written = 0 if found.pictures is None else _size(source)
    return rows + vectors + written, shutil.disk_usage(folder.absolute().parent).free


def _size(source: Path) -> int:
    files = [source] if source.is_file() else [path for path in source.rglob("*") if path.is_file()]
    return sum(path.stat().st_size for path in files)


def check_target(folder: Path) -> None:
    """Refuse a folder that a set cannot be written to."""
    if folder.is_file():
        raise BadInput(f"{folder}: a folder to write to was needed, but a file is there; name another")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MANIFEST).is_file():
        raise BadInput(f"{folder}: a new or empty folder was needed, but it holds other files; name another")
    if not folder.absolute().parent.is_dir():
        raise BadInput(f"{folder}: a folder that is there was needed for {folder.name}; make {folder.parent} first")


def _written(found: Collection, folder: Path, *, origin: Origin, step: Step | None) -> Manifest:
    items, seen = _with_files(found, folder, origin=origin, step=step)
    items.sink_parquet(folder / ITEMS)
    found.answers.write_parquet(folder / ANSWERS)
    for name, values in origin.vectors.items():
        np.save(folder / f"{name}.npy", values, allow_pickle=False)
    _list_unmatched(origin, folder)
    facts = found.facts + seen + _conflicts(found, folder)
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return Manifest(
        name=folder.name,
        content=found.content,
        classes=found.classes,
        items=len(found),
        answers=len(found.answers),
        form=found.form,
        # The name and the hash of a patient's file lead to the patient.
        sources=() if found.anonymous else origin.sources,
        root=None if origin.root is None or found.pictures is not None else str(origin.root.absolute()),
        hashes={path.name: source_file(path).hash for path in files},
        noise=dict(origin.noise),
        facts=facts,
    )


def _with_files(found: Collection, folder: Path, *, origin: Origin, step: Step | None) -> tuple[pl.LazyFrame, Names]:
    """Return the items with size and hash of every image, and what was seen on the way.

    Images that are no ordinary files are written out first.
    """
    import polars as pl

    root, called = folder / IMAGES, found.source
    if found.pictures is not None:
        root.mkdir()
        names = [list(found.pictures.write(item, root)) for item in range(len(found))]
    elif "files" in found.columns:
        root = Path() if origin.root is None else origin.root
        called = str(root)
        names = found.items.select("files").collect()["files"].to_list()
    else:
        return found.items, ()
    read = pictures.linked(root, names, called=called, step=step)
    kinds = {"item": pl.UInt32, "files": pl.String, "bytes": pl.Int64, "hash": pl.String}
    values = (read.items, read.names, read.sizes, read.hashes)
    flat = pl.DataFrame([pl.Series(*column) for column in zip(kinds, values, kinds.values(), strict=True)])
    every = pl.DataFrame({"item": pl.int_range(len(found), dtype=pl.UInt32, eager=True)})
    none = [pl.col(name).fill_null(pl.lit([], pl.List(kinds[name]))) for name in ("files", "bytes", "hash")]
    lists = every.join(flat.group_by("item", maintain_order=True).all(), on="item", how="left", maintain_order="left")
    added = lists.select(none).lazy()
    return pl.concat([found.items.drop("files", strict=False), added], how="horizontal"), read.facts


def _list_unmatched(origin: Origin, folder: Path) -> None:
    import polars as pl

    for file, what, listing in ((MISSING, "missing", origin.missing), (EXTRA, "extra", origin.extra)):
        rows = [(name, vectors) for vectors, names in listing.items() for name in names]
        if rows:
            write_csv(pl.DataFrame(rows, schema=["id", what], orient="row"), folder / file)


def _conflicts(found: Collection, folder: Path) -> Names:
    """List identical items whose given labels differ, and say how many there are."""
    import polars as pl

    known = pl.scan_parquet(folder / ITEMS)
    alike = next((name for name in ("hash", "text") if name in known.collect_schema().names()), None)
    if alike is None:
        return ()
    # Items without an image are not alike for that.
    same = pl.col(alike).list.join(" ").replace("", None) if alike == "hash" else pl.col(alike)
    items = known.select("id", same=same).with_row_index("item").filter(_several(known.select(same=same)))
    given = found.answers.lazy().filter(pl.col("annotator") == GIVEN).select("item", "label")
    both = items.join(given, on="item", maintain_order="left").filter(pl.col("same").is_not_null())
    differ = both.filter(pl.col("label").n_unique().over("same") > 1)
    listing = differ.select("same", "id", given="label").sort("same", "id").collect()
    if not listing.height:
        return ()
    write_csv(listing.rename({"same": alike}), folder / CONFLICTS)
    groups = listing["same"].n_unique()
    return (f"Identical items with different labels: {counted(groups, alike)}, listed in {CONFLICTS}.",)


def _several(table: pl.LazyFrame) -> pl.Series:
    """Say which rows of one column may come more than once, without keeping what they hold."""
    import polars as pl

    hashes = table.select(pl.col("same").hash()).collect(engine="streaming")["same"]
    ordered = np.sort(hashes.to_numpy())
    return hashes.is_in(pl.Series(np.unique(ordered[1:][ordered[1:] == ordered[:-1]])).implode())
