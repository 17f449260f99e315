"""A new campaign: what its items are ranked by, what may not rank them, and the folder it lives in."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import numpy as np

from relook import campaigns, charter, datasets, first_model, imported, vectors
from relook.alignment import Matched
from relook.book import TOLD
from relook.campaign import Campaign
from relook.campaigns import Begun
from relook.charter import Charter
from relook.errors import BadInput
from relook.events import CANNOT_TELL, Lease
from relook.handouts import WORDS
from relook.imported import Imported, source_file
from relook.policies import check_rule
from relook.sources import Names
from relook.types import Dataset, FloatArray, Posteriors
from relook.whole import beside

TESTS = ("test", "val", "valid", "validation", "eval", "evaluation", "holdout")
"""Names of splits that models are judged on."""


class Ranker(msgspec.Struct, frozen=True, eq=False):
    """What ranks the items: class probabilities that stay, or a model, and what it learns from besides the set.

    `called` is what these are in words, and `facts` are what was decided on the way.
    """

    probabilities: Posteriors | None = None
    features: FloatArray | None = None
    called: str | None = None
    facts: Names = ()


class Earlier(msgspec.Struct, frozen=True, eq=False):
    """Answers of an earlier campaign about the same items, as (item, person, answer) in the classes of the new one.

    `lost` counts those whose item or class is no more; `head` is the hash of the log that they come from.
    """

    head: str
    answers: Sequence[tuple[int, str | None, int]]
    lost: int


class Carried(msgspec.Struct, frozen=True):
    """What became of earlier answers: those that were taken over, those not needed, and those that were lost."""

    taken: int
    spare: int
    lost: int

    def __str__(self) -> str:
        spare = f"; {self.spare:,} were not needed, for their item was settled" if self.spare else ""
        lost = f"; {self.lost:,} are of items or classes that are no more" if self.lost else ""
        return f"{self.taken:,} answers were taken over, and the budget has room for them too{spare}{lost}."


class Founded(msgspec.Struct, frozen=True, eq=False):
    """A new campaign: its items, what they are ranked by, and what was taken over."""

    dataset: Dataset
    posteriors: Posteriors | None
    carried: Carried | None


def check_folder(folder: Path) -> None:
    """Refuse a place that no campaign can be made in."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        cure = "go on with it, see relook status" if charter.is_campaign(folder) else "name another"
        raise BadInput(f"{folder}: a new folder was needed for the campaign, but it holds something; {cure}")
    if not folder.absolute().parent.is_dir():
        raise BadInput(f"{folder}: a folder that is there was needed for the campaign; make {folder.parent} first")


def source(place: str, *, made: Path) -> Imported:
    """Return the set that is meant: an imported one, or one that comes with relook, which is made in the campaign."""
    if place not in datasets.EMBEDDED or Path(place).exists():
        return imported.read(Path(place))
    found, _ = imported.write(datasets.collection(place), made / campaigns.SET)
    return found


def check_classes(found: Imported) -> None:
    """Refuse classes that are called what people say where no class fits."""
    taken = sorted(set(WORDS.values()) & {name.casefold() for name in found.manifest.classes})
    if taken:
        raise BadInput(
            f"{found.folder}: classes of other names were needed, for {taken[0]!r} is what people say where none fits; "
            "rename the class and import the set again"
        )


def ranker(found: Imported, *, split: str | None, embeddings: Path | None, probabilities: Path | None) -> Ranker:
    """Return what ranks the items: what was named, else what came along with the set, else what the items are."""
    if embeddings is not None and probabilities is not None:
        raise BadInput(
            "new: embeddings, which a model learns from, or probabilities, which stay, were needed, but both came; "
            "name one"
        )
    if probabilities is not None:
        joined = vectors.probabilities(found.collection(), probabilities)
        return Ranker(
            _complete(_rows(joined.values, found, split=split)), called="the probabilities", facts=joined.facts
        )
    if embeddings is not None:
        joined = vectors.embeddings(found.collection(), embeddings)
        return Ranker(features=_rows(joined.values, found, split=split), called="the embeddings", facts=joined.facts)
    came = found.vectors("embeddings", split)
    if came is not None:
        return Ranker(features=np.asarray(came), called="the embeddings that came along")
    posteriors = first_model.came_along(found, split)
    if posteriors is not None:
        return Ranker(posteriors, called="the probabilities that came along")
    return _of_items(found.dataset(split))


def _of_items(found: Dataset) -> Ranker:
    """Return a ranker for items that came with nothing: a model of what they are."""
    if found.features is not None:
        # The set's own numbers stay where they are.
        return Ranker(facts=("No embeddings came: a model of the numbers of the items ranks them.",))
    (features,), called = first_model.features(found)
    facts = [f"No embeddings came: a model of {called} ranks the items."]
    if found.images is not None:
        facts.append("It knows little of pictures: with --embeddings of a good network the ranking is better.")
    # What took long to make is made once.
    return Ranker(features=features.astype(np.float32), called=called, facts=tuple(facts))


def _rows(values: FloatArray, found: Imported, *, split: str | None) -> FloatArray:
    if split is None:
        return values
    rows: FloatArray = values[found.items(split).select("item").collect()["item"].to_numpy()]
    return rows


