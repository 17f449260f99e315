"""A collection cannot exist in a bad state, and numbers its classes by name."""

from collections.abc import Callable

import polars as pl
import pytest

from relook.collection import GIVEN, KEPT, NUMBER, Collection, Form, in_order
from relook.errors import BadInput


def made(
    ids: list[str] | pl.Series,
    answers: dict[str, list[object]],
    classes: tuple[str, ...] = ("cat", "dog"),
    columns: dict[str, list[object]] | None = None,
    first_line: int | None = None,
) -> Collection:
    names = ids if isinstance(ids, pl.Series) else pl.Series(ids, dtype=pl.String)
    items = pl.DataFrame({"id": names} | (columns or {}))
    return Collection(
        source="pets.csv",
        form=Form("csv"),
        classes=classes,
        ids=names,
        items=items.lazy(),
        answers=pl.DataFrame({"item": [], "annotator": [], "label": []} | answers),
        first_line=first_line,
    )


def given(labels: list[str | None]) -> dict[str, list[object]]:
    return {"item": list(range(len(labels))), "annotator": [GIVEN] * len(labels), "label": list(labels)}


def test_one_given_label_an_item_is_one_class_an_item() -> None:
    found = made(["a", "b", "c"], {"item": [2, 0], "annotator": [GIVEN] * 2, "label": ["cat", "dog"]})
    assert found.labels().given.tolist() == [1, -1, 0]


def test_several_answers_are_counts() -> None:
    found = made(["a", "b"], {"item": [0, 0, 1], "annotator": ["Ada", "Bo", "Ada"], "label": ["dog", "cat", "dog"]})
    assert found.labels().given.tolist() == [[1, 1], [0, 1]]


def test_a_tie_is_decided_by_the_label_that_an_item_came_with() -> None:
    people: dict[str, list[object]] = {
        "item": [0, 0, 1, 1],
        "annotator": ["Ada", GIVEN, "Ada", "Bo"],
        "label": ["cat", "dog", "cat", "dog"],
    }
    labels = made(["a", "b"], people).labels()
    assert labels.given.tolist() == [[1, 1], [1, 1]]
    assert labels.label().tolist() == [1, -1]


def test_people_who_are_only_counted_are_counted() -> None:
    answers: dict[str, list[object]] = {
        "item": [0, 0],
        "annotator": [None, None],
        "label": ["cat", "dog"],
        "count": [3, 48],
    }
    assert made(["a"], answers).labels().given.tolist() == [[3, 48]]


def test_nobody_said_anything() -> None:
    assert made(["a", "b"], {}).labels().given.tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("columns", "content"),
    [({}, "names"), ({"text": ["x"]}, "text"), ({"files": [["a.png"]]}, "images"), ({NUMBER + "age": [3]}, "numbers")],
)
def test_content_is_told_by_the_columns(columns: dict[str, list[object]], content: str) -> None:
    assert made(["a"], given(["cat"]), columns=columns).content == content


def test_names_are_ordered_as_numbers_where_all_are() -> None:
    assert in_order(["b", "10", "9"]) == ("10", "9", "b")
    assert in_order(["10", "9"]) == ("9", "10")


BAD: dict[str, tuple[Callable[[], Collection], str]] = {
    "no item": (lambda: made([], {}), "needed, but it has not one; check"),
    "ids that are no text": (lambda: made(pl.Series([1]), {}), "ids must be text, but Int64 came; write them as text"),
    "an empty id": (lambda: made(["a", ""], {}, first_line=2), "line 3: an id was needed, but there is none; fill it"),
    "an id twice": (
        lambda: made(["a", "b", "a"], {}),
        "item 2: ids must differ, but 'a' stood in item 0 already; remove one",
    ),
    "a class twice": (lambda: made(["a"], {}, ("cat", "cat")), "classes must differ in name, but 'cat' comes twice"),
    "no class": (lambda: made(["a"], {}, ()), "names of classes were needed, but none came; say --classes"),
    "a class without a name": (lambda: made(["a"], {}, ("cat", "")), "were needed, but one without a name came"),
    "a label that is no class": (
        lambda: made(["a", "b"], given(["cat", "bird"]), first_line=2),
        r"line 3 \(id b\): a class was needed, cat, dog, but 'bird' came; mend it, or name all",
    ),
    "no label": (lambda: made(["a"], given([None])), "a class was needed, cat, dog, but None came"),
    "a person twice": (
        lambda: made(["a"], {"item": [0, 0], "annotator": ["Ada"] * 2, "label": ["cat", "dog"]}),
        "one answer a person was needed, but Ada gave 2; keep one of them",
    ),
    "a column that nobody knows": (
        lambda: made(["a"], given(["cat"]), columns={"age": [3]}),
        f"columns of items were needed, but age came; keep them as {KEPT}age",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_state_is_refused(what: str) -> None:
    make, message = BAD[what]
    with pytest.raises(BadInput, match=message):
        make()
