"""A model trained on labels as they stand: the one function that the simulator and a live campaign train by.

What is trained is a record that JSON holds, so that a campaign's file, a log and a command line can all name it.
"""

from __future__ import annotations

import difflib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from relook import methods, networks
from relook.errors import BadInput
from relook.heads import Taken
from relook.networks import NOTHING_KEPT, Kept
from relook.types import Dataset, Labels, Posteriors, fingerprint
from relook.whole import drafted

LAST = "last.json"
"""The file of a folder of networks that names those of the last training that ended."""

NETWORK_SETTINGS = ("recipe", "device", "folder", "unlabelled", "data")
"""Settings of networks alone."""

SETTINGS = ("folds", "repeats", "texts", *NETWORK_SETTINGS)
"""What `settings` of a training may hold: what `relook.methods.Settings` tells every method, and networks."""


class Training(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is trained, and how it takes the labels; `settings` are those of the method itself.

    `targets` are the label that stands (hard) or the votes as shares (soft). An answered item counts `answered_weight`
    times, or it alone counts (`learns_from` answered). Networks may go on from those of the training before (`start`
    warm), which lie in the folder `keeps`.

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
        if self.method not in methods.METHODS:
            near = difflib.get_close_matches(self.method, methods.METHODS, 1, cutoff=0.0)[0]
            known = ", ".join(methods.METHODS)
            raise BadInput(f"training: a method of {known} was needed, but {self.method!r} came; is {near} meant?")
        for key in self.settings:
            if key not in SETTINGS:
                known = ", ".join(SETTINGS)
                raise BadInput(f"training: settings of {known} were needed, but {key!r} came; leave it out")
        self.taken()
        self.network()
        if self.start == "warm" and (self.method not in networks.METHODS or self.keeps is None):
            raise BadInput(
                "training: a warm start needs networks and a folder that keeps them, but "
                f"{self.method} with keeps {self.keeps} came; start anew, or name a folder"
            )

    def taken(self) -> Taken:
        """Return how labels become targets."""
        return Taken(
            targets="votes" if self.targets == "soft" else "majority",
            answered_weight=self.answered_weight,
            learns_from=self.learns_from,
        )

    def placeless(self) -> Training:
        """Return the training without the folders that it happens to use: what comes of it does not depend on them."""
        settings = {key: value for key, value in self.settings.items() if key not in ("folder", "data")}
        return msgspec.structs.replace(self, settings=settings)

    def network(self) -> networks.Settings:
        """Return the settings of networks."""
        told = {key: value for key, value in self.settings.items() if key in NETWORK_SETTINGS}
        try:
            return msgspec.convert(told, networks.Settings)
        except msgspec.ValidationError as error:
            raise BadInput(f"training: settings of networks are texts, but {error}; mend them") from None


class Trainer(msgspec.Struct, frozen=True):
    """Trains what a record says, on labels as they stand.

    >>> from relook.datasets import digits
    >>> found = trainer({"method": "lda", "settings": {"folds": 2}})(digits.load(), digits.load().given, 0)
    >>> found.items, found.in_sample, found.about["selector"]["name"]
    (1797, False, 'Lda')
    """

    training: Training

    def __call__(self, dataset: Dataset, labels: Labels, seed: int = 0) -> Posteriors:
        """Return the posteriors of every item; their `about` says what made them."""
        votes = fingerprint(np.ascontiguousarray(labels.counts, np.int64))
        kept = _kept(self.training, votes)
        told = {key: value for key, value in self.training.settings.items() if key not in NETWORK_SETTINGS}
        settings = methods.Settings(
            **told, seed=seed, taken=self.training.taken(), network=self.training.network(), kept=kept
        )
        known = msgspec.structs.replace(dataset, given=labels)
        found = methods.trained(self.training.method, known, settings=settings)
        if kept.own is not None:
            _point(kept.own)
        about = {"training": msgspec.to_builtins(self.training), "votes": votes, "in_sample": found.in_sample}
        return msgspec.structs.replace(found, about=found.about | about)

    def on(self, dataset: Dataset, *, seed: int = 0) -> Update:
        """Return the trainer for one data set and seed, as `Simulation.update` takes it."""
        return Update(self, dataset, seed)


class Update(msgspec.Struct, frozen=True, eq=False):
    """A trainer, bound to a data set and a seed."""

    trainer: Trainer
    dataset: Dataset
    seed: int = 0

    def __call__(self, labels: Labels) -> Posteriors:
        """Return the posteriors after training on labels as they stand."""
        return self.trainer(self.dataset, labels, self.seed)


def trainer(settings: Training | Mapping[str, Any]) -> Trainer:
    """Return the trainer that a record says, or the same as a mapping, such as JSON and TOML hold."""
    if isinstance(settings, Training):
        return Trainer(settings)
    try:
        return Trainer(msgspec.convert(settings, Training))
    except msgspec.ValidationError as error:
        keys = ", ".join(Training.__struct_fields__)
        raise BadInput(f"training: a record of {keys} was needed, but: {error}; mend it") from None


def _kept(training: Training, votes: str) -> Kept:
    """Return the folders of networks to go on from and to leave: each training has one, named by what it learnt from.

    A training that was stopped and is run again begins where it began, for the last one that ended is not itself.
    """
    if training.keeps is None:
        return NOTHING_KEPT
    own = Path(training.keeps) / votes
    if training.start == "anew":
        return Kept(None, own)
    try:
        ended = [Path(training.keeps) / name for name in msgspec.json.decode((own.parent / LAST).read_bytes())]
    except (OSError, msgspec.DecodeError):
        ended = []
    before = [each for each in ended if each != own and each.is_dir()]
    return Kept(before[-1] if before else None, own)


def _point(own: Path) -> None:
    """Let the file of a folder of networks name this training and the one before it; those of older ones go."""
    place = own.parent / LAST
    try:
        ended = msgspec.json.decode(place.read_bytes(), type=list[str])
    except (OSError, msgspec.DecodeError):
        ended = []
    ended = [*(name for name in ended if name != own.name), own.name]
    with drafted(place) as part:
        part.write_bytes(msgspec.json.encode(ended[-2:]))
    for name in ended[:-2]:
        shutil.rmtree(own.parent / Path(name).name, ignore_errors=True)
