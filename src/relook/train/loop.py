"""One loop for every method: views of a batch, a loss, a step, and the same again, from wherever it stopped.

All chance of a step comes from the seed and the step's number, so a training that goes on after it was killed takes the
very steps that it would have taken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from relook.train import checkpoints, material
from relook.train.augment import Statistics, drawn, normalised, statistics
from relook.train.checkpoints import Checkpoint
from relook.train.learners import Batch, Facts, Method
from relook.train.material import Material, Trained
from relook.train.schedule import Schedule, optimizer, stepped


@dataclass(frozen=True)
class Place:
    """Where a training runs and what it leaves: the device, a folder of checkpoints, and how many steps between."""

    device: str = "cpu"
    folder: Path | None = None
    every: int = 500


SCHEDULE = Schedule()
"""Two hundred epochs: on 10,000 small images two minutes of a large graphics card, for 73 of 100 labels right."""

HERE = Place()
"""On the processor, and nothing is kept."""


def trained(
    found: Material, method: Method, *, schedule: Schedule = SCHEDULE, seed: int = 0, place: Place = HERE
) -> Trained:
    """Return the network that a method makes of images and their targets."""
    with chance_kept(place.device):
        training = Training(found, method, schedule=schedule, seed=seed, place=place)
        for _ in training:
            pass
        return Trained(training.learner.eval(), training.seen, training.told)


class Training:
    """A training that can be walked through step by step; each step yields its loss, on the device."""

    def __init__(self, found: Material, method: Method, *, schedule: Schedule, seed: int, place: Place) -> None:
        material.check(found, schedule, device=place.device)
        self.method, self.schedule, self.seed, self.place = method, schedule, seed, place
        self.images, self.targets, self.weights = (each.to(place.device) for each in found.tensors())
        self.seen: Statistics = statistics(found.images) if found.start is None else found.start.seen
        self.told: tuple[str, ...] = ()
        self.learner = self._begun(found)
        # On a graphics card the small steps of both are fused into few: a third more images a second.
        fused: Callable[[Any], Any] = torch.compile if self.images.is_cuda else _as_it_is
        self.loss, self.drawn = fused(self.learner.loss), fused(drawn)
        self.optimizer = optimizer(self.learner, schedule)
        self.learnt = found.learnt()
        self.chances = found.chances(schedule.balance)
        self.an_epoch = schedule.steps_an_epoch(len(self.learnt))
        self.steps = schedule.epochs * self.an_epoch
        self._known = -1, torch.empty(0)
        self._epoch = torch.zeros((), dtype=torch.float64, device=place.device)
        described = {"name": type(method).__name__} | asdict(cast(Any, method))
        self.about = {"method": described, "schedule": asdict(schedule), "seed": seed, "material": found.hashed()}

    def __iter__(self) -> Iterator[Tensor]:
        for step in range(self._resumed(), self.steps):
            loss = self._stepped(step)
            if self.place.folder is not None and ((step + 1) % self.place.every == 0 or step + 1 == self.steps):
                checkpoints.write(self.place.folder, self._state(step + 1))
            yield loss

    def _begun(self, found: Material) -> Any:
        """Return the network that the training begins with."""
        sow(self.seed, "network")
        start = None if found.start is None else found.start.network
        facts = Facts(len(self.images), self.targets.shape[1], self.images.shape[1], getattr(start, "encoder", start))
        learner: Any = self.method.network(facts)
        material.check_labels(learner, found)
        if isinstance(start, type(learner)):
            learner.load_state_dict(start.state_dict())
        return learner.to(self.place.device).to(memory_format=torch.channels_last).train()

    def _order(self, epoch: int) -> Tensor:
        """Return the order in which an epoch looks at the items; the last one asked for is kept."""
        if self._known[0] != epoch:
            sow(self.seed, "order", epoch)
            count = len(self.learnt)
            if self.chances is None:
                chosen = torch.randperm(count)
            else:
                chosen = torch.multinomial(self.chances, count, replacement=True)
            self._known = epoch, self.learnt[chosen].to(self.images.device)
        return self._known[1]

    def _stepped(self, step: int) -> Tensor:
        epoch, place = divmod(step, self.an_epoch)
        rows = self._order(epoch)[place * self.schedule.batch : (place + 1) * self.schedule.batch]
        images, epochs = self.images[rows], self._epoch.fill_(step / self.an_epoch)
        sow(self.seed, "step", step)
        views = tuple(
            normalised(self.drawn(images, view), self.seen).contiguous(memory_format=torch.channels_last)
            for view in self.method.views
        )
        with torch.autocast(self.images.device.type, torch.bfloat16, enabled=self.images.is_cuda):
            loss = self.loss(views, Batch(rows, self.targets[rows], self.weights[rows], epochs))
        loss.backward()
        rate = self.schedule.rate_at(step, steps=self.steps, an_epoch=self.an_epoch)
        stepped(self.optimizer, self.schedule, rate=rate)
        self.learner.follow((step + 1) / self.steps)
        return loss.detach()

    def _state(self, step: int) -> Checkpoint:
        tensors = {f"network.{name}": tensor for name, tensor in self.learner.state_dict().items()}
        for number, state in self.optimizer.state_dict()["state"].items():
            kept = {name: value for name, value in state.items() if value is not None}
            tensors |= {f"optimizer.{number}.{name}": value for name, value in kept.items()}
        return Checkpoint(step, tensors, self.about)

    def _resumed(self) -> int:
        """Go on from the newest checkpoint, where there is one, and return the next step."""
        if self.place.folder is None or not self.place.folder.is_dir():
            return 0
        found, self.told = checkpoints.newest(self.place.folder, about=self.about)
        if found is None:
            return 0
        network: dict[str, Tensor] = {}
        known = self.optimizer.state_dict()
        known["state"] = {}
        for name, tensor in found.tensors.items():
            kind, _, own = name.partition(".")
            if kind == "network":
                network[own] = tensor
            else:
                number, _, part = own.partition(".")
                known["state"].setdefault(int(number), {})[part] = tensor
        self.learner.load_state_dict(network)
        self.optimizer.load_state_dict(known)
        return found.step


def _as_it_is(function: Any) -> Any:
    return function


def sow(seed: int, *names: str | int) -> None:
    """Set the chance of what follows: it depends on the seed and these names alone."""
    words = "\x1f".join([str(seed), *map(str, names)])
    torch.manual_seed(int.from_bytes(hashlib.blake2b(words.encode(), digest_size=8).digest(), "little") >> 1)


@contextmanager
def chance_kept(device: str) -> Iterator[None]:
    """Leave the chance of everybody else as it was."""
    with torch.random.fork_rng(devices=[] if device == "cpu" else None):
        yield
