"""Items on their way to people who work without a server: a table, a folder of images, or Label Studio's tasks.

People judge blind. What goes out is an id, what to look at, an empty place for the answer and the number of the lease,
by which an answer finds back, however often its file is sent. Where ids or paths tell the given label, as those of
images in a folder a class do, items go out under neutral names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from relook import __version__, labelling, streams
from relook.campaign import Campaign
from relook.cleaned import take_along
from relook.collection import NUMBER, Collection
from relook.errors import BadInput
from relook.events import CANNOT_TELL, NONE_OF_THESE, Lease
from relook.imported import Imported
from relook.sources import Names
from relook.whole import check_target, whole

if TYPE_CHECKING:
    import polars as pl

WORDS = {CANNOT_TELL: "cannot tell", NONE_OF_THESE: "none of these"}
"""What people write where no class fits, by what the events call it."""

ID, ANSWER, LEASE, SECONDS, WHY = "id", "answer", "lease", "seconds", "why"
"""Columns that go out, and two that a table may come back with."""

TABLE, WORDS_FILE = "tasks.csv", "answers.txt"
"""The table in a folder of images, and the list of what may be answered."""

SUFFIXES = (*streams.SUFFIXES, ".json", "")
"""What the name of a handout may end in: a table, tasks of Label Studio, or nothing for a folder."""

_TELLING = 0.05
"""Names tell the given labels where this share of them holds the name of its item's class; ids that are numbers hold
one now and then by chance."""

_LOOKED_AT = 2_000

_NEUTRAL = re.compile(r"item-(\d{6,})")


class Handout(msgspec.Struct, frozen=True, eq=False):
    """Items of a set that go out, in this order, and the columns beside what is looked at; an answer is one of them."""

    source: Imported
    split: str | None
    items: Sequence[int]
    columns: Mapping[str, Sequence[str | int | None]]


def of_leases(source: Imported, split: str | None, *, leases: Sequence[Lease]) -> Handout:
    """Return what goes out to the person who holds these leases."""
    numbers = [each.number for each in leases]
    return Handout(source, split, [each.item for each in leases], {ANSWER: [None] * len(leases), LEASE: numbers})


def lease(campaign: Campaign, annotator: str, *, most: int, now: float) -> list[Lease]:
    """Lease as many items to a person as they want, as long as there are such and the budget lasts."""
    found: list[Lease] = []
    while len(found) < most and (held := campaign.ask(annotator, now)) is not None:
        found.append(held)
    return found


def held(campaign: Campaign, annotator: str) -> list[Lease]:
    """Return what a person holds; a lease whose time is over is one that nobody has asked about since."""
    return [each for each in campaign.ledger.leases.values() if each.annotator == annotator]


def neutral(item: int) -> str:
    """Return a name for an item that tells nothing.

    >>> neutral(17), item_of(neutral(17)), item_of("a.png")
    ('item-000017', 17, None)
    """
    return f"item-{item:06d}"


def item_of(name: str) -> int | None:
    """Return the item that a neutral name stands for, or None."""
    found = _NEUTRAL.fullmatch(name)
    return None if found is None else int(found[1])


def check(source: Imported, to: Path) -> None:
    """Refuse a target before anything is leased for it."""
    if to.suffix.lower() not in SUFFIXES:
        raise BadInput(
            f"{to}: a table ({', '.join(streams.SUFFIXES)}), tasks of Label Studio (.json) or a folder was needed, but "
            f"{to.suffix} came; name one with --to"
        )
    check_target(to, sources=[source.root], kept=source.folder)
    if to.suffix.lower() in (".json", *streams.SUFFIXES) and source.manifest.content == "images" and _tells(source):
        raise BadInput(
            f"{to}: names that do not tell the given label were needed, but the paths of these images do; name a "
            "folder with --to, in which they have neutral names"
        )


def write(given: Handout, to: Path) -> Names:
    """Write what a person is to answer, whole or not at all, and return what was decided about it."""
    tells = _tells(given.source)
    found = _part(given, names=[neutral(item) for item in given.items] if tells else None)
    suffix = to.suffix.lower()
    note: dict[str, object] = {"software": f"relook {__version__}", "source": str(given.source.folder)}
    with whole(to, note) as draft:
        if suffix == ".json":
            labelling.write(_tasks(given, found), draft)
        elif suffix:
            _write_table(_columns(given, found, paths=_paths(given, found)), draft)
        else:
            _write_folder(given, found, folder=draft)
    if suffix == ".json":
        with whole(to.with_suffix(".xml"), note) as draft:
            draft.write_text(labelling.page(_with_words(found)), "utf-8")
    return ("Ids tell the given labels, so items go out under neutral names.",) if tells else ()


def _tells(source: Imported) -> bool:
    """Say whether the names of the items tell their given labels; some items from all over the set say it for all."""
    found = source.collection()
    labels = found.labels().label()
    labelled = np.flatnonzero(labels >= 0)
    some = labelled[:: max(len(labelled) // _LOOKED_AT, 1)]
    parts = ["files"] if "files" in found.columns else []
    table = found.items.select(ID, *parts).collect()[some]
    files = table["files"].to_list() if parts else [()] * len(some)
    classes = [name.casefold() for name in found.classes]
    each = zip(labels[some].tolist(), table[ID].to_list(), files, strict=True)
    telling = sum(classes[label] in _words(name, *(own or ())) for label, name, own in each)
    return telling > _TELLING * max(len(some), 1)


def _words(*names: str) -> set[str]:
    """Return the parts of paths, and the words in them."""
    whole_parts = {part for name in names for part in name.casefold().split("/")}
    return whole_parts | {word for part in whole_parts for word in re.split(r"[^\w]|_", part)}


def _part(given: Handout, *, names: Sequence[str] | None) -> Collection:
    """Return what is known of the items, as far as people may see it."""
    import polars as pl

    whole_set = given.source.collection(given.split)
    shown = [name for name in whole_set.columns if name in (ID, "text", "files")]
    # Of an image nobody needs the numbers that a model may know it by.
    shown += [] if "files" in shown else [name for name in whole_set.columns if name.startswith(NUMBER)]
    rows = whole_set.items.select(shown).collect()[given.items]
    if names is not None:
        rows = rows.with_columns(pl.Series(ID, names, dtype=pl.String))
    return Collection(
        source=whole_set.source,
        form=msgspec.structs.replace(whole_set.form, kind="csv"),
        classes=whole_set.classes,
        ids=rows[ID],
        items=rows.lazy(),
        answers=whole_set.answers.clear(),
    )


def _files(found: Collection) -> list[list[str]] | None:
    """Return the names of the images of each item, where there are images."""
    if "files" not in found.columns:
        return None
    return [names or [] for names in found.items.select("files").collect()["files"].to_list()]


def _paths(given: Handout, found: Collection) -> list[list[str]] | None:
    """Return the places of the images of each item."""
    root, files = given.source.root.absolute(), _files(found)
    return None if files is None else [[str(root / name) for name in names] for names in files]


def _columns(given: Handout, found: Collection, *, paths: list[list[str]] | None) -> pl.DataFrame:
    """Return the table: an id, what to look at, and the columns beside."""
    import polars as pl

    rows = found.items.select(pl.exclude("files")).collect()
    shown: dict[str, Any] = {ID: rows[ID]}
    for place in range(max(map(len, paths or ()), default=0)):
        column = "path" if place == 0 else f"path {place + 1}"
        shown[column] = [names[place] if place < len(names) else None for names in paths or ()]
    if "text" in rows.columns:
        shown["text"] = rows["text"]
    shown |= {name.removeprefix(NUMBER): rows[name] for name in rows.columns if name.startswith(NUMBER)}
    kinds = {name: pl.Int64 if name == LEASE else pl.String for name in given.columns}
    beside = {name: pl.Series(values, dtype=kinds[name]) for name, values in given.columns.items()}
    return pl.DataFrame(shown | beside)


def _write_table(table: pl.DataFrame, path: Path) -> None:
    streams.write(streams.Stream(table.schema, lambda: iter([table])), path)


def _write_folder(given: Handout, found: Collection, *, folder: Path) -> None:
    """Write images under neutral names, the table that tells of them, and what may be answered."""
    files = _files(found)
    if files is None:
        raise BadInput(
            f"{folder.name}: items with images were needed for a folder of them, but these are "
            f"{given.source.manifest.content}; name a table, such as {TABLE}"
        )
    folder.mkdir()
    places = []
    for item, names in zip(given.items, files, strict=True):
        own = [f"{neutral(item)}{_nth(nth)}{Path(name).suffix.lower()}" for nth, name in enumerate(names)]
        for name, target in zip(names, own, strict=True):
            take_along(given.source.root, name, target=folder / target)
        places.append(own)
    _write_table(_columns(given, found, paths=places), folder / TABLE)
    words = [*found.classes, *WORDS.values()]
    (folder / WORDS_FILE).write_text("\n".join(words) + "\n", "utf-8")


def _nth(nth: int) -> str:
    return "" if nth == 0 else f"-{nth + 1}"


def _tasks(given: Handout, found: Collection) -> Iterator[labelling.Task]:
    for row, task in enumerate(labelling.tasks(_with_words(found))):
        beside = {name: values[row] for name, values in given.columns.items() if name != ANSWER}
        yield {"data": task["data"] | beside}


def _with_words(found: Collection) -> Collection:
    """Return the items with what may be answered where no class fits among the classes."""
    return msgspec.structs.replace(found, classes=(*found.classes, *WORDS.values()))
