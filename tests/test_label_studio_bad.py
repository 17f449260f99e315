"""Two thousand broken exports of Label Studio: each is read or refused with a sentence."""

import copy
import json
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relook.datasets import label_studio
from relook.datasets.label_studio import collection
from relook.errors import BadInput
from tests.test_label_studio import annotation, task

FILES = 2000
ODD: list[Any] = [
    *(
        None,
        True,
        0,
        -1,
        1.5,
        1e308,
        10**40,
        "",
        "x",
        "\0",
        "../../etc/passwd",
        "/etc/passwd",
        "9" * 5000,
        [],
        {},
        [[]],
    ),
    *(
        [None],
        {"": None},
        {"choices": None},
        {"choices": [1]},
        [{"result": 1}],
        "2024-13-45T99:00:00Z",
        "0001-01-01T00:00:00Z",
    ),
]
"""Values that somebody's script may have put in the place of others."""

Fault = Callable[[Any, np.random.Generator], bytes]


def corpus() -> list[Any]:
    timed = {"created_at": "2024-01-31T12:00:00Z", "lead_time": 2.5}
    tasks = [
        task(number, annotation("ab"[number % 2], who={"email": "ada@example.org"}, **timed)) for number in range(3)
    ]
    images = [task(number, annotation("a"), image=f"{number}.png", item=f"i{number}", n=number) for number in range(3)]
    rows = [{"text": "x", "id": number, "c": "a", "annotator": 1, **timed} for number in range(3)]
    old = [{"id": 1, "data": {"text": "x"}, "completions": [annotation("a")], "predictions": [{"result": []}]}]
    return [tasks, images, rows, old]


def places(made: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each value."""
    for key, value in made.items() if isinstance(made, dict) else enumerate(made) if isinstance(made, list) else ():
        yield (*before, key)
        yield from places(value, (*before, key))


def _inside(made: Any, way: tuple[Any, ...]) -> Any:
    for key in way:
        made = made[key]
    return made


def other_values(made: Any, rng: np.random.Generator) -> bytes:
    for _ in range(rng.integers(1, 4)):
        ways = list(places(made))
        way = ways[rng.integers(len(ways))]
        _inside(made, way[:-1])[way[-1]] = ODD[rng.integers(len(ODD))]
    return json.dumps(made).encode()


def missing(made: Any, rng: np.random.Generator) -> bytes:
    ways = list(places(made))
    way = ways[rng.integers(len(ways))]
    del _inside(made, way[:-1])[way[-1]]
    return json.dumps(made).encode()


def doubled(made: Any, rng: np.random.Generator) -> bytes:
    ways = [way for way in places(made) if isinstance(way[-1], int)]
    way = ways[rng.integers(len(ways))]
    around = _inside(made, way[:-1])
    around.insert(way[-1], copy.deepcopy(around[way[-1]]))
    return json.dumps(made).encode()


def other_bytes(made: Any, rng: np.random.Generator) -> bytes:
    told = bytearray(json.dumps(made).encode())
    for place in rng.integers(0, len(told), rng.integers(1, 6)):
        told[place] = rng.integers(256)
    return bytes(told)


def cut_off(made: Any, rng: np.random.Generator) -> bytes:
    told = json.dumps(made).encode()
    return told[: rng.integers(1, len(told))]


def deep(made: Any, rng: np.random.Generator) -> bytes:
    depth = int(rng.integers(10, 100_000))
    return json.dumps(made).encode().replace(b'"x"', b"[" * depth + b"]" * depth, 1)


def bare_words(made: Any, rng: np.random.Generator) -> bytes:
    words = [b"NaN", b"Infinity", b"-Infinity", b"undefined", b"'x'", b"0x10", b"1e999", b"// x\n1", b"1,"]
    return json.dumps(made).encode().replace(b'"x"', words[rng.integers(len(words))], 1)


FAULTS: list[Fault] = [other_values, other_values, missing, doubled, other_bytes, cut_off, deep, bare_words]


def ends(folder: Path, files: int) -> tuple[Counter[str], float]:
    """Return how often files were read and refused, and how long the slowest took."""
    rng, sound, path = np.random.default_rng(21), corpus(), folder / "in" / "x.json"
    path.parent.mkdir()
    found, slowest = Counter[str](), 0.0
    for number in range(files):
        path.write_bytes(FAULTS[number % len(FAULTS)](copy.deepcopy(sound[int(rng.integers(len(sound)))]), rng))
        start = time.perf_counter()
        try:
            collection(path).items.collect()
            found["read"] += 1
        except BadInput as error:
            found["refused" if str(error).startswith(str(path)) else f"without a place: {error}"] += 1
        slowest = max(slowest, time.perf_counter() - start)
    return found, slowest


@pytest.mark.slow
def test_two_thousand_broken_exports(tmp_path: Path) -> None:
    tracemalloc.start()
    try:
        found, slowest = ends(tmp_path, FILES)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert set(found) == {"read", "refused"}, found
    assert min(found.values()) > FILES // 20
    assert slowest < 10
    assert most < 1e9
    assert [path.name for path in tmp_path.rglob("*")] == ["in", "x.json"]


def test_a_reader_that_trusts_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: a reader that takes choices for what they claim to be raises something else."""
    monkeypatch.setattr(label_studio, "_choices", lambda result, *_, **__: result.value["choices"])
    with pytest.raises((TypeError, KeyError, AttributeError)):
        ends(tmp_path, 400)
