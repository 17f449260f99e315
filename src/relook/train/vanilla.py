"""The plain way: a network, and the cross-entropy with the labels as they are.

With `dropout` before the last layer and `passes` above 0 it is MC dropout (Gal and Ghahramani 2016): passes differ in
what they drop, and how they differ says what the network does not know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from relook.train.augment import View
from relook.train.classifier import ONE_VIEW, Classifier, cross_entropies, smoothed, weighted
from relook.train.learners import Batch, Facts
from relook.train.nets import RESNET18, Shape


@dataclass(frozen=True)
class Vanilla:
    """The settings of plain training.

    `smoothing` is the share of each target that is spread over all classes. With `features="unit"` they are brought to
    length 1 before the last layer, as in the paper's released code.
    """

    shape: Shape = RESNET18
    smoothing: float = 0.0
    dropout: float = 0.0
    passes: int = 0
    features: Literal["plain", "unit"] = "plain"
    views: tuple[View] = ONE_VIEW

    def network(self, facts: Facts) -> Plain:
        """Return an untrained network."""
        return Plain(self, facts)


class Plain(nn.Module):
    """A classifier and its cross-entropy."""

    def __init__(self, settings: Vanilla, facts: Facts) -> None:
        super().__init__()
        self.settings = settings
        self.classifier = Classifier(facts, settings.shape, dropout=settings.dropout, features=settings.features)

    @property
    def encoder(self) -> nn.Module:
        """The part that turns images into features."""
        return self.classifier.encoder

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Tensor:
        """Return the mean cross-entropy with the targets."""
        target = smoothed(batch.target, self.settings.smoothing)
        return weighted(cross_entropies(self.classifier(views[0]), target), batch.weight)

    def follow(self, done: float) -> None:
        """Do nothing: a step is all there is to do."""

    def predict(self, images: Tensor) -> Tensor:
        """Return probabilities, M x n x C: of one network, or of each pass with dropout."""
        return self.classifier.passes(images, self.settings.passes)
