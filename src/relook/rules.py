"""What a campaign is run by: its policy and its terms, and how they stand in a log."""

from operator import index
from typing import Any, Literal

import msgspec
import numpy as np

from relook.errors import BadInput
from relook.events import NONE_OF_THESE
from relook.scores import Score
from relook.stopping import Majority, Stop, uses_belief
from relook.types import Posteriors, fingerprint


class Policy(msgspec.Struct, frozen=True, eq=False):
    """What is asked next and when it is settled.

    `returns` says whether a settled item may come back; `given_weight` how many votes a given label has (1: the
    paper's, 0: only people count); `batch` after how many answers items that changed are scored anew.
    """

    name: str
    score: Score
    stop: Stop = Majority()
    returns: bool = False
    given_weight: float = 1.0
    batch: int = 1

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise BadInput(f"policy {self.name}: a batch of at least 1 answer was needed, but {self.batch} came")
        if not (self.given_weight >= 0 and np.isfinite(self.given_weight)):
            raise BadInput(
                f"policy {self.name}: the given label needs a weight of 0 or more, but {self.given_weight} came; "
                "0 lets only people count"
            )

    def record(self) -> dict[str, Any]:
        """Return the policy as it stands in a log."""
        rules = {"score": as_record(self.score), "stop": as_record(self.stop)}
        plain = {"returns": bool(self.returns), "given_weight": float(self.given_weight), "batch": index(self.batch)}
        return {"name": self.name} | rules | plain


class Terms(msgspec.Struct, frozen=True):
    """What else is agreed at the start.

    How long a lease lasts, how many people there are (None: no end of them), the seed, a hash of the items' ids, and
    the time; names of the classes, what the set is for, the log that it continues, hours where the budget was agreed in
    them, and who began it.
    """

    lease_seconds: float = 3600.0
    panel: int | None = None
    seed: int = 0
    ids: str | None = None
    at: float = 0.0
    names: tuple[str, ...] = ()
    purpose: Literal["train", "evaluation"] = "train"
    continues: str | None = None
    hours: float | None = None
    by: str | None = None

    def __post_init__(self) -> None:
        if self.purpose not in ("train", "evaluation"):
            raise BadInput(
                f"purpose: train or evaluation was needed, but {self.purpose!r} came; say what the set is for"
            )
        if not 0 < self.lease_seconds < np.inf:
            raise BadInput(f"lease: a number of seconds above 0 was needed, but {self.lease_seconds} came")
        if self.panel is not None and self.panel < 1:
            raise BadInput(f"panel: at least one person was needed, but {self.panel} came; leave it out for no limit")
        if not np.isfinite(self.at):
            raise BadInput(f"time: a campaign needs a time to start at, but {self.at} came; use a clock")
        panel = None if self.panel is None else index(self.panel)
        plain = {
            "lease_seconds": float(self.lease_seconds),
            "panel": panel,
            "seed": index(self.seed),
            "at": float(self.at),
        }
        for name, value in plain.items():
            msgspec.structs.force_setattr(self, name, value)


def check_budget(budget: int) -> int:
    """Return the budget, or refuse one that is no number of answers.

    >>> check_budget(np.int64(3))
    3
    """
    if not hasattr(budget, "__index__") or budget < 0:
        raise BadInput(f"budget: a number of answers was needed, but {budget} came; pass 0 or more")
    return index(budget)


def check_answer(answer: Any, classes: int) -> int:
    """Return an answer as a plain number, or refuse one that is neither a class nor one of the two that are none.

    >>> check_answer(np.int64(1), 2)
    1
    """
    if not hasattr(answer, "__index__") or not NONE_OF_THESE <= answer < classes:
        raise BadInput(f"answer: a class from 0 to {classes - 1}, -1 or -2 was needed, but {answer} came; ask again")
    return int(index(answer))


def check_name(annotator: Any) -> str:
    """Return an annotator's name as plain text, or refuse what is none."""
    if not isinstance(annotator, str):
        raise BadInput(f"annotator: a name was needed, but {annotator!r} came; write it as text, or leave it out")
    return str(annotator)


def check_beliefs(policy: Policy, posteriors: Posteriors | None) -> None:
    """Refuse a rule that needs beliefs where there are no class probabilities."""
    if uses_belief(policy.stop) and posteriors is None:
        raise BadInput(
            f"policy {policy.name}: its stopping rule needs class probabilities, but none came; pass posteriors"
        )


def as_record(rule: Any) -> dict[str, Any]:
    """Return the name and settings of a score or rule, as they stand in a log; arrays stand there by their hash.

    >>> from relook.stopping import Agree
    >>> as_record(Agree(3))
    {'name': 'Agree', 'k': 3}
    """
    if isinstance(rule, msgspec.Struct):
        settings = {field: _recorded(getattr(rule, field)) for field in rule.__struct_fields__}
        return {"name": type(rule).__name__} | settings
    module = getattr(rule, "__module__", "") or ""
    name = getattr(rule, "__qualname__", type(rule).__qualname__)
    return {"name": name if module.startswith("relook.") else f"{module}:{name}"}


def _recorded(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"fingerprint": fingerprint(value)}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        return [_recorded(part) for part in value]
    return as_record(value) if isinstance(value, msgspec.Struct) or callable(value) else msgspec.to_builtins(value)
