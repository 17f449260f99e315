"""`relook rank` as a user types it: what it says, what it writes, and that bad input writes nothing."""

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import relook.cli
from relook.errors import BadInput
from relook.policies import BOUNDS
from relook.ranking import COLUMNS
from tests.commands import Said, command

Run = Callable[..., Said]
ITEMS = 400
CLASSES = ("cat", "dog", "eel", "fox")
FILES = ("--labels", "labels.npy", "--probabilities", "p.npy")

RNG = np.random.default_rng(0)
TRUE = RNG.integers(0, 4, ITEMS)
GIVEN = np.where(RNG.random(ITEMS) < 0.2, RNG.integers(0, 4, ITEMS), TRUE)
_SCORES = np.exp(3 * np.eye(4)[TRUE] + RNG.normal(0, 1, (ITEMS, 4)))
P = _SCORES / _SCORES.sum(1, keepdims=True)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in a folder that holds labels.npy and p.npy."""
    monkeypatch.chdir(tmp_path)
    np.save("labels.npy", GIVEN)
    np.save("p.npy", P)
    return lambda *words: command(*words, capsys=capsys)


def read(path: str = "ranking.csv") -> list[dict[str, str]]:
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def ids(count: int = ITEMS) -> list[str]:
    return [f"img{number}.png" for number in range(count)]


class TestSays:
    def test_what_it_decided_found_and_wrote(self, run: Run) -> None:
        said = run("rank", *FILES, "--top", "3")
        assert said.status == 0
        assert said.err == ""
        agreement = (P.argmax(1) == GIVEN).mean()
        lines = said.out.splitlines()
        assert lines[:3] == [
            "400 items, 4 classes, probabilities of 1 model.",
            "Joined by order, row by row: labels.npy and p.npy have no ids.",
            "Classes in column order: 0, 1, 2, 3.",
        ]
        assert lines[3].startswith(f"The likeliest class agrees with the given label on {agreement:.1%} (chance: 2")
        assert lines[4].startswith("Probably wrong: roughly ")
        assert lines[5] == "Ranked by default: value per answer; asks again while doubt remains."
        assert [line.split()[0] for line in lines[7:10]] == ["1", "2", "3"]
        assert lines[10:] == [
            "Wrote ranking.csv",
            "Next: relook simulate --labels labels.npy --probabilities p.npy --truth COUNTS",
        ]

    def test_the_other_name_of_the_probabilities(self, run: Run) -> None:
        first = run("rank", *FILES).out
        assert run("rank", "--labels", "labels.npy", "--pred-probs", "p.npy").out == first

    def test_wrong_labels_come_first(self, run: Run) -> None:
        run("rank", *FILES)
        head = [int(row["id"]) for row in read()[:40]]
        assert (TRUE[head] != GIVEN[head]).mean() > 0.9

    def test_every_row_is_written_as_csv_parquet_and_json(self, run: Run) -> None:
        said = run("rank", *FILES, "--top", "2", "--json", "rows.json")
        assert "Wrote ranking.csv, rows.json" in said.out
        rows = json.loads(Path("rows.json").read_text())
        assert tuple(rows[0]) == COLUMNS == tuple(read()[0])
        assert [row["id"] for row in rows] == [int(row["id"]) for row in read()]
        assert len(rows) == ITEMS
        assert all(0 <= row[name] <= 1 for row in rows for name in ("suggested_probability", "label_quality"))
        run("rank", *FILES, "--to", "r.parquet")
        assert pl.read_parquet("r.parquet")["id"].to_list() == [row["id"] for row in rows]

    def test_a_page_is_written_where_one_is_wanted(self, run: Run) -> None:
        said = run("rank", *FILES, "--report", "page.html")
        page = Path("page.html").read_text("utf-8")
        assert "ranking.csv, page.html" in said.out
        assert f"of {ITEMS} items differently" in page

    def test_a_page_that_is_none_is_refused_before_anything_is_written(self, run: Run) -> None:
        said = run("rank", *FILES, "--report", "page.csv")
        assert said.status == 2
        assert "must name an HTML file" in said.err
        assert not Path("ranking.csv").exists()

    def test_no_rows_are_printed_where_none_are_wanted(self, run: Run) -> None:
        assert "label quality" not in run("rank", *FILES, "--top", "0").out
        assert len(read()) == ITEMS

    def test_tables_are_joined_by_id_and_named(self, run: Run) -> None:
        order = RNG.permutation(ITEMS)
        pl.DataFrame({"path": ids(), "label": np.array(CLASSES)[GIVEN]}).write_csv("labels.csv")
        columns = {"path": np.array(ids())[order], **{f"p_{name}": P[order, k] for k, name in enumerate(CLASSES)}}
        pl.DataFrame(columns).write_parquet("p.parquet")
        said = run("rank", "--labels", "labels.csv", "--probabilities", "p.parquet", "--to", "named.csv")
        assert said.status == 0
        assert "labels.csv: labels in column label, ids in column path." in said.out
        assert "Joined by id: 400 items in both files." in said.out
        assert "Classes in column order: cat, dog, eel, fox." in said.out
        assert "Next: relook simulate --help" in said.out
        run("rank", *FILES)
        for row, plain in zip(read("named.csv"), read(), strict=True):
            assert row["id"] == ids()[int(plain["id"])]
            assert row["given"] == CLASSES[int(plain["given"])]
            assert row["suggested"] == CLASSES[int(plain["suggested"])]

    def test_columns_are_named_by_options(self, run: Run) -> None:
        pl.DataFrame({"file": ids(), "breed": np.array(CLASSES)[GIVEN], "label": "x"}).write_csv("labels.csv")
        said = run("rank", "--labels", "labels.csv", "--probabilities", "p.npy", "--id", "file", "--label", "breed",
                   "--classes", "cat, dog, eel, fox")  # fmt: skip
        assert said.status == 0
        assert "Joined by order, row by row: p.npy has no ids." in said.out
        assert read()[0]["id"].endswith(".png")

    def test_items_without_probabilities_are_left_out_when_told(self, run: Run) -> None:
        pl.DataFrame({"id": ids(), "label": GIVEN}).write_csv("labels.csv")
        np.savez("p.npz", p=P[10:], ids=ids()[10:])
        files = ("--labels", "labels.csv", "--probabilities", "p.npz")
        assert "but 10 are missing (img0.png, img1.png, img2.png, ...); predict them" in run("rank", *files).err
        said = run("rank", *files, "--allow-missing")
        assert said.status == 0
        assert "Left out: 10 items of labels.csv that p.npz lacks (img0.png, img1.png, img2.png, ...)." in said.out
        assert len(read()) == ITEMS - 10

    def test_several_models_and_people_are_taken(self, run: Run) -> None:
        np.save("models.npy", np.stack([P, P]))
        people = np.array(CLASSES)[np.stack([GIVEN, TRUE], 1)]
        people[:50, 1] = ""
        np.save("people.npy", people)
        said = run("rank", "--labels", "people.npy", "--probabilities", "models.npy", "--policy", "bald")
        assert said.status == 0
        assert "400 items, 4 classes, probabilities of 2 models." in said.out
        assert "people.npy holds up to 2 answers an item; their majority is the given label." in said.out

    def test_policy_settle_and_seed_are_heard(self, run: Run) -> None:
        orders = {}
        for words in (
            ("margin",),
            ("random",),
            ("random", "--seed", "1"),
            ("default",),
            ("default", "--settle", "people:3"),
        ):
            assert run("rank", *FILES, "--policy", *words).status == 0
            orders[words] = tuple((row["id"], row["priority"]) for row in read())
        assert len(set(orders.values())) == len(orders)
        Path("mine.py").write_text("def score(rows):\n    return rows.mean.max(1)\n")
        assert "Ranked by mine.py:score." in run("rank", *FILES, "--policy", "mine.py:score").out
        assert [float(row["priority"]) for row in read()[:3]] == pytest.approx(sorted(P.max(1))[:-4:-1], abs=1e-6)


class TestCareful:
    def test_with_probabilities_that_look_in_sample(self, run: Run) -> None:
        np.save("p.npy", 0.004 + 0.984 * np.eye(4)[GIVEN])
        said = run("rank", *FILES)
        assert said.status == 0
        assert "Careful: The probabilities look in-sample: they agree with 100.0% of the given labels" in said.out
        assert "How many labels are wrong cannot be told from these probabilities." in said.out

    def test_with_a_model_that_knows_nothing(self, run: Run) -> None:
        np.save("p.npy", P[RNG.permutation(ITEMS)])
        said = run("rank", *FILES)
        assert said.status == 0
        assert "Careful: The likeliest class agrees with the given label no better than chance" in said.out

    def test_with_a_class_that_nobody_has_and_items_without_a_label(self, run: Run) -> None:
        np.save("labels.npy", np.where(GIVEN == 3, -1, GIVEN))
        said = run("rank", *FILES)
        assert said.status == 0
        assert "Careful: No item is labelled 3: if some should be" in said.out
        assert f"Careful: {(GIVEN == 3).sum()} of 400 items without a label" in said.out
        assert {row["given"] for row in read()} == {"0", "1", "2", ""}

    def test_permuted_columns_are_refused_and_may_be_trusted(self, run: Run) -> None:
        np.save("p.npy", P[:, [1, 2, 3, 0]])
        said = run("rank", *FILES)
        assert said.status == 2
        assert said.out == ""
        assert said.err.startswith(
            "relook: p.npy: its columns look permuted: the likeliest class is the given one for "
        )
        assert "if column 3 is 0, column 0 is 1, column 1 is 2, column 2 is 3; put the columns into" in said.err
        assert said.err.endswith("or say --classes 1,2,3,0, or pass --trust-order\n")
        assert not Path("ranking.csv").exists()
        mended = run("rank", *FILES, "--classes", "1,2,3,0")
        assert mended.status == 0
        assert "Classes in column order: 1, 2, 3, 0." in mended.out
        trusted = run("rank", *FILES, "--trust-order")
        assert trusted.status == 0
        assert "Careful: p.npy: its columns look permuted" in trusted.out

    def test_reversed_rows_are_refused(self, run: Run) -> None:
        np.save("p.npy", P[::-1])
        said = run("rank", *FILES)
        assert said.status == 2
        assert "if they are taken in reverse; bring both files into one order, or give both" in said.err
        assert not Path("ranking.csv").exists()

    def test_a_doubt_that_is_no_reason_to_refuse_is_told(self, run: Run) -> None:
        given = RNG.integers(0, 60, 6000)
        np.save("labels.npy", given)
        np.save("p.npy", (0.01 + 0.4 * np.eye(60)[given])[:, [1, 0, *range(2, 60)]])
        said = run("rank", *FILES)
        assert said.status == 0
        assert "Careful: p.npy: its columns look permuted" in said.out


def csv_of(text: str) -> Callable[[], Any]:
    return lambda: Path("labels.csv").write_text(text)


def p_of(values: Any) -> Callable[[], None]:
    return lambda: np.save("p.npy", np.asarray(values))


def labels_of(values: Any) -> Callable[[], None]:
    return lambda: np.save("labels.npy", np.asarray(values))


LABEL_CSV = ("--labels", "labels.csv", "--probabilities", "p.npy")
HALF = np.where(np.arange(ITEMS)[:, np.newaxis] == 7, 2 * P, P)
ROWS = "".join(f"img{number},{label}\n" for number, label in enumerate(GIVEN))

BAD: dict[str, tuple[Callable[[], Any], tuple[str, ...], str]] = {
    "rows that do not sum to one": (
        p_of(HALF),
        FILES,
        "p.npy: posteriors: rows must be probabilities, but model 0, item 7 sums to 2.000",
    ),
    "logits": (
        p_of(np.log(P)),
        FILES,
        "p.npy: posteriors: probabilities cannot be negative, but model 0, item 0 holds",
    ),
    "NaN": (
        p_of(np.where(np.arange(ITEMS)[:, np.newaxis] == 9, np.nan, P)),
        FILES,
        "item 9 holds [nan, nan, nan, nan]; predict it again",
    ),
    "whole numbers": (
        p_of(np.eye(4, dtype=int)[GIVEN]),
        FILES,
        "p.npy: posteriors: probabilities were needed, but int64 came; were labels passed?",
    ),
    "a wrong shape": (p_of(P[0]), FILES, "p.npy: N x C or M x N x C probabilities were needed, but shape (4,) came"),
    "a transpose": (p_of(P.T), FILES, "is it transposed? save p.T"),
    "one column": (p_of(P[:, :1]), FILES, "at least two classes were needed, but one column came"),
    "other items": (
        p_of(P[:-1]),
        FILES,
        "a row for each of the 400 items of labels.npy was needed, but 399 rows came; are the",
    ),
    "a label out of range": (
        labels_of(np.where(np.arange(ITEMS) == 5, 4, GIVEN)),
        FILES,
        "labels.npy, item 5: a class was needed, 0 to 3 (-1: unlabelled), but 4 came",
    ),
    "labels that count from one": (labels_of(GIVEN + 1), FILES, "if they count from 1, pass --classes 1,2,3,4"),
    "an unknown label": (
        csv_of("id,label\n" + "a,cat\n" * 1),
        (*LABEL_CSV, "--classes", "w,x,y,z"),
        "labels.csv, line 2 (id a): a class was needed, w, x, y, z, but 'cat' came",
    ),
    "negative counts": (
        labels_of(np.where(np.arange(16).reshape(4, 4) == 6, -3, 1).repeat(100, 0)),
        FILES,
        "item 100: counts cannot be negative, but -3 came",
    ),
    "doubled ids": (
        csv_of("id,label\n" + ROWS + "img3,0\n"),
        LABEL_CSV,
        "labels.csv, line 402 (id img3): ids must differ, but 'img3' was in line 5 already",
    ),
    "unknown ids": (
        csv_of("id,label\n" + ROWS + "new,0\n"),
        ("--labels", "labels.csv", "--probabilities", "p.npz"),
        "are missing (new); predict them",
    ),
    "ids of another set": (
        csv_of("id,label\na,0\nb,1\n"),
        ("--labels", "labels.csv", "--probabilities", "p.npz"),
        "none is there ('a' in one, 'img0' in the other)",
    ),
    "no labels at all": (csv_of("id,label\n"), LABEL_CSV, "at least one label was needed, but the file holds none"),
    "an empty file": (
        csv_of(""),
        LABEL_CSV,
        "labels.csv: a file with labels or probabilities was needed, but it is empty",
    ),
    "no file": (
        lambda: None,
        LABEL_CSV,
        "labels.csv: a file was needed, but there is none of this name; check the path",
    ),
    "no label column": (
        csv_of("id,breed\na,0\n"),
        LABEL_CSV,
        "labels.csv: a column of labels (label, given, given_label, class) was needed",
    ),
    "an unknown column": (
        csv_of("id,label\na,0\n"),
        (*LABEL_CSV, "--label", "breed"),
        "labels.csv: a column 'breed' of labels was needed, but it has id, label",
    ),
    "a short line": (
        csv_of("id,label\na,0\nb\n"),
        LABEL_CSV,
        "labels.csv, line 3: 2 cells were needed, as many as the heading has, but 1 came",
    ),
    "Python objects": (
        lambda: np.save("labels.npy", np.array(["a", None], object), allow_pickle=True),
        FILES,
        "labels.npy: numbers or text were needed, but it holds Python objects",
    ),
    "another kind of file": (
        lambda: Path("labels.pt").touch(),
        ("--labels", "labels.pt", "--probabilities", "p.npy"),
        "labels.pt: a file of one of these kinds was needed: npy, npz, csv",
    ),
    "too few names of classes": (
        lambda: None,
        (*FILES, "--classes", "a,b"),
        "--classes: 4 names were needed, one a column of p.npy, but 2 came",
    ),
    "a name of a class twice": (
        lambda: None,
        (*FILES, "--classes", "a,b,a,c"),
        "--classes: names must differ, but 'a' comes twice",
    ),
    "an unknown policy": (lambda: None, (*FILES, "--policy", "best"), "policy: one of default"),
    "a bound": (
        lambda: None,
        (*FILES, "--policy", BOUNDS[0]),
        "a rule that does without the truth was needed, but this one is a bound",
    ),
    "an ensemble's rule for one model": (
        lambda: None,
        (*FILES, "--policy", "bald"),
        "policy bald: probabilities of several models",
    ),
    "an unknown rule of settling": (lambda: None, (*FILES, "--settle", "soon"), "settle: paper, one, people:2"),
    "a target of another kind": (
        lambda: None,
        (*FILES, "--to", "ranking.xlsx"),
        "ranking.xlsx: a csv, tsv or parquet file was needed, but .xlsx came",
    ),
    "a target without a folder": (
        lambda: None,
        (*FILES, "--to", "gone/ranking.csv"),
        "a folder to write to was needed, but gone is none",
    ),
    "a target that is read": (
        csv_of("id,label\n" + ROWS),
        (*LABEL_CSV, "--to", "labels.csv"),
        "labels.csv: another file to write to was needed, but this one is read",
    ),
    "one target for two": (
        lambda: None,
        (*FILES, "--to", "x.csv", "--json", "x.csv"),
        "--json and --to name one; name another",
    ),
    "no folder for JSON": (
        lambda: None,
        (*FILES, "--json", "gone/x.json"),
        "a file in a folder that is there was needed for --json",
    ),
}
"""What is wrong -> how it comes about, the words of the command, and what must be said."""


@pytest.mark.parametrize("fault", BAD)
def test_bad_input_ends_in_one_sentence_and_writes_nothing(run: Run, fault: str) -> None:
    make, words, sentence = BAD[fault]
    np.savez("p.npz", p=P, ids=[f"img{number}" for number in range(ITEMS)])
    make()
    before = {file: file.read_bytes() for file in Path().iterdir()}
    said = run("rank", *words)
    assert said.status == 2
    assert sentence in said.err
    assert said.err.startswith("relook: ")
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert {file: file.read_bytes() for file in Path().iterdir()} == before


class TestProgram:
    """The installed program, in a process of its own."""

    def test_bad_input(self, run: Run) -> None:
        np.save("p.npy", HALF)
        ran = self.ran("rank", *FILES)
        assert ran.returncode == 2
        assert ran.stdout == ""
        assert ran.stderr.startswith(
            "relook: p.npy: posteriors: rows must be probabilities, but model 0, item 7 sums to 2.0"
        )
        assert ran.stderr.count("\n") == 1
        assert not Path("ranking.csv").exists()

    def test_good_input(self, run: Run) -> None:
        ran = self.ran("rank", *FILES, "--to", "r.tsv")
        assert (ran.returncode, ran.stderr) == (0, "")
        assert "Wrote r.tsv" in ran.stdout

    def test_a_missing_option_is_said(self, run: Run) -> None:
        ran = self.ran("rank", "--labels", "labels.npy")
        assert ran.returncode == 2
        assert "--probabilities" in ran.stderr

    @staticmethod
    def ran(*words: str) -> "subprocess.CompletedProcess[str]":
        program = [sys.executable, "-c", "from relook.cli import main; main()", *words]
        return subprocess.run(program, capture_output=True, text=True, check=False)


def test_the_app_raises_what_main_says(run: Run) -> None:
    """Whoever runs the app by itself sees the error itself."""
    result = CliRunner().invoke(relook.cli.app, ["rank", "--labels", "gone.npy", "--probabilities", "p.npy"])
    assert isinstance(result.exception, BadInput)
    assert CliRunner().invoke(relook.cli.app, ["rank", *FILES]).exit_code == 0


@pytest.mark.slow
def test_a_million_items_are_ranked_in_seconds(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    given = rng.integers(0, 10, 1_000_000)
    scores = np.exp(rng.normal(0, 1, (1_000_000, 10)).astype(np.float32) + 2 * np.eye(10, dtype=np.float32)[given])
    np.save(tmp_path / "labels.npy", np.where(rng.random(1_000_000) < 0.2, (given + 1) % 10, given))
    np.save(tmp_path / "p.npy", scores / scores.sum(1, keepdims=True))
    # The kernel's own mark of this program: what getrusage tells of a child includes the memory of whoever started it.
    script = """
import sys, time
from relook.cli import main
try:
    main()
finally:
    marks = dict(line.split(":", 1) for line in open("/proc/self/status"))
    sys.stderr.write(f"{time.process_time()} {marks['VmHWM'].split()[0]}")
"""
    ran = subprocess.run(
        [sys.executable, "-c", script, "rank", *FILES], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    seconds, kilobytes = ran.stderr.split()[-2:]
    assert float(seconds) < 10
    assert int(kilobytes) < 700 * 1024
    with (tmp_path / "ranking.csv").open() as file:
        assert sum(1 for _ in file) == 1_000_001
