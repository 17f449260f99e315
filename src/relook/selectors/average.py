"""Posteriors as the mean of several selectors, whose mistakes differ."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from relook import heads
from relook.errors import BadInput
from relook.types import Labels, Posteriors


class Average(msgspec.Struct, frozen=True):
    """The mean of what its members say: a trainer `(features, labels) -> posteriors` of other trainers.

    >>> from relook.selectors import named
    >>> average = Average((named("lda", folds=2), named("knn")))
    >>> [member["name"] for member in average([[0.0], [0.1], [0.9], [1.0]], Labels([0, 0, 1, 1], 2))
    ...     .about["selector"]["members"]]
    ['Lda', 'Knn']
    """

    members: tuple[heads.Selector, ...]

    def __post_init__(self) -> None:
        if not self.members:
            raise BadInput("average: a selector or more were needed, but none came; lda, logistic and knn are usual")

    def __call__(
        self, features: heads.Features, labels: Labels, *, groups: Sequence[str] | None = None, seed: int = 0
    ) -> Posteriors:
        """Return the mean of the members' posteriors; it is in sample where one of them is."""
        total = np.zeros((len(labels), labels.classes))
        in_sample = False
        for member in self.members:
            found = member(features, labels, groups=groups, seed=seed)
            total += found.mean()
            in_sample |= found.in_sample
        values = total / len(self.members)
        if in_sample:
            return heads.told_in_sample(values, labels, selector=self)
        return heads.told(values, labels, selector=self, groups=groups, seed=seed)
