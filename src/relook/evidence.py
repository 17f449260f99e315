"""What the label of every item is in the end, and what speaks for it: one rule for `final`, whoever asks.

By `vote`, the default, an item has the label that is known of it, else a reviewer's word, else the class that people's
answers settled. An item without any has the class with more votes than any other among those that came with it, or the
given label where they tie, or none. So a curve, a report and an export count the same labels. By `belief` it is the
class that class probabilities and people's answers together make likeliest. What people's answers say of an item, and
what was decided on it, is its status, whatever the rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from relook.belief import AnswerModel
from relook.campaign import Campaign
from relook.collection import GIVEN, Collection
from relook.errors import BadInput, BadLog
from relook.events import STATUS, Adjudicated, Answer, Confirmed, Event, Gold, Lease, Removed, Undone
from relook.ledger import Ledger
from relook.origins import start_of
from relook.sources import Names
from relook.types import FloatArray, IntArray, Labels, Posteriors, Rows, blocks, one_hot

if TYPE_CHECKING:
    import polars as pl

RULES = {
    "vote": "the class that answers settled; else the class with most votes, the given label on a tie, or none",
    "belief": "the class that class probabilities and people's answers together make likeliest",
}
"""The rules for `final`, and what each says."""

STATUSES = (
    *("unseen", "unsettled", "settled", "unclear", "outside", "disputed"),
    *("adjudicated", "gold", "confirmed", "withdrawn"),
)
"""What people's answers say of an item. `unseen`: nobody gave one, so its label is the one it came with. `unsettled`:
they are too few, or they tie. `settled`: they are enough. `unclear`: two people could not tell. `outside`: two people
said none of these classes. `disputed`: everybody has seen it, and they do not agree. What was decided goes before:
`adjudicated`: a reviewer had the last word. `gold`: its label was known. `confirmed`: a reviewer found that people do
disagree. `withdrawn`: nobody is asked any more, and no label was settled."""

_WORDS: dict[type, str] = {Adjudicated: "adjudicated", Gold: "gold", Confirmed: "confirmed"}

NO_CLASS = ("none of these", "cannot tell")
"""What an answer says that names no class, as the events number them: -2 and -1."""

SAID = ("item", "annotator", "label", "instead", "count", "at", "seconds", "ranking")
"""Columns of answers: the item's row number, who, the class, or what was said instead of one, how many said so (where
people are only counted), when, how long it took, and under which ranking (none: before the campaign)."""


class Played(Protocol):
    """A simulated campaign: what happened, and the labels as they stood at its end."""

    @property
    def events(self) -> Sequence[Event]:
        """What happened."""
        ...

    @property
    def labels(self) -> Labels:
        """The labels it began with, and the answers."""
        ...


class Evidence(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """The label of every item, and what speaks for it.

    `given` and `final` are classes by number (-1: none). Where items came with answers but without a label of their
    own, `given` is what those answers say, and `labelled` is false. `status` numbers `STATUSES`, `heard` counts
    people's answers, `votes` is a table of item, label and count, the given label's vote among them, and `answers` one
    of `SAID`, a row an answer that stands.
    """

    rule: str
    classes: Names
    ids: pl.Series
    given: IntArray
    labelled: bool
    final: IntArray
    status: IntArray
    heard: IntArray
    votes: pl.DataFrame
    answers: pl.DataFrame
    posteriors: Posteriors | None = None
    model: AnswerModel = AnswerModel()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def changed(self) -> IntArray:
        """Items whose label is not the one they came with."""
        return np.flatnonzero(self.final != self.given)

    def counts(self, items: slice = slice(None)) -> IntArray:
        """Return how many votes each class of each item has, n x C; the given label has one."""
        low, high, _ = items.indices(len(self))
        counts = np.zeros((max(high - low, 0), len(self.classes)), np.int32)
        held = self.votes["item"].to_numpy()
        inside = slice(*np.searchsorted(held, (low, high)))
        labels, times = self.votes["label"].to_numpy()[inside], self.votes["count"].to_numpy()[inside]
        counts[held[inside].astype(np.int64) - low, labels] = times
        return counts

    def belief(self, items: slice = slice(None)) -> FloatArray | None:
        """Return the belief about each item's class, n x C, or None without class probabilities."""
        if self.posteriors is None:
            return None
        answers = self.counts(items)
        if self.labelled:
            answers -= one_hot(self.given[items], len(self.classes))
        numbers = np.arange(len(self))[items]
        values = self.posteriors.values[:, items]
        return self.model.belief(Rows(numbers, values, self.given[items], answers, len(self.classes)))

    def part(self, items: IntArray) -> Evidence:
        """Return what is known of some items, in their order."""
        import polars as pl

        rows = pl.DataFrame({"item": items, "row": np.arange(len(items))}).cast(pl.UInt32)
        tables: dict[str, Any] = {}
        for name in ("votes", "answers"):
            inside = getattr(self, name).join(rows, on="item", maintain_order="left")
            tables[name] = inside.with_columns(item="row").drop("row")
        arrays = {name: getattr(self, name)[items] for name in ("given", "final", "status", "heard")}
        posteriors = None if self.posteriors is None else Posteriors(self.posteriors.values[:, items])
        return msgspec.structs.replace(self, ids=self.ids.gather(items), posteriors=posteriors, **arrays, **tables)


