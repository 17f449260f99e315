"""People in the simulator and people with files make the same campaign; and one person can finish one alone."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest

from relook import campaigns, charter, retraining
from relook.datasets import digits
from relook.events import Event
from relook.rng import uniform
from relook.simulation import Simulation, play
from tests import desks
from tests.commands import command

PEOPLE, HOLD, BUDGET = 4, 25, 300
TIMES = ("at", "until", "seconds")
OF_THE_FOLDER = ("ids", "names", "lease_seconds")
"""What a start says about the folder that it lies in, which a simulation has none of."""


def timeless(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Return events without their times, and the start without what it says of its folder."""
    told = [msgspec.json.decode(msgspec.json.encode(event)) for event in events]
    return [{key: value for key, value in each.items() if key not in (*TIMES, *OF_THE_FOLDER)} for each in told]


def person(number: int, truth: Any) -> Callable[[int, int], int]:
    """Somebody who errs about one item in ten, each about others."""

    def answer(item: int, nth: int) -> int:
        errs = uniform(number, np.array([item]), 0)[0] < 0.1
        return int(truth[item] + errs) % 10

    return answer


@pytest.mark.slow
def test_four_people_in_the_simulator_and_four_files_give_the_same_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [
        "new",
        "fix",
        "--data",
        "digits",
        "--answers",
        str(BUDGET),
        "--people",
        str(PEOPLE),
        "--settle",
        "people:2",
    ]
    assert command(*words, "--selector", "lda", "--refit", "100", capsys=capsys).status == 0
    decided = charter.read(Path("fix"))
    found = campaigns.dataset(Path("fix"), decided)
    first = campaigns.trained(decided, found, labels=found.given)
    truth = digits.load().true_class
    people = [person(number, truth) for number in range(1, PEOPLE + 1)]
    for _ in range(BUDGET // (PEOPLE * HOLD)):
        for number, annotator in enumerate(people, start=1):
            name, file = f"person {number}", Path(f"{number}.csv")
            said = command("next", "fix", "-n", str(HOLD), "--for", name, "--to", str(file), capsys=capsys)
            assert said.status == 0, said.err
            sheet = pl.read_csv(file, infer_schema=False)
            given = [str(annotator(int(item), 0)) for item in sheet["id"]]
            sheet.with_columns(answer=pl.Series(given)).write_csv(file)
            said = command("answers", "fix", str(file), capsys=capsys)
            assert said.status == 0, said.out + said.err
            file.unlink()
    by_files = timeless(campaigns.looked(Path("fix"))[1])

    plan = Simulation(
        campaigns.policy(decided.rules),
        BUDGET,
        people,
        posteriors=first,
        update=retraining.trainer({"method": "lda"}).on(found),
        update_every=PEOPLE * HOLD,
        hold=HOLD,
    )
    by_simulator = timeless(play(found.given, plan).events)
    assert len(by_files) == len(by_simulator) == 1 + 3 + 2 * BUDGET
    assert [each["type"] for each in by_files].count("ranking") == 3
    assert by_files == by_simulator
    other = timeless(play(found.given, msgspec.structs.replace(plan, hold=1)).events)
    assert other != by_simulator, "the comparison can tell two campaigns apart"


def test_one_annotator_finishes_a_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = desks.at(tmp_path, monkeypatch, capsys)
    words = [
        "new",
        "fix",
        "--data",
        "pets",
        "--answers",
        "120",
        "--people",
        "1",
        "--settle",
        "one",
        "--policy",
        "paper",
    ]
    assert run(*words, "--selector", "lda").status == 0
    given = 0
    for number in range(20):
        said = run("next", "fix", "-n", "17", "--for", "Ada", "--to", f"{number}.csv")
        if "Nothing was handed out: no item is left that Ada" in said.out:
            break
        given += desks.fill(Path(f"{number}.csv"))
        assert run("answers", "fix", f"{number}.csv").status == 0
    assert given == desks.ITEMS
    said = run("status", "fix")
    assert "100 items, 100 of them answered: 100 settled." in said.out
    wrong = int((desks.GIVEN != desks.TRUE).sum())
    assert f"Of the settled, {wrong} had a wrong label ({wrong}.0%)." in said.out
    assert re.search(r"Ada +100 +0 +0 +100%", said.out)
    assert run("export", "fix", "--to", "clean.parquet", "--as", "items").status == 0
    clean = pl.read_parquet("clean.parquet")
    assert clean["final"].cast(pl.String).to_list() == [desks.CLASSES[label] for label in desks.TRUE]
    assert "its chain holds, and all that is kept follows from it" in run("log", "verify", "fix").out
