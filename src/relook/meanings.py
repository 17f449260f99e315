"""What the texts of labels mean: names of classes, numbers of them, yes and no, or no label."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

import msgspec

from relook.collection import in_order
from relook.errors import BadInput
from relook.sources import MISSING_TEXT, Answer, Columns, Names, counted, listed

NUMBER = re.compile(r"(-?(?:0|[1-9]\d*))(?:\.0*)?", re.ASCII)
"""The number of a class, also as pandas writes a column that has missing ones; 007 is text."""

YES, NO = "yes", "no"
"""The classes of a question, no first."""

CLASSES_MOST, LONGEST = 50_000, 1_000
"""So many classes there may be, with names so long."""

_KNOWN = {"yes": YES, "true": YES, "1": YES, "no": NO, "false": NO, "0": NO}
_UNSURE = "-1"

Texts = Mapping[str | None, int]
"""Texts of labels, and how often each comes; None where there is none."""


class Meaning(msgspec.Struct, frozen=True):
    """The class that each text stands for (None: no label), the classes in order, and what was decided."""

    names: Mapping[str | None, str | None]
    classes: Names
    facts: Names = ()
    settings: Mapping[str, str] = {}


def meaning(texts: Texts, columns: Columns, *, source: str) -> Meaning:
    """Return what the texts of labels mean.

    >>> meaning({"2.0": 5, "10": 1, None: 3}, Columns(), source="x.csv").names
    {'2.0': '2', '10': '10', None: None}
    """
    if columns.question is not None:
        return _answers(texts, columns, source=source)
    _check(texts, source=source)
    names = {text: None if _empty(text) else text for text in texts}
    facts: Names = ()
    labelled = [text for text in names.values() if text is not None]
    if labelled and all(map(NUMBER.fullmatch, labelled)):
        numbers, facts = _numbers(texts, columns, source=source)
        names |= numbers
    classes = columns.classes or in_order(sorted({name for name in names.values() if name is not None}))
    if not classes:
        raise BadInput(
            f"{source}: labels were needed, but no row has one; name their column with --label, or the classes that "
            "there will be with --classes"
        )
    without = sum(texts[text] for text, name in names.items() if name is None)
    left = (f"{source}: {counted(without, 'row')} without a label.",) if without else ()
    return Meaning(names, classes, (*facts, *left, *_alike(classes)))


def _check(texts: Texts, *, source: str) -> None:
    """Refuse what can be no labels: too many of them, or too long ones."""
    if len(texts) > CLASSES_MOST:
        raise BadInput(
            f"{source}: {CLASSES_MOST:,} classes at most were needed, but {len(texts):,} different labels came; is it "
            "the column of labels? name it with --label"
        )
    longest = max((text for text in texts if text), key=len, default="")
    if len(longest) > LONGEST:
        raise BadInput(
            f"{source}: labels of {LONGEST:,} characters at most were needed, but one of {len(longest):,} came; "
            "is it the column of labels? name it with --label"
        )


def _empty(text: str | None) -> bool:
    return text is None or text in MISSING_TEXT


def _numbers(texts: Texts, columns: Columns, *, source: str) -> tuple[dict[str | None, str | None], Names]:
    """Return classes for texts that are all whole numbers: those numbers, or the places of classes that were told."""
    told = columns.classes or ()
    numbers = {text: str(int(found[1])) for text in texts if text and (found := NUMBER.fullmatch(text))}
    pointed = [text for text, number in numbers.items() if text != number][:1]
    facts = [f"{source}: labels such as {text} are read as whole numbers." for text in pointed]
    unsure = {text for text, number in numbers.items() if number == _UNSURE and _UNSURE not in told}
    if unsure:
        facts.append(_missing(sum(texts[text] for text in unsure), columns, source=source))
        numbers = {text: number for text, number in numbers.items() if text not in unsure}
    names: dict[str | None, str | None] = dict.fromkeys(texts.keys() - numbers.keys())
    if not told or all(map(NUMBER.fullmatch, told)):
        return names | numbers, tuple(facts)
    facts.append(f"{source}: labels are numbers, the place of a class: 0 is {told[0]}.")
    return names | {text: _at(number, told, source=source) for text, number in numbers.items()}, tuple(facts)


def _at(number: str, told: Names, *, source: str) -> str:
    """Return the class at a place."""
    if not 0 <= int(number) < len(told):
        raise BadInput(
            f"{source}: a class was needed, 0 to {len(told) - 1} as --classes names {len(told)}, but {number} came; "
            "name all of them, in order"
        )
    return told[int(number)]


def _missing(unsure: int, columns: Columns, *, source: str) -> str:
    if columns.uncertain != "missing":
        raise BadInput(
            f"{source}: classes were needed, but {unsure:,} of -1 came, which is no label to some and a class to "
            "others; pass --uncertain missing, or name it with --classes"
        )
    return f"{source}: {unsure:,} of -1 taken as missing."


def _alike(classes: Names) -> Names:
    """Say which classes a reader could take for one."""
    seen: dict[str, str] = {}
    found = []
    for name in classes:
        plain = unicodedata.normalize("NFKC", name).strip().casefold()
        if plain in seen:
            found.append(f"{seen[plain]!r} and {name!r}")
        seen.setdefault(plain, name)
    return (f"Careful: {listed(found)} are two classes that look like one.",) if found else ()


def _answers(texts: Texts, columns: Columns, *, source: str) -> Meaning:
    """Return yes, no or missing for each text of a question's column."""
    _check(texts, source=source)
    blank, blanks = _taken_for(texts, "blank", said=columns.blank, place=f"{source}: column {columns.question}")
    unsure, unsures = _taken_for(texts, _UNSURE, said=columns.uncertain, place=f"{source}: column {columns.question}")
    names, taken = blank | unsure, blanks + unsures
    for text in texts:
        if text not in names and _mark(text) not in _KNOWN:
            raise BadInput(
                f"{source}: column {columns.question} must hold yes and no, 1 and 0, or true and false, but "
                f"{text!r} came {counted(texts[text], 'time')}; name another column"
            )
        names.setdefault(text, _KNOWN.get(_mark(text)))
    counts = {answer: sum(texts[text] for text in texts if names[text] == answer) for answer in (YES, NO, None)}
    fact = f"Question {columns.question}: {counts[YES]:,} yes, {counts[NO]:,} no, {counts[None]:,} missing"
    return Meaning(names, (NO, YES), ("; ".join([fact, *taken]) + ".",), _written(texts, names, columns=columns))


