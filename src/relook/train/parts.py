"""What recipes are made of: encoders that learn without labels, heads on what these make of images, and networks."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from relook.discriminants import fitted, sums
from relook.train import checkpoints
from relook.train.augment import Statistics
from relook.train.checkpoints import Checkpoint
from relook.train.crossing import (
    FloatArray,
    IntArray,
    Learn,
    fold_of,
    labels_of,
    number,
    out_of_sample,
    self_trained,
    together,
)
from relook.train.learners import Facts
from relook.train.loop import HERE, SCHEDULE, Place, trained
from relook.train.material import Material, Trained
from relook.train.noise_rate import noise_rate
from relook.train.predict import ONCE, Looks, embedded, predicted
from relook.train.schedule import Schedule
from relook.train.simclr import SimClr
from relook.train.vanilla import Vanilla

QUICK = Schedule(epochs=10, batch=128, rate=0.05, warmup=1, short="kept")
"""A pace that says roughly what images show."""

SIMCLR = SimClr()
"""SimCLR as it is."""

CELLS = 2**25
"""Similarities that are held at a time, 32 bits each."""


KEPT = {"kept": "a network for the next training"}
SEEN = ("seen.mean", "seen.deviation")
"""How the images were normalised, beside the network that was trained on them."""


@dataclass(frozen=True)
class Encoder:
    """A network that learns from images without labels, in so many copies that differ by their seeds."""

    method: Any = SIMCLR
    schedule: Schedule = SCHEDULE
    copies: int = 1


@dataclass(frozen=True)
class Shelf:
    """Where networks are kept: those of the last training, to go on from, and the folder to leave one's own in."""

    last: Path | None = None
    own: Path | None = None


NO_SHELF = Shelf()
"""Every training begins anew, and leaves nothing."""


class Work:
    """The images that a recipe is run on, and the encoders that have learnt from them: each learns once."""

    def __init__(self, images: Tensor, *, seed: int = 0, place: Place = HERE, shelf: Shelf = NO_SHELF) -> None:
        self.images, self.seed, self.place, self.shelf = images, seed, place, shelf
        self._encoders: dict[Encoder, tuple[Trained, ...]] = {}
        self._tables: dict[tuple[Encoder, ...], FloatArray] = {}

    def at(self, name: str) -> Place:
        """Return the place of a training by its name, in a folder of its own where any is kept."""
        return self.place if self.place.folder is None else replace(self.place, folder=self.place.folder / name)

    def encoders(self, each: Encoder) -> tuple[Trained, ...]:
        """Return the copies of an encoder, trained on all images."""
        if each not in self._encoders:
            kind = f"{type(each.method).__name__.lower()}-{number(0, repr(each)) % 10**6:06d}"
            self._encoders[each] = tuple(
                trained(
                    Material(self.images),
                    each.method,
                    schedule=each.schedule,
                    seed=number(self.seed, kind, copy),
                    place=self.at(f"{kind}/{copy}"),
                )
                for copy in range(each.copies)
            )
        return self._encoders[each]

    def last(self, network: Network, *, name: str, classes: int) -> Trained | None:
        """Return the network that the training before this one left under a name, where there is one to go on from."""
        if self.shelf.last is None:
            return None
        found, _ = checkpoints.newest(self.shelf.last / name, about=KEPT)
        if found is None:
            return None
        encoder = None if network.start is None else self.encoders(network.start)[0].encoder
        learner = network.method.network(Facts(len(self.images), classes, self.images.shape[1], encoder))
        learner.load_state_dict({key: value for key, value in found.tensors.items() if key not in SEEN})
        mean, deviation = (tuple(found.tensors[key].tolist()) for key in SEEN)
        return Trained(learner, Statistics(mean, deviation))

    def keep(self, found: Trained, *, name: str) -> None:
        """Leave a network for the training after this one, where networks are kept."""
        if self.shelf.own is not None:
            seen = {key: torch.tensor(values) for key, values in zip(SEEN, asdict(found.seen).values(), strict=True)}
            checkpoints.write(self.shelf.own / name, Checkpoint(1, found.network.state_dict() | seen, KEPT))

    def table(self, encoders: tuple[Encoder, ...]) -> FloatArray:
        """Return what all copies of some encoders make of each image, side by side, none louder than another."""
        if encoders not in self._tables:
            found = [embedded(copy, self.images).numpy() for each in encoders for copy in self.encoders(each)]
            self._tables[encoders] = joined(found)
        return self._tables[encoders]


def joined(tables: Sequence[FloatArray]) -> FloatArray:
    """Return tables side by side, each with columns of mean 0 and deviation 1 and the same sum of squares a row.

    >>> joined([np.array([[1.0], [3.0]]), np.array([[1.0, 1.0], [3.0, 5.0]])]).round(2).tolist()
    [[-1.22, -0.87, -0.87], [1.22, 0.87, 0.87]]
    """
    width = sum(table.shape[1] for table in tables)
    parts = []
    for table in tables:
        spread = table.std(0)
        plain = (table - table.mean(0)) / np.where(spread > 0, spread, 1.0)
        parts.append(plain * (width / (len(tables) * table.shape[1])) ** 0.5)
    return np.hstack(parts)


class Part(Protocol):
    """A part of a recipe: what learns from labels."""

    def learner(self, work: Work) -> Learn:
        """Return what learns from masses and predicts rows."""
        ...


class Head(Protocol):
    """A classifier on a table of features."""

    def said(self, table: FloatArray, masses: FloatArray, *, asked: IntArray) -> FloatArray:
        """Return probabilities of some rows, n x C, from the masses of others."""
        ...


