"""A folder of runs holds all that was put into it, appears whole, and says what is wrong with it."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from relook import BadInput, Crowd, Simulation, named, simulate
from relook.curves import Curve
from relook.runs import (
    QUANTITIES,
    Extra,
    Runs,
    confusions,
    described,
    gathered,
    paired,
    read_part,
    read_runs,
    recorded,
    replace_file,
    write_part,
    write_runs,
)
from tests import samples


@pytest.fixture(scope="module")
def whole() -> Runs:
    return samples.runs()


@pytest.fixture
def folder(whole: Runs, tmp_path: Path) -> Path:
    write_runs(tmp_path / "runs", whole)
    return tmp_path / "runs"


def same(one: Curve, other: Curve) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in QUANTITIES)


class TestFolder:
    def test_what_is_written_is_read(self, whole: Runs, folder: Path) -> None:
        back = read_runs(folder)
        assert back.rows == whole.rows
        assert back.resolved == whole.resolved
        assert back.extra == whole.extra
        assert back.curves.keys() == whole.curves.keys()
        assert all(same(back.curves[key], whole.curves[key]) for key in whole.curves)

    def test_equal_runs_make_equal_files(self, whole: Runs, folder: Path, tmp_path: Path) -> None:
        for path in write_runs(tmp_path / "again", whole):
            assert path.read_bytes() == (folder / path.name).read_bytes(), path.name

    def test_arrays_are_named_by_policy_seed_and_quantity_and_need_no_pickle(self, folder: Path) -> None:
        with np.load(folder / "curves.npz", allow_pickle=False) as archive:
            assert "paper|2|share_correct" in archive.files
            assert archive["random|2|share_correct"].shape == (61,)

    def test_a_rule_of_ones_own_keeps_its_name(self, whole: Runs, tmp_path: Path) -> None:
        name = "rules/mine.py:a|b"
        row = whole.rows[0] | {"policy": name}
        curve = whole.curves[whole.rows[0]["policy"], whole.rows[0]["seed"]]
        write_runs(tmp_path, Runs((row,), {(name, row["seed"]): curve}))
        assert same(read_runs(tmp_path).curves_of(name)[0], curve)

    def test_extra_may_be_missing(self, folder: Path) -> None:
        (folder / "extra.json").unlink()
        assert read_runs(folder).extra == Extra()

    def test_nothing_but_the_files_is_left(self, folder: Path) -> None:
        assert sorted(path.name for path in folder.iterdir()) == [
            "curves.npz",
            "extra.json",
            "resolved.json",
            "rows.json",
        ]

    def test_policies_keep_the_order_of_the_rows(self, whole: Runs) -> None:
        assert whole.policies == samples.POLICIES
        assert [row["seed"] for row in whole.rows_of("margin")] == [0, 1, 2]


def without(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def holding(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text, "utf-8")


def without_curve(folder: Path) -> None:
    with zipfile.ZipFile(folder / "curves.npz") as archive:
        parts = {name: archive.read(name) for name in archive.namelist() if name != "paper|1|clear_left.npy"}
    with zipfile.ZipFile(folder / "curves.npz", "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def doubled(folder: Path) -> None:
    rows = json.loads((folder / "rows.json").read_text("utf-8"))
    (folder / "rows.json").write_text(json.dumps([*rows, rows[0]]), "utf-8")


def without_seed(folder: Path) -> None:
    rows = json.loads((folder / "rows.json").read_text("utf-8"))
    del rows[3]["seed"]
    (folder / "rows.json").write_text(json.dumps(rows), "utf-8")


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (without("rows.json"), r"rows\.json was needed, with a list of rows, but there is no such file"),
        (without("curves.npz"), r"curves\.npz was needed, with the curves, but there is no such file"),
        (without("resolved.json"), r"resolved\.json was needed, with the resolved configuration"),
        (holding("rows.json", "[]"), r"rows\.json must hold at least one run, but it is empty"),
        (holding("rows.json", "{"), r"rows\.json must hold a list of rows, but it does not"),
        (holding("resolved.json", "3"), r"resolved\.json must hold the resolved configuration, but it does not"),
        (holding("extra.json", '{"items": "many"}'), r"extra\.json must hold what a report shows besides.*\$\.items"),
        (holding("curves.npz", "no archive"), r"curves\.npz must hold arrays, but it is broken"),
        (without_curve, r"must hold 6 equally long curves of paper, seed 1, but it does not"),
        (doubled, r"a policy and a seed make one run, but .*rows\.json has one twice"),
        (without_seed, r"rows\.json, row 3: a run's row was needed, but it is none .*seed"),
    ],
)
def test_a_damaged_folder_is_refused_in_one_sentence(
    folder: Path, damage: Callable[[Path], object], sentence: str
) -> None:
    damage(folder)
    with pytest.raises(BadInput, match=sentence):
        read_runs(folder)


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"a folder that `relook simulate` wrote was needed, but .*nowhere is none"):
        read_runs(tmp_path / "nowhere")


class TestParts:
    def test_a_part_is_kept_whole_and_gone_when_all_is_written(self, whole: Runs, tmp_path: Path) -> None:
        record = samples.records(samples.dataset(), policies=("margin",), seeds=1)[0]
        write_part(tmp_path, record, key="first")
        back = read_part(tmp_path, key="first")
        assert back is not None
        assert (back.row, back.outcome) == (record.row, record.outcome)
        assert same(back.curve, record.curve)
        assert read_part(tmp_path, key="second") is None
        write_runs(tmp_path, whole)
        assert read_part(tmp_path, key="first") is None

    def test_a_part_that_is_none_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "parts").mkdir()
        np.savez(tmp_path / "parts" / "first.npz", share_correct=np.zeros(3))
        with pytest.raises(BadInput, match=r"first\.npz must hold one finished run, but it does not"):
            read_part(tmp_path, key="first")


class TestReplaceFile:
    def test_a_file_is_replaced_whole(self, tmp_path: Path) -> None:
        path = tmp_path / "deep" / "file"
        replace_file(path, b"one")
        replace_file(path, b"two")
        assert path.read_bytes() == b"two"
        assert list(path.parent.iterdir()) == [path]

    def test_what_cannot_be_replaced_leaves_no_draft(self, tmp_path: Path) -> None:
        (tmp_path / "taken").mkdir()
        with pytest.raises(OSError, match="taken"):
            replace_file(tmp_path / "taken", b"one")
        assert [path.name for path in tmp_path.iterdir()] == ["taken"]


class TestPaired:
    def test_a_policy_is_compared_seed_by_seed(self, whole: Runs) -> None:
        found = {each.policy: each for each in paired(whole, "paper")}
        assert set(found) == {"default", "margin", "random", "oracle"}
        here, there = whole.rows_of("random"), whole.rows_of("paper")
        differences = [one["share_correct"] - other["share_correct"] for one, other in zip(here, there, strict=True)]
        assert found["random"].mean == pytest.approx(np.mean(differences))
        assert found["random"].wins == sum(each > 0 for each in differences)

    def test_the_interval_is_that_of_students_t(self) -> None:
        rows = [
            {"policy": policy, "seed": seed, "auc": value}
            for policy, values in (("a", [0.0, 0.0, 0.0]), ("b", [0.1, 0.2, 0.6]))
            for seed, value in enumerate(values)
        ]
        each = paired(Runs(tuple(rows), {}), "a", quantity="auc")[0]
        # 4.3027 is the two-sided 5 % point of Student's t with two degrees of freedom; the deviation is .2646.
        half = 4.3027 * 0.26458 / 3**0.5
        assert [each.low, each.high] == pytest.approx([0.3 - half, 0.3 + half], abs=1e-4)
        assert (each.wins, each.seeds) == (3, 3)

    def test_seeds_that_only_one_has_are_left_out(self, whole: Runs) -> None:
        rows = tuple(row for row in whole.rows if row["policy"] != "margin" or row["seed"] != 1)
        assert {each.policy: each.seeds for each in paired(Runs(rows, whole.curves), "paper")}["margin"] == 2

    def test_a_policy_that_nobody_simulated_is_refused(self, whole: Runs) -> None:
        with pytest.raises(BadInput, match=r"one of default, paper, .* was needed to compare with, but 'ce' came"):
            paired(whole, "ce")


class TestOutcomes:
    def test_confusions_count_every_labelled_item_once(self) -> None:
        small = samples.dataset()
        labels = small.given.majority().copy()
        labels[:3] = -1
        counted = confusions(samples.truth_of(small), labels)
        assert np.sum(counted["all"]) == len(small) - 3
        assert np.trace(np.array(counted["all"])) == (labels == small.true_class).sum()
        assert 0 < np.sum(counted["difficult"]) < np.sum(counted["all"])

    def test_outcomes_are_averages_over_a_policys_runs(self, whole: Runs) -> None:
        made = samples.records(samples.dataset(), policies=("random",))
        parts = [each.outcome for each in made if each.outcome is not None]
        mean = whole.extra.outcomes["random"]
        assert mean.kinds["was_right"] == pytest.approx(np.mean([part.kinds["was_right"] for part in parts]))
        assert np.allclose(mean.confusion["all"], np.mean([part.confusion["all"] for part in parts], axis=0))
        assert np.sum(mean.confusion["all"]) == pytest.approx(60)

    def test_a_run_given_twice_is_refused(self) -> None:
        made = samples.records(samples.dataset(), policies=("random",), seeds=1)
        with pytest.raises(BadInput, match="one run, but random, seed 0, came twice; keep one"):
            gathered([*made, *made])

    def test_a_set_without_truth_has_nothing_to_judge_a_run_by(self) -> None:
        small = samples.dataset()
        blind = msgspec.structs.replace(small, truth=None)
        run = simulate(small, Simulation(named("random"), 5, [Crowd(samples.truth_of(small), 0)]))
        with pytest.raises(BadInput, match="small: the truth was needed to judge a run, but this set has none"):
            recorded(run, blind)
        assert described(blind).given == {}
