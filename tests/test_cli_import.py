"""`relook import`, `relook tour` and `relook rank SET` as a user gives them: what they say, write and refuse."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from relook import imported
from relook.cli import import_
from tests.commands import Said, command
from tests.test_intake import photo

Run = Callable[..., Said]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    return lambda *words: command(*words, capsys=capsys)


def reviews(items: int = 120) -> None:
    """A table of texts, one label in eleven wrong."""
    rows = ["id,text,label,split,who"]
    for item in range(items):
        said = "good" if (item % 2 == 0) ^ (item % 11 == 0) else "bad"
        words = "fine kind nice" if item % 2 == 0 else "awful poor rude"
        rows.append(f"r{item},{words} {item % 7},{said},{'test' if item % 3 == 0 else 'train'},p{item // 2}")
    Path("reviews.csv").write_text("\n".join(rows) + "\n")


class TestImport:
    def test_says_what_it_read_decided_and_wrote(self, run: Run) -> None:
        reviews()
        said = run("import", "reviews.csv", "--to", "shelf", "--group", "who")
        assert said.status == 0, said.err
        assert said.out.startswith("120 items (text), 2 classes (bad, good).")
        assert "ids in column id, labels in column label" in said.out
        assert "Identical items with different labels" in said.out
        assert said.out.endswith("Wrote shelf\nNext: relook rank shelf\n")
        assert imported.read(Path("shelf")).dataset().groups[:3] == ["p0", "p0", "p1"]  # type: ignore[index]

    def test_twice_changes_nothing(self, run: Run) -> None:
        reviews()
        run("import", "reviews.csv", "--to", "shelf")
        before = {path: path.stat().st_mtime_ns for path in Path("shelf").iterdir()}
        said = run("import", "reviews.csv", "--to", "shelf")
        assert "shelf holds this very set already: nothing was changed." in said.out
        assert {path: path.stat().st_mtime_ns for path in Path("shelf").iterdir()} == before

    def test_a_dry_run_tells_and_writes_nothing(self, run: Run) -> None:
        reviews()
        said = run("import", "reviews.csv", "--to", "shelf", "--dry-run")
        assert "120 items (text), 2 classes" in said.out
        assert "It needs about 0.0 MB; " in said.out
        assert said.out.endswith("Next: relook import reviews.csv --to shelf\n")
        assert [path.name for path in Path().iterdir()] == ["reviews.csv"]

    def test_vectors_come_along_and_the_missing_are_listed(self, run: Run) -> None:
        reviews(20)
        ids = [*(f"r{i}" for i in range(1, 20)), "=other"]
        np.savez("e.npz", embeddings=np.random.default_rng(0).normal(size=(20, 3)), ids=ids)
        p = pl.DataFrame({"id": [f"r{i}" for i in range(20)], "good": [0.75] * 20, "bad": [0.25] * 20})
        p.write_parquet("p.parquet")
        said = run("import", "reviews.csv", "--to", "s", "--embeddings", "e.npz", "--probabilities", "p.parquet")
        assert "e.npz: no row for 1 item (r0)." in said.out
        assert "Items without embeddings are listed in missing.csv." in said.out
        made = imported.read(Path("s"))
        embeddings, probabilities = made.vectors("embeddings"), made.vectors("probabilities")
        assert embeddings is not None
        assert probabilities is not None
        assert np.isnan(embeddings[0]).all()
        assert probabilities[0].tolist() == [0.25, 0.75]
        assert "Rows of embeddings for no item are listed in extra.csv." in said.out
        assert Path("s/missing.csv").read_text() == "id,missing\nr0,embeddings\n"
        assert Path("s/extra.csv").read_text() == "id,extra\n'=other,embeddings\n"

    def test_answers_of_people_are_told(self, run: Run) -> None:
        Path("a.csv").write_text("item,annotator,label\na,Ada,cat\na,Bo,dog\nb,Ada,cat\n")
        said = run("import", "a.csv", "--to", "s")
        assert said.out.startswith("2 items (names), 2 classes (cat, dog), 3 answers of 2 annotators.")

    def test_people_who_are_only_counted_are_counted(self, run: Run) -> None:
        Path("c.csv").write_text("id,n_cat,n_dog\nx,3,1\ny,0,9\n")
        said = run("import", "c.csv", "--to", "s", "--label", "n_*")
        assert said.out.startswith("2 items (names), 2 classes (cat, dog), 13 answers.\n")

    def test_one_class_is_one(self, run: Run) -> None:
        Path("a.csv").write_text("id,label\na,cat\n")
        assert run("import", "a.csv", "--to", "s").out.startswith("1 item (names), 1 class (cat).\n")

    def test_unlabelled_items_are_counted(self, run: Run) -> None:
        Path("a.csv").write_text("id,label\na,cat\nb,\nc,dog\n")
        assert "1 item without a label." in run("import", "a.csv", "--to", "s").out

    def test_a_full_disk_is_told_before_anything_is_written(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        reviews()
        monkeypatch.setattr(imported, "room", lambda *_, **__: (2_000_000, 1_000_000))
        said = run("import", "reviews.csv", "--to", "s")
        assert (said.status, said.err) == (
            2,
            "relook: s: about 2.0 MB were needed, but 1.0 MB are free there; make room, or name another place\n",
        )
        assert not Path("s").exists()

    def test_bad_input_ends_in_one_sentence_and_leaves_nothing(self, run: Run) -> None:
        Path("a.csv").write_text("id,label\na,cat\na,dog\n")
        said = run("import", "a.csv", "--to", "s")
        assert (said.status, said.out) == (2, "")
        assert said.err.count("\n") == 1
        assert "ids must differ" in said.err
        assert [path.name for path in Path().iterdir()] == ["a.csv"]


class TestTour:
    def test_is_import_rank_and_report_in_one(self, run: Run) -> None:
        for number in range(40):
            kind = number % 2
            photo(Path("pets") / ("cat" if kind ^ (number % 13 == 0) else "dog") / f"{number}.png", 30 + 150 * kind)
        said = run("tour", "pets")
        assert said.status == 0, said.err
        assert said.out.startswith("40 items (images, linked), 2 classes (cat, dog).")
        assert "nearest neighbours on the pixels of pictures of 16 x 16" in said.out
        assert "Wrote pets-relook, pets-relook/ranking.csv, pets-relook/report.html" in said.out
        assert "data:image/" in Path("pets-relook/report.html").read_text()
        first = pl.read_csv("pets-relook/ranking.csv").row(0, named=True)
        assert (first["given"], first["suggested"]) in {("cat", "dog"), ("dog", "cat")}

    def test_ranks_one_split(self, run: Run) -> None:
        reviews()
        said = run("tour", "reviews.csv", "--to", "s", "--split", "test")
        assert said.status == 0, said.err
        assert pl.read_csv("s/ranking.csv").height == 40


class TestRankSet:
    def test_fits_what_it_needs(self, run: Run) -> None:
        reviews()
        run("import", "reviews.csv", "--to", "s", "--group", "who")
        said = run("rank", "s", "--top", "2", "--report", "page.html")
        assert said.status == 0, said.err
        first, full = (line for line in said.out.splitlines() if "5 folds that keep groups together" in line)
        assert first.startswith("A first ranking is in s/ranking.csv; the full one follows and takes its place. Out of")
        assert "together: linear discriminants on pieces of the words" in first
        assert "together: the mean of linear discriminants, logistic regression and nearest neighbours on" in full
        assert "of the given labels; log loss" in full
        assert "Wrote s/ranking.csv, page.html\nNext: relook new NAME --data s --answers N" in said.out

    def test_takes_the_probabilities_that_came_along(self, run: Run) -> None:
        reviews(30)
        rng = np.random.default_rng(0)
        np.save("p.npy", rng.dirichlet([1, 1], 30))
        run("import", "reviews.csv", "--to", "s", "--probabilities", "p.npy")
        assert "The probabilities came along with the set." in run("rank", "s").out
        p = np.load("s/probabilities.npy")
        p[3] = np.nan
        np.save("s/probabilities.npy", p)
        assert "but 1 item have none, item 3 first; predict them" in run("rank", "s").err

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (
                ("rank", "s", "--labels", "y.npy"),
                "a set, whose labels it holds, or two files were needed, but s came with --labels",
            ),
            (("rank",), "--labels and --probabilities, were needed, but --labels lacks; name it"),
            (("rank", "--labels", "y.npy"), "were needed, but --probabilities lacks; name it"),
            (
                ("rank", "--labels", "y.npy", "--probabilities", "p.npy", "--split", "a"),
                "--split belongs to an imported set, but two files came; import them, or leave it out",
            ),
            (("rank", "s"), "an imported set was needed"),
            (("rank", "-l", "y.npy", "-p", "p.npy", "--method", "lda"), "--method belongs to an imported set, but two"),
            (("rank", "s", "-p", "p.npy", "--method", "lda"), "--method or --probabilities was needed, but both came"),
        ],
    )
    def test_sources_that_do_not_fit_are_refused(self, run: Run, words: tuple[str, ...], message: str) -> None:
        said = run(*words)
        assert said.status == 2
        assert message in said.err


class TestSimulateSet:
    """`--dataset FOLDER` simulates on a set whose truth is known, such as a noisy copy."""

    @pytest.fixture
    def noisy(self, run: Run) -> None:
        assert run("noise", "digits", "--to", "noisy", "--model", "symmetric", "--rate", ".2").status == 0

    def test_a_noisy_copy_is_simulated_on(self, run: Run, noisy: None) -> None:
        said = run("simulate", "--dataset", "noisy", "--policy", "default,random", "--answers", "60", "--seeds", "2")
        assert said.status == 0, said.err
        assert "noisy: 1,797 items, 10 classes; 3" in said.out

    def test_probabilities_and_embeddings_that_came_along_are_used(self, run: Run, noisy: None) -> None:
        truth = np.load("noisy/truth.npy")
        np.save("noisy/probabilities.npy", truth * 0.9 + 0.01)
        words = ("simulate", "--dataset", "noisy", "--policy", "paper", "--answers", "60", "--seeds", "1")
        assert "the true one on 100.0 % of the items" in run(*words).out
        Path("noisy/probabilities.npy").unlink()
        np.save("noisy/embeddings.npy", truth)
        assert "Class probabilities: fitted as by relook rank to the features" in run(*words).out

    def test_one_split_alone(self, run: Run) -> None:
        reviews(200)
        run("import", "reviews.csv", "--to", "clean")
        assert run("noise", "clean", "--to", "noisy", "--model", "symmetric", "--rate", ".2").status == 0
        words = ("simulate", "--dataset", "noisy", "--policy", "paper", "--answers", "20", "--seeds", "1")
        assert "noisy: 67 items" in run(*words, "--split", "test").out
        assert "the name of a split was needed" in run(*words, "--split", "c").err

    def test_what_does_not_fit_is_refused(self, run: Run) -> None:
        Path("t.csv").write_text("id,label\na,x\nb,y\n")
        run("import", "t.csv", "--to", "set")
        assert "a simulation needs the truth, but this set has none" in run("simulate", "--dataset", "set").err
        said = run("simulate", "--dataset", "digits", "--split", "a")
        assert "--split belongs to --dataset FOLDER of an imported set; leave it out" in said.err


def test_the_command_has_a_name_that_python_reserves() -> None:
    assert import_.import_.__name__ == "import_"