@dataclass(frozen=True)
class Lda:
    """Linear discriminants whose covariance is shrunk towards a sphere."""

    shrinkage: float = 0.1

    def said(self, table: FloatArray, masses: FloatArray, *, asked: IntArray) -> FloatArray:
        """Return probabilities of some rows."""
        known = masses.sum(1) > 0
        return fitted(sums(table[known], masses[known]), shrinkage=self.shrinkage).predict(table[asked])


@dataclass(frozen=True)
class Knn:
    """The votes of the nearest items by cosine, near ones for more, and `smoothing` votes by how common classes are."""

    neighbours: int = 30
    temperature: float = 0.1
    smoothing: float = 1.0

    def said(self, table: FloatArray, masses: FloatArray, *, asked: IntArray) -> FloatArray:
        """Return probabilities of some rows."""
        voters = np.flatnonzero(masses.sum(1) > 0)
        directions = torch.nn.functional.normalize(torch.from_numpy(np.ascontiguousarray(table, np.float32)), dim=1)
        shares = torch.from_numpy(np.ascontiguousarray(masses[voters], np.float32))
        heard, electorate = min(self.neighbours, len(voters)), directions[voters].T
        rows = []
        step = max(1, CELLS // len(voters))
        for low in range(0, len(asked), step):
            alike, near = (directions[asked[low : low + step]] @ electorate).topk(heard, dim=1)
            weights = ((alike - 1) / self.temperature).exp()
            rows.append(torch.einsum("nk,nkc->nc", weights, shares[near]))
        votes = torch.cat(rows) + self.smoothing * shares.sum(0) / shares.sum()
        return (votes / votes.sum(1, keepdim=True)).numpy()


@dataclass(frozen=True)
class Heads:
    """Heads on the joined embeddings of encoders: a model each. In `rounds` they learn from what they said before.

    What they say of an item without a label then counts as `weight` of one.
    """

    encoders: tuple[Encoder, ...] = (Encoder(),)
    heads: tuple[Head, ...] = (Lda(),)
    rounds: int = 0
    weight: float = 0.5

    def learner(self, work: Work) -> Learn:
        """Return what learns from masses and predicts rows."""
        table = work.table(self.encoders)

        def of(head: Head) -> Learn:
            def learn(masses: FloatArray, asked: IntArray, *, name: str) -> FloatArray:  # noqa: ARG001
                return head.said(table, masses, asked=asked)[np.newaxis]

            return learn

        learn = together([of(head) for head in self.heads])
        return self_trained(learn, rounds=self.rounds, weight=self.weight) if self.rounds else learn


@dataclass(frozen=True)
class Network:
    """A network that learns from labels, alone or from an encoder, in so many copies: a deep ensemble.

    `looks` are how an image is looked at when it is predicted: once, with its mirror image, or in drawn views.
    `renewed` is the pace of a warm update. With `noise` estimated, the method's own is the share of wrong labels as
    told by a quick head on the encoder, or a network with the pace `quick`, out of sample.
    """

    method: Any
    schedule: Schedule
    start: Encoder | None = None
    copies: int = 1
    looks: Looks = ONCE
    renewed: Schedule | None = None
    noise: Literal["fixed", "estimated"] = "fixed"
    quick: Schedule = QUICK

    def learner(self, work: Work) -> Learn:
        """Return what learns from masses and predicts rows."""

        def learn(masses: FloatArray, asked: IntArray, *, name: str) -> FloatArray:
            ready = self._ready(work, masses, name=name)
            found = (ready._trained(work, masses, name=name, copy=copy) for copy in range(self.copies))
            return np.concatenate([predicted(each, work.images[asked], looks=self.looks).numpy() for each in found])

        return learn

    def _ready(self, work: Work, masses: FloatArray, *, name: str) -> Network:
        """Return the network with what was left to be estimated: how many labels are wrong."""
        if self.noise == "fixed":
            return self
        said = quick_look(self, work)
        walk = fold_of(masses, 2, seed=number(work.seed, name, "rate"))
        rate = noise_rate(out_of_sample(said, masses, fold_of=walk).mean(0), labels_of(masses))
        return replace(self, method=replace(self.method, noise=rate))

    def _trained(self, work: Work, masses: FloatArray, *, name: str, copy: int) -> Trained:
        """Return one copy, trained on masses."""
        own = f"{name}/{copy}"
        begun = work.last(self, name=own, classes=masses.shape[1])
        schedule = self.schedule if begun is None or self.renewed is None else self.renewed
        if begun is None and self.start is not None:
            begun = work.encoders(self.start)[copy % self.start.copies]
        weights = masses.sum(1)
        shares = masses / np.where(weights > 0, weights, 1.0)[:, np.newaxis]
        material = Material(work.images, torch.from_numpy(shares), torch.from_numpy(weights), begun)
        # Labels change while people answer: what was reached on others must not be in the way.
        place = work.at(f"{own}/labels-{_digest(masses, work.shelf.last)}")
        found = trained(material, self.method, schedule=schedule, seed=number(work.seed, own), place=place)
        work.keep(found, name=own)
        return found


def _digest(masses: FloatArray, last: Path | None) -> str:
    """Return a hash of what a network learns from, and of whose network it goes on from."""
    told = np.ascontiguousarray(masses, np.float32).tobytes() + (last.name.encode() if last else b"")
    return hashlib.blake2b(told, digest_size=6).hexdigest()


def quick_look(network: Network, work: Work) -> Learn:
    """Return what says quickly, and roughly, what images show: a head on the encoder, else a network of few epochs."""
    if network.start is not None:
        return Heads((network.start,)).learner(work)
    return Network(Vanilla(shape=network.method.shape), network.quick).learner(work)
