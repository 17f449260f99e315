"""The table of a ranking: each item with its given and its suggested label, and how much asking about it is worth."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from relook.alignment import Matched
from relook.cells import write_csv
from relook.errors import BadInput
from relook.policies import BOUNDS, Setting, check_rule, named
from relook.predictions import Predictions
from relook.rules import Policy
from relook.scores import ambiguity, noisiness, score_items
from relook.types import FloatArray, IntArray, blocks
from relook.whole import drafted

if TYPE_CHECKING:
    import polars as pl

COLUMNS = (
    "rank",
    "id",
    "given",
    "suggested",
    "suggested_probability",
    "priority",
    "noisiness",
    "ambiguity",
    "label_quality",
)
"""Columns of the table, in order."""

SUFFIXES = (".csv", ".tsv", ".parquet")
"""Kinds of files that a ranking is written to."""


class WrongLabels(msgspec.Struct, frozen=True):
    """A rough share of given labels that are wrong, and a range for it.

    `share` counts labels against which another class is as probable as it usually is where it is given (what lies off
    the diagonal of the confident joint, Northcutt et al. 2021). `low` counts those of them whose given class is ten
    times less probable than the likeliest; `high` counts every label that is not the likeliest class. All three hold
    the model's own mistakes.
    """

    share: float
    low: float
    high: float


class Ranked(msgspec.Struct, frozen=True, eq=False):
    """A ranking of all items: `order` begins with the item to ask about first; the columns are in the items' order."""

    both: Matched
    seen: Predictions
    order: IntArray
    priority: FloatArray
    noisiness: FloatArray
    ambiguity: FloatArray

    def frame(self, most: int | None = None) -> pl.DataFrame:
        """Return the table, best first, or its first rows; label_quality is empty where there is no given label."""
        import polars as pl

        items = self.order[:most]
        classes = pl.Series(self.both.classes, dtype=pl.String)
        given = self.seen.given[items]
        labelled = pl.Series(given >= 0)
        ids = pl.Series(items) if self.both.ids is None else pl.Series([self.both.ids[item] for item in items.tolist()])
        columns = {
            "rank": np.arange(1, len(items) + 1),
            "id": ids,
            "given": classes.gather(np.maximum(given, 0)),
            "suggested": classes.gather(self.seen.likeliest[items].astype(np.int64)),
            "suggested_probability": self.seen.probability[items],
            "priority": self.priority[items],
            "noisiness": self.noisiness[items],
            "ambiguity": self.ambiguity[items],
            "label_quality": self.seen.given_probability[items],
        }
        empty = [pl.when(labelled).then(pl.col(name)).alias(name) for name in ("given", "label_quality")]
        return pl.DataFrame(columns).with_columns(empty)

    def rows(self, most: int) -> list[dict[str, Any]]:
        """Return the first rows of the table."""
        return self.frame(most).to_dicts()


def ranking_policy(text: str, *, setting: Setting) -> Policy:
    """Return the policy that a user means, unless it must know the truth.

    >>> ranking_policy("margin", setting=Setting()).name
    'margin'
    """
    if text in BOUNDS:
        raise BadInput(
            f"policy {text}: a rule that does without the truth was needed, but this one is a bound that knows it; "
            "take default, or play it with relook simulate"
        )
    return named(text, setting)


def ranked(both: Matched, policy: Policy, *, seen: Predictions) -> Ranked:
    """Return every item in the order in which the policy would ask about it; on a tie the lower one comes first.

    >>> from relook.policies import named
    >>> from relook.predictions import predictions
    >>> from relook.sources import LabelTable, ProbabilityTable
    >>> from relook.alignment import matched
    >>> p = ProbabilityTable("p", np.array([[.9, .1], [.8, .2]]))
    >>> both = matched(LabelTable("labels", np.array([0, 1]), ids=["a", "b"]), p)
    >>> table = ranked(both, named("default"), seen=predictions(both.labels, both.posteriors))
    >>> [(row["id"], row["given"], row["suggested"]) for row in table.rows(2)]
    [('b', '1', '0'), ('a', '0', '0')]
    """
    labels, posteriors = both.labels, both.posteriors
    check_rule(policy, labels, posteriors=posteriors)
    fit = getattr(policy.score, "fit", None)
    score = policy.score if fit is None else fit(labels, posteriors)
    priority = score_items(score, labels, posteriors, given_weight=policy.given_weight)
    return Ranked(
        both=both,
        seen=seen,
        order=np.argsort(-priority, kind="stable"),
        priority=priority,
        noisiness=score_items(noisiness, labels, posteriors),
        ambiguity=score_items(ambiguity, labels, posteriors),
    )


def wrong_labels(both: Matched, seen: Predictions) -> WrongLabels | None:
    """Return a rough share of wrong labels, or None where the probabilities cannot tell.

    Probabilities that repeat the labels they learnt hide what is wrong, and those no better than chance know nothing.
    """
    if seen.in_sample() or seen.agreement() <= seen.chance() + 3 * seen.chance_error():
        return None
    usual = _usual_confidence(seen, classes=len(both.classes))
    posteriors, labelled = both.posteriors, seen.given >= 0
    against = np.zeros(len(both), bool)
    for block in blocks(len(both), posteriors.classes * posteriors.models):
        mean = posteriors.values[:, block].mean(0)
        confident = np.where(mean >= usual, mean, -1)
        against[block] = (confident.max(1) > 0) & (confident.argmax(1) != seen.given[block])
    against &= labelled
    surely = against & (seen.given_probability < 0.1 * seen.probability)
    items = int(labelled.sum())
    return WrongLabels(float(against.sum()) / items, float(surely.sum()) / items, 1 - seen.agreement())


def write(table: Ranked, path: Path) -> None:
    """Write the table to a csv, tsv or parquet file, whole or not at all; text holds six decimals."""
    check_target(path)
    frame, suffix = table.frame(), path.suffix.lower()
    with drafted(path) as part:
        if suffix == ".parquet":
            frame.write_parquet(part)
        else:
            write_csv(frame, part, separator="\t" if suffix == ".tsv" else ",", decimals=6)


def write_json(table: Ranked, path: Path) -> None:
    """Write the table as a JSON list of rows, best first, whole or not at all."""
    with drafted(path) as part:
        table.frame().write_json(part)


def check_target(path: Path) -> None:
    """Refuse a file that a ranking cannot be written to."""
    if path.suffix.lower() not in SUFFIXES:
        raise BadInput(
            f"{path}: a csv, tsv or parquet file was needed, but {path.suffix or 'no suffix'} came; name one with --to"
        )
    if not path.absolute().parent.is_dir():
        raise BadInput(f"{path}: a folder to write to was needed, but {path.parent} is none; make it")
    if not os.access(path.absolute().parent, os.W_OK):
        raise BadInput(f"{path}: a folder that may be written to was needed, but {path.parent} may not; name another")
    if path.is_dir():
        raise BadInput(f"{path}: a file to write to was needed, but this is a folder; name a file in it")


def _usual_confidence(seen: Predictions, *, classes: int) -> FloatArray:
    """Return each class's mean probability over the items it is given to; infinite where it is given to none."""
    labelled = seen.labelled
    counts = np.bincount(seen.given[labelled], minlength=classes)
    sums = np.bincount(seen.given[labelled], seen.given_probability[labelled], minlength=classes)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.inf)
