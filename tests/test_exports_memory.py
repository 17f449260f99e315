"""A million answers leave in little memory: what is known of them, and one block of rows after the other."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from relook import imported
from relook.collection import GIVEN, KEPT, Collection, Form

ITEMS, EACH, CLASSES, PEOPLE = 250_000, 4, 10, 500
MEGABYTES = 100

MEASURED = """
import sys
from pathlib import Path

import polars as pl

from relook import exports, imported
from relook.cleaned import cleaned

def status(name):
    return int(next(line for line in open("/proc/self/status") if line.startswith(name)).split()[1]) // 1024

made = imported.read(Path(sys.argv[1]))
pl.DataFrame({"a": [1]}).lazy().collect(engine="streaming")
found = made.collection()
before = status("VmRSS")
exports.write(cleaned(found), Path(sys.argv[2]), form=sys.argv[3])
print(status("VmHWM") - before)
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set with a million answers: a given label an item, and three of people."""
    random = np.random.default_rng(0)
    names = [f"class {number}" for number in range(CLASSES)]
    ids = pl.Series("id", [f"item {number}" for number in range(ITEMS)])
    nth, who = np.tile(np.arange(EACH), ITEMS), np.repeat(random.integers(0, PEOPLE, ITEMS), EACH)
    people = np.array([GIVEN, *(f"person {number}" for number in range(PEOPLE))])
    told = {
        "item": np.repeat(np.arange(ITEMS), EACH),
        "annotator": pl.Series(people[np.where(nth == 0, 0, 1 + (who + nth) % PEOPLE)]),
        "label": pl.Series(np.array(names)[random.integers(0, CLASSES, ITEMS * EACH)]),
        "at": 1e9 + np.arange(ITEMS * EACH),
        "seconds": random.random(ITEMS * EACH),
    }
    found = Collection(
        source="x.csv",
        form=Form("csv", columns={"id": "id", "label": "label"}),
        classes=tuple(names),
        ids=ids,
        items=pl.DataFrame({"id": ids, KEPT + "id": ids, KEPT + "label": [names[0]] * ITEMS}).lazy(),
        answers=pl.DataFrame(told),
    )
    return imported.write(found, tmp_path_factory.mktemp("million") / "set")[0].folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "suffix"),
    [("items", ".csv"), ("items", ".parquet"), ("answers", ".csv"), ("changes", ".jsonl"), ("source", ".csv")],
)
def test_a_million_answers_leave_in_little_memory(answers: Path, tmp_path: Path, form: str, suffix: str) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("memory: /proc was needed to measure it")
    words = [sys.executable, "-c", MEASURED, str(answers), str(tmp_path / f"out{suffix}"), form]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    assert int(ran.stdout) < MEGABYTES
