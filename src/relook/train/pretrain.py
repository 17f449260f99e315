"""Pre-training without labels: views of a batch, a loss, a step, and the same again, from wherever it stopped.

All chance of a step comes from the seed and the step's number, so a training that goes on after it was killed takes the
very steps that it would have taken.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from relook.errors import BadInput
from relook.train import checkpoints
from relook.train.augment import Statistics, View, drawn, normalised, statistics
from relook.train.checkpoints import Checkpoint


class Learner(Protocol):
    """A network that learns from two views of each image; `encoder` is what is kept of it."""

    encoder: nn.Module

    def loss(self, first: Tensor, second: Tensor) -> Tensor:
        """Return what is to become small."""
        ...

    def follow(self, done: float) -> None:
        """Do what is due after a step, when a share of the training is done."""
        ...


class Method(Protocol):
    """The settings of a self-supervised method."""

    @property
    def views(self) -> tuple[View, View]:
        """How the two views of an image are drawn."""
        ...

    def network(self) -> Any:
        """Return an untrained network, a `Learner`."""
        ...


@dataclass(frozen=True)
class Schedule:
    """How long and how fast: SGD with momentum, a rate that rises over `warmup` epochs and falls along a cosine."""

    epochs: int = 200
    batch: int = 512
    rate: float = 0.3
    momentum: float = 0.9
    decay: float = 5e-4
    warmup: int = 5

    def rate_at(self, step: int, *, steps: int, an_epoch: int) -> float:
        """Return the rate of a step.

        >>> Schedule(rate=1.0, warmup=1).rate_at(5, steps=100, an_epoch=10)
        0.5
        """
        warm = self.warmup * an_epoch
        return self.rate * (step / warm if step < warm else 0.5 * (1 + math.cos(math.pi * step / steps)))


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


def pretrained(
    images: Tensor, method: Method, *, schedule: Schedule = SCHEDULE, seed: int = 0, place: Place = HERE
) -> tuple[nn.Module, Statistics]:
    """Return an encoder that has learnt from images alone, N x channels x H x W bytes, and the images' statistics."""
    _check(images, schedule)
    with _chance(place.device):
        training = _Training(images, method, schedule=schedule, seed=seed, place=place)
        for _ in training:
            pass
        return training.learner.encoder.eval(), training.seen


@torch.no_grad()
def embedded(encoder: nn.Module, images: Tensor, *, seen: Statistics, batch: int = 1024) -> Tensor:
    """Return what an encoder makes of images, N x D: the mean over each image and its mirror image."""
    device = next(encoder.parameters()).device
    parts = []
    for start in range(0, len(images), batch):
        plain = normalised(images[start : start + batch].to(device).float() / 255, seen)
        parts.append((encoder(plain).float() + encoder(plain.flip(3)).float()).div(2).cpu())
    return torch.cat(parts)


