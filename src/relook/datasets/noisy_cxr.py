"""NoisyCXR: chest radiographs with labels mined from reports, radiologists' readings as the truth, as the paper has it.

A radiograph of the RSNA's challenge is asked: pneumonia-like opacity, yes or no? Its given label is made of the NIH's
(text-mined), its truth is the RSNA's. How is told in the paper's Methods; where the text leaves something open, its
released code decides: the seed 1234, one generator for the flips and then the split, and whole numbers cut off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from relook import pictures
from relook.collection import GIVEN, KEPT, Collection, Form
from relook.errors import BadInput
from relook.published import PUBLISHED
from relook.publishers import sheet
from relook.sources import Names, counted, listed
from relook.types import Dataset, IntArray, Labels

if TYPE_CHECKING:
    import polars as pl

CLASSES = ("no pneumonia-like opacity", "pneumonia-like opacity")

CATEGORIES = ("Pneumonia", "Consolidation/infiltration (not pneumonia)", "Other diseases only", "No finding")
"""What the NIH's findings come to, as the rows of the paper's table."""

CONFIDENCE: Mapping[str, int] = MappingProxyType(
    {"Lung Opacity (Low Prob)": 1, "Lung Opacity (Med Prob)": 2, "Lung Opacity (High Prob)": 3}
)
"""How sure a reader was of a box."""

SPLITS = ("train", "val")

_SET = PUBLISHED["noisy_cxr"]
_LABELS, _CLASSES, _MAPPING, _BOXES, _NIH = (file.name for file in _SET.files)
_SEED, _UNSURE, _MOST_BYTES = 1234, 1, 100_000_000


class Radiograph(msgspec.Struct, frozen=True):
    """An entry of the RSNA's mapping to the NIH's data: the fields that are needed, under its names."""

    subset_img_id: str
    img_id: str | None = None
    orig_labels: str | list[str] | None = None
    StudyInstanceUID: str | None = None


class Benchmark(msgspec.Struct, frozen=True, eq=False):
    """All radiographs in the order of the mapping, with their given label (1: opacity) and the rows of each split.

    `table` has the columns id, findings, category, opacity, reading, difficult (null where it is not known), patient.
    """

    table: pl.DataFrame
    given: IntArray
    splits: Mapping[str, IntArray]
    facts: Names

    @property
    def truth(self) -> IntArray:
        """Counts of readers, N x 2: one of them, or two against one where it is difficult."""
        sure = np.eye(2, dtype=np.int64)[self.table["opacity"].to_numpy().astype(np.int64)]
        difficult = self.table["difficult"].fill_null(value=False).to_numpy()
        # As the paper says (.66); the released code adds one to twice the reader, which makes it three against one.
        return np.where(difficult[:, np.newaxis], sure + 1, sure)


def load(
    folder: str | Path,
    *,
    split: str = "all",
    rate: float = 0.1,
    flips: Sequence[str] | None = None,
    images: str | Path | None = None,
) -> Dataset:
    """Return NoisyCXR: given labels at 12.6 % noise, or at 19.6 % where a `rate` of .25 of the middle group is flipped.

    The split is `all`, in the order of the mapping, or `train` or `val`, in that of the released code. `flips` are ids
    to flip instead of a draw. The truth is 1, 2/3, 1/3 or 0, by how sure the readers were. A group is an NIH patient.
    `images` is a folder of radiographs, `ID.png`; without one the labels alone come.
    """
    made = benchmark(Path(folder), rate=rate, flips=flips)
    if split not in (*SPLITS, "all"):
        raise BadInput(f"noisy_cxr: the split must be all, train or val, but {split!r} came; name one of them")
    rows = np.arange(len(made.given)) if split == "all" else made.splits[split]
    table = made.table[rows]
    ids, patients = table["id"].to_list(), table["patient"]
    return Dataset(
        name="noisy_cxr" if split == "all" else f"noisy_cxr-{split}",
        classes=CLASSES,
        ids=ids,
        given=Labels(made.given[rows], len(CLASSES)),
        truth=made.truth[rows].astype(np.float64),
        images=None if images is None else cast("Sequence[Any]", Radiographs(Path(images), ids)),
        groups=None if patients.null_count() else patients.to_list(),
    )


def collection(folder: Path, *, rate: float = 0.1) -> Collection:
    """Return the given labels, with split and patient, and what they were made of as columns of the source's own."""
    import polars as pl

    made = benchmark(folder, rate=rate)
    split = np.empty(len(made.given), object)
    for name, rows in made.splits.items():
        split[rows] = name
    items = made.table.select(
        "id",
        pl.Series("split", split.tolist(), dtype=pl.String),
        *([] if made.table["patient"].null_count() else [pl.col("patient").alias("group")]),
        *(pl.col(name).cast(pl.String).name.prefix(KEPT) for name in ("findings", "category", "reading", "difficult")),
        pl.Series(f"{KEPT}rsna", [CLASSES[int(yes)] for yes in made.table["opacity"]]),
    )
    labels = [CLASSES[label] for label in made.given]
    return Collection(
        source=str(_SET.needed(folder, _MAPPING)),
        form=Form("csv"),
        classes=CLASSES,
        ids=items["id"],
        items=items.lazy(),
        answers=pl.DataFrame({"item": np.arange(len(labels)), "annotator": [GIVEN] * len(labels), "label": labels}),
        facts=made.facts,
    )


