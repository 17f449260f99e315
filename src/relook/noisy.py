"""Noisy copies of data sets: the same items, given labels drawn by a noise model, and the truth kept beside them.

Such a copy is an imported set that can be simulated on: `imported.read(folder).dataset()` brings its truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np

from relook import datasets, imported, noise
from relook.collection import GIVEN, Collection, Form
from relook.errors import BadInput
from relook.imported import MANIFEST, TRUTH, Imported, Origin
from relook.pictures import Step
from relook.rng import generator
from relook.types import FloatArray, Labels, fingerprint, true_distribution


class Recipe(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """How labels are made wrong: a model by its name, the rate that is wanted, or its settings as they stand.

    `tau` and `offset` belong to the temperatures, `matrix` (C x C) to `class-dependent` and `temperature-offset`, `std`
    to `instance-dependent`, whose model looks at the set's embeddings or numbers.
    """

    model: str
    rate: float | None = None
    tau: float | None = None
    offset: float | None = None
    matrix: FloatArray | None = None
    std: float | None = None
    seed: int = 0


class Clean(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A set to copy: what it holds, the true distribution of each item, and what describes it in numbers, if anything.

    `origin` says where its images lie, and what else comes along.
    """

    found: Collection
    truth: FloatArray
    embeddings: FloatArray | None = None
    origin: Origin = imported.UNKNOWN


Model = noise.Temperature | noise.TemperatureOffset | noise.Symmetric | noise.ClassDependent | noise.InstanceDependent

MODELS: Mapping[str, type[Model]] = MappingProxyType(
    {
        "temperature": noise.Temperature,
        "temperature-offset": noise.TemperatureOffset,
        "symmetric": noise.Symmetric,
        "class-dependent": noise.ClassDependent,
        "instance-dependent": noise.InstanceDependent,
    }
)
"""The noise models by name."""

SETTINGS = ("tau", "offset", "matrix", "std")
"""What a recipe may say beside a rate; each model takes those that it has."""

_SEARCHED = {"temperature": "tau", "temperature-offset": "offset", "class-dependent": "matrix"}
"""What must be said of a model where no rate is."""


def model(recipe: Recipe, truth: FloatArray, *, embeddings: FloatArray | None = None) -> Model:
    """Return the noise model of a recipe, at its rate on this truth where it names one.

    >>> model(Recipe(model="symmetric", rate=0.2), np.eye(3))
    Symmetric(rate=0.2)
    """
    if recipe.model not in MODELS:
        raise BadInput(f"noise: a model was needed ({', '.join(MODELS)}), but {recipe.model!r} came; name one of them")
    kind = MODELS[recipe.model]
    said = {name: getattr(recipe, name) for name in SETTINGS if getattr(recipe, name) is not None}
    foreign = [name for name in said if name not in kind.__struct_fields__]
    if foreign:
        raise BadInput(f"noise: --{foreign[0]} says nothing to {recipe.model}, but it came; leave it out")
    if recipe.rate is None and _SEARCHED.get(recipe.model) not in said:
        raise BadInput(f"noise: --rate was needed for {recipe.model}, but it did not come; 20 % is 0.2")
    made = kind(**said, **_brought(kind, recipe, embeddings=embeddings))
    if recipe.rate is None or isinstance(made, noise.Symmetric):
        return made
    if made.FREE.field in said:
        raise BadInput(f"noise: --rate or --{made.FREE.field} was needed, but both came; leave one out")
    return noise.with_rate(made, truth, rate=recipe.rate)


def _brought(kind: type[Model], recipe: Recipe, *, embeddings: FloatArray | None) -> dict[str, Any]:
    """Return what a model needs that is no setting of its own."""
    if kind is noise.ClassDependent and recipe.matrix is None:
        raise BadInput("noise: class-dependent needs a matrix, but none came; give one with --matrix")
    brought: dict[str, Any] = {"rate": recipe.rate} if "rate" in kind.__struct_fields__ else {}
    if kind is noise.InstanceDependent:
        if embeddings is None:
            raise BadInput(
                "noise: instance-dependent looks at embeddings, but the set has none; give them with --embeddings"
            )
        brought |= {"embeddings": np.asarray(embeddings), "seed": recipe.seed}
    return brought


