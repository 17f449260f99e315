"""Which error messages no test matches.

A message counts as matched where a string of the tests holds twelve characters in a row that stand in no other
message: what a test says about one error is then what that error says, and a message that is reworded leaves its test
behind. A message with nothing of its own (two places say the same) is matched by any twelve of its characters.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tests.house import Module

LENGTH = 12
ERRORS = {"BadInput", "BadLog", "NotAllowed", "MissingExtra", "RelookError"}


class Message(NamedTuple):
    """Where an error is made, and the parts of its sentence that are written out."""

    place: str
    parts: tuple[str, ...]


def messages(module: Module) -> Iterator[Message]:
    """Yield the messages of all errors of the tree that a module makes."""
    for called, node in module.calls():
        if called.split(".")[-1] in ERRORS and node.args:
            parts = tuple(_written(node.args[0]))
            yield Message(f"{module.around(node)}, line {node.lineno}", parts)


def _written(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr | ast.BinOp):
        for child in ast.iter_child_nodes(node):
            yield from _written(child)


def said_by_tests(sources: Iterable[str]) -> list[str]:
    """Return every string of the tests, with the marks of regular expressions taken out."""
    strings = []
    for source in sources:
        found = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
        strings += [re.sub(r"\\(.)", r"\1", value) for value in found if isinstance(value, str)]
    return strings


def unmatched(messages: Iterable[Message], said: Iterable[str]) -> list[str]:
    """Return the messages that no string of the tests matches."""
    every = [(message, _grams(message.parts)) for message in messages]
    count = Counter(gram for _, grams in every for gram in grams)
    expected = _grams(said)
    return [
        f"{message.place}: {'…'.join(message.parts)}"
        for message, grams in every
        if grams and not ({gram for gram in grams if count[gram] == 1} or grams) & expected
    ]


def _grams(texts: Iterable[str]) -> set[str]:
    return {text[at : at + LENGTH] for text in texts for at in range(len(text) - LENGTH + 1)}