def benchmark(folder: Path, *, rate: float = 0.1, flips: Sequence[str] | None = None) -> Benchmark:
    """Put the published files together: categories, given labels, flips in the middle category, and the two halves."""
    if not 0 <= rate <= 1:
        raise BadInput(f"noisy_cxr: a rate of flips from 0 to 1 was needed, but {rate} came; the paper has .1 and .25")
    table, facts = _joined(folder)
    category, opacity = table["category"].to_physical().to_numpy(), table["opacity"].to_numpy()
    given = np.where(category == 0, 1, np.where(category == 1, opacity, 0)).astype(np.int64)
    middle, random = np.flatnonzero(category == 1), np.random.RandomState(_SEED)
    flipped = random.choice(middle, size=int(len(middle) * rate), replace=False)
    if flips is not None:
        flipped = _rows_of(flips, table, middle=middle)
    given[flipped] = 1 - given[flipped]
    order, half = random.permutation(len(table)), len(table) // 2
    told = f"{counted(len(flipped), 'label')} of {CATEGORIES[1]} flipped."
    return Benchmark(table, given, {"train": order[:half], "val": order[half:]}, (*facts, told))


def correspondence(made: Benchmark) -> pl.DataFrame:
    """Return the paper's table: how many radiographs have which label, a column an RSNA label."""
    import polars as pl

    opacity = made.table["opacity"].to_numpy()
    category, total = made.table["category"].to_physical().to_numpy(), np.zeros(len(opacity), np.int64)
    parts = [("NIH", CATEGORIES, category), ("NoisyCXR", CLASSES[::-1], 1 - made.given), ("", ("Total",), total)]
    rows = [
        {"labels": of, "": name, CLASSES[1]: int((here & opacity).sum()), CLASSES[0]: int((here & ~opacity).sum())}
        for of, names, numbers in parts
        for name, here in zip(names, (numbers == number for number in range(len(names))), strict=True)
    ]
    return pl.DataFrame(rows)


class Radiographs:
    """Radiographs as PNG files, named after their id, opened when they are looked at."""

    __slots__ = ("_folder", "_ids")

    def __init__(self, folder: Path, ids: Sequence[str]) -> None:
        self._folder, self._ids = folder, ids
        if not self._path(0).is_file():
            raise BadInput(
                f"noisy_cxr: {self._path(0)} was needed, but there is no such file; write the radiographs as PNG, or "
                "leave out --images"
            )

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, item: int) -> NDArray[np.uint8]:
        return pictures.eight_bit(self._path(item))

    def _path(self, item: int) -> Path:
        return self._folder / f"{self._ids[item]}.png"


# The published files, each as a table with a row a radiograph.


def _joined(folder: Path) -> tuple[pl.DataFrame, Names]:
    """Return what is known of the radiographs that both the RSNA and the NIH have labelled, in the mapping's order."""
    import polars as pl

    mapped, rsna = _mapped(folder), _read_by_radiologists(folder)
    table = mapped.join(rsna, on="id", maintain_order="left")
    if not table.height:
        raise BadInput(
            f"{_SET.needed(folder, _MAPPING)}: radiographs of {_LABELS} were needed, but none of {rsna.height:,} is "
            "there; are they of the same challenge?"
        )
    facts = [
        f"{counted(table.height, 'radiograph')} in both {_LABELS} and {_MAPPING}.",
        f"Left out: {mapped.height - table.height:,} of the mapping, {rsna.height - table.height:,} of the labels.",
    ]
    boxes = _boxes(folder)
    if boxes is None:
        facts.append(f"There is no {_BOXES}: which radiographs are difficult is not known, and none is taken for one.")
        return table.with_columns(difficult=pl.lit(None, pl.Boolean)), tuple(facts)
    table = table.join(boxes, on="study", how="left", maintain_order="left")
    unsure = (pl.col("least") == _UNSURE) & (pl.col("most") == _UNSURE)
    difficult = pl.when("opacity").then(unsure.fill_null(value=False)).otherwise(pl.col("least").is_not_null())
    return table.with_columns(difficult=difficult), tuple(facts)


