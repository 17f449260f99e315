"""Images in folders: a folder a class, or a folder a split and in it a folder a class.

Paths from the folder on, with `/`, are their ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from relook.collection import GIVEN, Collection, Form, in_order
from relook.errors import BadInput
from relook.sources import COLUMNS, Columns, Missing, Names, counted, listed
from relook.tree import SPLITS, Tree, with_images


def collection(path: Path, *, columns: Columns = COLUMNS, missing: Missing = "refused") -> Collection:
    """Return the images of a folder with the classes that their folders say they are of.

    Images that lie in no folder of a class are refused, or taken in without a label where missing ones are allowed.

    >>> import tempfile
    >>> pets = Path(tempfile.mkdtemp())
    >>> for name in ("cat/1.png", "dog/1.png"):
    ...     (pets / name).parent.mkdir()
    ...     (pets / name).touch()
    >>> collection(pets).classes, collection(pets).ids.to_list()
    (('cat', 'dog'), ['cat/1.png', 'dog/1.png'])
    """
    import polars as pl

    found = with_images(path)
    splits, labels = _parted(found)
    _check_labelled(found, labels, missing=missing)
    ids = pl.Series("id", found.images, pl.String)
    items = pl.DataFrame({"id": ids}).with_columns(files=pl.concat_list("id"))
    if splits:
        items = items.with_columns(split=pl.Series(splits))
    answers = pl.DataFrame({"label": pl.Series(labels, dtype=pl.String)}).with_row_index("item").drop_nulls()
    seen = set(answers["label"].unique())
    classes = columns.classes or in_order(list(seen if splits else seen.union(found.folders)))
    return Collection(
        source=found.root,
        form=Form("folder", settings={"folders": "split/class" if splits else "class"}),
        classes=classes,
        ids=ids,
        items=items.lazy(),
        answers=answers.with_columns(annotator=pl.lit(GIVEN)),
        facts=_facts(found, labels, splits=splits, classes=classes),
    )


def _parted(found: Tree) -> tuple[list[str], list[str | None]]:
    """Return the split of each image, where folders are splits, and its class, where it lies in a folder of one."""
    if not found.folders or any(folder.lower() not in SPLITS for folder in found.folders):
        return [], [_part(name, 0) for name in found.images]
    return [_part(name, 0) or "" for name in found.images], [_part(name, 1) for name in found.images]


def _part(name: str, depth: int) -> str | None:
    """Return the folder of this depth that a file lies in, or None where it lies higher up."""
    parts = name.split("/", depth + 1)
    return parts[depth] if len(parts) > depth + 1 else None


def _check_labelled(found: Tree, labels: Sequence[str | None], *, missing: Missing) -> None:
    bare = [name for name, label in zip(found.images, labels, strict=True) if label is None]
    if len(bare) == len(labels):
        raise BadInput(
            f"{found.root}: a folder a class was needed, but no image lies in one; move them into folders, or put a "
            "table of labels beside them"
        )
    if bare and missing == "refused":
        raise BadInput(
            f"{found.root}: images in a folder a class were needed, but {counted(len(bare), 'image')} in none came "
            f"({listed(bare)}); move them, or say --allow-missing to take them in without a label"
        )


def _facts(found: Tree, labels: Sequence[str | None], *, splits: Sequence[str], classes: Names) -> Names:
    seen = {label for label in labels if label is not None}
    where = f" in splits ({listed(sorted(set(splits)))}) and" if splits else " in"
    told = [f"{found.root}: {counted(len(labels), 'image')}{where} folders of {len(seen):,} classes."]
    bare = labels.count(None)
    if bare:
        told.append(f"{found.root}: {counted(bare, 'image')} in no folder of a class, taken in without a label.")
    empty = [name for name in classes if name not in seen]
    if empty:
        told.append(f"{found.root}: classes without an image: {listed(empty)}.")
    return (*told, *found.facts())
