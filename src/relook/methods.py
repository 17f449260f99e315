"""Methods that make posteriors, by name: what `relook train` runs, and the file that it writes.

A method is a callable `(dataset, labels, settings) -> Posteriors`; what it needs is imported when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec
import numpy as np

from relook import first_model, networks, selectors
from relook.calibration import Calibration
from relook.errors import BadInput
from relook.heads import Taken, taking, targets
from relook.networks import NOTHING_KEPT, Kept
from relook.sources import LabelTable, counted, listed, whole
from relook.train import files
from relook.types import Dataset, FloatArray, IntArray, Labels, Posteriors

FOLDS = 5
"""Parts that items are left out by, where nothing else is said."""

TAKEN = Taken()
"""Each item by the label that stands."""


class Settings(msgspec.Struct, frozen=True, eq=False):
    """What every method is told: folds, how often they are cut anew, the seed, and embeddings of the items, if any.

    `texts` says what describes texts: their own pieces of words, or minilm, a network that has read much English.
    `taken` says how labels become targets, `network` how networks are trained, and `kept` where those lie that are gone
    on from. Without `folds` a recipe has its own.
    """

    folds: int | None = None
    repeats: int = 1
    seed: int = 0
    embeddings: tuple[FloatArray, ...] | None = None
    texts: str = "pieces"
    taken: Taken = TAKEN
    network: networks.Settings = networks.PLAIN
    kept: Kept = NOTHING_KEPT


Method = Callable[[Dataset, Labels, Settings], Posteriors]


def trained(name: str, dataset: Dataset, *, settings: Settings) -> Posteriors:
    """Return what a method says of every item, out of sample, having learnt from the given labels.

    >>> from relook.datasets import digits
    >>> trained("lda", digits.load(), settings=Settings(folds=3)).about["selector"]["name"]
    'Lda'
    """
    if name not in METHODS:
        raise BadInput(f"method: one of {listed(list(METHODS), 40)} was needed, but {name!r} came; check the spelling")
    return METHODS[name](dataset, dataset.given, settings)


def sentence(found: Posteriors) -> str:
    """Return in words what posteriors were made from, and how well they fit the given labels."""
    if "features" in found.about:
        return first_model.sentence(found)
    told = networks.sentence(found)
    return f"{told} {Calibration(**found.about['calibration']).sentence()}" if "calibration" in found.about else told


def relabelled(dataset: Dataset, table: LabelTable) -> Dataset:
    """Return a data set with the labels of a file as its given ones: by id where the file has ids, else row by row.

    >>> from relook.datasets import digits
    >>> table = LabelTable("mine.csv", np.array([1, 0]), ids=["7", "3"], names=("0", "1"))
    >>> relabelled(digits.load(), table).given.given[[3, 4, 7]].tolist()
    [0, -1, 1]
    """
    given = _as_classes(table, dataset)
    if table.ids is not None:
        place = {name: row for row, name in enumerate(table.ids)}
        rows = np.array([place.get(name, -1) for name in dataset.ids])
        if (rows < 0).all():
            raise BadInput(
                f"{table.source}: labels of items of {dataset.name} were needed, but no id is one of theirs "
                f"({table.ids[0]!r} in one, {dataset.ids[0]!r} in the other); check the column of ids"
            )
        given = np.where(rows < 0, -1, given[rows])
    if len(given) != len(dataset):
        raise BadInput(
            f"{table.source}: a label for each of {counted(len(dataset), 'item')} of {dataset.name} was needed, but "
            f"{len(given):,} came; save ids with them"
        )
    return msgspec.structs.replace(dataset, given=Labels(given, len(dataset.classes)))


def write(posteriors: Posteriors, dataset: Dataset, *, path: Path) -> None:
    """Write posteriors (16 bits), the given labels and the ids as an npz file, whole or not at all.

    `relook rank` and `relook simulate` read it with `--probabilities`, joined by the ids.
    """
    check_target(path)
    names = tuple(dataset.ids)
    ids = np.array([int(name) for name in names]) if _short(names) else np.array(names)
    files.write(path, posteriors.values, given=dataset.given.label(), ids=ids)


def check_target(path: Path) -> None:
    """Refuse a file that posteriors cannot be written to, before work is spent on them."""
    if path.suffix.lower() != ".npz":
        raise BadInput(f"{path}: an npz file to write to was needed, but {path.suffix or 'no suffix'} came; rename it")
    if not path.absolute().parent.is_dir():
        raise BadInput(f"{path}: a folder to write the posteriors to was needed; make {path.parent} first")


def _short(names: tuple[str, ...]) -> bool:
    return whole(names) and max(map(len, names)) < 18


def _as_classes(table: LabelTable, dataset: Dataset) -> IntArray:
    if table.given.ndim != 1:
        raise BadInput(f"{table.source}: one label an item was needed to learn from, but several came; save the one")
    if table.names is None or whole(table.names):
        numbers = None if table.names is None else np.array([int(name) for name in (*table.names, "0")])
        given = table.given if numbers is None else np.where(table.given < 0, -1, numbers[table.given])
        if given.max() >= len(dataset.classes):
            row = int(given.argmax())
            raise BadInput(
                f"{table.place(row)}: a class from 0 to {len(dataset.classes) - 1} of {dataset.name} was needed, but "
                f"{given[row]} came; are these its labels?"
            )
        return given
    unknown = sorted(set(table.names) - set(dataset.classes))
    if unknown:
        raise BadInput(
            f"{table.source}: names of classes of {dataset.name} were needed ({listed(dataset.classes)}), but "
            f"{unknown[0]!r} is no such name; rename it"
        )
    number_of = np.array([*(dataset.classes.index(name) for name in table.names), -1])
    return number_of[table.given]


def _of_selector(name: str) -> Method:
    def fitted(dataset: Dataset, labels: Labels, settings: Settings) -> Posteriors:
        if settings.network.recipe is not None:
            came = settings.network.recipe
            raise BadInput(f"method {name}: a recipe belongs to networks, but {came} came; leave it out")
        folds = FOLDS if settings.folds is None else settings.folds
        selector = selectors.named(name, folds=folds, repeats=settings.repeats)
        taken = selector if settings.taken == TAKEN else taking(selector, settings.taken)
        known, tables = msgspec.structs.replace(dataset, given=labels), _with_texts(dataset, settings)
        return first_model.predicted(known, embeddings=tables, selector=taken, seed=settings.seed)

    return fitted


def _with_texts(dataset: Dataset, settings: Settings) -> tuple[FloatArray, ...] | None:
    """Return the embeddings, with one of the texts by minilm where that is asked for."""
    if settings.texts == "pieces":
        return settings.embeddings
    if settings.texts != "minilm":
        raise BadInput(f"texts: pieces or minilm was needed, but {settings.texts!r} came; check the spelling")
    if dataset.texts is None:
        raise BadInput(f"{dataset.name}: texts were needed for minilm, but the set holds no text; drop --texts")
    from relook.selectors.minilm import embedded

    return (*(settings.embeddings or ()), embedded(dataset.texts))


def _of_networks(name: str) -> Method:
    def trained_so(dataset: Dataset, labels: Labels, settings: Settings) -> Posteriors:
        _, masses = targets(labels, settings.taken)
        recipe = settings.network.recipe or name
        run = msgspec.structs.replace(settings.network, recipe=recipe, folds=settings.folds)
        known = msgspec.structs.replace(dataset, given=labels)
        return networks.posteriors(known, masses, settings=run, seed=settings.seed, kept=settings.kept)

    return trained_so


METHODS: Mapping[str, Method] = MappingProxyType(
    {name: _of_selector(name) for name in selectors.SELECTORS} | {name: _of_networks(name) for name in networks.METHODS}
)
"""The methods by name."""