def _mapped(folder: Path) -> pl.DataFrame:
    import polars as pl

    path = _SET.needed(folder, _MAPPING)
    entries = _entries(path)
    findings = [_lowered(entry) for entry in entries]
    if None in findings:
        known = _nih(folder, path)
        findings = [found or known.get(entry.img_id or "") for found, entry in zip(findings, entries, strict=True)]
    if None in findings:
        row = findings.index(None)
        raise BadInput(
            f"{path}, entry {row}: the NIH's findings were needed, but it has no orig_labels, and {_NIH} does not know "
            f"{entries[row].img_id}; get the file again"
        )
    table = pl.DataFrame(
        {
            "id": [entry.subset_img_id for entry in entries],
            "findings": findings,
            "category": pl.Series([_category(found or "") for found in findings], dtype=pl.Enum(CATEGORIES)),
            "study": [entry.StudyInstanceUID for entry in entries],
            "patient": [None if entry.img_id is None else entry.img_id.split("_")[0] for entry in entries],
        },
        schema_overrides={"study": pl.String, "patient": pl.String},
    )
    _check_once(table["id"], path)
    return table


def _entries(path: Path) -> list[Radiograph]:
    if path.stat().st_size > _MOST_BYTES:
        raise BadInput(f"{path}: at most {_MOST_BYTES:,} bytes were needed, but it is longer; is it another file?")
    try:
        found = msgspec.json.decode(path.read_bytes(), type=list[Radiograph])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"{path}: a list of entries was needed, but {error}; get the file again") from None
    if not found:
        raise BadInput(f"{path}: a list of entries was needed, but it is empty; get the file again")
    return found


def _lowered(entry: Radiograph) -> str | None:
    labels = entry.orig_labels
    return None if labels is None else (labels if isinstance(labels, str) else "|".join(labels)).lower()


def _category(findings: str) -> str:
    if "pneumonia" in findings:
        return CATEGORIES[0]
    if "infiltration" in findings or "consolidation" in findings:
        return CATEGORIES[1]
    return CATEGORIES[3] if "no finding" in findings else CATEGORIES[2]


def _nih(folder: Path, mapping: Path) -> dict[str, str]:
    """Return the findings of the NIH's own table by the name of the image."""
    if _SET.place(folder, _NIH) is None:
        raise BadInput(
            f"{mapping}: the NIH's findings were needed as orig_labels, but an entry has none; put {_NIH} beside it"
        )
    table = sheet(_SET.needed(folder, _NIH), {"Image Index": "text", "Finding Labels": "text"})
    return dict(zip(table["Image Index"], table["Finding Labels"].str.to_lowercase(), strict=True))


def _read_by_radiologists(folder: Path) -> pl.DataFrame:
    """Return the RSNA's label of each radiograph, whose boxes have a row each, and the class of its reading."""
    import polars as pl

    labels, classes = _SET.needed(folder, _LABELS), _SET.needed(folder, _CLASSES)
    targets = sheet(labels, {"patientId": "text", "Target": "whole"})
    other = ~targets["Target"].is_in([0, 1])
    if other.any():
        row = int(other.arg_max() or 0)
        raise BadInput(f"{labels}, line {row + 2}: a Target of 0 or 1 was needed, but {targets['Target'][row]} came")
    readings = sheet(classes, {"patientId": "text", "class": "text"}).unique(maintain_order=True)
    targets = targets.unique(maintain_order=True)
    _check_once(targets["patientId"], labels)
    _check_once(readings["patientId"], classes)
    both = targets.join(readings, on="patientId", maintain_order="left")
    return both.select(id="patientId", opacity=pl.col("Target") == 1, reading="class")


def _boxes(folder: Path) -> pl.DataFrame | None:
    """Return the least and the most confidence of the readers' boxes, a row a study that has one, where it is known."""
    import polars as pl

    if _SET.place(folder, _BOXES) is None:
        return None
    path = _SET.needed(folder, _BOXES)
    table = sheet(path, {"StudyInstanceUID": "text", "labelName": "text"})
    names = table["labelName"].str.strip_chars()
    unknown = ~names.is_in(list(CONFIDENCE))
    if unknown.any():
        row = int(unknown.arg_max() or 0)
        raise BadInput(
            f"{path}, line {row + 2}: a labelName was needed ({listed(list(CONFIDENCE))}), but {names[row]!r} came; "
            "get the file again"
        )
    sure = table.select(study="StudyInstanceUID", sure=names.replace_strict(CONFIDENCE, return_dtype=pl.Int64))
    return sure.group_by("study").agg(least=pl.col("sure").min(), most=pl.col("sure").max())


def _check_once(ids: pl.Series, path: Path) -> None:
    twice = ~ids.is_first_distinct()
    if twice.any():
        raise BadInput(
            f"{path}: one label a radiograph was needed, but {ids[int(twice.arg_max() or 0)]} has two that differ; get "
            "the file again"
        )


def _rows_of(flips: Sequence[str], table: pl.DataFrame, *, middle: IntArray) -> IntArray:
    row_of = {table["id"][int(row)]: int(row) for row in middle}
    unknown = [name for name in flips if name not in row_of]
    if unknown or len(set(flips)) != len(flips):
        came = f"{unknown[0]!r}, which is none," if unknown else "one twice"
        raise BadInput(f"noisy_cxr: ids of {CATEGORIES[1]} were needed to flip, but {came} came; leave it out")
    return np.array([row_of[name] for name in flips], np.int64)
