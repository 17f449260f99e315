"""The page about a ranking, where nobody knows the truth: how far labels and model agree, and what comes first."""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from relook.errors import BadInput
from relook.report import heat
from relook.report.bars import histogram
from relook.report.frame import MEANINGS, document, explained, made_how
from relook.report.markup import Cell, Column, count, paragraph, percent, plural, section, table, text
from relook.report.pictures import pictured, tiles_shown
from relook.runs import Matrix
from relook.scores import ambiguity, noisiness, score_items
from relook.types import Dataset, FloatArray, IntArray, Posteriors

ROWS = 50
"""So many items of the top stand in the table."""

PICTURES = 40
"""So many of them are shown as pictures, where there are images."""

_PARTS = 20


class RankingReport(msgspec.Struct, frozen=True, eq=False):
    """What a page about a ranking shows: labels and probabilities, each item's priority, and the day the page is made.

    `quality` is each item's label quality, from 0 to 1: the probability of the given label unless something else is
    meant. `policy` names the rule that the priorities come from; `resolved` says how it all was made.
    """

    dataset: Dataset
    posteriors: Posteriors
    priority: FloatArray
    made: str
    quality: FloatArray | None = None
    policy: str = ""
    resolved: Mapping[str, Any] = {}

    def __post_init__(self) -> None:
        for name, found in (("probabilities", self.posteriors.items), ("priorities", len(self.priority))):
            if found != len(self.dataset):
                raise BadInput(
                    f"ranking report: {name} of {len(self.dataset)} items were needed, but {found} came; rank again"
                )


class _Table(msgspec.Struct, frozen=True, eq=False):
    """The columns of a ranking, an entry an item, and the order of the items."""

    order: IntArray
    given: IntArray
    suggested: IntArray
    probability: FloatArray
    quality: FloatArray
    noisiness: FloatArray
    ambiguity: FloatArray


def ranking_page(report: RankingReport) -> str:
    """Return the whole page."""
    columns = _columns(report)
    sections = [
        section("agreement", "Where labels and model differ", parts=_agreement(report, columns)),
        section("quality", "How good the labels look", parts=[_quality(columns)]),
        section("gallery", "First in the ranking, in pictures", parts=_pictures(report, columns)),
        section("top", "First in the ranking", parts=[_top(report, columns)]),
        section("words", "What the words mean", parts=[explained(_words())]),
        section("made", "How it was made", parts=[made_how(report.resolved, made=report.made)]),
    ]
    return document(
        _headline(columns), kicker="Ranked labels", lead=_lead(report, columns), sections=sections, made=report.made
    )


def _columns(report: RankingReport) -> _Table:
    dataset, mean = report.dataset, report.posteriors.mean()
    given, suggested, places = dataset.given.label(), mean.argmax(1), np.arange(len(dataset))
    own = np.where(given >= 0, mean[places, given], 0.0)
    noisy, hard = (score_items(score, dataset.given, report.posteriors) for score in (noisiness, ambiguity))
    quality = own if report.quality is None else np.asarray(report.quality, np.float64)
    order = np.argsort(-np.asarray(report.priority), kind="stable")
    return _Table(order, given, suggested, mean[places, suggested], quality, noisy, hard)


def _differing(columns: _Table) -> int:
    return int(((columns.given >= 0) & (columns.given != columns.suggested)).sum())


def _headline(columns: _Table) -> str:
    labelled = int((columns.given >= 0).sum())
    if not labelled:
        return f"{plural(len(columns.given), 'unlabelled item')}, in the order to ask about them."
    return f"The model would label {count(_differing(columns))} of {plural(labelled, 'item')} differently."


def _lead(report: RankingReport, columns: _Table) -> str:
    unlabelled = int((columns.given < 0).sum())
    missing = f" {plural(unlabelled, 'item')} came without a label." if unlabelled else ""
    by = f" by the policy {report.policy}" if report.policy else ""
    told = (
        f"{report.dataset.name}: {plural(len(report.dataset), 'item')} in "
        f"{plural(len(report.dataset.classes), 'class', many='classes')}, ranked{by}.{missing} Nobody knows the truth "
        "here: a label the model would not give may be wrong, or the model may be. The order says where a second look "
        "is worth most."
    )
    return paragraph(told, "lead")


def _confusion(columns: _Table, *, classes: int) -> Matrix:
    chosen = columns.given >= 0
    counts = np.bincount(columns.given[chosen] * classes + columns.suggested[chosen], minlength=classes * classes)
    return tuple(tuple(float(each) for each in row) for row in counts.reshape(classes, classes))


def _agreement(report: RankingReport, columns: _Table) -> list[str]:
    classes, labelled = report.dataset.classes, int((columns.given >= 0).sum())
    if not labelled:
        return []
    share = percent(1 - _differing(columns) / labelled)
    parts = [paragraph(f"The likeliest class is the given label for {share} of the labelled items.")]
    matrix = _confusion(columns, classes=len(classes))
    if len(classes) <= heat.DRAWN:
        name = "given labels (rows) and what the model suggests"
        most = heat.strongest(matrix)
        parts.append(heat.heat_map(matrix, classes, name=name, most=most, axes=("given", "suggested")))
    pairs = heat.commonest(matrix, None, classes=classes, headings=("Given", "Suggested", "items"))
    return [*parts, pairs]


def _quality(columns: _Table) -> str:
    labelled = columns.quality[columns.given >= 0]
    if not len(labelled):
        return ""
    counts, _ = np.histogram(labelled, bins=_PARTS, range=(0, 1))
    low = int((labelled < 0.5).sum())
    told = f"Label quality from 0 to 1, in items. {plural(low, 'label')} stand below one half."
    return histogram(counts.tolist(), name="label quality", caption=told)


def _pictures(report: RankingReport, columns: _Table) -> list[str]:
    if report.dataset.images is None:
        return []
    ranks = np.arange(min(PICTURES, len(columns.order)))
    tiles = pictured(report.dataset, report.posteriors, ranks=ranks, order=columns.order)
    note = (
        "Under each picture: the given label and, behind the arrow, what the model suggests; its probabilities, a bar "
        "a class, the given one in orange; CE, how badly the label fits them; H, how unsure they are."
    )
    return [paragraph(note, "note"), tiles_shown(tiles, report.dataset.classes, title="First in the ranking")]


def _top(report: RankingReport, columns: _Table) -> str:
    classes, rows = report.dataset.classes, []
    for item in columns.order[:ROWS].tolist():
        given = classes[columns.given[item]] if columns.given[item] >= 0 else "none"
        cells = [
            Cell(given, number=False),
            Cell(classes[columns.suggested[item]], number=False),
            Cell(percent(float(columns.probability[item]))),
            *(
                Cell(f"{values[item]:.3f}")
                for values in (report.priority, columns.quality, columns.noisiness, columns.ambiguity)
            ),
        ]
        rows.append((text(report.dataset.ids[item]), cells))
    headings = ("Item", "Given", "Suggested")
    columns_shown = [*(Column(name, number=False) for name in headings), Column("its probability"), Column("Priority")]
    columns_shown += [Column("Label quality"), Column("CE", "noisiness"), Column("H", "ambiguity")]
    caption = f"The first {count(len(rows))} of {plural(len(report.dataset), 'item')}"
    return table(columns_shown, {"": rows}, caption=caption)


def _words() -> dict[str, str]:
    kept = {word: MEANINGS[word] for word in ("CE, noisiness", "H, ambiguity")}
    quality = "the probability that the model gives to the given label: low where it would not have given it"
    return {"priority": "how much a second look is worth: higher is sooner", "label quality": quality} | kept
