"""Label Studio's JSON: tasks with the choices that people made, as its exports JSON and JSON-MIN hold them.

How tasks are written for it stands in `relook.labelling`.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from relook.collection import KEPT, NUMBER, VIEWS, Collection, Form, in_order
from relook.errors import BadInput
from relook.labelling import ADDRESS, IMAGES_KEY, ITEM_KEY, NUMBERS_KEY
from relook.meanings import NO, YES
from relook.pictures import inside
from relook.sources import COLUMNS, Columns, Names, existing, listed
from relook.taskfiles import Annotation, Result, Shown, tasks_in

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = (".json",)
"""Files that are read here."""

_IMAGE_KEYS = ("image", IMAGES_KEY)


def collection(path: Path, *, columns: Columns = COLUMNS) -> Collection:
    """Return the tasks of an export and the choices that were made.

    `columns.label` names the control that was chosen from, where there are several; `columns.question` asks of one of
    several choices whether it was made. Other columns are keys of the tasks' data.
    """
    source = existing(path)
    shown, form, facts = tasks_in(path, columns)
    control = _control(shown, columns, source=source)
    rows, told = _answers(shown, control.from_name, columns=columns)
    classes = (NO, YES) if columns.question else columns.classes or in_order(list({row[2] for row in rows}))
    ids, said = _ids(shown, columns, source=source)
    items, known = _items(shown, ids, columns=columns)
    settings = {"form": form, "to_name": control.to_name, "json": msgspec.json.encode(known.coded).decode()}
    return Collection(
        source=source,
        form=Form("label-studio", "answers", {"label": control.from_name, **known.columns}, settings),
        classes=classes,
        ids=items["id"],
        items=items.lazy(),
        answers=_table(rows),
        facts=(*facts, said, *told, *known.facts),
    )


# What was chosen.


def _control(shown: Sequence[Shown], columns: Columns, *, source: str) -> Result:
    """Return a result of the control that was chosen from: the one asked for, else the only one."""
    results = [result for item in shown for one in item.annotations for result in one.result or ()]
    controls = {result.from_name: result for result in results if result.type == "choices"}
    if columns.label is not None and columns.label in controls:
        return controls[columns.label]
    if len(controls) == 1 and columns.label is None:
        return next(iter(controls.values()))
    if not results and columns.classes:
        return Result("choices", columns.label or "label")
    others = sorted({result.type or "nothing" for result in results if result.type != "choices"})
    came = listed(list(controls)) or (f"only {listed(others)}" if others else "no annotation")
    raise BadInput(f"{source}: choices of one control were needed, but {came} came; name one with --label")


_Row = tuple[int, str | None, str, float | None, float | None]


def _answers(shown: Sequence[Shown], control: str, *, columns: Columns) -> tuple[list[_Row], Names]:
    """Return who chose what of which item, when, and how long it took."""
    rows: list[_Row] = []
    told = Counter[str]()
    for item, task in enumerate(shown):
        for annotation in task.annotations:
            if annotation.was_cancelled or annotation.skipped:
                told["that were skipped or cancelled"] += 1
                continue
            told["that are marked as ground truth, read as any other"] += bool(annotation.ground_truth)
            label = _label(annotation, control, columns=columns, place=task.place)
            if label is None:
                told["in which nothing was chosen"] += 1
                continue
            at, seconds = _moment(annotation.created_at, task.place), annotation.lead_time
            rows.append((item, _annotator(annotation.completed_by, task.place), label, at, seconds))
    return rows, tuple(f"Annotations {what}: {number:,}." for what, number in told.items() if number)


def _label(annotation: Annotation, control: str, *, columns: Columns, place: str) -> str | None:
    """Return the choice, yes or no to a question, or None where nothing was chosen."""
    chosen = [name for result in annotation.result or () for name in _choices(result, control, place=place)]
    if columns.question is None:
        if len(chosen) > 1:
            raise BadInput(
                f"{place}: one choice an annotation was needed, but {listed(chosen)} came; ask for one of them with "
                "--question"
            )
        return chosen[0] if chosen else None
    if chosen:
        return YES if columns.question in chosen else NO
    if columns.blank is None:
        raise BadInput(
            f"{place}: a choice was needed for the question {columns.question}, but nothing was chosen; say with "
            "--blank whether that is yes, no or missing"
        )
    return {"yes": YES, "no": NO, "missing": None}[columns.blank]


def _choices(result: Result, control: str, *, place: str) -> list[str]:
    if result.type != "choices" or result.from_name != control:
        return []
    found = result.value.get("choices") if isinstance(result.value, dict) else None
    if not isinstance(found, list) or not all(isinstance(name, str) and name for name in found):
        raise BadInput(f"{place}: a list of choices was needed, but {found!r:.60} came; export it again")
    return found


def _annotator(who: Any, place: str) -> str | None:
    """Return the name of a person: the address where there is one, else the number."""
    if isinstance(who, dict):
        who = who.get("email") or who.get("id")
    if who is None or who == "":
        return None
    if isinstance(who, bool) or not isinstance(who, str | int):
        raise BadInput(f"{place}: the number or the address of an annotator was needed, but {who!r:.60} came; mend it")
    return str(who)


def _moment(said: str | float | None, place: str) -> float | None:
    """Return a time as seconds since 1970; one without a zone is in UTC, as Label Studio keeps them."""
    if said is None:
        return None
    try:
        if isinstance(said, int | float):
            return dt.datetime.fromtimestamp(said, dt.UTC).timestamp()
        moment = dt.datetime.fromisoformat(said)
        return round((moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp(), 6)
    except (ValueError, OverflowError, OSError):
        raise BadInput(f"{place}: a time was needed in created_at, but {said!r:.60} came; mend it") from None


def _table(rows: Sequence[_Row]) -> pl.DataFrame:
    """Return the answers; anonymous ones that say no time are counted."""
    import polars as pl

    kinds = {"item": pl.UInt32, "annotator": pl.String, "label": pl.String, "at": pl.Float64, "seconds": pl.Float64}
    table = pl.DataFrame(rows, schema=kinds, orient="row")
    timeless = [name for name in ("at", "seconds") if table[name].null_count() == len(table)]
    if not table["annotator"].null_count():
        return table.drop(timeless)
    nobody = pl.col("annotator").is_null() & pl.col("at").is_null() & pl.col("seconds").is_null()
    named = table.filter(~nobody).with_columns(count=pl.lit(1, pl.UInt32))
    same = (
        table.filter(nobody).group_by("item", "label", maintain_order=True).agg(pl.len().cast(pl.UInt32).alias("count"))
    )
    return pl.concat([named, same], how="diagonal").sort("item", maintain_order=True).drop(timeless)


# What was shown.


class _Known(msgspec.Struct, frozen=True):
    """Which key of the data holds what, the keys that are kept as JSON, and what was decided."""

    columns: dict[str, str]
    coded: list[str]
    facts: Names


def _ids(shown: Sequence[Shown], columns: Columns, *, source: str) -> tuple[list[str], str]:
    key = columns.id or (ITEM_KEY if all(ITEM_KEY in task.data for task in shown) else None)
    if key is not None:
        return [_id(task, key) for task in shown], f"{source}: ids are what the data say at {key}."
    if any(task.task is None for task in shown):
        return [str(number) for number in range(len(shown))], f"{source}: no ids, so tasks are numbered from 0."
    return [str(task.task) for task in shown], f"{source}: ids are the numbers of the tasks."


def _id(task: Shown, key: str) -> str:
    found = task.data.get(key)
    if not isinstance(found, str | int) or isinstance(found, bool):
        raise BadInput(f"{task.place}: an id was needed in its data, at {key}, but there is none; name another")
    return str(found)


def _items(shown: Sequence[Shown], ids: Sequence[str], *, columns: Columns) -> tuple[pl.DataFrame, _Known]:
    """Return the items with all that their data say, and which key holds what."""
    import polars as pl

    keys = list(dict.fromkeys(key for task in shown for key in task.data))
    table = {"id": pl.Series(ids, dtype=pl.String)}
    roles: dict[str, str] = {}
    for role in ("text", "split", "group", "source"):
        key = _key(getattr(columns, role), keys, usual=role, place=shown[0].place)
        if key is not None:
            roles[role] = key
            table[role] = pl.Series([_plain(task.data.get(key)) for task in shown], dtype=pl.String)
    files, facts = _files(shown, keys, columns=columns)
    if files is not None:
        table["files"] = pl.Series(files, dtype=pl.List(pl.String))
    kept, coded = _kept(shown, keys)
    return pl.DataFrame(table | _numbers(shown, columns) | kept), _Known(roles, coded, facts)


def _kept(shown: Sequence[Shown], keys: Sequence[str]) -> tuple[dict[str, pl.Series], list[str]]:
    """Return all data as they came, text as text and all else as JSON, and the keys of which that is so."""
    import polars as pl

    kept, coded = {}, []
    for key in keys:
        values = [task.data.get(key) for task in shown]
        if not all(value is None or isinstance(value, str) for value in values):
            coded.append(key)
            values = [None if value is None else msgspec.json.encode(value).decode() for value in values]
        kept[KEPT + key] = pl.Series(values, dtype=pl.String)
    return kept, coded


def _key(asked: str | None, keys: Sequence[str], *, usual: str, place: str) -> str | None:
    if asked is not None and asked not in keys:
        raise BadInput(f"{place}: data with {asked!r} were needed, but they have {listed(keys)}; name another")
    return asked or (usual if usual in keys else None)


def _plain(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()


def _numbers(shown: Sequence[Shown], columns: Columns) -> dict[str, pl.Series]:
    """Return numbers that describe the items: those asked for, else those of a table of numbers that was shown."""
    import polars as pl

    rows = [task.data if columns.numbers else task.data.get(NUMBERS_KEY) for task in shown]
    if not all(isinstance(row, dict) for row in rows):
        return {}
    names = columns.numbers or tuple(dict.fromkeys(name for row in rows for name in row or ()))
    return {
        NUMBER + name: pl.Series([_number(row, name, place=task.place) for task, row in zip(shown, rows, strict=True)])
        for name in names
    }


def _number(row: Any, name: str, *, place: str) -> float:
    found = row.get(name)
    if not isinstance(found, int | float) or isinstance(found, bool):
        raise BadInput(f"{place}: a number was needed at {name}, but there is none; leave it out of them")
    return float(found)


def _files(shown: Sequence[Shown], keys: Sequence[str], *, columns: Columns) -> tuple[list[list[str]] | None, Names]:
    """Return the paths of images, where they are paths and not addresses that only Label Studio knows."""
    chosen = columns.files or tuple(key for key in _IMAGE_KEYS if key in keys)[:1]
    for key in chosen:
        _key(key, keys, usual=key, place=shown[0].place)
    if not chosen:
        return None, ()
    every = [[name for key in chosen for name in _listed(task, key)] for task in shown]
    if columns.files is None and any(map(_is_address, chain.from_iterable(every))):
        return None, ("Images are at addresses of Label Studio, so the items have none here; say --files for paths.",)
    return [_paths(task, names) for task, names in zip(shown, every, strict=True)], ()


def _paths(task: Shown, names: Sequence[str]) -> list[str]:
    if len(names) > VIEWS:
        raise BadInput(f"{task.place}: at most {VIEWS} images were needed, but {len(names)} came; leave some out")
    return [inside(_local(name), called=task.place) for name in names]


def _listed(task: Shown, key: str) -> Iterator[str]:
    value = task.data.get(key)
    for name in value if isinstance(value, list) else [] if value is None else [value]:
        if not isinstance(name, str):
            raise BadInput(f"{task.place}: the path of an image was needed at {key}, but {name!r:.60} came; mend it")
        yield name


def _is_address(name: str) -> bool:
    return "://" in name or (name.startswith("/") and not name.startswith(ADDRESS)) or name.startswith("data:")


def _local(name: str) -> str:
    return unquote(name.removeprefix(ADDRESS)) if name.startswith(ADDRESS) else name