def evidence(
    source: Collection | Campaign | Played,
    *,
    events: Sequence[Event] = (),
    posteriors: Posteriors | None = None,
    rule: str = "vote",
) -> Evidence:
    """Return the label of every item of a set or a campaign, and what speaks for it.

    A campaign alone knows neither ids nor names of classes, only numbers: with the set it ran on, pass its events.

    >>> from relook.policies import named
    >>> campaign = Campaign(Labels([0, 1], 2), named("random"), budget=2)
    >>> lease = campaign.ask("Ada")
    >>> _ = campaign.tell(lease, campaign.ledger.given.given[lease.item])
    >>> found = evidence(campaign)
    >>> found.final.tolist(), sorted(STATUSES[number] for number in found.status)
    ([0, 1], ['settled', 'unseen'])
    """
    if rule not in RULES:
        raise BadInput(f"final: one of {', '.join(RULES)} was needed as its rule, but {rule!r} came; take vote")
    start = _of_set(source) if isinstance(source, Collection) else _of_labels(_began_with(source))
    ledger = _ledger(source, events, given=start.labels)
    if isinstance(source, Campaign) and posteriors is None:
        posteriors = source.posteriors
    found = _by_vote(start, ledger, events=events if isinstance(source, Collection) else source.events)
    if posteriors is not None:
        _check_posteriors(posteriors, found)
        found = msgspec.structs.replace(found, posteriors=posteriors, model=_model(ledger))
    return found if rule == "vote" else _by_belief(found)


class _Start(msgspec.Struct, frozen=True, eq=False):
    """What items came with: ids, classes, labels, the label of each one's own, whether there are such, and answers."""

    ids: pl.Series
    classes: Names
    labels: Labels
    given: IntArray
    labelled: bool
    answers: pl.DataFrame


def _of_set(found: Collection) -> _Start:
    labels, own = found.labels(), _is_given(found.answers)
    given = labels.label()
    if own.any():
        given = np.full(len(found), -1)
        given[found.answers["item"].to_numpy()[own]] = found.answers["label"].to_physical().to_numpy()[own]
    return _Start(found.ids, found.classes, labels, given, bool(own.any()), found.answers)


def _is_given(answers: pl.DataFrame) -> NDArray[np.bool_]:
    """Say of each answer whether it is the label that an item came with."""
    return (answers["annotator"] == GIVEN).fill_null(value=False).to_numpy()


def _of_labels(labels: Labels) -> _Start:
    """Return what a campaign began with: one given label an item, or counts of what people nobody names said."""
    import polars as pl

    names = tuple(map(str, range(labels.classes)))
    given, labelled = labels.label(), labels.given.ndim == 1
    if labels.came_with is not None and (labels.came_with >= 0).any():
        given, labelled = labels.came_with, True
    counts = labels.given_counts - (one_hot(given, labels.classes) if labelled else 0)
    rows, columns = np.nonzero(counts)
    came = np.flatnonzero(given >= 0) if labelled else rows[:0]
    classes = pl.Series(names, dtype=pl.Enum(names))
    own = pl.DataFrame(
        {"item": came, "annotator": pl.repeat(GIVEN, len(came), eager=True), "label": classes.gather(given[came])}
    )
    said = pl.DataFrame({"item": rows, "label": classes.gather(columns), "count": counts[rows, columns]})
    answers = pl.concat([own, said], how="diagonal")
    ids = pl.Series("id", map(str, range(len(labels))), dtype=pl.String)
    return _Start(ids, names, labels, np.asarray(given), labelled, answers)


