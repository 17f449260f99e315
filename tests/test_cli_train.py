"""`relook train` as a user types it, and that `rank` and `simulate` take its file."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from relook.datasets import digits
from tests.commands import Said, command

Run = Callable[..., Said]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    return lambda *words: command(*words, capsys=capsys)


def right(path: str) -> float:
    with np.load(path, allow_pickle=False) as held:
        return float((held["posteriors"].argmax(1) == digits.load().true_class).mean())


def reviews() -> None:
    words = ("a good film", "a bad film")
    rows = [(f"r{item}", words[item % 2] + f" {item % 7}", ("good", "bad")[item % 2]) for item in range(60)]
    rows[4] = ("r4", "a good film 4", "bad")
    pl.DataFrame(rows, schema=["id", "text", "label"], orient="row").write_csv("reviews.csv")


def test_a_named_set(run: Run) -> None:
    said = run("train", "digits", "--to", "d.npz")
    assert said.status == 0, said.err
    assert "digits: 1,797 items, 10 classes. Out of sample, 5 folds: the mean of linear discriminants, " in said.out
    assert "Wrote d.npz\nNext: relook simulate --dataset digits --probabilities d.npz\n" in said.out
    assert right("d.npz") > 0.95
    words = ("--policy", "paper", "--answers", "20", "--seeds", "1")
    played = run("simulate", "--dataset", "digits", "--probabilities", "d.npz", *words)
    assert played.status == 0, played.err
    assert "Class probabilities: fitted" not in played.out
    ranked = run("rank", "-l", "d.npz", "-p", "d.npz")
    assert "Joined by id: 1,797 items in both files." in ranked.out


def test_options_of_learning(run: Run) -> None:
    run("train", "digits", "--method", "lda", "--to", "a.npz")
    plain = np.load("a.npz")["posteriors"]
    for words in (("--folds", "3"), ("--repeats", "2"), ("--seed", "1")):
        said = run("train", "digits", "--method", "lda", *words, "--to", "b.npz")
        assert said.status == 0, said.err
        assert not np.array_equal(plain, np.load("b.npz")["posteriors"])


def test_embeddings_are_joined_and_labels_are_another_draw(run: Run) -> None:
    ten = digits.load()
    assert ten.features is not None
    np.save("left.npy", ten.features[:, :32])
    np.save("right.npy", ten.features[:, 32:])
    np.savez("clean.npz", labels=ten.true_class[::-1], ids=list(ten.ids)[::-1])
    words = ("train", "digits", "--method", "knn", "--embeddings", "left.npy")
    run(*words, "--to", "one.npz")
    both = run(*words, "--embeddings", "right.npy", "--to", "two.npz")
    assert "nearest neighbours on 2 embeddings joined." in both.out
    assert right("two.npz") > right("one.npz") + 0.02
    run(*words, "--labels", "clean.npz", "--to", "clean_one.npz")
    assert right("clean_one.npz") > right("one.npz")
    assert (np.load("clean_one.npz")["labels"] == ten.true_class).all()


def test_an_imported_set_and_its_ranking(run: Run) -> None:
    reviews()
    run("import", "reviews.csv", "--to", "s")
    said = run("train", "s", "--method", "logistic", "--to", "p.npz")
    assert "s: 60 items, 2 classes. Out of sample, 5 folds: logistic regression on pieces of the words" in said.out
    assert "Next: relook rank s --probabilities p.npz" in said.out
    ranked = run("rank", "s", "--probabilities", "p.npz", "--to", "a.csv")
    assert ranked.status == 0, ranked.err
    assert "Joined by id: 60 items in both files.\nClasses in column order: bad, good." in ranked.out
    np.save("three.npy", np.full((60, 3), 1 / 3))
    assert (
        "a column for each of the 2 classes of s was needed, but 3 came; train on this set"
        in run("rank", "s", "--probabilities", "three.npy").err
    )
    first = pl.read_csv("a.csv").row(0, named=True)
    assert (first["id"], first["given"], first["suggested"]) == ("r4", "bad", "good")
    fitted = run("rank", "s", "--method", "logistic", "--to", "b.csv")
    assert "Out of sample, 5 folds: logistic regression on pieces of the words of the texts." in fitted.out
    assert pl.read_csv("b.csv")["id"][0] == "r4"


def test_embeddings_that_came_along_are_used(run: Run) -> None:
    reviews()
    np.save("e.npy", np.random.default_rng(0).normal(size=(60, 4)))
    run("import", "reviews.csv", "--to", "s", "--embeddings", "e.npy")
    assert "nearest neighbours on the embeddings that came along" in run("train", "s", "--to", "p.npz").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("digits", "--method", "forest"), "'forest' came; check the spelling"),
        (("s", "--tau", "2"), "train: --tau belongs to a data set of a name, but a folder came; leave it out"),
        (("nowhere",), "dataset: one of chestmnist"),
        (("digits", "--embeddings", "e.npy"), "a row for each of 1,797 items was needed, but 60 came"),
        (("digits", "--folds", "1"), "at least 2 folds were needed, but 1 came"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(run: Run, words: tuple[str, ...], message: str) -> None:
    Path("s").mkdir()
    np.save("e.npy", np.ones((60, 4)))
    said = run("train", *words, "--to", "p.npz")
    assert (said.status, said.err.count("\n")) == (2, 1)
    assert message in said.err
    assert not Path("p.npz").exists()


def test_posteriors_of_other_items_are_refused(run: Run) -> None:
    np.savez("p.npz", posteriors=np.full((2, 10), 0.1), labels=[0, 1], ids=[0, 1])
    said = run("simulate", "--dataset", "digits", "--probabilities", "p.npz", "--policy", "paper")
    assert "posteriors of each item of digits were needed, but 1,795 are missing, '2' first; train on" in said.err


def stripes() -> None:
    rng = np.random.default_rng(0)
    label = np.arange(48) % 2
    images = rng.integers(0, 60, (48, 8, 8)).astype(np.uint8)
    images[label == 1, :4] += 150
    np.savez("stripes.npz", images=images, labels=label)
    np.save("more.npy", images[:9])


def test_a_recipe_trains_networks_out_of_sample_or_in_sample(run: Run) -> None:
    stripes()
    assert run("import", "stripes.npz", "--to", "s").status == 0
    said = run("train", "s", "--recipe", "tiny-ssl", "--unlabelled", "more.npy", "--to", "p.npz", "--folds", "3")
    assert "a batch of at most 57 images was needed" in said.err, "48 items and 9 further images are learnt from"
    said = run("train", "s", "--recipe", "tiny", "--to", "p.npz", "--folder", "steps")
    assert said.status == 0, said.err
    assert "Out of sample, 2 folds: recipe tiny, 1 model. Agrees with" in said.out
    assert sorted(path.name for path in Path("steps").iterdir()) == ["fold-0", "fold-1"]
    first = Path("p.npz").read_bytes()
    said = run("train", "s", "--recipe", "tiny", "--to", "p.npz", "--folder", "steps")
    assert Path("p.npz").read_bytes() == first, "what is kept is not trained again"
    pl.DataFrame({"id": [str(item) for item in range(48)], "label": [1, 0] * 24}).write_csv("other.csv")
    said = run("train", "s", "--recipe", "tiny", "--to", "o.npz", "--folder", "steps", "--labels", "other.csv")
    assert said.status == 0, "what was reached on other labels is not in the way"
    assert Path("o.npz").read_bytes() != first
    said = run("train", "s", "--method", "vanilla", "--recipe", "tiny", "--folds", "0", "--to", "q.npz")
    assert "In sample, as the models saw these very labels: recipe tiny, 1 model." in said.out
    assert Path("q.npz.trained", "whole").is_dir()


def test_a_recipe_is_refused_before_anything_is_trained(run: Run) -> None:
    said = run("train", "digits", "--recipe", "tinny", "--to", "p.npz")
    assert said.status == 2
    assert "near it are tiny" in said.err
    said = run("train", "digits", "--recipe", "tiny", "--to", "p.csv")
    assert "an npz file to write to was needed" in said.err
    assert not Path("p.csv").exists()