class _Training:
    """A training that can be walked through step by step."""

    def __init__(self, images: Tensor, method: Method, *, schedule: Schedule, seed: int, place: Place) -> None:
        self.method, self.schedule, self.seed, self.place = method, schedule, seed, place
        self.images = images.to(place.device)
        self.seen = statistics(images)
        _sow(seed, "network")
        self.learner: Any = method.network().to(place.device).to(memory_format=torch.channels_last)
        # On a graphics card the small steps of both are fused into few: a third more images a second.
        fused: Callable[[Any], Any] = torch.compile if self.images.is_cuda else _as_it_is
        self.loss, self.drawn = fused(self.learner.loss), fused(drawn)
        learnt = [each for each in self.learner.parameters() if each.requires_grad]
        self.optimizer = torch.optim.SGD(
            learnt, lr=schedule.rate, momentum=schedule.momentum, weight_decay=schedule.decay
        )
        self.an_epoch = len(images) // schedule.batch
        self.steps = schedule.epochs * self.an_epoch
        self._known = -1, torch.empty(0)
        self.about = {"method": _described(method), "schedule": asdict(schedule), "seed": seed, "images": _hash(images)}

    def __iter__(self) -> Iterator[Tensor]:
        for step in range(self._resumed(), self.steps):
            loss = self._stepped(step)
            if self.place.folder is not None and ((step + 1) % self.place.every == 0 or step + 1 == self.steps):
                checkpoints.write(self.place.folder, self._state(step + 1))
            yield loss

    def _order(self, epoch: int) -> Tensor:
        """Return the order in which an epoch looks at the images; the last one asked for is kept."""
        if self._known[0] != epoch:
            _sow(self.seed, "order", epoch)
            self._known = epoch, torch.randperm(len(self.images)).to(self.images.device)
        return self._known[1]

    def _stepped(self, step: int) -> Tensor:
        epoch, place = divmod(step, self.an_epoch)
        batch = self.images[self._order(epoch)[place * self.schedule.batch : (place + 1) * self.schedule.batch]]
        _sow(self.seed, "step", step)
        first, second = (
            normalised(self.drawn(batch, view), self.seen).contiguous(memory_format=torch.channels_last)
            for view in self.method.views
        )
        for group in self.optimizer.param_groups:
            group["lr"] = self.schedule.rate_at(step, steps=self.steps, an_epoch=self.an_epoch)
        with torch.autocast(self.images.device.type, torch.bfloat16, enabled=self.images.is_cuda):
            loss = self.loss(first, second)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.learner.follow((step + 1) / self.steps)
        return loss.detach()

    def _state(self, step: int) -> Checkpoint:
        tensors = {f"network.{name}": tensor for name, tensor in self.learner.state_dict().items()}
        memory = self.optimizer.state_dict()["state"]
        tensors |= {f"momentum.{number}": state["momentum_buffer"] for number, state in memory.items()}
        return Checkpoint(step, tensors, self.about)

    def _resumed(self) -> int:
        """Go on from the newest checkpoint, where there is one, and return the next step."""
        if self.place.folder is None or not self.place.folder.is_dir():
            return 0
        found, _ = checkpoints.newest(self.place.folder, about=self.about)
        if found is None:
            return 0
        parts: dict[str, dict[str, Tensor]] = {"network": {}, "momentum": {}}
        for name, tensor in found.tensors.items():
            kind, _, own = name.partition(".")
            parts[kind][own] = tensor
        self.learner.load_state_dict(parts["network"])
        known = self.optimizer.state_dict()
        known["state"] = {int(number): {"momentum_buffer": tensor} for number, tensor in parts["momentum"].items()}
        self.optimizer.load_state_dict(known)
        return found.step


def _as_it_is(function: Any) -> Any:
    return function


def _check(images: Tensor, schedule: Schedule) -> None:
    if images.dtype != torch.uint8 or images.ndim != 4:
        raise BadInput(
            f"pre-training: N x channels x H x W bytes were needed, but {images.dtype} of shape {tuple(images.shape)} "
            "came; stack images of one size"
        )
    if len(images) < schedule.batch:
        raise BadInput(
            f"pre-training: a batch of at most {len(images):,} images was needed, but {schedule.batch:,} came; take a "
            "smaller one"
        )


def _described(method: Any) -> dict[str, Any]:
    return {"name": type(method).__name__} | asdict(method)


def _hash(images: Tensor) -> str:
    return hashlib.blake2b(images.cpu().contiguous().numpy().tobytes(), digest_size=16).hexdigest()


def _sow(seed: int, *names: str | int) -> None:
    """Set the chance of what follows: it depends on the seed and these names alone."""
    words = "\x1f".join([str(seed), *map(str, names)])
    torch.manual_seed(int.from_bytes(hashlib.blake2b(words.encode(), digest_size=8).digest(), "little") >> 1)


@contextmanager
def _chance(device: str) -> Iterator[None]:
    """Leave the chance of everybody else as it was."""
    with torch.random.fork_rng(devices=[] if device == "cpu" else None):
        yield