def copy(clean: Clean, recipe: Recipe, *, folder: Path, step: Step | None = None) -> tuple[Imported, bool]:
    """Write a noisy copy as an imported set with `truth.npy`, and say whether anything changed."""
    made = model(recipe, clean.truth, embeddings=clean.embeddings)
    given = made(clean.truth, generator(recipe.seed, "noise", recipe.model))
    wrong = int((given != clean.truth.argmax(1)).sum())
    expected = noise.expected_rate(made, clean.truth)
    told = {"model": recipe.model, "seed": recipe.seed, **_settings(made)}
    told |= {"expected": expected, "reached": wrong / len(given), "wrong": wrong}
    fact = (
        f"Given labels drawn by {recipe.model}, seed {recipe.seed}: {wrong:,} of {len(given):,} are wrong "
        f"({wrong / len(given):.2%}; {expected:.2%} expected). The truth is in {TRUTH}.npy."
    )
    origin = msgspec.structs.replace(clean.origin, vectors={**clean.origin.vectors, TRUTH: clean.truth}, noise=told)
    return imported.write(_relabelled(clean.found, given.tolist(), fact=fact), folder, origin=origin, step=step)


def _relabelled(found: Collection, given: list[int], *, fact: str) -> Collection:
    import polars as pl

    labels = [found.classes[label] for label in given]
    answers = pl.DataFrame({"item": range(len(given)), "annotator": [GIVEN] * len(given), "label": labels})
    # One label an item is no longer laid out as answers or counts were.
    form = found.form if found.form.layout == "items" else Form("csv")
    return msgspec.structs.replace(found, answers=answers, form=form, facts=(*found.facts, fact))


def _settings(made: Model) -> dict[str, int | float | str]:
    """Return a model's settings as a manifest holds them: numbers, and the hashes of arrays."""
    held = {name: getattr(made, name) for name in made.__struct_fields__ if name != "seed"}
    return {
        name: f"blake2b:{fingerprint(value)}" if isinstance(value, np.ndarray) else value
        for name, value in held.items()
        if value is not None
    }


def of_imported(folder: Path, *, split: str | None = None) -> Clean:
    """Return an imported set to copy: its truth is what `truth.npy` says, else the shares of its labels."""
    source = imported.read(folder)
    found, truth = source.collection(split), source.vectors(TRUTH, split)
    numbers = source.dataset(split).features
    embeddings = source.vectors("embeddings", split)
    origin = Origin(
        sources=(imported.source_file(folder / MANIFEST),),
        root=source.root if "files" in found.columns else None,
        vectors={} if embeddings is None else {"embeddings": embeddings},
    )
    if truth is None:
        truth = shares(found.labels(), found)
    described = numbers if embeddings is None else embeddings
    return Clean(found=found, truth=truth, embeddings=described, origin=origin)


def of_published(name: str, folder: Path | None, *, settings: Mapping[str, Any]) -> Clean:
    """Return a data set by its name to copy."""
    dataset = datasets.load(name, folder, settings=settings)
    found = datasets.collected(dataset)
    truth = shares(dataset.given, found) if dataset.truth is None else dataset.truth
    return Clean(found=found, truth=truth, embeddings=dataset.features)


def shares(labels: Labels, found: Collection) -> FloatArray:
    """Return the labels as shares of votes, N x C; every item needs one."""
    votes = labels.counts
    missing = votes.sum(1) == 0
    if missing.any():
        raise BadInput(
            f"{found.place(int(missing.argmax()))}: a label was needed to draw a noisy one from, but it has none; "
            "label it, or leave it out of the set"
        )
    return true_distribution(votes, labels.classes)
