"""A model trained on labels as they stand: the one function that the simulator and a live campaign train by.

What is trained is a record that JSON holds, so that a campaign's file, a log and a command line can all name it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal

import msgspec
import numpy as np

from relook.errors import BadInput
from relook.first_model import features
from relook.selectors.logistic import Logistic
from relook.types import Dataset, Labels, Posteriors, fingerprint

METHODS: Mapping[str, Callable[..., Any]] = MappingProxyType({"logistic": Logistic})
"""Methods by their names; each is made from its own settings and called with features and labels."""


class Training(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is trained, and how it takes the labels; `settings` are those of the method itself.

    `targets` are the class with most votes (hard) or the votes as shares (soft). An answered item counts
    `answered_weight` times, or it alone counts (`learns_from` answered). A training may go on from the networks of the
    one before it (`start` warm); they lie in the folder `keeps`.

    >>> msgspec.json.decode(msgspec.json.encode(Training(answered_weight=3)), type=Training).answered_weight
    3.0
    """

    method: str = "logistic"
    settings: dict[str, Any] = {}
    targets: Literal["hard", "soft"] = "hard"
    answered_weight: float = 1.0
    learns_from: Literal["all", "answered"] = "all"
    start: Literal["anew", "warm"] = "anew"
    keeps: str | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            near = difflib.get_close_matches(self.method, METHODS, 1, cutoff=0.0)[0]
            raise BadInput(
                f"training: a method of {', '.join(METHODS)} was needed, but {self.method!r} came; is {near} meant?"
            )


class Trainer(msgspec.Struct, frozen=True):
    """Trains what a record says, on labels as they stand.

    >>> from relook.datasets import digits
    >>> found = trainer({"method": "logistic", "settings": {"folds": 2}})(digits.load(), digits.load().given, 0)
    >>> found.items, found.in_sample, found.about["selector"]
    (1797, False, 'logistic')
    """

    training: Training

    def __call__(self, dataset: Dataset, labels: Labels, seed: int = 0) -> Posteriors:
        """Return the posteriors of every item; their `about` says what made them."""
        table, _ = features(dataset, seed=seed)
        method = METHODS[self.training.method](**self.training.settings)
        found = method(table, labels, groups=dataset.groups, seed=seed)
        return msgspec.structs.replace(found, about=_about(self.training, labels, seed=seed))

    def on(self, dataset: Dataset, *, seed: int = 0) -> Callable[[Labels], Posteriors]:
        """Return the trainer for one data set and seed, as `Simulation.update` takes it."""
        return lambda labels: self(dataset, labels, seed)


def trainer(settings: Training | Mapping[str, Any]) -> Trainer:
    """Return the trainer that a record says, or the same as a mapping, such as JSON and TOML hold."""
    if isinstance(settings, Training):
        return Trainer(settings)
    try:
        return Trainer(msgspec.convert(settings, Training))
    except msgspec.ValidationError as error:
        raise BadInput(f"training: {error}; its keys are {', '.join(Training.__struct_fields__)}") from None


def _about(training: Training, labels: Labels, *, seed: int) -> dict[str, Any]:
    """Return what a log keeps of a training: the selector, its settings, and a hash of all that it learnt from."""
    answers = 0 if labels.answers is None else int(np.asarray(labels.answers).sum())
    return {
        "selector": training.method,
        "training": msgspec.to_builtins(training),
        "labels": labels.fingerprint(),
        "answers": answers,
        "votes": fingerprint(np.ascontiguousarray(labels.counts, np.int64)),
        "seed": seed,
        "in_sample": False,
    }
