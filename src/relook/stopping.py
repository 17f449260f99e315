"""When an item is settled.

A rule is called with the votes for each class (answers, and the given label at its weight) and the belief about the
item's class (only where `uses_belief` is true). It says whether the label is settled: the class with most votes, or
most belief.
"""

from collections.abc import Sequence
from typing import ClassVar, Protocol

import msgspec

from relook.belief import AnswerModel
from relook.errors import BadInput
from relook.types import FloatArray


class Stop(Protocol):
    """A stopping rule: a plain function will do; one that looks at beliefs has `uses_belief = True`."""

    def __call__(self, votes: Sequence[float], belief: FloatArray | None) -> bool:
        """Say whether these votes, or this belief, settle the label."""
        ...


def uses_belief(rule: Stop) -> bool:
    """Say whether a rule looks at beliefs; a plain function looks at votes alone.

    >>> uses_belief(lambda votes, belief: max(votes) > 3), uses_belief(Confidence())
    (False, True)
    """
    return bool(getattr(rule, "uses_belief", False))


class Majority(msgspec.Struct, frozen=True):
    """A class has more votes than any other, and there is more than one vote: the paper's rule.

    >>> Majority()([2, 1, 0], None), Majority()([1, 1, 0], None), Majority()([1, 0, 0], None)
    (True, False, False)
    """

    uses_belief: ClassVar[bool] = False

    def __call__(self, votes: Sequence[float], belief: FloatArray | None) -> bool:
        return votes.count(max(votes)) == 1 and sum(votes) > 1


class Agree(msgspec.Struct, frozen=True):
    """A class has at least k votes, and more than any other.

    >>> Agree(2)([1, 0], None), Agree(2)([2, 1], None)
    (False, True)
    """

    k: int = 2
    uses_belief: ClassVar[bool] = False

    def __call__(self, votes: Sequence[float], belief: FloatArray | None) -> bool:
        top = max(votes)
        return top >= self.k and votes.count(top) == 1


class Margin(msgspec.Struct, frozen=True):
    """A class leads the next one by at least k votes.

    >>> Margin(2)([2, 1], None), Margin(2)([3, 1], None)
    (False, True)
    """

    k: float = 2
    uses_belief: ClassVar[bool] = False

    def __call__(self, votes: Sequence[float], belief: FloatArray | None) -> bool:
        ordered = sorted(votes)
        return ordered[-1] - (ordered[-2] if len(ordered) > 1 else 0) >= self.k


class Confidence(msgspec.Struct, frozen=True):
    """The belief in one class, from posteriors and answers together, is at least 1 - epsilon.

    >>> import numpy as np
    >>> Confidence(.05)([1, 0], np.array([.96, .04]))
    True
    """

    epsilon: float = 0.05
    model: AnswerModel = AnswerModel()
    uses_belief: ClassVar[bool] = True

    def __call__(self, votes: Sequence[float], belief: FloatArray | None) -> bool:
        if belief is None:
            raise BadInput(
                "confidence: this rule needs class probabilities, but none came; pass them with --probabilities"
            )
        return bool(belief.max() >= 1 - self.epsilon)


def named(text: str) -> tuple[Stop, float]:
    """Return the rule that a user's words mean, and the weight it gives to the given label.

    >>> named("paper")
    (Majority(), 1.0)
    >>> named("people:2")
    (Agree(k=2), 0.0)
    """
    name, _, setting = text.partition(":")
    if name == "paper" and not setting:
        return Majority(), 1.0
    if name == "one" and not setting:
        return Agree(1), 0.0
    if name in ("people", "margin", "confidence"):
        return _with_setting(name, setting, text=text)
    raise BadInput(
        f"settle: paper, one, people:2, margin:2 or confidence:.95 were needed, but {text!r} came; take one of these"
    )


def _with_setting(name: str, setting: str, *, text: str) -> tuple[Stop, float]:
    try:
        value = float(setting or ".95" if name == "confidence" else setting or "2")
    except ValueError:
        value = -1.0
    if name == "confidence":
        if not 0.5 <= value < 1:
            raise BadInput(f"settle: a confidence from .5 up to 1 was needed, but {text!r} came; write confidence:.95")
        return Confidence(epsilon=round(1 - value, 12)), 1.0
    if not (value >= 1 and value.is_integer()):
        raise BadInput(f"settle: a whole number of people was needed, but {text!r} came; write {name}:2")
    return (Agree(int(value)), 0.0) if name == "people" else (Margin(int(value)), 1.0)