def _kinds(names: Names) -> dict[str, Any]:
    """Return the types of the columns of answers."""
    import polars as pl

    kinds = pl.UInt32, pl.Categorical, pl.Enum(names), pl.Enum(NO_CLASS), pl.UInt32, pl.Float64, pl.Float64, pl.UInt32
    return dict(zip(SAID, kinds, strict=True))


def _began_with(source: Campaign | Played) -> Labels:
    if isinstance(source, Campaign):
        return source.ledger.given
    return Labels(source.labels.given, source.labels.classes, came_with=source.labels.came_with)


def _ledger(source: Collection | Campaign | Played, events: Sequence[Event], *, given: Labels) -> Ledger | None:
    """Return the facts of a campaign; where only its events came, they are gone through once more and checked."""
    if isinstance(source, Campaign):
        return source.ledger
    told = events if isinstance(source, Collection) else source.events
    if not told:
        return None
    started = start_of(told, given)
    ledger = Ledger(given.first(started.items), started)
    for event in told[1:]:
        ledger.apply(event)
    if ledger.given.fingerprint() != given.fingerprint():
        raise BadLog(
            "log: the labels of items that were added later were needed too, but others came; pass the whole set"
        )
    return ledger


def _by_vote(start: _Start, ledger: Ledger | None, *, events: Sequence[Event]) -> Evidence:
    answers = _filled(start.answers, start.classes)
    if ledger is not None:
        answers = answers.vstack(_filled(_said(events, start.classes), start.classes))
    items, times, people = answers["item"].to_numpy(), _times(answers), ~_is_given(answers)
    heard = np.bincount(items[people], None if times is None else times[people], len(start.ids)).astype(np.int64)
    votes = _votes(answers, times, classes=len(start.classes))
    status = _status(votes, heard)
    final = start.labels.label() if ledger is None else ledger.final()
    if ledger is not None:
        for number, word in _decided(ledger).items():
            status[number] = STATUSES.index(word)
    return Evidence(
        rule="vote",
        classes=start.classes,
        ids=start.ids,
        given=start.given,
        labelled=start.labelled,
        final=np.asarray(final, np.int64),
        status=status,
        heard=heard,
        votes=votes,
        answers=answers,
    )


def _decided(ledger: Ledger) -> dict[int, str]:
    """Return what a campaign says of its items, a word each: of those that people answered, or decided on."""
    told = {number: STATUS.get(state.verdict, "settled") for number, state in ledger.items.items() if state.heard}
    gone = {number: "withdrawn" for number in ledger.withdrawn if ledger.items[number].verdict < 0}
    return told | gone | {number: _WORDS[type(word)] for number, word in ledger.words.items()}


def _filled(answers: pl.DataFrame, names: Names) -> pl.DataFrame:
    """Return answers with all columns of `SAID`, those that nothing is known of empty."""
    import polars as pl

    kinds = _kinds(names)
    missing = [pl.lit(None, dtype=kinds[name]).alias(name) for name in SAID if name not in answers.columns]
    return answers.with_columns(missing).cast({name: kinds[name] for name in answers.columns}).select(SAID)


def _times(answers: pl.DataFrame) -> IntArray | None:
    """Return how many people gave each answer, or None where each is one person's."""
    counts = answers["count"]
    return None if counts.null_count() == len(counts) else counts.fill_null(1).to_numpy()


