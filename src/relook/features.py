"""What the columns of a data set of Hugging Face are, as its features tell: classes, images, and the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from relook.errors import BadInput
from relook.sources import Names

if TYPE_CHECKING:
    import pyarrow as pa

NO_CLASS = -1
"""Stands in a column of classes for no class, as `datasets` has it."""

PAGE_MOST = 1 << 20
"""So many bytes the page about a data set may have."""

Features = Mapping[str, Any]


class Kinds(msgspec.Struct, frozen=True):
    """What each column is: of classes by name, lists of classes, images, plain, or none of these."""

    classes: Mapping[str, Names]
    several: Mapping[str, Names]
    images: Names
    plain: Names
    others: Names
    told: str


def kinds(schema: pa.Schema, features: Features, *, source: str) -> Kinds:
    """Return what the columns are, as the features say, else by their types."""
    classes: dict[str, Names] = {}
    several: dict[str, Names] = {}
    images: list[str] = []
    plain: list[str] = []
    others: list[str] = []
    if not isinstance(features, Mapping):
        raise BadInput(
            f"{source}: features by the names of columns were needed, but {features!r:.60} came; save it again"
        )
    for field in schema:
        feature, kind = features.get(field.name), field.type
        _check_extension(field, source)
        if _is_image(feature, kind):
            images.append(field.name)
            continue
        (plain if _is_plain(kind) else others).append(field.name)
        if not _is_plain(kind):
            continue
        names, inner = _names(feature, field.name, source=source), _names(_inner(feature), field.name, source=source)
        if names is not None:
            _check_numbers(kind, field.name, source=source)
            classes[field.name] = names
        elif inner is not None and _element(kind) is not None:
            _check_numbers(_element(kind), field.name, source=source)
            several[field.name] = inner
    told = msgspec.json.encode({field.name: features[field.name] for field in schema if field.name in features})
    return Kinds(classes, several, tuple(images), tuple(plain), tuple(others), told.decode())


def _check_extension(field: pa.Field, source: str) -> None:
    import pyarrow as pa

    if any(isinstance(kind, pa.BaseExtensionType) for kind in _every(field.type)):
        raise BadInput(
            f"{source}: text, numbers and images were needed, but column {field.name} is of an extension type; remove "
            "the column"
        )


def _every(kind: pa.DataType) -> Iterator[pa.DataType]:
    yield kind
    for number in range(kind.num_fields):
        yield from _every(kind.field(number).type)


def _is_image(feature: Any, kind: pa.DataType) -> bool:
    """Say whether a column holds images, or lists of them: bytes, and what they were called."""
    import pyarrow.types as of

    held = _element(kind) or kind
    parts = {field.name: field.type for field in held} if of.is_struct(held) else {}
    there = set(parts) == {"bytes", "path"} and (of.is_binary(parts["bytes"]) or of.is_large_binary(parts["bytes"]))
    there = there and any(test(parts["path"]) for test in (of.is_string, of.is_large_string, of.is_null))
    if isinstance(feature, Mapping) and isinstance(feature.get("_type"), str):
        said = _inner(feature) if _inner(feature) is not None else feature
        return there and isinstance(said, Mapping) and said.get("_type") == "Image"
    return there


def _element(kind: pa.DataType) -> pa.DataType | None:
    """Return the type of what lists hold."""
    import pyarrow.types as of

    return kind.value_type if of.is_list(kind) or of.is_large_list(kind) else None


def _is_plain(kind: pa.DataType) -> bool:
    import pyarrow.types as of

    kind = _element(kind) or kind
    if of.is_dictionary(kind):
        kind = kind.value_type
    tests = (of.is_string, of.is_large_string, of.is_integer, of.is_floating, of.is_boolean, of.is_null)
    return any(test(kind) for test in (*tests, of.is_date, of.is_timestamp))


def _inner(feature: Any) -> Any:
    """Return the feature of what lists hold, in each of the ways in which `datasets` has written that."""
    if isinstance(feature, list) and len(feature) == 1:
        return feature[0]
    listed = isinstance(feature, Mapping) and feature.get("_type") in ("Sequence", "List", "LargeList")
    return feature.get("feature") if listed else None


def _names(feature: Any, column: str, *, source: str) -> Names | None:
    """Return the names of classes, where a feature is one of classes."""
    if not isinstance(feature, Mapping) or feature.get("_type") != "ClassLabel":
        return None
    names = feature.get("names")
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise BadInput(
            f"{source}: names of classes were needed in the features of column {column}, but {names!r:.60} came; save "
            "the set with ClassLabel(names=...)"
        )
    return tuple(names)


def _check_numbers(kind: Any, column: str, *, source: str) -> None:
    import pyarrow.types as of

    if not (of.is_integer(kind) or of.is_null(kind)):
        raise BadInput(
            f"{source}: numbers of classes were needed in column {column}, as its features say, but it is {kind}; save "
            "the set again"
        )


# Where features are told of.


def decoded(text: bytes, place: str) -> dict[str, Any]:
    """Return what a record of JSON says."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"{place}: a record in JSON was needed, but it is none ({error}); save the set again") from None


def of_page(path: Path) -> Features:
    """Return the features that the head of a data set's page tells of, where there is a page with one."""
    if not path.is_file() or path.stat().st_size > PAGE_MOST:
        return {}
    parts = path.read_text("utf-8", errors="replace").split("---\n", 2)
    if len(parts) < 3 or parts[0].strip():
        return {}
    head = _yaml(parts[1], path)
    about = head.get("dataset_info") if isinstance(head, dict) else None
    listed = about.get("features") if isinstance(about, dict) else None
    if not isinstance(listed, list):
        return {}
    return {str(one.get("name")): _of_entry(one) for one in listed if isinstance(one, dict)}


def _yaml(text: str, path: Path) -> Any:
    try:
        import yaml
    except ImportError:
        return {}
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise BadInput(f"{path}: a head in YAML was needed between its lines of ---, but it is none; mend it") from None


def _of_entry(entry: Mapping[str, Any]) -> Any:
    """Return a feature as the files write it, from how a page does."""
    several = next((entry[key] for key in ("list", "sequence") if key in entry), None)
    if several is not None:
        return {
            "_type": "List",
            "feature": _of_kind(several.get("dtype", several) if isinstance(several, dict) else several),
        }
    return _of_kind(entry.get("dtype"))


def _of_kind(kind: Any) -> Any:
    if kind == "image":
        return {"_type": "Image"}
    classes = kind.get("class_label") if isinstance(kind, dict) else None
    if not isinstance(classes, dict):
        return {"_type": "Value", "dtype": str(kind)}
    names = classes.get("names")
    if isinstance(names, dict):
        order = sorted(names, key=lambda number: int(number) if str(number).isdigit() else -1)
        names = [str(names[number]) for number in order]
    return {"_type": "ClassLabel", "names": names}