def _complete(values: FloatArray) -> Posteriors:
    lost = np.isnan(values).any(1)
    if lost.any():
        raise BadInput(
            f"--probabilities: those of every item were needed, but {int(lost.sum())} rows are missing, that of item "
            f"{int(lost.argmax())} first; predict all, or pass --embeddings"
        )
    return Posteriors(values)


def check_purpose(purpose: str, by: Ranker, *, override: str | None) -> None:
    """Refuse to rank a set that models are judged on by probabilities whose model may be one of them."""
    if purpose != "evaluation" or by.probabilities is None:
        if override is not None:
            raise BadInput("new: --override belongs to an evaluation set ranked by probabilities; leave it out")
        return
    if not override:
        raise BadInput(
            f"new: an evaluation set must not be ranked by a model that it will judge, but {by.called} may be that "
            "model's; leave them out, and a model of this set alone ranks it, or say why it is none with --override"
        )


def items_of(found: Imported, made: Path, *, name: str, split: str | None) -> charter.Items:
    """Return which items a campaign is about, as its folder tells of them: as seen from the one that is being made."""
    count = len(found) if split is None else found.items(split).select("item").collect().height
    return charter.Items(
        name=Path(name).name,
        set=os.path.relpath(found.folder.resolve(), made.resolve()),
        manifest=source_file(found.folder / imported.MANIFEST).hash,
        count=count,
        classes=found.manifest.classes,
        split=split,
    )


@contextmanager
def founding(folder: Path) -> Iterator[Path]:
    """Give a folder to make a campaign in, which takes its name once all of it is there; else nothing stays."""
    check_folder(folder)
    with beside(folder) as made:
        yield made
        with suppress(FileNotFoundError):
            folder.rmdir()
        made.rename(folder)


def own_path(selector: str) -> str:
    """Return a selector as it is found from everywhere: a user's own file by its whole path."""
    place, colon, name = selector.rpartition(":")
    return f"{Path(place).absolute()}{colon}{name}" if place.endswith(".py") else selector


def begin(made: Path, decided: Charter, *, by: Ranker, now: float) -> Founded:
    """Make the campaign's files, take over the answers of an earlier one, and return what came of it."""
    if by.features is not None:
        np.save(made / campaigns.FEATURES, by.features, allow_pickle=False)
    data_set = campaigns.dataset(made, decided)
    posteriors = by.probabilities
    if decided.retraining.trainer is not None:
        posteriors = campaigns.trained(decided, data_set, labels=data_set.given)
    check_rule(campaigns.policy(decided.rules), data_set.given, posteriors=posteriors)
    earlier = None
    if decided.answers_from is not None:
        earlier = answers_of(made / decided.answers_from, data_set)
        more = msgspec.structs.replace(decided.budget, answers=decided.budget.answers + len(earlier.answers))
        decided = msgspec.structs.replace(decided, budget=more)
    campaign = campaigns.make(made, decided, found=data_set, posteriors=posteriors, begun=_begun(now, earlier))
    carried = None if earlier is None else carry(campaign, earlier, now=now)
    campaigns.keep(made, campaign)
    return Founded(data_set, posteriors, carried)


def _begun(now: float, earlier: Earlier | None) -> Begun:
    return Begun(now, continues=None if earlier is None else earlier.head)


def matched(found: Imported, data_set: Dataset, *, posteriors: Posteriors) -> Matched:
    """Return labels and class probabilities side by side, as the guard looks at them."""
    return Matched(
        data_set.classes, data_set.given, posteriors, data_set.ids, str(found.folder), joined="id", named=True
    )


def answers_of(folder: Path, found: Dataset) -> Earlier:
    """Return the answers of an earlier campaign that stand, by the ids and the names of the new one.

    That none of the old classes fits says nothing about the new ones, so it is not taken over.
    """
    decided = charter.read(folder)
    before = campaigns.items(folder, decided).dataset(decided.items.split)
    ledger, _ = campaigns.looked(folder)
    items = {name: row for row, name in enumerate(found.ids)}
    classes = {name: row for row, name in enumerate(found.classes)}
    book, answers, lost = ledger.book, list[tuple[int, str | None, int]](), 0
    for row in range(1, book.rows):
        if book.state[row] != TOLD or book.is_check(row):
            continue
        item, said = items.get(before.ids[book.item[row]]), book.answer[row]
        answer = said if said == CANNOT_TELL else classes.get(before.classes[said]) if said >= 0 else None
        if item is None or answer is None:
            lost += 1
        else:
            answers.append((item, book.people[book.who[row]], answer))
    return Earlier(campaigns.head(folder), answers, lost)


def carry(campaign: Campaign, earlier: Earlier, *, now: float) -> Carried:
    """Take answers over, each as if it were given now; once an item is settled, no more are needed."""
    taken = 0
    for item, annotator, answer in earlier.answers:
        ledger = campaign.ledger
        state = ledger.items.get(item)
        if state is not None and (not ledger.is_askable(state) or ledger.has_answer_of(state, annotator)):
            continue
        nth = 0 if state is None else state.heard
        lease = Lease(ledger.book.rows, item, annotator, nth, now, now + ledger.started.lease_seconds)
        campaign.record(lease)
        campaign.tell(lease, answer, now)
        taken += 1
    return Carried(taken, len(earlier.answers) - taken, earlier.lost)
