"""`relook export` as a user types it: the form by the name, what it says, and that nothing is lost by it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from relook import imported
from relook.campaign import Campaign
from relook.datasets import table
from relook.events import to_lines
from relook.imported import Origin, source_file
from relook.policies import named
from tests.commands import Said, command

Run = Callable[..., Said]
ITEMS = 120
RNG = np.random.default_rng(5)
TRUE = RNG.integers(0, 3, ITEMS)
GIVEN = np.where(RNG.random(ITEMS) < 0.2, (TRUE + 1) % 3, TRUE)
NAMES = np.array(["cat", "dog", "hen"])
P = np.full((ITEMS, 3), 0.1) + 0.7 * np.eye(3)[TRUE]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in a folder with a set, the log of a campaign on it, and probabilities."""
    monkeypatch.chdir(tmp_path)
    ids = [f"item {number}" for number in range(ITEMS)]
    split = ["test" if number % 4 == 0 else "train" for number in range(ITEMS)]
    frame = pl.DataFrame({"id": ids, "label": NAMES[GIVEN], "split": split, "note": ["=1+1"] * ITEMS})
    frame.write_csv("pets.csv")
    origin = Origin(sources=(source_file(Path("pets.csv")),))
    made, _ = imported.write(table.collection(Path("pets.csv")), Path("pets"), origin=origin)
    campaign = Campaign(made.dataset().given, named("random"), budget=60)
    for turn in range(60):
        lease = campaign.ask(f"person {turn % 3}", float(turn))
        if lease is not None:
            campaign.tell(lease, int(TRUE[lease.item]), turn + 0.5)
    Path("log.jsonl").write_bytes(to_lines(campaign.events))
    np.savez("p.npz", probabilities=P, ids=ids, classes=NAMES)
    return lambda *words: command("export", "pets", *words, capsys=capsys)


def test_a_set_leaves_as_it_came(run: Run) -> None:
    said = run("--to", "clean.csv", "--log", "log.jsonl")
    assert (said.status, said.err) == (0, "")
    assert "Final by vote: the class that answers settled; else the class with most votes" in said.out
    assert "120 items: " in said.out
    assert "Wrote clean.csv" in said.out
    assert "Next: relook export pets --log log.jsonl --to changes.csv --changes" in said.out
    came, left = (pl.read_csv(name, infer_schema=False) for name in ("pets.csv", "clean.csv"))
    assert came.drop("label", "note").equals(left.drop("label", "note"))
    assert set(left["note"]) == {"'=1+1"}
    changed = int((came["label"] != left["label"]).sum())
    assert changed > 0
    assert f"{changed} label" in said.out


def test_changes_are_what_differs(run: Run) -> None:
    said = run("--to", "changes.csv", "--log", "log.jsonl", "--changes")
    assert "Next: relook export pets --log log.jsonl --to items.csv --as items" in said.out
    changes = pl.read_csv("changes.csv")
    run("--to", "clean.csv", "--log", "log.jsonl")
    came, left = pl.read_csv("pets.csv"), pl.read_csv("clean.csv")
    differ = came.filter(came["label"] != left["label"])
    assert changes["id"].to_list() == differ["id"].to_list()
    assert changes["given"].to_list() == differ["label"].to_list()
    assert changes.columns == ["id", "given", "final", "votes", "rule"]


def test_items_say_what_speaks_for_each(run: Run) -> None:
    said = run("--to", "items.parquet", "--as", "items", "--log", "log.jsonl", "-p", "p.npz", "--ranked-by", "default")
    assert "p.npz: joined by id" in said.out
    items = pl.read_parquet("items.parquet")
    assert set(items["status"]) == {"settled", "unseen"}
    assert sorted(items["rank"]) == list(range(1, ITEMS + 1))
    assert items.sort("rank")["score"].is_sorted(descending=True)
    assert set(items["rule"]) == {"vote"}
    believed = run("--to", "belief.parquet", "--as", "items", "--log", "log.jsonl", "-p", "p.npz", "--rule", "belief")
    assert "Final by belief" in believed.out
    final = pl.read_parquet("belief.parquet")["final"].cast(pl.String).to_list()
    assert final == NAMES[TRUE].tolist()


def test_a_split_leaves_alone(run: Run) -> None:
    assert run("--to", "test.csv", "--split", "test").status == 0
    assert set(pl.read_csv("test.csv")["split"]) == {"test"}
    assert "the name of a split was needed" in run("--to", "val.csv", "--split", "val").err


def test_probabilities_that_came_along(run: Run) -> None:
    np.save("pets/probabilities.npy", P)
    run("--to", "items.csv", "--as", "items")
    assert "belief:cat" in pl.read_csv("items.csv").columns
    missing = P.copy()
    missing[7] = np.nan
    np.save("pets/probabilities.npy", missing)
    said = run("--to", "items.csv", "--as", "items")
    assert "pets: class probabilities of 1 item are missing, so no belief is told." in said.out
    refused = run("--to", "items.csv", "--as", "items", "--rule", "belief")
    assert refused.status == 2
    assert "class probabilities of 1 item are missing, but --rule belief was asked for" in refused.err


def test_probabilities_out_of_order_are_refused(run: Run) -> None:
    np.save("shifted.npy", np.roll(P, 1, axis=1))
    refused = run("--to", "items.csv", "--as", "items", "-p", "shifted.npy")
    assert refused.status == 2
    assert not Path("items.csv").exists()


def test_nothing_that_is_not_ours_is_lost(run: Run) -> None:
    before = Path("pets.csv").read_bytes()
    for words in (("--to", "pets.csv"), ("--to", "pets.csv", "--replace")):
        refused = run(*words)
        assert refused.status == 2
        assert "a place beside the source was needed" in refused.err
    assert Path("pets.csv").read_bytes() == before
    assert "sets stay as they are" in run("--to", "pets/out.csv").err
    assert "a place beside the source was needed" in run("--to", "log.jsonl", "--log", "log.jsonl", "--replace").err
    Path("mine.csv").write_text("mine")
    assert "add --replace to lose it" in run("--to", "mine.csv").err
    assert run("--to", "mine.csv", "--replace").status == 0
    assert run("--to", "mine.csv").status == 0


def test_what_is_asked_for_must_fit(run: Run) -> None:
    assert (
        "--changes is a form of its own, but --as items was asked for too"
        in run("--to", "x.csv", "--changes", "--as", "items").err
    )
    assert (
        "--log none.jsonl: events of a campaign were needed, but it cannot be read"
        in run("--to", "x.csv", "--log", "none.jsonl").err
    )
    assert "line 1 is not" in run("--to", "x.csv", "--log", "pets.csv").err
    assert "an imported set was needed" in command_on_a_folder(run)


def command_on_a_folder(run: Run) -> str:
    Path("pets/manifest.json").rename("manifest.json")
    said = run("--to", "x.csv")
    assert said.status == 2
    return said.err


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("x.tsv", "items"),
        ("x.parquet", "items"),
        ("x.npy", "counts"),
        ("x.json", "label-studio"),
        ("x", "huggingface"),
        ("x.csv", "table"),
    ],
)
def test_the_form_is_what_the_name_ends_in(run: Run, name: str, form: str) -> None:
    import msgspec

    assert run("--to", name, "--log", "log.jsonl").status == 0
    note = msgspec.json.decode(Path(f"{name}.about.json").read_bytes())
    assert (note["form"], note["rule"]) == (form, "vote")
