"""What tests of training share: small networks, images without sense, and batches by hand."""

import numpy as np
import torch
from torch import Tensor

from relook.train.augment import View
from relook.train.learners import Batch, Facts
from relook.train.nets import Shape

TINY = Shape(blocks=(1,), channels=4)
PLAIN = (View(crop=(1, 1), ratio=1, flip=0, colour=0, grey=0),)
FACTS = Facts(items=12, classes=3)


def images(count: int = 12) -> Tensor:
    """Views of images without sense, as a method sees them."""
    return torch.from_numpy(np.random.default_rng(1).normal(size=(count, 3, 8, 8)).astype(np.float32))


def pictures(count: int = 60) -> Tensor:
    """Images without sense, as bytes."""
    return torch.from_numpy(np.random.default_rng(1).integers(0, 256, (count, 3, 8, 8), dtype=np.uint8))


def hot(labels: list[int] | np.ndarray, classes: int = 3) -> Tensor:
    return torch.eye(classes)[torch.as_tensor(labels)]


def soft(count: int = 12, *, classes: int = 3, seed: int = 2) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).dirichlet(np.ones(classes), count).astype(np.float32))


def batch(target: Tensor, *, weight: Tensor | None = None, epoch: float = 0.0, rows: Tensor | None = None) -> Batch:
    count = len(target)
    return Batch(
        torch.arange(count) if rows is None else rows,
        target,
        torch.ones(count) if weight is None else weight,
        torch.tensor(epoch, dtype=torch.float64),
    )


def slow_cross_entropies(logits: Tensor, target: Tensor) -> np.ndarray:
    """The cross-entropy as it is written down, item by item."""
    table = logits.detach().numpy().astype(float)
    return np.array(
        [
            -sum(float(share) * (row[each] - np.log(np.exp(row).sum())) for each, share in enumerate(shares))
            for row, shares in zip(table, target.tolist(), strict=True)
        ]
    )


def value(loss: Tensor) -> float:
    return float(loss.detach())
