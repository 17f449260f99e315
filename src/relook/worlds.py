"""From a configuration to the world that is simulated on: files are read, joined and checked, and a model is fitted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from relook import datasets, first_model, imported, networks, npfiles, selectors
from relook.config import Grid
from relook.datasets import arrays
from relook.errors import BadInput
from relook.experiment import BLIND, World, check_truth, short_hash
from relook.imported import Imported
from relook.retraining import Training, trainer
from relook.runs import replace_file
from relook.types import Dataset, FloatArray, Labels, Posteriors, fingerprint

FILES = ("truth", "labels", "probabilities", "embeddings", "bound")
"""Options that name a file with an array."""


class Fit(msgspec.Struct, frozen=True, eq=False):
    """What is still to be trained: how, and on which data set; a live campaign trains so too."""

    dataset: Dataset
    training: Training

    def key(self) -> str:
        """Return a hash of what the training depends on."""
        known = self.dataset
        groups = "" if known.groups is None else f" {short_hash(chr(31).join(known.groups).encode())}"
        table = known.name if known.features is None else fingerprint(np.asarray(known.features))
        told = msgspec.json.encode(self.training.placeless()).decode()
        return short_hash(f"{told} {table} {known.given.fingerprint()}{groups}".encode())

    def kept(self, folder: Path) -> Path:
        """Return the file of a folder that keeps the posteriors of this fit."""
        return folder / f"posteriors-{self.key()}.npy"

    def posteriors(self, folder: Path) -> Posteriors:
        """Return the posteriors: those that a folder keeps, else trained now."""
        kept = self.kept(folder)
        if kept.is_file():
            try:
                return Posteriors(npfiles.single(kept).array())
            except BadInput as error:
                raise BadInput(f"{kept}: kept posteriors were needed, but it is broken ({error}); remove it") from None
        return trainer(self.training)(self.dataset, self.dataset.given)

    def keep(self, posteriors: Posteriors, *, folder: Path) -> None:
        """Write the posteriors into a folder, so that a run that goes on need not fit them again."""
        from io import BytesIO

        if not self.kept(folder).is_file():
            buffer = BytesIO()
            np.save(buffer, posteriors.values, allow_pickle=False)
            replace_file(self.kept(folder), buffer.getvalue())


def needs_posteriors(grid: Grid) -> bool:
    """Say whether any policy, or the rule of settling, looks at class probabilities.

    >>> needs_posteriors(Grid(policy=("random", "oracle"))), needs_posteriors(Grid(policy=("paper",)))
    (False, True)
    """
    looks = any(policy not in BLIND for policy in (*grid.policy, grid.against or "random"))
    return looks or any(settle.startswith("confidence") for settle in grid.settle)


def world(grid: Grid, tau: float | None) -> tuple[World, Fit | None]:
    """Return the world of a grid at a temperature, and what a model is still to be fitted to where none came."""
    _check_sources(grid)
    found_set = _imported(grid)
    if found_set is not None:
        dataset = found_set.dataset(grid.split)
    else:
        dataset = _own_set(grid) if grid.dataset is None else _named_set(grid.dataset, grid, tau=tau)
    posteriors = _posteriors(grid.probabilities, dataset, option="probabilities")
    if found_set is not None and posteriors is None and grid.embeddings is None:
        posteriors = first_model.came_along(found_set, grid.split)
    clean = _posteriors(grid.bound, dataset, option="bound")
    check_truth(World(dataset, posteriors, clean))
    if not needs_posteriors(grid) or (posteriors is not None and grid.update_every is None):
        return World(dataset, posteriors, clean), None
    dataset = _learnable(grid, dataset, found_set=found_set)
    return World(dataset, posteriors, clean), Fit(dataset, training(grid)) if posteriors is None else None


def training(grid: Grid) -> Training:
    """Return how the models of a grid are trained, at first and after every so many answers.

    >>> training(Grid(dataset="digits", method="lda")).method, training(Grid(dataset="digits")).method
    ('lda', 'average')
    """
    told = {"recipe": grid.recipe, "device": grid.device, "folder": grid.folder, "data": grid.data}
    settings = {key: value for key, value in told.items() if value is not None}
    method = grid.method or (networks.BY_RECIPE if grid.recipe else selectors.FULL)
    settings = settings if method in networks.METHODS else {}
    return Training(method=method, settings=settings, answered_weight=grid.answered_weight)


def _learnable(grid: Grid, dataset: Dataset, *, found_set: Imported | None) -> Dataset:
    """Return the data set with what a model is fitted to: embeddings that came, or what the set holds itself."""
    tables = _features(grid, dataset)
    if tables is None and found_set is not None:
        tables = first_model.features(dataset, embeddings=found_set.vectors("embeddings", grid.split))[0]
    if tables is not None:
        joined = tables[0] if len(tables) == 1 else np.hstack(tables)
        return msgspec.structs.replace(dataset, features=joined)
    if (grid.recipe or grid.method in networks.METHODS) and dataset.images is not None:
        return dataset
    raise BadInput(
        f"{dataset.name}: {', '.join(p for p in grid.policy if p not in BLIND) or grid.settle[0]} needs class "
        "probabilities, but none came; pass --probabilities, or --embeddings to fit a model to"
    )


def array(path: str, *, option: str) -> np.ndarray:
    """Return the array of an npy file, memory-mapped, or the only one of an npz file."""
    try:
        found = npfiles.single(Path(path)).array()
    except BadInput as error:
        raise BadInput(f"--{option} {error}") from None
    if not found.ndim:
        raise BadInput(
            f"--{option} {path}: a row for each item was needed, but a single {found.dtype} came; save an array"
        )
    return found


def _check_sources(grid: Grid) -> None:
    own = [option for option in ("truth", "labels") if getattr(grid, option) is not None]
    if grid.dataset is None and len(own) < 2:
        missing = "--truth and --labels were" if not own else "--truth was" if own == ["labels"] else "--labels was"
        raise BadInput(f"simulate: --dataset, or {missing} needed, but none came; try --dataset digits")
    if grid.dataset is not None and own:
        raise BadInput(
            f"simulate: {grid.dataset} brings its own {own[0]}, but --{own[0]} came as well; leave one of the two out"
        )
    if grid.dataset != "cifar10h":
        for option in ("subset", "tau", "data", "images"):
            if getattr(grid, option):
                raise BadInput(f"simulate: --{option} belongs to --dataset cifar10h, but it came without; leave it out")
    if grid.probabilities is not None and grid.embeddings is not None:
        raise BadInput("simulate: --probabilities or --embeddings was needed, but both came; leave one out")


def _imported(grid: Grid) -> Imported | None:
    """Return the imported set that the option names, if it names a folder of one."""
    if grid.dataset is None or not (Path(grid.dataset) / imported.MANIFEST).is_file():
        if grid.split is not None:
            raise BadInput("simulate: --split belongs to --dataset FOLDER of an imported set; leave it out")
        return None
    return imported.read(Path(grid.dataset))


def _named_set(name: str, grid: Grid, *, tau: float | None) -> Dataset:
    settings: dict[str, Any] = {}
    if name == "cifar10h":
        settings = {"subset": grid.subset or "paper", "tau": 10.0 if tau is None else tau, "images": grid.images}
    return datasets.load(name, grid.data, settings=settings)


def _own_set(grid: Grid) -> Dataset:
    truth, given = array(grid.truth or "", option="truth"), array(grid.labels or "", option="labels")
    classes = _classes(grid, truth, given=given)
    ids = tuple(str(item) for item in range(len(given)))
    names = tuple(str(number) for number in range(classes))
    return Dataset(Path(grid.truth or "").stem, names, ids, Labels(given, classes), truth)


def _classes(grid: Grid, truth: np.ndarray, *, given: np.ndarray) -> int:
    """Return the number of classes: as many as columns, where there are any, else up to the largest class."""
    if truth.ndim == 2:
        return int(truth.shape[1])
    if grid.probabilities is not None:
        return int(array(grid.probabilities, option="probabilities").shape[-1])
    tops = [int(each.max()) + 1 for each in (truth, given) if each.dtype.kind in "iu" and each.size and each.ndim == 1]
    return max([1, *tops])


def _posteriors(path: str | None, dataset: Dataset, *, option: str) -> Posteriors | None:
    if path is None:
        return None
    made = _trained(Path(path), dataset)
    values = of_items(array(path, option=option), dataset, option=option) if made is None else made
    try:
        found = Posteriors(values)
    except BadInput as error:
        raise BadInput(f"--{option} {path}: {error}") from None
    if found.classes != len(dataset.classes):
        raise BadInput(
            f"--{option} {path}: {len(dataset.classes)} classes were needed, but {found.classes} columns came; "
            "are they of this data set?"
        )
    return found


def _trained(path: Path, dataset: Dataset) -> np.ndarray | None:
    """Return the rows of the items in a file that `relook train` wrote, or None where it is another file."""
    try:
        held = set(npfiles.parts(path)) if path.suffix.lower() == ".npz" else set[str]()
    except BadInput:
        # What is wrong with it is said where it is read as any file.
        return None
    if not {"posteriors", "ids"} <= held:
        return None
    table = arrays.probabilities(path)
    place = {name: row for row, name in enumerate(table.ids or ())}
    lost = [name for name in dataset.ids if name not in place]
    if lost:
        raise BadInput(
            f"--probabilities {path}: posteriors of each item of {dataset.name} were needed, but {len(lost):,} are "
            f"missing, {lost[0]!r} first; train on this data set"
        )
    return np.take(table.values, [place[name] for name in dataset.ids], axis=-2)


def _features(grid: Grid, dataset: Dataset) -> tuple[FloatArray, ...] | None:
    if grid.embeddings is None:
        return None if dataset.features is None else (dataset.features,)
    return (of_items(array(grid.embeddings, option="embeddings"), dataset, option="embeddings"),)


def of_items(values: np.ndarray, dataset: Dataset, *, option: str) -> np.ndarray:
    """Return the rows of the items: all of them, or those of a subset whose ids are rows of the whole set."""
    axis = values.ndim - 2
    if axis < 0:
        raise BadInput(f"--{option}: a row for each item was needed, but shape {values.shape} came; pass a table")
    came = values.shape[axis]
    if came == len(dataset):
        return values
    if dataset.name == "cifar10h-paper" and came == 10_000:
        return np.take(values, [int(row) for row in dataset.ids], axis=axis)
    raise BadInput(
        f"--{option}: a row for each of {len(dataset):,} items was needed, but {came:,} came; "
        "are they of this data set?"
    )
