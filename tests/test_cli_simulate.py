"""`relook simulate` as a user types it: rows, comparisons, grids, rules of one's own, and going on after a kill."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from relook.config import Grid
from relook.runs import paired, read_runs
from relook.simulation import simulate as play
from relook.worlds import training
from tests.commands import Said, command
from tests.conftest import ROOT
from tests.test_experiment import small_world

KEYS = ["policy", "seed", "answers", "items", "share_correct", "auc", "total_variation", "clear_left", "difficult_left"]

Run = Callable[..., Said]


@pytest.fixture
def arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, made the current one, with a small set of one's own: counts, labels, probabilities, embeddings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    write_arrays(tmp_path)
    return tmp_path


def write_arrays(folder: Path) -> None:
    world = small_world(items=120)
    assert world.posteriors is not None
    counts = np.rint(world.truth * 50).astype(np.int64)
    rng = np.random.default_rng(5)
    np.save(folder / "counts.npy", counts)
    np.save(folder / "labels.npy", world.dataset.given.given)
    np.save(folder / "p.npy", world.posteriors.values[0])
    np.save(folder / "clean.npy", world.truth)
    np.save(folder / "embeddings.npy", world.truth @ rng.normal(size=(4, 6)) + rng.normal(0, 0.1, (120, 6)))
    np.savez(folder / "p.npz", p=world.posteriors.values[0])
    np.savez(folder / "two.npz", a=np.zeros(2), b=np.zeros(2))


OWN = ("--truth", "counts.npy", "--labels", "labels.npy")
MODEL = ("--probabilities", "p.npy")


@pytest.fixture
def run(arrays: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    return lambda *words: command("simulate", *words, capsys=capsys)


def rows_of(path: Path) -> list[dict[str, Any]]:
    return list(json.loads(path.read_text("utf-8")))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# What is written and said.


def test_a_row_a_run_with_the_keys_that_are_promised(run: Run, arrays: Path) -> None:
    said = run(
        *OWN, *MODEL, "--policy", "default,paper,margin", "--answers", "70", "--seeds", "3", "--json", "out.json"
    )
    assert said.status == 0, said.err
    found = rows_of(arrays / "out.json")
    assert [list(row) for row in found] == [KEYS] * 9
    assert [(row["policy"], row["seed"]) for row in found] == [
        (policy, seed) for policy in ("default", "paper", "margin") for seed in range(3)
    ]
    assert {row["answers"] for row in found} == {70}
    (folder,) = (arrays / "runs").iterdir()
    assert found == rows_of(folder / "rows.json")
    assert {path.name for path in folder.iterdir()} == {
        *("rows.json", "curves.npz", "resolved.json", "extra.json", "curves.svg", "curves.png", "report.html")
    }
    assert said.out.splitlines()[-1] == f"Next: relook cite runs/{folder.name}"
    assert f"Wrote runs/{folder.name}/rows.json" in said.out
    assert "counts: 120 items, 4 classes;" in said.out
    assert re.search(r"^9 runs in [\d.]+ s\.$", said.out, re.MULTILINE)


def test_rows_are_those_of_the_simulator(run: Run, arrays: Path) -> None:
    from relook import Crowd, Dataset, Labels, Posteriors, Setting, Simulation, named

    run(
        *OWN,
        *MODEL,
        "--policy",
        "default,random,minimal",
        "--answers",
        "50",
        "--seeds",
        "2",
        "--seed",
        "7",
        "--to",
        "r",
    )
    given = Labels(np.load("labels.npy"), 4)
    dataset = Dataset("x", tuple("abcd"), tuple(map(str, range(120))), given, np.load("counts.npy"))
    assert dataset.truth is not None
    for row in rows_of(arrays / "r" / "rows.json"):
        if row["policy"] != "minimal":
            policy = named(row["policy"], Setting(truth=dataset.truth, seed=row["seed"]))
            people = [Crowd(dataset.truth, row["seed"])]
            plan = Simulation(policy, 50, people, Posteriors(np.load("p.npy")), seed=row["seed"])
            assert row == play(dataset, plan).row()
    assert {row["seed"] for row in rows_of(arrays / "r" / "rows.json")} == {7, 8}


def test_what_the_results_depend_on_lies_beside_them(run: Run, arrays: Path) -> None:
    import relook

    run(*OWN, *MODEL, "--answers", "30", "--seeds", "2", "--to", "r", "--policy", "paper,random")
    resolved = json.loads((arrays / "r" / "resolved.json").read_text("utf-8"))
    assert resolved["configuration"]["policy"] == ["paper", "random"]
    assert resolved["case"]["answers"] == 30
    assert resolved["seeds"] == [0, 1]
    assert resolved["versions"]["relook"] == relook.__version__
    assert {"given", "truth", "probabilities"} <= set(resolved["inputs"])
    assert not re.search(r"20\d\d-\d\d-\d\d", json.dumps(resolved)), "no clock in what is hashed"


def test_the_folder_is_named_by_what_the_results_depend_on(
    run: Run, arrays: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (*OWN, "--answers", "30", "--seeds", "2", "--policy", "random")
    run(*words)
    run(*words)
    (first,) = (arrays / "runs").iterdir()
    (arrays / "elsewhere").mkdir()
    write_arrays(arrays / "elsewhere")
    monkeypatch.chdir(arrays / "elsewhere")
    run(*words, "--jobs", "1")
    assert [path.name for path in (arrays / "elsewhere" / "runs").iterdir()] == [first.name]
    np.save("labels.npy", (np.load("labels.npy") + 1) % 4)
    run(*words)
    assert len(list((arrays / "elsewhere" / "runs").iterdir())) == 2


def test_labels_without_an_error_need_no_answers(run: Run, arrays: Path) -> None:
    np.save("labels.npy", np.load("counts.npy").argmax(1))
    said = run(*OWN, *MODEL, "--answers", "paper-code", "--seeds", "2", "--json", "out.json", "--against", "paper")
    assert said.status == 0, said.err
    for row in rows_of(arrays / "out.json"):
        assert (row["answers"], row["items"], row["share_correct"], row["auc"]) == (0, 0, 1.0, 1.0)


def test_more_answers_than_useful_stop_when_nothing_is_left_and_it_is_said(run: Run, arrays: Path) -> None:
    said = run(*OWN, *MODEL, "--policy", "paper,oracle", "--answers", "2_000", "--seeds", "2", "--json", "out.json")
    answers = {
        policy: [r["answers"] for r in rows_of(arrays / "out.json") if r["policy"] == policy]
        for policy in ("paper", "oracle")
    }
    assert max(answers["paper"]) < 2_000
    assert f"paper stopped after {max(answers['paper']):,} answers of 2,000: nothing was left to ask." in said.out
    assert answers["oracle"] == [2_000, 2_000]
    assert "oracle stopped" not in said.out


def test_budgets_by_rule(run: Run, arrays: Path) -> None:
    wrong = int((np.load("labels.npy") != np.load("counts.npy").argmax(1)).sum())
    said = run(*OWN, "--policy", "random", "--seeds", "2")
    assert f"{min(3 * wrong, 120):,} answers, 2 seeds" in said.out
    said = run(*OWN, "--policy", "random,oracle", "--seeds", "2", "--answers", "oracle")
    need = re.search(r"([\d,]+) answers, 2 seeds", said.out)
    assert need is not None
    assert 2 * wrong <= int(need[1]) < 3 * wrong


def test_against_a_policy_says_paired_differences_and_wins(run: Run, arrays: Path) -> None:
    said = run(
        *OWN, *MODEL, "--policy", "random,oracle", "--against", "paper", "--answers", "60", "--seeds", "4", "--to", "r"
    )
    runs = read_runs(arrays / "r")
    assert runs.policies == ("random", "oracle", "paper")
    for each in paired(runs, "paper"):
        assert each.low is not None
        assert each.high is not None
        shown = f"{100 * each.mean:+.2f} ({100 * each.low:+.2f}, {100 * each.high:+.2f})"
        line = next(line for line in said.out.splitlines() if shown in line)
        assert line.split()[0] == each.policy
        assert line.rstrip().endswith(f"{each.wins}/4")
    single = run(*OWN, *MODEL, "--policy", "default", "--against", "paper", "--answers", "60", "--seeds", "1")
    assert "One seed shows no interval; --seeds 5 gives one to default minus paper." in single.out


def test_the_model_upper_bound_is_drawn_beside_the_policies(run: Run, arrays: Path) -> None:
    run(
        *OWN, *MODEL, "--policy", "paper,random", "--bound", "clean.npy", "--answers", "60", "--seeds", "2", "--to", "r"
    )
    run(*OWN, "--probabilities", "clean.npy", "--policy", "paper", "--answers", "60", "--seeds", "2", "--to", "c")
    runs, clean = read_runs(arrays / "r"), read_runs(arrays / "c")
    assert runs.policies == ("paper", "random", "model upper bound")
    assert runs.extra.bounds == ("model upper bound",)
    assert [row | {"policy": "paper"} for row in runs.rows_of("model upper bound")] == clean.rows_of("paper")
    assert "model upper bound" in (arrays / "r" / "curves.svg").read_text("utf-8")
    assert "model upper bound" in (arrays / "r" / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    "words",
    [
        ("--annotators", "3"),
        ("--protocol", "paper-code"),
        ("--settle", "people:2"),
        ("--settle", "confidence:.9"),
        ("--batch", "10"),
    ],
    ids=" ".join,
)
def test_options_of_the_simulation_change_what_comes(run: Run, arrays: Path, words: tuple[str, ...]) -> None:
    run(*OWN, *MODEL, "--policy", "default,paper", "--answers", "90", "--seeds", "3", "--to", "plain")
    said = run(*OWN, *MODEL, "--policy", "default,paper", "--answers", "90", "--seeds", "3", "--to", "other", *words)
    assert said.status == 0, said.err
    assert rows_of(arrays / "plain" / "rows.json") != rows_of(arrays / "other" / "rows.json")


def test_embeddings_are_fitted_out_of_sample_and_kept(run: Run, arrays: Path) -> None:
    from relook import Labels
    from relook.selectors import FULL, named

    words = (*OWN, "--embeddings", "embeddings.npy", "--policy", "paper", "--answers", "40", "--seeds", "2")
    said = run(*words, "--to", "r")
    assert "Class probabilities: fitted as by relook rank" in said.out
    (kept,) = (arrays / "r").glob("posteriors-*.npy")
    fitted = named(FULL)(np.load("embeddings.npy"), Labels(np.load("labels.npy"), 4))
    assert np.array_equal(np.load(kept), fitted.values)
    np.save("q.npy", fitted.values[0])
    run(*OWN, "--probabilities", "q.npy", "--policy", "paper", "--answers", "40", "--seeds", "2", "--to", "q")
    assert rows_of(arrays / "r" / "rows.json") == rows_of(arrays / "q" / "rows.json")


def test_kept_posteriors_that_are_broken_are_not_used(run: Run, arrays: Path) -> None:
    words = (
        *OWN,
        "--embeddings",
        "embeddings.npy",
        "--policy",
        "paper",
        "--answers",
        "40",
        "--seeds",
        "2",
        "--to",
        "r",
    )
    run(*words)
    (kept,) = (arrays / "r").glob("posteriors-*.npy")
    kept.write_bytes(kept.read_bytes()[:500])
    said = run(*words)
    assert said.status == 2
    assert re.search(r"kept posteriors were needed, but it is broken \(.*\); remove it", said.err)
    kept.unlink()
    assert run(*words).status == 0


def test_one_array_of_an_npz_file_is_the_array(run: Run, arrays: Path) -> None:
    for name in ("p.npy", "p.npz"):
        run(*OWN, "--pred-probs", name, "--policy", "paper", "--answers", "40", "--seeds", "1", "--to", name[2:])
    assert rows_of(arrays / "npy" / "rows.json") == rows_of(arrays / "npz" / "rows.json")


def test_truth_may_be_one_class_an_item(run: Run, arrays: Path) -> None:
    np.save("classes.npy", np.load("counts.npy").argmax(1))
    said = run(
        "--truth",
        "classes.npy",
        "--labels",
        "labels.npy",
        *MODEL,
        "--policy",
        "oracle",
        "--seeds",
        "1",
        "--json",
        "o.json",
    )
    assert said.status == 0, said.err
    assert rows_of(arrays / "o.json")[0]["share_correct"] == 1.0


# Rules of one's own.

MINE = """
import numpy as np

