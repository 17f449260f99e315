"""`relook new` as a user types it: every decision in a sentence, and nothing left of a campaign that cannot be."""

from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest

from relook import campaigns, charter, imported
from relook.datasets import table
from relook.events import Started
from tests import desks
from tests.commands import Said, command

P = np.full((desks.ITEMS, 3), 0.1) + 0.7 * np.eye(3)[desks.TRUE]
BASE = ("--data", "pets", "--answers", "90", "--selector", "lda")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> desks.Run:
    """Make campaigns in a folder with a set, embeddings and probabilities."""
    monkeypatch.chdir(tmp_path)
    desks.pets(Path("pets"))
    np.savez("p.npz", probabilities=P, ids=desks.IDS, classes=desks.CLASSES)
    np.savez("e.npz", embeddings=desks.NUMBERS, ids=desks.IDS)

    def said(*words: str, name: str = "fix") -> Said:
        return command("new", name, *words, capsys=capsys)

    return said


def started(folder: str = "fix") -> Started:
    event = campaigns.looked(Path(folder))[1][0]
    assert isinstance(event, Started)
    return event


def test_every_decision_is_said(run: desks.Run) -> None:
    said = run(*BASE, "--people", "4", "--settle", "people:2", "--refit", "50")
    assert (said.status, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[:6] == [
        "100 items of pets; 3 classes.",
        "This set is to train on.",
        "Settles when 2 people agree; the given label does not vote.",
        "Ranks by what one more answer is worth; refits its model every 50 answers.",
        "4 people answer, nobody twice about an item.",
        "No embeddings came: a model of the numbers of the items ranks them.",
    ]
    assert lines[6].startswith("Out of sample, 5 folds: linear discriminants on the numbers of the items. Agrees with")
    assert lines[7:] == [
        "90 answers are about 6 min at 4 s each until it is measured, 2 min a person.",
        "Wrote fix",
        "Next: relook next fix -n 50 --for NAME --to tasks.csv",
    ]
    event = started()
    assert (event.budget, event.panel, event.names, event.purpose) == (90, 4, desks.CLASSES, "train")
    assert Path("fix/campaign.toml").read_text().startswith("# 100 items of pets; 3 classes.")
    assert not list(Path().glob(".fix*"))


def test_a_budget_may_be_in_hours(run: desks.Run) -> None:
    said = run("--data", "pets", "--hours", "2.5", "--selector", "lda", "--people", "1")
    assert "2,250 answers are about 2 h 30 at 4 s each until it is measured, 2 h 30 a person." in said.out
    assert (started().budget, started().hours) == (2250, 2.5)


def test_embeddings_are_learnt_from_and_probabilities_stay(run: desks.Run) -> None:
    said = run(*BASE, "--embeddings", "e.npz")
    assert "e.npz: joined by id: 100 items of 100." in said.out
    assert "linear discriminants on the embeddings." in said.out
    decided = charter.read(Path("fix"))
    assert campaigns.dataset(Path("fix"), decided).features is not None
    said = run("--data", "pets", "--answers", "9", "-p", "p.npz", name="along")
    assert "with the class probabilities that came along; they stay as they are." in said.out
    assert "It agrees with the given label on" in said.out
    assert charter.read(Path("along")).retraining.trainer is None


def test_items_without_an_embedding_are_ranked_all_the_same(run: desks.Run) -> None:
    np.savez("some.npz", embeddings=desks.NUMBERS[:90], ids=desks.IDS[:90])
    said = run(*BASE, "--embeddings", "some.npz")
    assert said.status == 0, said.err
    assert "10 items without an embedding: predicted by how common the classes are." in said.out


def test_what_came_along_with_the_set_ranks_it(run: desks.Run) -> None:
    found = table.collection(Path("pets.csv"))
    for name, values, says in (
        ("embeddings", desks.NUMBERS, "on the embeddings that came along."),
        ("probabilities", P, "with the class probabilities that came along"),
    ):
        imported.write(found, Path(name), origin=imported.Origin(vectors={name: values}))
        said = run("--data", name, "--answers", "9", "--selector", "lda", name=f"by-{name}")
        assert says in said.out, said.out + said.err


def test_a_split_is_a_campaign_of_its_own_and_says_what_it_is_for(run: desks.Run) -> None:
    said = run(*BASE, "--split", "test")
    assert "34 items of pets, split test; 3 classes." in said.out
    assert "This set is to judge models on: what ranks it is fitted on this set alone." in said.out
    assert (started().items, started().purpose) == (34, "evaluation")
    assert "This set is to train on." in run(*BASE, "--split", "train", name="other").out
    assert "This set is to train on." in run(*BASE, "--split", "test", "--purpose", "train", name="third").out


def test_an_evaluation_set_is_not_ranked_by_what_it_may_judge(run: desks.Run) -> None:
    words = ("--data", "pets", "--answers", "9", "--purpose", "evaluation", "-p", "p.npz")
    said = run(*words)
    assert said.status == 2
    assert (
        "an evaluation set must not be ranked by a model that it will judge, but the probabilities may be" in said.err
    )
    assert not Path("fix").exists()
    said = run(*words, "--override", "the model of another group")
    assert "probabilities from elsewhere rank it: the model of another group." in said.out
    assert charter.read(Path("fix")).override == "the model of another group"
    said = run(*BASE, "--override", "because", name="other")
    assert (said.status, "--override belongs to an evaluation set ranked by probabilities" in said.err) == (2, True)


def test_small_pictures_are_made_numbers_once(run: desks.Run, tmp_path: Path) -> None:
    from tests.test_handouts import photos

    photos(tmp_path / "photos", by_class=False)
    said = run("--data", "photos-set", "--answers", "9", "--selector", "knn")
    assert said.status == 0, said.err
    assert "No embeddings came: a model of the pixels of pictures of 16 x 16 ranks the items." in said.out
    assert "with --embeddings of a good network the ranking is better" in said.out
    assert np.load("fix/features.npy", allow_pickle=False).shape == (12, 768)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--data", "pets"), "a budget in --answers or in --hours was needed, but neither came"),
        ((*BASE, "--hours", "1"), "a budget in --answers or in --hours was needed, but both came"),
        ((*BASE, "--people", "0"), "at least one person was needed, but --people 0 came"),
        (("--data", "gone", "--answers", "9"), "an imported set was needed"),
        ((*BASE, "--settle", "two"), "settle: paper, one, people:2"),
        ((*BASE, "--embeddings", "e.npz", "-p", "p.npz"), "which stay, were needed, but both came"),
        (
            ("--data", "pets", "--answers", "9", "-p", "few.npz"),
            "those of every item were needed, but 5 rows are missing, that of item 0",
        ),
        ((*BASE[:4], "--selector", "wizard"), "a method of"),
        ((*BASE[:4], "--selector", "gone.py:train"), "trainer: "),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(run: desks.Run, words: tuple[str, ...], says: str) -> None:
    np.savez("few.npz", probabilities=P[5:], ids=desks.IDS[5:], classes=desks.CLASSES)
    said = run(*words)
    assert (said.status, says in said.err) == (2, True), said.err
    assert not Path("fix").exists()
    assert not list(Path().glob(".fix*"))


def test_a_place_that_is_taken_is_refused(run: desks.Run) -> None:
    assert run(*BASE).status == 0
    said = run(*BASE)
    assert "but it holds something; go on with it, see relook status" in said.err
    assert "but it holds something; name another" in run(*BASE, name="pets").err
    assert "a folder that is there was needed for the campaign; make" in run(*BASE, name="no/where").err


def test_a_class_that_is_called_what_people_say_is_refused(run: desks.Run) -> None:
    desks.pets(Path("odd"), classes=("cat", "Cannot tell", "hen"))
    said = run("--data", "odd", "--answers", "9")
    assert "classes of other names were needed, for 'cannot tell' is what people say where none fits" in said.err


def test_answers_of_an_earlier_campaign_are_taken_over(run: desks.Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*BASE, "--people", "2", "--settle", "people:2", name="old").status == 0
    for name in ("Ada", "Bo"):
        command("next", "old", "-n", "30", "--for", name, "--to", f"{name}.csv", capsys=capsys)
        desks.fill(Path(f"{name}.csv"))
        assert command("answers", "old", f"{name}.csv", capsys=capsys).status == 0
    before, _ = campaigns.looked(Path("old"))
    assert before.spent == 60
    # Hens are no class of their own any more, and three items are gone.
    rows = pl.read_csv("pets.csv").filter(pl.col("id") > "p002")
    rows.with_columns(label=pl.col("label").replace("hen", "bird")).write_csv("birds.csv")
    imported.write(table.collection(Path("birds.csv")), Path("birds"))
    hens = sum(desks.TRUE[before.book.item[row]] == 2 for row in range(1, 61))
    gone = sum(before.book.item[row] < 3 and desks.TRUE[before.book.item[row]] != 2 for row in range(1, 61))
    np.savez("b.npz", embeddings=desks.NUMBERS[3:], ids=desks.IDS[3:])
    words = ("--data", "birds", "--answers", "40", "--settle", "people:2", "--selector", "lda", "--embeddings", "b.npz")
    said = run(*words, "--answers-from", "old", name="new")
    assert said.status == 0, said.err
    taken = 60 - hens - gone
    assert f"{taken} answers were taken over, and the budget has room for them too" in said.out
    assert f"; {hens + gone} are of items or classes that are no more." in said.out
    ledger, events = campaigns.looked(Path("new"))
    assert (ledger.budget, ledger.spent, ledger.left) == (40 + taken, taken, 40)
    assert {name for name in ledger.book.people if name} == {"Ada", "Bo"}
    assert msgspec.structs.asdict(events[0])["continues"] == campaigns.head(Path("old"))
    final = ledger.final()
    classes = ("bird", "cat", "dog")
    for item, state in ledger.items.items():
        assert classes[final[item]] == desks.CLASSES[desks.TRUE[item + 3]]
        assert state.verdict >= 0
    with campaigns.opened(Path("new"), clock=lambda: 2e9) as found:
        assert found.campaign.ledger.spent == taken
