"""A linear layer on an encoder that has learnt from images alone: the paper's selector without memorised labels.

Two ways keep it from being too sure. In the released code the mean of (10 tanh(z / 10))^2 over the logits z is added to
the loss, 0.30 times; in the paper's text logits are squashed to 20 tanh(z / 20). The encoder stays as it is where the
schedule says `encoder=0`, and learns slowly with a small share.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from relook.errors import BadInput
from relook.train.augment import View
from relook.train.classifier import ONE_VIEW, Classifier, bounded, cross_entropies, smoothed, weighted
from relook.train.learners import Batch, Facts
from relook.train.nets import RESNET18, Shape


@dataclass(frozen=True)
class Linear:
    """The settings of the head; where a number is 0 it does nothing.

    `penalty` is the weight of the released code's term, `bound` its 10; `squash` is the text's 20.
    """

    dropout: float = 0.2
    smoothing: float = 0.1
    penalty: float = 0.3
    bound: float = 10.0
    squash: float = 0.0
    passes: int = 0
    shape: Shape = RESNET18
    views: tuple[View] = ONE_VIEW

    def __post_init__(self) -> None:
        if not (self.bound > 0 and self.squash >= 0 and self.penalty >= 0):
            raise BadInput(
                "linear: a bound above 0, and squash and penalty from 0, were needed, but "
                f"{self.bound}, {self.squash} and {self.penalty} came; the paper takes 10, 20 and 0.3"
            )

    def network(self, facts: Facts) -> Head:
        """Return an untrained head on the encoder to begin with."""
        return Head(self, facts)


class Head(nn.Module):
    """A classifier whose logits are kept small."""

    def __init__(self, settings: Linear, facts: Facts) -> None:
        super().__init__()
        self.settings = settings
        self.classifier = Classifier(facts, settings.shape, dropout=settings.dropout, squash=settings.squash)

    @property
    def encoder(self) -> nn.Module:
        """The part that turns images into features."""
        return self.classifier.encoder

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Tensor:
        """Return the mean cross-entropy, and what large logits cost."""
        logits = self.classifier(views[0]).float()
        target = smoothed(batch.target, self.settings.smoothing)
        large = bounded(logits, self.settings.bound).square().mean(1)
        return weighted(cross_entropies(logits, target) + self.settings.penalty * large, batch.weight)

    def follow(self, done: float) -> None:
        """Do nothing: a step is all there is to do."""

    def predict(self, images: Tensor) -> Tensor:
        """Return probabilities, M x n x C: of the head, or of each pass with dropout."""
        return self.classifier.passes(images, self.settings.passes)
