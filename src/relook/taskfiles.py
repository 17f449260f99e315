"""Tasks of Label Studio as its exports hold them, JSON and JSON-MIN: what was shown, and what people marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from relook.errors import BadInput
from relook.sheets import text
from relook.sources import Columns, Names, listed

BESIDE = ("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement", "history")
"""What JSON-MIN says of an answer beside what was shown and what was chosen."""


class Result(msgspec.Struct, frozen=True):
    """What was done with one control, such as choices that were made."""

    type: str = ""
    from_name: str = ""
    to_name: str = ""
    value: Any = None


class Annotation(msgspec.Struct, frozen=True):
    """What one person did with a task, and when."""

    result: list[Result] | None = None
    completed_by: Any = None
    created_at: str | int | float | None = None
    lead_time: float | None = None
    was_cancelled: bool | None = None
    skipped: bool | None = None
    ground_truth: bool | None = None


class Task(msgspec.Struct, frozen=True):
    """A task as it stands in a file."""

    data: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    id: str | int | None = None
    annotations: list[Annotation] | None = None
    completions: list[Annotation] | None = None
    predictions: list[Any] | None = None


class Shown(msgspec.Struct, frozen=True):
    """What was shown as one item, where it stands in the file, and what was answered."""

    place: str
    task: str | None
    data: dict[str, Any]
    annotations: Sequence[Annotation]


def tasks_in(path: Path, columns: Columns) -> tuple[list[Shown], str, Names]:
    """Return the items with their annotations, and in which of its forms Label Studio wrote them."""
    try:
        entries = msgspec.json.decode(text(path)[0], type=list[msgspec.Raw])
        tasks = [_task(entry, f"{path}, entry {number}") for number, entry in enumerate(entries)]
        flat = bool(tasks) and all(task.data is msgspec.UNSET for task in tasks)
        found = _of_rows(entries, path, columns=columns) if flat else _of_tasks(tasks, path)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadInput(
            f"{path}: a list of tasks in JSON was needed, but it is none ({error}); export it again"
        ) from None
    if not found:
        raise BadInput(f"{path}: at least one task was needed, but the list is empty; export all tasks")
    predictions = sum(len(task.predictions or ()) for task in tasks)
    facts = (f"Predictions of models, which are no answers: {predictions:,}.",) if predictions else ()
    return found, "min" if flat else "tasks", facts


def _task(entry: msgspec.Raw, place: str) -> Task:
    try:
        return msgspec.json.decode(entry, type=Task)
    except msgspec.ValidationError as error:
        raise BadInput(f"{place}: a task was needed, but it is none ({error}); export it again") from None


def _of_tasks(tasks: Sequence[Task], path: Path) -> list[Shown]:
    found = []
    for number, task in enumerate(tasks):
        name = None if task.id is None else str(task.id)
        place = f"{path}, entry {number}" + (f" (task {name})" if name else "")
        if isinstance(task.data, msgspec.UnsetType):
            raise BadInput(f"{place}: a task with data was needed, but it has none; export all in one form")
        found.append(Shown(place, name, task.data, task.annotations or task.completions or ()))
    return found


def _of_rows(entries: Sequence[msgspec.Raw], path: Path, *, columns: Columns) -> list[Shown]:
    """Return the items of JSON-MIN, in which each row is an answer."""
    rows = [msgspec.json.decode(entry, type=dict[str, Any]) for entry in entries]
    control = columns.label or _between(rows, path)
    found: dict[str, Shown] = {}
    for number, row in enumerate(rows):
        place = f"{path}, entry {number}"
        data_of = {key: value for key, value in row.items() if key not in (*BESIDE, control)}
        name = str(row.get("id", number))
        chosen = row.get(control)
        value = {"choices": [chosen]} if isinstance(chosen, str) else chosen
        result = [] if chosen is None else [Result("choices", control, "", value)]
        answer = {"completed_by": row.get("annotator"), "result": result}
        kept = {key: row.get(key) for key in ("created_at", "lead_time")}
        try:
            annotation = msgspec.convert(msgspec.to_builtins(answer | kept), Annotation)
        except msgspec.ValidationError as error:
            raise BadInput(f"{place}: an answer was needed, but it is none ({error}); export it again") from None
        before = found.get(name, Shown(place, name, data_of, ()))
        if before.data != data_of:
            raise BadInput(f"{place}: what {before.place} shows was needed for task {name}, but it differs; mend one")
        found[name] = msgspec.structs.replace(before, annotations=[*before.annotations, annotation])
    return list(found.values())


def _between(rows: Sequence[Mapping[str, Any]], path: Path) -> str:
    """Return the key of what was chosen: Label Studio writes it after the id and before the annotator."""
    keys: dict[str, None] = {}
    for row in rows:
        order = list(row)
        if "id" in order and "annotator" in order:
            keys |= dict.fromkeys(order[order.index("id") + 1 : order.index("annotator")])
    if len(keys) != 1:
        raise BadInput(
            f"{path}: one key of what was chosen was needed in each row, but {listed(list(keys)) or 'none'} came; name "
            "it with --label"
        )
    return next(iter(keys))
