"""A set as it leaves: its items beside the label of each one and what speaks for it, in blocks of rows."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from relook.campaign import Campaign
from relook.collection import Collection, Form
from relook.errors import BadInput
from relook.events import Event
from relook.evidence import STATUSES, Evidence, Played, evidence
from relook.imported import Imported
from relook.pictures import inside
from relook.sources import Names
from relook.streams import ROWS
from relook.types import FloatArray, IntArray, Posteriors

if TYPE_CHECKING:
    import polars as pl

JOINED = ";"
"""What stands between the paths of an item with several images, in one cell."""


class Cleaned(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A set, its evidence, where it was imported to, and each item's priority where it is ranked.

    `files` says how images leave: as links, which take no room, or as copies. `step` is called with numbers of rows.

    >>> from relook.types import Labels
    >>> from relook.policies import named
    >>> found = cleaned(Campaign(Labels([0, 1], 2), named("random"), budget=1))
    >>> found.labels(found.evidence.final).to_list(), found.evidence.rule
    (['0', '1'], 'vote')
    """

    found: Collection
    evidence: Evidence
    imported: Imported | None = None
    priority: FloatArray | None = None
    files: Literal["link", "copy"] = "link"
    step: Callable[[int], object] | None = None

    def __len__(self) -> int:
        return len(self.evidence)

    @property
    def classes(self) -> Names:
        """Names of the classes."""
        return self.evidence.classes

    @property
    def root(self) -> Path:
        """The folder that the paths of images start from."""
        return Path() if self.imported is None else self.imported.root

    @property
    def sources(self) -> list[Path]:
        """Files and folders that the set was made from."""
        if self.imported is None:
            return []
        return [self.imported.root, *(Path(file.path) for file in self.imported.manifest.sources)]

    def labels(self, numbers: IntArray) -> pl.Series:
        """Return the names of classes, and nothing where there is none."""
        import polars as pl

        named = pl.Series(self.classes, dtype=pl.Enum(self.classes)).gather(np.maximum(numbers, 0))
        return named.set(pl.Series(numbers < 0, dtype=pl.Boolean), None)

    def statuses(self, items: slice) -> pl.Series:
        """Return the words for the status of some items."""
        import polars as pl

        return pl.Series(STATUSES, dtype=pl.Enum(STATUSES)).gather(self.evidence.status[items])

    def places(self) -> IntArray | None:
        """Return the place of each item in the ranking, 1 for the first, or None where there is none."""
        if self.priority is None:
            return None
        places = np.empty(len(self), np.int64)
        places[np.argsort(-self.priority, kind="stable")] = np.arange(1, len(self) + 1)
        return places

    def blocks(self, columns: Sequence[str] = (), *, rows: int = ROWS) -> Iterator[tuple[slice, pl.DataFrame]]:
        """Yield the items' ids and some of their columns in blocks, each with the numbers of its rows."""
        low = 0
        chosen = self.found.items.select("id", *columns)
        for batch in chosen.collect_batches(chunk_size=rows, maintain_order=True):
            for block in batch.iter_slices(rows):
                yield slice(low, low + block.height), block
                low += block.height
                if self.step is not None:
                    self.step(block.height)

    def named(self, *, rows: int = ROWS) -> Iterator[tuple[slice, pl.DataFrame]]:
        """Yield ids in blocks and, where there are images, the paths of each item's as one text."""
        import polars as pl

        paths = [name for name in ("files",) if name in self.found.columns]
        for items, block in self.blocks(paths, rows=rows):
            yield items, block.select("id", *(pl.col(name).list.join(JOINED).alias("path") for name in paths))

    def place(self, name: str, target: Path) -> None:
        """Put an image into a folder that is being made: a link where that can be, else a copy."""
        take_along(self.root, name, target=target, files=self.files)