def _votes(answers: pl.DataFrame, times: IntArray | None, *, classes: int) -> pl.DataFrame:
    """Return how often each class was named of each item: by numbers, for a table of pairs takes ten times the room."""
    import polars as pl

    named = answers["label"].is_not_null().to_numpy()
    labels = answers["label"].to_physical().fill_null(0).to_numpy()
    cells = answers["item"].to_numpy().astype(np.int64) * classes + labels
    if times is None:
        cells, counts = np.unique(cells[named], return_counts=True)
    else:
        cells, places = np.unique(cells[named], return_inverse=True)
        counts = np.bincount(places, times[named], len(cells))
    columns = {"item": cells // classes, "label": cells % classes, "count": counts}
    return pl.DataFrame({name: values.astype(np.uint32) for name, values in columns.items()})


def _status(votes: pl.DataFrame, heard: IntArray) -> IntArray:
    """Return what the answers that items came with say of them, by the paper's rule: one class leads, of several votes.

    It is what a campaign would have said, had it heard them.
    """
    status = np.where(heard > 0, STATUSES.index("unsettled"), STATUSES.index("unseen")).astype(np.uint8)
    items, counts = votes["item"].to_numpy(), votes["count"].to_numpy()
    starts = np.flatnonzero(np.diff(items, prepend=-1)) if len(items) else np.zeros(0, np.int64)
    if len(starts):
        most = np.maximum.reduceat(counts, starts)
        leaders = np.add.reduceat(counts == np.repeat(most, np.diff(starts, append=len(items))), starts)
        enough = items[starts[(leaders == 1) & (np.add.reduceat(counts, starts) > 1)]]
        status[enough[heard[enough] > 0]] = STATUSES.index("settled")
    return status


def _said(events: Sequence[Event], names: Names) -> pl.DataFrame:
    """Return the answers of a log that stand: those that came in time and were not taken back or made void."""
    import polars as pl

    undone = {event.lease for event in events if type(event) is Undone} | _void(events)
    begun = np.array([0.0, *(event.at for event in events if type(event) is Lease)])
    kept = [event for event in events if type(event) is Answer and event.counted and event.lease not in undone]
    codes = np.array([event.answer for event in kept], np.int64)
    at = np.array([event.at for event in kept], np.float64)
    is_class = pl.Series(codes >= 0, dtype=pl.Boolean)
    columns = {
        "item": np.array([event.item for event in kept], np.uint32),
        "annotator": pl.Series([event.annotator for event in kept], dtype=pl.Categorical),
        "label": pl.Series(names, dtype=pl.Enum(names)).gather(np.maximum(codes, 0)),
        "instead": pl.Series(NO_CLASS, dtype=pl.Enum(NO_CLASS)).gather(np.minimum(codes, -1) + len(NO_CLASS)),
        "at": at,
        "seconds": at - begun[np.array([event.lease for event in kept], np.int64)],
        "ranking": np.array([event.ranking for event in kept], np.uint32),
    }
    label, instead = pl.when(is_class).then("label"), pl.when(~is_class).then("instead")
    return pl.DataFrame(columns).with_columns(label.alias("label"), instead.alias("instead"))


def _void(events: Sequence[Event]) -> set[int]:
    """Return the leases whose answers count no more since the person was removed."""
    void: set[int] = set()
    for place, event in enumerate(events):
        if type(event) is Removed and not event.stand:
            own = (each for each in events[:place] if type(each) is Answer and each.annotator == event.name)
            void.update(answer.lease for answer in own)
    return void


def _check_posteriors(posteriors: Posteriors, found: Evidence) -> None:
    if (posteriors.items, posteriors.classes) != (len(found), len(found.classes)):
        raise BadInput(
            f"posteriors: those of {len(found)} items and {len(found.classes)} classes were needed, but they are of "
            f"{posteriors.items} and {posteriors.classes}; predict this very set"
        )


def _model(ledger: Ledger | None) -> AnswerModel:
    """Return the model of answers that a campaign's own stopping rule had, else the usual one."""
    stop: Mapping[str, Any] = {} if ledger is None else ledger.policy.get("stop", {})
    record = stop.get("model")
    if not isinstance(record, Mapping) or record.get("name") != AnswerModel.__name__:
        return AnswerModel()
    return AnswerModel(**{name: float(record[name]) for name in AnswerModel.__struct_fields__})


def _by_belief(found: Evidence) -> Evidence:
    if found.posteriors is None:
        raise BadInput(
            "final by belief: class probabilities were needed, but none came; pass them with --probabilities, or "
            "take --rule vote"
        )
    final = np.empty(len(found), np.int64)
    for block in blocks(len(found), len(found.classes) * found.posteriors.models):
        believed = found.belief(block)
        final[block] = -1 if believed is None else believed.argmax(1)
    return msgspec.structs.replace(found, rule="belief", final=final)
