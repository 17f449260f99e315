"""Configurations of simulations: what TOML or the command line says, as frozen structs, and a grid's combinations."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from relook.errors import BadInput

Answers = int | Literal["paper-code", "oracle"]
"""A budget: a number of answers; `paper-code`, the released code's rule; or `oracle`, what a simulated oracle needs."""

Protocol = Literal["exact", "paper-code"]

AXES = ("tau", "answers", "settle", "batch")
"""What makes another simulation, in the order of a grid; policies and seeds are runs of the same one."""

LISTS = (*AXES, "policy", "seeds")
"""Keys that take a list as well as a single value."""

WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"answers": ("paper-code", "oracle"), "subset": ("paper", "all"), "protocol": ("exact", "paper-code")}
)
"""The words that a key may be; `answers` may be a number as well."""


MEANT: Mapping[str, str] = MappingProxyType(
    {"budget": "answers", "posteriors": "probabilities", "pred-probs": "probabilities", "pred_probs": "probabilities"}
)
"""What other words for a key are likely to mean."""


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """Simulations to play out: every combination of `AXES`, each under every policy and with every seed.

    Keys are the options of `relook simulate`, files are named as the user names them, and `seeds` holds the seeds
    themselves.

    >>> len(Grid(dataset="digits", answers=(100, 200), batch=(1, 50)).cells())
    4
    """

    dataset: str | None = None
    split: str | None = None
    data: str | None = None
    subset: Literal["paper", "all"] | None = None
    truth: str | None = None
    labels: str | None = None
    probabilities: str | None = None
    embeddings: str | None = None
    bound: str | None = None
    images: str | None = None
    policy: tuple[str, ...] = ("default", "paper", "random", "oracle")
    against: str | None = None
    answers: tuple[Answers, ...] = ("paper-code",)
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    tau: tuple[float, ...] = ()
    settle: tuple[str, ...] = ("paper",)
    batch: tuple[int, ...] = (1,)
    annotators: int | None = None
    protocol: Protocol = "exact"
    method: str | None = None
    recipe: str | None = None
    device: str = "cpu"
    folder: str | None = None
    update_every: int | None = None
    answered_weight: float = 1.0

    def __post_init__(self) -> None:
        for key in LISTS:
            _check_list(key, getattr(self, key))
        _check_least("answers", [value for value in self.answers if isinstance(value, int)], least=1)
        _check_least("seeds", self.seeds, least=0)
        _check_least("batch", self.batch, least=1)
        for tau in self.tau:
            if not 0 < tau < float("inf"):
                raise BadInput(f"tau: a temperature above 0 was needed, but {tau:g} came; 10 is the paper's 30 % noise")
        # A simulation with one annotator means a crowd without end, in which each answer comes from somebody new.
        if self.annotators is not None and self.annotators < 2:
            raise BadInput(
                f"annotators: a panel of at least 2 people was needed, but {self.annotators} came; "
                "leave it out for a crowd without end"
            )
        if self.update_every is not None and self.update_every < 1:
            raise BadInput(f"update_every: every answer at most was needed, but {self.update_every} came; 500 is usual")
        if self.annotators is not None and self.protocol == "paper-code":
            raise BadInput(
                f"annotators: the paper's code asks a crowd without end, but a panel of {self.annotators} came; "
                "leave the panel or the protocol out"
            )

    def cells(self) -> list[Cell]:
        """Return every combination of the axes, the first axis outermost."""
        combinations = itertools.product(self.tau or (None,), self.answers, self.settle, self.batch)
        return [Cell(*combination) for combination in combinations]

    def varying(self) -> tuple[str, ...]:
        """Return the axes with more than one value."""
        return tuple(axis for axis in AXES if len(getattr(self, axis)) > 1)