calls = []

def score(rows):
    return -rows.mean[np.arange(len(rows)), rows.label]

def centred(rows):
    return rows.mean.max(1) - rows.mean.max(1).mean()

centred.rowwise = False
"""


def test_a_rule_of_ones_own_is_compared_with_the_papers(run: Run, arrays: Path) -> None:
    (arrays / "mine.py").write_text(MINE, "utf-8")
    said = run(
        *OWN, *MODEL, "--policy", "mine.py:score,self-confidence", "--against", "paper", "--answers", "60", "--to", "r"
    )
    assert said.status == 0, said.err
    assert "mine.py:score looks at one row at a time: yes." in said.out
    runs = read_runs(arrays / "r")
    assert [row | {"policy": ""} for row in runs.rows_of("mine.py:score")] == [
        row | {"policy": ""} for row in runs.rows_of("self-confidence")
    ]
    assert runs.resolved["inputs"]["rules"].keys() == {"mine.py:score"}
    said = run(*OWN, *MODEL, "--policy", "mine.py:centred", "--answers", "60", "--seeds", "1", "--batch", "20")
    assert "mine.py:centred looks at one row at a time: no." in said.out


# Grids.

GRID = """
truth = "counts.npy"
labels = "labels.npy"
probabilities = "p.npy"
policy = ["default", "paper"]
answers = [30, "oracle"]
settle = ["paper", "people:2"]
batch = [1, 10]
seeds = [4, 9]
"""


def test_a_grid_is_every_combination(run: Run, arrays: Path) -> None:
    (arrays / "grid.toml").write_text(GRID, "utf-8")
    said = run("--config", "grid.toml", "--to", "g", "--json", "out.json")
    assert said.status == 0, said.err
    found = rows_of(arrays / "out.json")
    assert len(found) == 2 * 2 * 2 * 2 * 2
    assert len({(r["policy"], r["seed"], r["budget"], r["settle"], r["batch"]) for r in found}) == len(found)
    assert found == rows_of(arrays / "g" / "rows.json")
    folders = [path for path in (arrays / "g").iterdir() if path.is_dir()]
    assert len(folders) == 8
    single = run("--config", "grid.toml", "--answers", "30", "--settle", "paper", "--batch", "1", "--to", "s")
    assert single.status == 0, single.err
    assert rows_of(arrays / "s" / "rows.json") == rows_of(
        arrays / "g" / "answers-30,settle-paper,batch-1" / "rows.json"
    )


def test_a_run_can_be_had_again_from_its_resolved_configuration(run: Run, arrays: Path) -> None:
    run(*OWN, *MODEL, "--policy", "default,random", "--answers", "40", "--seeds", "2", "--to", "r")
    said = run("--config", "r/resolved.json", "--to", "again")
    assert said.status == 0, said.err
    assert (arrays / "again" / "rows.json").read_bytes() == (arrays / "r" / "rows.json").read_bytes()
    assert (arrays / "again" / "resolved.json").read_bytes() == (arrays / "r" / "resolved.json").read_bytes()


# Side by side, and going on.


def started(folder: Path, *words: str) -> "subprocess.Popen[str]":
    there = os.environ | {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "120"}
    program = "import sys; from relook.cli import main; sys.argv[0] = 'relook'; main()"
    return subprocess.Popen(
        [sys.executable, "-c", program, "simulate", *words],
        cwd=folder,
        env=there,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_jobs_side_by_side_give_equal_files(run: Run, arrays: Path) -> None:
    words = (
        *OWN,
        *MODEL,
        "--policy",
        "default,paper,random",
        "--bound",
        "clean.npy",
        "--answers",
        "70",
        "--seeds",
        "3",
    )
    run(*words, "--to", "one")
    beside = started(arrays, *words, "--to", "two", "--jobs", "2")
    out, err = beside.communicate(timeout=60)
    assert beside.returncode == 0, err
    assert "12 runs in" in out
    for name in ("rows.json", "curves.npz", "resolved.json", "extra.json", "curves.svg"):
        assert (arrays / "one" / name).read_bytes() == (arrays / "two" / name).read_bytes(), name


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_killed_in_the_middle_it_goes_on_where_it_was(run: Run, arrays: Path, jobs: str) -> None:
    (arrays / "slow.py").write_text(
        "import time\n\ndef score(rows):\n    time.sleep(.01)\n    return rows.mean.max(1)\n", "utf-8"
    )
    words = (*OWN, *MODEL, "--policy", "slow.py:score,random", "--answers", "20", "--seeds", "15")
    run(*words, "--to", "whole")
    going = started(arrays, *words, "--to", "cut", "--jobs", jobs)
    parts = arrays / "cut" / "parts"
    deadline = time.monotonic() + 60
    while len(list(parts.glob("*.npz"))) < 5:
        assert going.poll() is None, going.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.002)
    os.killpg(going.pid, signal.SIGKILL)
    going.communicate()
    there = {path.name: path.stat().st_mtime_ns for path in parts.glob("*.npz")}
    assert 5 <= len(there) < 30
    assert not (arrays / "cut" / "rows.json").exists()
    noted = _noting(arrays)
    said = run(*words, "--to", "cut")
    assert said.status == 0, said.err
    assert f"{30 - len(there)} runs in" in said.out
    assert f"{len(there)} were there already." in said.out
    assert len(noted()) == 30 - len(there), "no run is played twice"
    for name in ("rows.json", "curves.npz", "extra.json"):
        assert (arrays / "whole" / name).read_bytes() == (arrays / "cut" / name).read_bytes(), name
    assert not parts.exists()
    before = files(arrays / "cut")
    said = run(*words, "--to", "cut")
    assert "0 runs in" in said.out
    assert len(noted()) == 30 - len(there)
    assert files(arrays / "cut") == before


def _noting(folder: Path) -> Callable[[], list[str]]:
    """Have every run that is played from now on noted."""
    from relook.experiment import Play

    plain, noted = Play.__call__, []

    def call(self: Play, job: Any) -> Any:
        noted.append(job.key())
        return plain(self, job)

    patch = pytest.MonkeyPatch()
    patch.setattr(Play, "__call__", call)
    _undo.append(patch)
    return lambda: noted


_undo: list[pytest.MonkeyPatch] = []


@pytest.fixture(autouse=True)
def put_back() -> Any:
    yield
    while _undo:
        _undo.pop().undo()


def test_stopped_by_hand_it_says_what_is_kept(run: Run, arrays: Path) -> None:
    (arrays / "slow.py").write_text(
        "import time\n\ndef score(rows):\n    time.sleep(.03)\n    return rows.mean.max(1)\n", "utf-8"
    )
    going = started(
        arrays, *OWN, *MODEL, "--policy", "slow.py:score", "--answers", "20", "--seeds", "40", "--to", "cut"
    )
    while len(list((arrays / "cut" / "parts").glob("*.npz"))) < 2:
        time.sleep(0.01)
    os.killpg(going.pid, signal.SIGINT)
    out, err = going.communicate(timeout=60)
    assert going.returncode == 130, err
    kept = re.search(r"Stopped: (\d+) of 40 runs are kept in cut; the same command goes on from there.", out)
    assert kept is not None, out
    assert int(kept[1]) == len(list((arrays / "cut" / "parts").glob("*.npz")))
    assert "Traceback" not in err


# Bad input.


def bad(folder: Path) -> None:
    """Write what is wrong in one way or another."""
    p, labels = np.load(folder / "p.npy"), np.load(folder / "labels.npy")
    np.save(folder / "logits.npy", np.log(p))
    nan = p.copy()
    nan[17, 1] = np.nan
    np.save(folder / "nan.npy", nan)
    np.save(folder / "short.npy", p[:-1])
    np.save(folder / "narrow.npy", p[:, :3] / p[:, :3].sum(1, keepdims=True))
    np.save(folder / "flat.npy", p[:, 0])
    np.save(folder / "high.npy", np.where(np.arange(120) == 7, 4, labels))
    np.save(folder / "few.npy", labels[:-1])
    np.save(folder / "empty.npy", labels[:0])
    np.save(folder / "words.npy", np.array(["cat"] * 120))
    np.save(folder / "scalar.npy", np.array(3))
    np.save(folder / "objects.npy", np.array([{}, None], object), allow_pickle=True)
    np.savez(folder / "objects.npz", p=np.array([{}, None], object))
    negative = np.load(folder / "counts.npy")
    negative[3, 2] = -1
    np.save(folder / "negative.npy", negative)
    (folder / "text.npy").write_text("no array", "utf-8")
    (folder / "broken.py").write_text("def score(rows):\n    return undefined_name\n", "utf-8")
    (folder / "bad.toml").write_text("policies = ['paper']\n", "utf-8")
    (folder / "torn.toml").write_text("policy = [\n", "utf-8")
    (folder / "a-file").write_text("", "utf-8")


WRONG: list[tuple[tuple[str, ...], str]] = [
    ((), "simulate: --dataset, or --truth and --labels were needed, but none came; try --dataset digits"),
    (("--truth", "counts.npy"), "simulate: --dataset, or --labels was needed"),
    (("--labels", "labels.npy"), "simulate: --dataset, or --truth was needed"),
    (("--dataset", "digits", *OWN), "simulate: digits brings its own truth, but --truth came as well"),
    (("--dataset", "digitz"), "noisy_cxr, pneumoniamnist was needed, but 'digitz' came"),
    ((*OWN, *MODEL, "--tau", "2"), "simulate: --tau belongs to --dataset cifar10h"),
    (("--dataset", "digits", "--subset", "all"), "simulate: --subset belongs to --dataset cifar10h"),
    ((*OWN, *MODEL, "--embeddings", "p.npy"), "simulate: --probabilities or --embeddings was needed, but both came"),
    (OWN, "counts: default, paper needs class probabilities, but none came; pass --probabilities, or --embeddings"),
    ((*OWN, "--policy", "random", "--settle", "confidence:.9"), "counts: confidence:.9 needs class probabilities"),
    (
        (*OWN, "--probabilities", "nowhere.npy"),
        "--probabilities nowhere.npy: a file was needed, but there is none of this name",
    ),
    ((*OWN, "--probabilities", "text.npy"), "--probabilities text.npy: an array was needed, but this is no npy file"),
    (
        (*OWN, "--probabilities", "objects.npy"),
        "--probabilities objects.npy: numbers or text were needed, but it holds Python objects",
    ),
    ((*OWN, "--probabilities", "two.npz"), "--probabilities two.npz: a single array was needed, but it holds a, b"),
    (
        (*OWN, "--probabilities", "objects.npz"),
        "--probabilities objects.npz: numbers or text were needed, but it holds Python objects",
    ),
    ((*OWN, "--probabilities", "logits.npy"), "--probabilities logits.npy: posteriors: .* were logits passed?"),
    ((*OWN, "--probabilities", "nan.npy"), "--probabilities nan.npy: posteriors: .* model 0, item 17 holds"),
    ((*OWN, "--probabilities", "short.npy"), "--probabilities: a row for each of 120 items was needed, but 119 came"),
    ((*OWN, "--probabilities", "narrow.npy"), "--probabilities narrow.npy: 4 classes were needed, but 3 columns came"),
    (
        (*OWN, "--probabilities", "flat.npy"),
        r"--probabilities: a row for each item was needed, but shape \(120,\) came; pass a table",
    ),
    (
        (*OWN, "--probabilities", "scalar.npy"),
        "--probabilities scalar.npy: a row for each item was needed, but a single",
    ),
    ((*OWN, *MODEL, "--bound", "short.npy"), "--bound: a row for each of 120 items was needed, but 119 came"),
    (
        ("--truth", "counts.npy", "--labels", "high.npy", *MODEL),
        "labels: classes 0 to 3 were needed .* but item 7 has 4",
    ),
    (
        ("--truth", "counts.npy", "--labels", "few.npy", *MODEL),
        "counts: 119 items have labels, but ids|truth holds 120",
    ),
    (
        ("--truth", "counts.npy", "--labels", "empty.npy", *MODEL),
        "labels: at least one item was needed, but the set is empty",
    ),
    (("--truth", "counts.npy", "--labels", "words.npy", *MODEL), "labels: whole numbers were needed, but <U3 came"),
    (("--truth", "negative.npy", "--labels", "labels.npy", *MODEL), "truth: rows must hold shares or counts .* item 3"),
    ((*OWN, *MODEL, "--policy", "papre"), "policy: one of .* was needed, but 'papre' came; check the spelling"),
    ((*OWN, *MODEL, "--against", "papre"), "policy: one of .* was needed, but 'papre' came"),
    ((*OWN, *MODEL, "--policy", "mine.py:score"), r"policy: mine.py could not be loaded \(FileNotFoundError"),
    (
        (*OWN, *MODEL, "--policy", "broken.py:score"),
        r"policy broken.py:score: .* failed \(NameError: .*, broken.py line 2\)",
    ),
    ((*OWN, *MODEL, "--policy", "broken.py:scores"), "policy: broken.py has nothing called scores; it has score"),
    ((*OWN, *MODEL, "--policy", "bald"), "policy bald: probabilities of several models"),
    ((*OWN, *MODEL, "--answers", "lots"), "simulate: answers: a number of answers, paper-code or oracle was needed"),
    ((*OWN, *MODEL, "--answers", "-5"), "answers: whole numbers of 1 or more were needed, but -5 came"),
    ((*OWN, *MODEL, "--answers", "0"), "answers: whole numbers of 1 or more were needed, but 0 came"),
    ((*OWN, *MODEL, "--answers", "oracle", "--settle", "confidence:.9"), "answers: oracle counts votes"),
    ((*OWN, *MODEL, "--seeds", "0"), "seeds: at least 1 run a policy was needed, but 0 came"),
    ((*OWN, *MODEL, "--settle", "someone"), "settle: paper, one, people:2, margin:2 or confidence:.95 were needed"),
    ((*OWN, *MODEL, "--annotators", "1"), "annotators: a panel of at least 2 people was needed, but 1 came"),
    ((*OWN, *MODEL, "--jobs", "0"), "jobs: at least 1 at a time was needed, but 0 came"),
    (
        (*OWN, *MODEL, "--json", "no/out.json"),
        "--json no/out.json: a file in a folder that exists was needed; make no first",
    ),
    ((*OWN, *MODEL, "--to", "a-file"), "--to a-file: a folder was needed, but a file is there"),
    ((*OWN, "--config", "bad.toml"), "bad.toml: .* but 'policies' came; is policy meant?"),
    ((*OWN, "--config", "torn.toml"), "--config torn.toml: a table of options was needed, but it is none"),
    ((*OWN, "--config", "none.toml"), "--config none.toml: a TOML file was needed, but there is no such file"),
]


@pytest.mark.parametrize(("words", "sentence"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_bad_input_is_one_sentence_and_nothing_is_written(
    run: Run, arrays: Path, words: tuple[str, ...], sentence: str
) -> None:
    bad(arrays)
    before = files(arrays)
    said = run(*words)
    assert said.status == 2
    assert re.fullmatch(f"relook: .*(?:{sentence}).*\n", said.err), said.err
    after = {name: content for name, content in files(arrays).items() if "__pycache__" not in name}
    assert after == before
    assert not (arrays / "runs").exists()


def test_a_folder_of_other_runs_is_left_alone(run: Run, arrays: Path) -> None:
    words = (*OWN, *MODEL, "--policy", "paper", "--seeds", "2", "--to", "r")
    run(*words, "--answers", "30")
    before = files(arrays)
    said = run(*words, "--answers", "31")
    assert said.status == 2
    assert "--to r: it holds runs with answers 30, but answers 31 came; name another folder" in said.err
    assert files(arrays) == before
    probabilities = np.load("p.npy")
    np.save("p.npy", np.load("clean.npy"))
    said = run(*words, "--answers", "30")
    assert re.search(r"--to r: it holds runs with probabilities \w+, but probabilities \w+ came", said.err)
    np.save("p.npy", probabilities)
    resolved = (arrays / "r" / "resolved.json").read_text("utf-8")
    (arrays / "r" / "resolved.json").write_text(re.sub(r'"study": "\w+"', '"study": "other"', resolved), "utf-8")
    assert "--to r: it holds runs of another study; name another folder" in run(*words, "--answers", "30").err
    (arrays / "r" / "resolved.json").write_text("{", "utf-8")
    said = run(*words, "--answers", "30")
    assert re.search(r"--to r: resolved.json cannot be read \(.*\); name another folder", said.err)
    (arrays / "r" / "resolved.json").unlink()
    assert "--to r: it holds rows.json of other runs; name another folder" in run(*words, "--answers", "30").err


# Named sets.


def test_cifar10h_says_what_to_pass_where_there_are_no_probabilities(run: Run, data_dir: Path) -> None:
    said = run("--dataset", "cifar10h", "--data", str(data_dir))
    assert said.status == 2
    assert "cifar10h-paper: default, paper needs class probabilities, but none came; pass --probabilities" in said.err


@pytest.mark.parametrize("tau", ["2", "10"])
def test_cifar10h_bounds_need_no_probabilities(run: Run, arrays: Path, data_dir: Path, tau: str) -> None:
    said = run("--dataset", "cifar10h", "--data", str(data_dir), "--tau", tau, "--policy", "random", "--seeds", "1")
    counts = {
        "2": "769 given labels (15.4 %) are wrong, 520 clear and 249",
        "10": "1,485 given labels (29.7 %) are wrong, 1,152 clear and 333",
    }
    assert counts[tau] in said.out
    assert {"2": "2,307 answers", "10": "4,455 answers"}[tau] in said.out


def test_rows_of_all_images_serve_the_papers_subset(run: Run, arrays: Path, data_dir: Path) -> None:
    from relook.datasets import load

    counts = np.load(data_dir / "cifar10h" / "cifar10h-counts.npy").astype(np.float64)
    rows = [int(name) for name in load("cifar10h", data_dir, settings={"subset": "paper"}).ids]
    np.save("all.npy", (counts + 1) / (counts + 1).sum(1, keepdims=True))
    np.save("part.npy", np.load("all.npy")[rows])
    words = ("--dataset", "cifar10h", "--data", str(data_dir), "--policy", "margin", "--answers", "200", "--seeds", "1")
    for name in ("all", "part"):
        assert run(*words, "--probabilities", f"{name}.npy", "--to", name).status == 0
    assert rows_of(arrays / "all" / "rows.json") == rows_of(arrays / "part" / "rows.json")
    whole = run(*words, "--probabilities", "all.npy", "--subset", "all", "--to", "whole")
    assert "cifar10h: 10,000 items, 10 classes" in whole.out
    assert (
        "--probabilities: a row for each of 10,000 items was needed, but 5,000 came"
        in run(*words, "--probabilities", "part.npy", "--subset", "all").err
    )


def test_a_world_of_other_probabilities_is_another_world() -> None:
    world = small_world()
    other = msgspec.structs.replace(world, posteriors=world.clean)
    assert world.inputs() != other.inputs()


def test_a_model_is_trained_anew_every_so_many_answers(run: Run) -> None:
    words = (*OWN, "--embeddings", "embeddings.npy", "--policy", "default,random", "--answers", "60", "--seeds", "2")
    shares = {}
    for to, more in {
        "once": (),
        "often": ("--update-every", "20"),
        "heavy": ("--update-every", "20", "--answered-weight", "5"),
        "late": ("--update-every", "60"),
    }.items():
        said = run(*words, "--method", "lda", *more, "--to", to)
        assert said.status == 0, said.err
        rows = json.loads(Path(to, "rows.json").read_text())
        shares[to] = {name: [row["auc"] for row in rows if row["policy"] == name] for name in ("default", "random")}
    assert shares["once"]["default"] != shares["often"]["default"] != shares["heavy"]["default"]
    assert shares["late"] == shares["once"], "after the last answer nothing is trained"
    assert shares["once"]["random"] == shares["often"]["random"], "a policy that looks at no model does without"


def test_updates_that_cannot_be_are_refused(run: Run) -> None:
    words = (*OWN, "--embeddings", "embeddings.npy", "--answers", "9", "--seeds", "1")
    assert "update_every: every answer at most was needed, but 0 came" in run(*words, "--update-every", "0").err
    assert "'lad' came; is lda meant?" in run(*words, "--method", "lad").err
    said = run(*OWN, *MODEL, "--answers", "9", "--update-every", "3")
    assert "needs class probabilities, but none came" in said.err, "there is nothing to train on"


def test_a_recipe_is_handed_on_to_the_trainer() -> None:
    told = training(Grid(dataset="digits", recipe="tiny", device="cuda", folder="steps", answered_weight=2))
    assert (told.method, told.answered_weight) == ("ssl", 2)
    assert told.settings == {"recipe": "tiny", "device": "cuda", "folder": "steps"}
    assert training(Grid(dataset="digits", device="cuda")).settings == {}