def take_along(root: Path, name: str, *, target: Path, files: Literal["link", "copy"] = "link") -> None:
    """Put a file that lies under a root into a folder that is being made: a link where that can be, else a copy."""
    target.parent.mkdir(parents=True, exist_ok=True)
    root = root.resolve()
    try:
        source = (root / inside(name, called=str(root))).resolve(strict=True)
        if root not in source.parents or not source.is_file():
            raise OSError(errno.EINVAL, "it is no file of this folder")
        if files == "link":
            with suppress(OSError):
                target.hardlink_to(source)
                return
        shutil.copyfile(source, target)
    except OSError as error:
        raise BadInput(
            f"{root / name}: the image of an item was needed, but it cannot be taken along ({error.strerror}); put "
            "it back, or import the source again"
        ) from None


NOBODY = "answer"
"""People without a name are numbered within an item: the first is `answer 1`."""


def signed(answers: pl.DataFrame) -> pl.Series:
    """Return who gave each answer, so that nobody gave two about an item: nobody in particular is numbered.

    >>> import polars as pl
    >>> signed(pl.DataFrame({"item": [0, 0, 0, 0], "annotator": [None, None, "Ada", "Ada"]})).to_list()
    ['answer 1', 'answer 2', 'Ada', 'Ada (2)']
    """
    import polars as pl

    who = answers["annotator"].cast(pl.Categorical)
    nth = _nth(answers["item"].to_numpy(), who.to_physical().fill_null(-1).to_numpy())
    special = np.flatnonzero(who.is_null().to_numpy() | (nth > 1))
    if not len(special):
        return who
    some = pl.DataFrame({"who": who.gather(special).cast(pl.String), "nth": nth[special]})
    again = pl.concat_str("who", pl.lit(" ("), "nth", pl.lit(")"))
    nobody = pl.concat_str(pl.lit(f"{NOBODY} "), "nth")
    told = some.select(pl.when(pl.col("who").is_null()).then(nobody).otherwise(again)).to_series()
    return who.scatter(special, told.cast(pl.Categorical))


def _nth(items: IntArray, people: IntArray) -> IntArray:
    """Return how many answers, this one among them, a person had given about the item by then."""
    pairs = items.astype(np.int64) << 32 | (people.astype(np.int64) + 1)
    order = np.argsort(pairs, kind="stable")
    ordered = pairs[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    nth = np.empty(len(pairs), np.int64)
    nth[order] = np.arange(1, len(pairs) + 1) - np.repeat(starts, np.diff(starts, append=len(pairs)))
    return nth


def cleaned(
    source: Imported | Collection | Campaign | Played,
    *,
    events: Sequence[Event] = (),
    posteriors: Posteriors | None = None,
    rule: str = "vote",
    split: str | None = None,
) -> Cleaned:
    """Return a set, a campaign, or a set with the events of its campaign, as it leaves.

    A split is cut out last: a campaign may have asked about all of the set.
    """
    if isinstance(source, Imported):
        whole = source.collection()
        known = evidence(whole, events=events, posteriors=posteriors, rule=rule)
        if split is None:
            return Cleaned(found=whole, evidence=known, imported=source)
        rows = source.items(split).select("item").collect()["item"].to_numpy().astype(np.int64)
        return Cleaned(found=source.collection(split), evidence=known.part(rows), imported=source)
    if split is not None:
        raise BadInput("export: an imported set was needed for --split, but none came; import the source, or leave it")
    known = evidence(source, events=events, posteriors=posteriors, rule=rule)
    return Cleaned(found=source if isinstance(source, Collection) else _bare(known), evidence=known)


def _bare(known: Evidence) -> Collection:
    """Return the items of a campaign that is known by numbers alone."""
    return Collection(
        source="campaign",
        form=Form("frame"),
        classes=known.classes,
        ids=known.ids,
        items=known.ids.to_frame("id").lazy(),
        answers=known.answers.drop("instead", "ranking").filter(known.answers["label"].is_not_null()),
    )
