"""Labels and class probabilities from two files, read by their suffix and brought together."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from relook import first_model
from relook.alignment import Matched, Matching, matched
from relook.datasets import arrays, table
from relook.errors import BadInput
from relook.heads import Selector
from relook.imported import Imported
from relook.selectors import FIRST, named
from relook.sources import COLUMNS, Columns, LabelTable, ProbabilityTable
from relook.types import Dataset, Posteriors


def labels(path: Path, *, columns: Columns = COLUMNS) -> LabelTable:
    """Return the given labels that an npy, npz, csv, tsv, parquet or JSON lines file holds."""
    return (arrays if _is_array(path) else table).labels(path, columns=columns)


def probabilities(path: Path, *, columns: Columns = COLUMNS) -> ProbabilityTable:
    """Return the class probabilities that an npy, npz, csv, tsv, parquet or JSON lines file holds."""
    return (arrays if _is_array(path) else table).probabilities(path, columns=columns)


def together(
    labels_path: Path,
    probabilities_path: Path,
    *,
    columns: Columns = COLUMNS,
    missing: Literal["refuse", "leave out"] = "refuse",
) -> Matched:
    """Return labels and probabilities of two files, joined by id where both have ids, else by order."""
    given = labels(labels_path, columns=columns)
    predicted = probabilities(probabilities_path, columns=columns)
    return matched(given, predicted, matching=Matching(columns.classes, missing))


def of_set(
    found: Imported,
    *,
    split: str | None = None,
    seed: int = 0,
    selector: Selector | None = None,
    first: Callable[[Matched], None] | None = None,
) -> Matched:
    """Return an imported set, or one split of it, with probabilities: those that came along, or a first model's.

    Before a model is fitted, `first` is called with the set and what a closed form says of it within seconds.
    """
    dataset = found.dataset(split)
    posteriors = None if selector is not None else first_model.came_along(found, split)
    if posteriors is not None:
        return _with(found, dataset, posteriors=posteriors, how="The probabilities came along with the set.")
    described = first_model.features(dataset, embeddings=found.vectors("embeddings", split), seed=seed)
    if first is not None:
        early = first_model.fitted_to(dataset, described, selector=named(FIRST), seed=seed)
        first(_with(found, dataset, posteriors=early, how=first_model.sentence(early)))
    posteriors = first_model.fitted_to(dataset, described, selector=selector, seed=seed)
    return _with(found, dataset, posteriors=posteriors, how=first_model.sentence(posteriors))


def of_set_and_file(found: Imported, path: Path, *, split: str | None = None) -> Matched:
    """Return an imported set, or one split of it, with the probabilities of a file, as `relook train` writes it."""
    dataset, table = found.dataset(split), probabilities(path)
    if table.classes != len(dataset.classes):
        raise BadInput(
            f"{path}: a column for each of the {len(dataset.classes)} classes of {found.folder} was needed, but "
            f"{table.classes} came; train on this set"
        )
    if table.names is None:
        table = msgspec.structs.replace(table, names=dataset.classes)
    given = LabelTable(str(found.folder), dataset.given.given, names=dataset.classes, ids=dataset.ids)
    return matched(given, table)


def _with(found: Imported, dataset: Dataset, *, posteriors: Posteriors, how: str) -> Matched:
    return Matched(
        classes=dataset.classes,
        labels=dataset.given,
        posteriors=posteriors,
        ids=dataset.ids,
        source=str(found.folder),
        joined="id",
        named=True,
        facts=(how,),
    )


def _is_array(path: Path) -> bool:
    suffix = path.suffix.lower()
    if suffix not in (*arrays.SUFFIXES, *table.SUFFIXES):
        known = ", ".join(end[1:] for end in (*arrays.SUFFIXES, *table.SUFFIXES))
        raise BadInput(
            f"{path}: a file of one of these kinds was needed: {known}, but {suffix or 'no suffix'} came; save it so"
        )
    return suffix in arrays.SUFFIXES
