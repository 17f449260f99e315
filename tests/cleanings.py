"""Sets to export: drawn ones with every awkward text, what a campaign on them heard, and what makes two sets equal."""

import string
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import polars as pl
from hypothesis import strategies as st

from relook.campaign import Campaign
from relook.cleaned import Cleaned, cleaned, signed
from relook.collection import GIVEN, KEPT, Collection, Form
from relook.events import CANNOT_TELL, Event
from relook.policies import named

NAMES = ("cat", "dog", "=hen")
PEOPLE = ("Ada", "Bo", "Cy", "Di", "Ed")

awkward = st.text(
    st.sampled_from([*string.ascii_lowercase, *"=+-@'\"\t,; \n\uff1dé漢1.", "\U0001f600"]), min_size=1, max_size=8
)
"""Text that spreadsheets run, that CSV must quote, and that is no ASCII."""


@st.composite
def tables(draw: st.DrawFn, *, people: int = 0, most: int = 6) -> pl.DataFrame:
    """A row an item: ids, a label that may be missing, a text, and one column more."""
    count = draw(st.integers(1, most))
    rows = st.lists(awkward, min_size=count, max_size=count)
    labels = st.lists(st.sampled_from([*NAMES, None]), min_size=count, max_size=count)
    columns: dict[str, Any] = {
        "id": draw(st.lists(awkward, min_size=count, max_size=count, unique=True)),
        "label": [NAMES[0], *draw(labels)[1:]],
        "text": draw(rows),
        "=note": draw(rows),
    }
    columns |= {f"rater_{name}": draw(labels) for name in PEOPLE[:people]}
    return pl.DataFrame(columns, schema_overrides=dict.fromkeys(columns, pl.String))


def in_memory(table: pl.DataFrame, kind: str = "csv") -> Collection:
    """A collection of such a table, with its own columns kept."""
    labelled = table.with_row_index("item").filter(pl.col("label").is_not_null())
    kept = {KEPT + name: table[name] for name in table.columns}
    return Collection(
        source=f"pets.{kind}",
        form=Form(kind, columns={"id": "id", "label": "label", "text": "text"}),
        classes=NAMES,
        ids=table["id"],
        items=pl.DataFrame({"id": table["id"], "text": table["text"], **kept}).lazy(),
        answers=labelled.select("item", "label", annotator=pl.lit(GIVEN)),
    )


def heard(found: Collection, answers: Sequence[tuple[int, int]]) -> list[Event]:
    """The events of a campaign in which these people gave these answers, one after the other."""
    campaign = Campaign(found.labels(), named("random"), budget=len(answers))
    for moment, (who, answer) in enumerate(answers, 1):
        lease = campaign.ask(PEOPLE[who], float(moment))
        if lease is not None:
            campaign.tell(lease, answer, moment + 0.25)
    return campaign.events


scripts = st.lists(st.tuples(st.integers(0, len(PEOPLE) - 1), st.integers(CANNOT_TELL, len(NAMES) - 1)), max_size=12)
"""Who answered, and what."""


def with_final(found: Cleaned) -> Collection:
    """The set as it should come back where only its final labels left."""
    final = found.labels(found.evidence.final)
    told = pl.DataFrame({"label": final}).with_row_index("item").filter(pl.col("label").is_not_null())
    return msgspec.structs.replace(found.found, answers=told.with_columns(annotator=pl.lit(GIVEN)))


def with_answers(found: Cleaned) -> Collection:
    """The set as it should come back where all its answers left: a person's second answer has a name of its own."""
    known = found.evidence.answers
    told = known.with_columns(annotator=signed(known)).filter(pl.col("label").is_not_null()).drop("instead", "ranking")
    there = [name for name in told.columns if told[name].null_count() < len(told) or name == "annotator"]
    return msgspec.structs.replace(found.found, answers=told.select(there))


def content(found: Collection, columns: Sequence[str] = ()) -> Mapping[str, Any]:
    """What must be equal in two sets: ids in their order, classes, and who said what of which."""
    answers = found.answers.with_columns(
        pl.col("annotator", "label").cast(pl.String), id=found.ids.gather(found.answers["item"])
    )
    missing = {
        name: value for name, value in (("count", 1), ("at", None), ("seconds", None)) if name not in answers.columns
    }
    answers = answers.with_columns(pl.lit(value).alias(name) for name, value in missing.items())
    rows = answers.select("id", "annotator", "label", pl.col("count").fill_null(1), "at", "seconds").rows()
    items = found.items.select("id", *columns).collect()
    return {
        "ids": found.ids.to_list(),
        "classes": found.classes,
        "answers": sorted(rows, key=repr),
        "items": [tuple(row) for row in items.rows()],
    }


def campaign_on(found: Collection, answers: Sequence[tuple[int, int]], **settings: Any) -> Cleaned:
    return cleaned(found, events=heard(found, answers) if answers else (), **settings)
