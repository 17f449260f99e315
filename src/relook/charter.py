"""What was decided about a campaign, as its folder keeps it: `campaign.toml`, which people read and programs follow.

Each decision stands there with the sentence that says what it means. What changes while a campaign runs (its budget,
its rules) stands in the log as well; where the two differ, the log is right.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from relook.errors import BadInput
from relook.whole import drafted, synced

FILE = "campaign.toml"
"""The file of decisions in a campaign's folder."""

SCHEMA = 1

Purpose = Literal["train", "evaluation"]
"""What a set is for: to learn from, or to judge models on."""


class Items(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which items: the name and the folder, as seen from the campaign's, of the imported set, and what was there.

    `manifest` is the SHA-256 of the set's manifest, which holds those of its tables.
    """

    name: str
    set: str
    manifest: str
    count: int
    classes: tuple[str, ...]
    split: str | None = None


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Answers to pay for, the hours that were asked for instead, and how many people there are (None: no end)."""

    answers: int
    hours: float | None = None
    people: int | None = None


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked next, when an item is settled, and for how many hours somebody holds an item."""

    policy: str = "default"
    settle: str = "paper"
    hold_hours: float = 336.0
    seed: int = 0


class Retraining(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is trained while people answer, and when.

    `trainer` are the settings of the model, none where class probabilities came from elsewhere, and `features` what it
    learns from, where that is no part of the set. It is trained anew every so many `answers`, or `minutes` after the
    last time where answers came since. It may take `timeout_minutes` and `memory_gib`. `keep` is how many rankings'
    files stay, beside the first.
    """

    trainer: dict[str, Any] | None = None
    features: str | None = None
    answers: int = 500
    minutes: float | None = None
    timeout_minutes: float = 60.0
    memory_gib: float = 16.0
    keep: int = 2

    def __post_init__(self) -> None:
        if self.answers < 1 or (self.minutes is not None and self.minutes <= 0):
            raise BadInput(
                f"retraining: every answer at most was needed, but {self.answers} answers and {self.minutes} minutes "
                "came; 500 answers are usual"
            )
        if not (self.timeout_minutes > 0 and self.memory_gib > 0 and self.keep >= 1):
            raise BadInput(
                "retraining: time, memory and at least one file to keep were needed, but "
                f"{self.timeout_minutes} minutes, {self.memory_gib} GiB and {self.keep} files came"
            )


class Charter(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All that was decided. `override` is the reason why a model may rank a set that it could be judged on.

    `before` are the rules that the present ones replaced.
    """

    schema: int = SCHEMA
    software: str
    name: str
    purpose: Purpose = "train"
    override: str | None = None
    answers_from: str | None = None
    items: Items
    budget: Budget
    rules: Rules = Rules()
    before: Rules | None = None
    retraining: Retraining = Retraining()


def read(folder: Path) -> Charter:
    """Return the decisions of a campaign's folder."""
    path = folder / FILE
    try:
        content = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise BadInput(
            f"{folder}: the folder of a campaign was needed, but it has no {FILE} that can be read; make one with "
            "relook new"
        ) from None
    try:
        table = tomllib.loads(content)
        schema = table.get("schema", SCHEMA)
        if isinstance(schema, int) and schema > SCHEMA:
            raise BadInput(
                f"{path}: decisions of no later schema than {SCHEMA} were needed, but relook {table.get('software')} "
                f"wrote {schema}; install that relook"
            )
        return msgspec.convert(table, Charter)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadInput(f"{path}: decisions were needed, but {error}; undo what was changed by hand") from None


def write(decided: Charter, folder: Path) -> None:
    """Write the charter, whole or not at all."""
    # A comment ends with its line, whatever somebody gave as a name or a reason.
    lines = ["# " + "".join(mark if mark.isprintable() else " " for mark in line) for line in sentences(decided)]
    text = "\n".join([*lines, "", *_lines(msgspec.to_builtins(decided))]) + "\n"
    with drafted(folder / FILE) as draft:
        draft.write_text(text, "utf-8")
        synced(draft)


def is_campaign(folder: Path) -> bool:
    """Say whether a folder is a campaign's."""
    return (folder / FILE).is_file()


_SETTLES = {
    "paper": "Settles on a majority of several votes, the given label's among them: the paper's rule.",
    "one": "Settles on one person's word; the given label does not vote.",
    "people": "Settles when {} people agree; the given label does not vote.",
    "margin": "Settles when a class leads by {} votes; the given label is one of them.",
    "confidence": "Settles when answers and the model's probabilities together are sure by {}.",
}


def sentences(decided: Charter) -> Iterator[str]:
    """Yield what was decided, a sentence each."""
    yield _about_items(decided)
    if decided.purpose == "evaluation":
        yield (
            "This set is to judge models on: what ranks it is fitted on this set alone."
            if decided.override is None
            else f"This set is to judge models on, and probabilities from elsewhere rank it: {decided.override}."
        )
    else:
        yield "This set is to train on."
    name, _, setting = decided.rules.settle.partition(":")
    yield _SETTLES[name].format(setting or {"people": "2", "margin": "2", "confidence": ".95"}.get(name, ""))
    yield _ranks(decided)
    people = decided.budget.people
    yield (
        "Anybody may answer, and nobody twice about an item."
        if people is None
        else f"{people} {'person answers' if people == 1 else 'people answer'}, nobody twice about an item."
    )


def _about_items(decided: Charter) -> str:
    items = decided.items
    split = "" if items.split is None else f", split {items.split}"
    return f"{items.count:,} items of {items.name}{split}; {len(items.classes)} classes."


def _ranks(decided: Charter) -> str:
    policy, training = decided.rules.policy, decided.retraining
    by = "what one more answer is worth" if policy == "default" else f"the policy {policy}"
    if training.trainer is None:
        return f"Ranks by {by}, with the class probabilities that came along; they stay as they are."
    often = f"every {training.answers:,} answers"
    often += "" if training.minutes is None else f" or {training.minutes:g} minutes"
    return f"Ranks by {by}; refits its model {often}."


def _lines(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield a table of TOML: values first, then the tables in it."""
    yield from (f"{key} = {_value(value)}" for key, value in table.items() if _is_value(value))
    for name, inner in table.items():
        if isinstance(inner, dict):
            yield ""
            yield f"[{name}]"
            yield from (f"{key} = {_value(value)}" for key, value in inner.items() if value is not None)


def _is_value(value: Any) -> bool:
    return value is not None and not isinstance(value, dict)


def _value(value: Any) -> str:
    """Return a value as TOML spells it; a table within a table stands on one line."""
    if isinstance(value, dict):
        pairs = [f"{_key(key)} = {_value(inner)}" for key, inner in value.items() if inner is not None]
        return "{ " + ", ".join(pairs) + " }" if pairs else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, bool | int | float):
        return str(value).lower()
    # JSON's texts are TOML's, but for one character that TOML wants escaped.
    return msgspec.json.encode(str(value)).decode().replace("\x7f", "\\u007f")


def _key(key: str) -> str:
    return key if key.isascii() and key.replace("_", "").isalnum() else _value(key)
