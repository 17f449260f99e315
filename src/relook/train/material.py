"""What a training starts from: images, what is known of their labels, and perhaps a network that has learnt already."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from relook.errors import BadInput
from relook.train.augment import Statistics
from relook.train.learners import Method
from relook.train.schedule import Schedule


@dataclass(frozen=True)
class Trained:
    """A network that has learnt, how the images it saw were normalised, and what was passed over on the way."""

    network: nn.Module
    seen: Statistics
    told: tuple[str, ...] = ()

    @property
    def encoder(self) -> Any:
        """The part that turns images into features: all of a network that says how many `features` it makes."""
        network: Any = self.network
        return network if isinstance(getattr(network, "features", None), int) else getattr(network, "encoder", network)


@dataclass(frozen=True)
class Material:
    """Images (N x channels x H x W bytes), targets (N x C shares, a row of zeros where an item has no label), weights.

    Where `start` is a learner of the method that is asked for, training goes on from it; of anything else its encoder
    is taken, which may be any module that has `features` and turns images into so many numbers.
    """

    images: Tensor
    targets: Tensor | None = None
    weights: Tensor | None = None
    start: Trained | None = None

    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return images, targets (of no class where there are none) and weights (1 where there are none)."""
        count = len(self.images)
        targets = torch.zeros(count, 0) if self.targets is None else self.targets.float()
        return self.images, targets, torch.ones(count) if self.weights is None else self.weights.float()

    def learnt(self) -> Tensor:
        """Return the rows that are learnt from: those with a label, and a weight above 0; without labels all."""
        _, targets, weights = self.tensors()
        labelled = targets.sum(1) > 0 if self.targets is not None else torch.ones(len(targets), dtype=torch.bool)
        return (labelled & (weights > 0)).nonzero()[:, 0]

    def chances(self, balance: float) -> Tensor | None:
        """Return how often each row that is learnt from is drawn, or nothing where all are drawn once."""
        if not balance or self.targets is None:
            return None
        targets = self.targets.float()[self.learnt()]
        return targets @ targets.sum(0).clamp(min=1e-9) ** -balance

    def hashed(self) -> str:
        """Return a hash of all of it."""
        start = [] if self.start is None else self.start.network.state_dict().values()
        return _hash([*self.tensors(), *start])


def check(found: Material, schedule: Schedule) -> None:
    """Refuse what cannot be learnt from."""
    images = found.images
    if images.dtype != torch.uint8 or images.ndim != 4:
        raise BadInput(
            f"training: N x channels x H x W bytes were needed, but {images.dtype} of shape {tuple(images.shape)} "
            "came; stack images of one size"
        )
    if found.targets is not None:
        _check_targets(found.targets, len(images))
    if found.weights is not None:
        _check_weights(found.weights, len(images))
    learnt = len(found.learnt())
    if not schedule.steps_an_epoch(learnt):
        raise BadInput(
            f"training: a batch of at most {learnt:,} images was needed, but {schedule.batch:,} came; take a smaller "
            "one"
        )


def check_labels(found: Material, method: Method) -> None:
    """Refuse a method that learns from labels, one view of each image, where there are none."""
    if len(method.views) == 1 and found.targets is None:
        raise BadInput(f"training: {type(method).__name__} needs targets, but none came; hand in shares, N x C")


def go_on(learner: nn.Module, start: nn.Module) -> None:
    """Let a learner go on from one of its kind."""
    try:
        learner.load_state_dict(start.state_dict())
    except RuntimeError as error:
        raise BadInput(
            "training: a network of the same shape, classes and items was needed to go on from, but another came; hand "
            "in its encoder"
        ) from error


def _check_targets(targets: Tensor, count: int) -> None:
    if not targets.is_floating_point() or targets.ndim != 2 or len(targets) != count:
        raise BadInput(
            f"targets: {count:,} rows of a share for each class were needed, but {targets.dtype} of shape "
            f"{tuple(targets.shape)} came; write labels as rows of 0 and 1"
        )
    total = targets.sum(1)
    wrong = ~((targets >= 0).all(1) & ((total - 1).abs() < 1e-3)) & ~(targets == 0).all(1)
    if wrong.any():
        row = int(wrong.nonzero()[0, 0])
        raise BadInput(
            f"targets: shares that sum to 1 were needed, but row {row:,} holds {targets[row].tolist()}; divide by the "
            "sum, or write zeros where there is no label"
        )
    classes = int((targets.sum(0) > 0).sum())
    if classes < 2:
        raise BadInput(
            f"targets: labels of two classes were needed, but {classes} came; there is nothing to tell apart"
        )


def _check_weights(weights: Tensor, count: int) -> None:
    if weights.shape != (count,) or not (weights >= 0).all() or not weights.isfinite().all():
        raise BadInput(f"weights: {count:,} numbers from 0 were needed, but other ones came; give each item one")


def _hash(tensors: Iterable[Tensor]) -> str:
    whole = hashlib.blake2b(digest_size=16)
    for tensor in tensors:
        plain: Any = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy()
        whole.update(plain)
    return whole.hexdigest()