def _taken_for(
    texts: Texts, mark: str, *, said: Answer | None, place: str
) -> tuple[dict[str | None, str | None], list[str]]:
    """Return what each text with a mark that is neither yes nor no is taken for, and say how many there are."""
    found = [text for text in texts if _mark(text) == mark]
    count = sum(texts[text] for text in found)
    if found and said is None:
        option = "--blank" if mark == "blank" else "--uncertain"
        raise BadInput(
            f"{place} must hold yes and no, but {counted(count, 'cell')} of {mark} came; say what they are taken for: "
            f"{option} yes, no or missing"
        )
    answer = None if said == "missing" else said
    return dict.fromkeys(found, answer), [f"{count:,} of {mark} taken as {said}"] if found else []


def _mark(text: str | None) -> str:
    """Return what a cell says: one of the known marks, -1, blank, or itself."""
    if text is None or _empty(text):
        return "blank"
    number = NUMBER.fullmatch(text)
    return str(int(number[1])) if number else text.lower()


def _written(texts: Texts, names: Mapping[str | None, str | None], *, columns: Columns) -> dict[str, str]:
    """Return how the source writes yes and no: as it does most often."""
    found = {"question": str(columns.question)}
    for answer in (YES, NO):
        own = [text for text in texts if names[text] == answer and _KNOWN.get(_mark(text)) == answer]
        if own:
            found[answer] = str(max(own, key=lambda text: texts[text]))
    return found