class Cell(msgspec.Struct, frozen=True):
    """One combination of a grid's axes; tau is None where the labels are given."""

    tau: float | None
    answers: Answers
    settle: str
    batch: int

    def name(self, axes: Sequence[str]) -> str:
        """Return a name for these axes of the cell that a folder can have.

        >>> Cell(10.0, 300, "people:2", 1).name(("tau", "settle"))
        'tau-10,settle-people-2'
        """
        values = {axis: getattr(self, axis) for axis in axes}
        shown = {axis: f"{value:g}" if isinstance(value, float) else str(value) for axis, value in values.items()}
        return ",".join(f"{axis}-{value.replace(':', '-')}" for axis, value in shown.items())


def grid(table: Mapping[str, Any], *, where: str) -> Grid:
    """Return the grid that a table of options says; `where` is named when something is wrong with it.

    A list may stand as itself, as one value, or as text with commas; `seeds` is a list of them, or how many there are,
    counted from `seed`.

    >>> grid({"dataset": "digits", "seeds": 3, "seed": 7, "policy": "default,paper"}, where="grid.toml").seeds
    (7, 8, 9)
    """
    known = (*Grid.__struct_fields__, "seed")
    for key in table:
        if key not in known:
            near = MEANT.get(key) or difflib.get_close_matches(key, known, 1, cutoff=0.0)[0]
            raise BadInput(f"{where}: its keys are those of relook simulate, but {key!r} came; is {near} meant?")
    read = {key: _as_list(key, value) if key in LISTS else value for key, value in table.items() if key != "seed"}
    _check_words(read, where)
    try:
        seeds = _seeds(table.get("seeds", 5), first=table.get("seed", 0))
        return msgspec.convert(read | {"seeds": seeds}, Grid)
    except msgspec.ValidationError as error:
        raise BadInput(f"{where}: {_where(error)}; look the key up in relook simulate --help") from None


def _as_list(key: str, value: Any) -> Any:
    """Return a list from one value, or from text with commas, whose numbers become numbers."""
    if isinstance(value, str):
        parts = [part.strip() for part in value.split(",")]
        return [_number(part) if key in ("answers", "tau", "batch") else part for part in parts]
    return value if isinstance(value, list | tuple) else [value]


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text.replace("_", ""))
        except ValueError:
            continue
    return text


def _seeds(seeds: Any, *, first: Any) -> Any:
    """Return the seeds themselves from their number; whatever else came is checked with the other keys."""
    if type(seeds) is not int or type(first) is not int:
        return seeds if type(first) is int else [first]
    if seeds < 1:
        raise BadInput(f"seeds: at least 1 run a policy was needed, but {seeds} came; 5 are the paper's")
    return list(range(first, first + seeds))


def _where(error: msgspec.ValidationError) -> str:
    """Return msgspec's sentence with the key in front of it."""
    what, _, path = str(error).partition(" - at `$.")
    key = path.rstrip("`").partition("[")[0]
    needed = what.replace("Expected", "needs", 1).replace("`", "")
    return f"{key} {needed}" if key else needed


def _check_words(table: Mapping[str, Any], where: str) -> None:
    for key, words in WORDS.items():
        number = "a number of answers, " if key == "answers" else ""
        for value in _as_list(key, table.get(key)):
            numeric = key == "answers" and type(value) is int
            if value is not None and value not in words and not numeric:
                raise BadInput(
                    f"{where}: {key}: {number}{' or '.join(words)} was needed, but {value!r} came; check the spelling"
                )


def _check_list(key: str, values: Sequence[Any]) -> None:
    if not values and key != "tau":
        raise BadInput(f"{key}: at least one value was needed, but none came; leave the key out for its default")
    doubled = [value for place, value in enumerate(values) if value in values[:place]]
    if doubled:
        raise BadInput(f"{key}: its values must differ, but {doubled[0]} comes twice; leave one out")
    if "" in values:
        raise BadInput(f"{key}: a value was needed between the commas, but none came; take the extra comma out")


def _check_least(key: str, values: Sequence[int], *, least: int) -> None:
    for value in values:
        if value < least:
            raise BadInput(f"{key}: whole numbers of {least} or more were needed, but {value} came; raise it")
