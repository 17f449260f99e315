"""Tasks for Label Studio: what is to be judged, what was answered, and the page on which people choose.

People judge blind: neither the label an item came with nor a suggestion goes along unless it is asked for.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from relook.collection import GIVEN, KEPT, NUMBER, Collection
from relook.errors import BadInput
from relook.sources import whole
from relook.types import FloatArray

if TYPE_CHECKING:
    import polars as pl

ADDRESS = "/data/local-files/?d="
"""What Label Studio calls a file of its own machine: the path in its folder of files follows."""

ITEM_KEY, IMAGES_KEY, NUMBERS_KEY = "item", "images", "numbers"
"""Keys of a task's data: the item's id, several images, and numbers by name."""

CONTROL = "label"
"""The name of what is chosen from."""

_AT_ONCE = 4096

Task = dict[str, Any]

_DIGITS = 16
"""Numbers with fewer digits are the same in every language that reads JSON."""

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Suggestions(msgspec.Struct, frozen=True, eq=False):
    """Class probabilities of a model, N x C; people are shown the likeliest class."""

    probabilities: FloatArray
    model: str = "relook"


def tasks(
    found: Collection, *, address: str = ADDRESS, suggestions: Suggestions | None = None, given: str | None = None
) -> Iterator[Task]:
    """Yield a task an item, for people to choose a class.

    `address` comes before the paths of images. `given` is the key at which the data show the label an item came with.

    >>> import polars as pl
    >>> from relook.collection import Form
    >>> items = pl.DataFrame({"id": ["a"], "text": ["woof"]})
    >>> answers = pl.DataFrame({"item": [0], "annotator": ["given"], "label": ["dog"]})
    >>> pets = Collection(
    ...     source="", form=Form("csv"), classes=("cat", "dog"), ids=items["id"], items=items.lazy(), answers=answers
    ... )
    >>> list(tasks(pets))
    [{'data': {'item': 'a', 'text': 'woof'}}]
    """
    labels = {} if given is None else _given(found)
    if suggestions is not None and suggestions.probabilities.shape != (len(found), len(found.classes)):
        raise BadInput(
            f"suggestions: {len(found)} x {len(found.classes)} probabilities were needed, but "
            f"{suggestions.probabilities.shape} came; predict every item, a column a class"
        )
    for item, shown in enumerate(_shown(found, address)):
        task: Task = {"data": shown if given is None else shown | {given: labels.get(item)}}
        if suggestions is not None:
            row = suggestions.probabilities[item]
            chosen = found.classes[int(row.argmax())]
            model = {"model_version": suggestions.model, "score": float(row.max())}
            task["predictions"] = [model | {"result": _result(found, chosen)}]
        yield task


def annotated(
    found: Collection, *, address: str = ADDRESS, final: Sequence[str | None] | None = None, rule: str = "vote"
) -> Iterator[Task]:
    """Yield a task an item with all that was answered, and with the final label where there are such.

    What came from Label Studio leaves with the data it came with. People who were only counted are an annotation each,
    without a name. `rule` says how final labels were found.
    """
    from_there = found.form.kind == "label-studio"
    rows = _restored(found) if from_there else _described(found, address)
    each = zip(found.ids, rows, _by_item(found.answers, len(found)), strict=True)
    for item, (name, shown, answers) in enumerate(each):
        number = _number(name) if from_there else item + 1
        labels = {} if final is None else {"final": final[item], "final_rule": rule}
        made = [_annotation(found, answer) for answer in answers for _ in range(answer.get("count") or 1)]
        yield {"id": number, "data": shown | labels, "annotations": made}


def write(made: Iterable[Task], path: Path) -> None:
    """Write tasks into a file that Label Studio imports, one after the other."""
    with path.open("wb") as file:
        before = b"[\n"
        for task in made:
            file.write(before + msgspec.json.encode(task))
            before = b",\n"
        file.write(b"\n]\n" if before == b",\n" else b"[]\n")


def page(found: Collection) -> str:
    """Return the labelling configuration: what is shown of an item, and the classes to choose from.

    >>> import polars as pl
    >>> from relook.collection import Form
    >>> items = pl.DataFrame({"id": ["a"], "text": ["woof"]})
    >>> none = pl.DataFrame({"item": [], "annotator": [], "label": []})
    >>> pets = Collection(
    ...     source="", form=Form("csv"), classes=("cat", "<dog>"), ids=items["id"], items=items.lazy(), answers=none
    ... )
    >>> print(page(pets))
    <View>
      <Text name="text" value="$text"/>
      <Choices name="label" toName="text" choice="single" showInLine="true">
        <Choice value="cat" hotkey="1"/>
        <Choice value="&lt;dog&gt;" hotkey="2"/>
      </Choices>
    </View>
    """
    control, name = (_attribute(part) for part in _controls(found))
    tag = {"images": "Image", "text": "Text", "numbers": "Table", "names": "Text"}[found.content]
    key = {"text": "text", "numbers": NUMBERS_KEY, "names": ITEM_KEY}.get(found.content, "image")
    value = f'valueList="${IMAGES_KEY}"' if key == "image" and _several(found) else f'value="${key}"'
    keys = [f' hotkey="{number}"' if number < 10 else "" for number in range(1, len(found.classes) + 1)]
    lines = (
        "<View>",
        f"  <{tag} name={name} {value}/>",
        f'  <Choices name={control} toName={name} choice="single" showInLine="true">',
        *(f"    <Choice value={_attribute(label)}{hot}/>" for label, hot in zip(found.classes, keys, strict=True)),
        "  </Choices>",
        "</View>",
    )
    return "\n".join(lines)


def _attribute(text: str) -> str:
    """Return a text between quotes, as XML holds it."""
    bad = _NO_XML.search(text)
    if bad:
        raise BadInput(f"class {text!r}: a name of signs that XML knows was needed, but {bad[0]!r} came; rename it")
    told = escape(text, quote=True)
    for sign in "\t\n\r":
        told = told.replace(sign, f"&#{ord(sign)};")
    return f'"{told}"'


def _controls(found: Collection) -> tuple[str, str]:
    """Return the names of what is chosen from and of what is shown."""
    shown = {"images": "image", "text": "text", "numbers": NUMBERS_KEY, "names": ITEM_KEY}[found.content]
    if found.form.kind != "label-studio":
        return CONTROL, shown
    return found.form.columns["label"], found.form.settings["to_name"] or shown


# What is shown.


def _shown(found: Collection, address: str) -> Iterator[dict[str, Any]]:
    """Yield what people see of each item, and no more."""
    numbers = [name for name in found.columns if name.startswith(NUMBER)]
    several = _several(found)
    table = found.items.select("id", *({"text", "files"} & set(found.columns)), *numbers).collect()
    for row in table.iter_rows(named=True):
        shown = {ITEM_KEY: row["id"]}
        if row.get("text") is not None:
            shown["text"] = row["text"]
        files = [_addressed(name, address) for name in row.get("files") or ()]
        if files:
            shown |= {IMAGES_KEY: files} if several else {"image": files[0]}
        if numbers:
            shown[NUMBERS_KEY] = {name.removeprefix(NUMBER): row[name] for name in numbers}
        yield shown


def _addressed(name: str, address: str) -> str:
    # Label Studio reads the path of a file of its own out of a query.
    return address + (quote(name) if address == ADDRESS else name)


def _several(found: Collection) -> bool:
    if "files" not in found.columns:
        return False
    lengths = found.items.select("files").collect()["files"].list.len()
    return bool((lengths > 1).any())


def _described(found: Collection, address: str) -> Iterator[dict[str, Any]]:
    """Yield what people see of each item, and where it belongs."""
    beside = [name for name in ("split", "group", "source") if name in found.columns]
    rows = found.items.select("id", *beside).collect().iter_rows(named=True)
    for shown, row in zip(_shown(found, address), rows, strict=True):
        yield shown | {name: row[name] for name in beside if row[name] is not None}


def _restored(found: Collection) -> Iterator[dict[str, Any]]:
    """Yield the data that tasks of Label Studio came with."""
    coded = msgspec.json.decode(found.form.settings["json"], type=list[str])
    kept = [name for name in found.columns if name.startswith(KEPT)]
    for row in found.items.select("id", *kept).collect().iter_rows(named=True):
        told = {name.removeprefix(KEPT): row[name] for name in kept if row[name] is not None}
        yield {key: msgspec.json.decode(value) if key in coded else value for key, value in told.items()}


# What was answered.


def _given(found: Collection) -> dict[int, str]:
    import polars as pl

    rows = found.answers.filter(pl.col("annotator") == GIVEN).select("item", pl.col("label").cast(pl.String))
    return dict(rows.iter_rows())


def _by_item(answers: pl.DataFrame, items: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the answers about each item; only a few of them are unpacked at a time."""
    ordered = answers.sort("item", maintain_order=True)
    rows = (row for part in ordered.iter_slices(_AT_ONCE) for row in part.iter_rows(named=True))
    groups = groupby(rows, lambda row: row["item"])
    first, told = next(groups, (items, iter(())))
    for item in range(items):
        if first != item:
            yield []
            continue
        yield list(told)
        first, told = next(groups, (items, iter(())))


def _annotation(found: Collection, answer: dict[str, Any]) -> dict[str, Any]:
    who, at, seconds = answer["annotator"], answer.get("at"), answer.get("seconds")
    told: dict[str, Any] = {"result": _result(found, answer["label"]), "was_cancelled": False, "ground_truth": False}
    if who is not None:
        # Label Studio knows people by their number, or by their address.
        told["completed_by"] = {"email": who} if isinstance(_number(who), str) else _number(who)
    if at is not None:
        told["created_at"] = dt.datetime.fromtimestamp(at, dt.UTC).isoformat().replace("+00:00", "Z")
    return told if seconds is None else told | {"lead_time": seconds}


def _number(name: str) -> int | str:
    """Return a number where a name is one that everybody reads alike."""
    return int(name) if whole((name,)) and len(name) < _DIGITS else name


def _result(found: Collection, label: str) -> list[dict[str, Any]]:
    control, shown = _controls(found)
    return [{"from_name": control, "to_name": shown, "type": "choices", "value": {"choices": [label]}}]
