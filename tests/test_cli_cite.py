"""`relook cite`: entries that BibTeX takes, and a sentence whose numbers are those of the run."""

import re
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, stdev

import pytest

import relook
from relook.runs import read_runs
from tests.commands import Said, command
from tests.conftest import ROOT
from tests.test_cli_simulate import MODEL, OWN, write_arrays

Run = Callable[..., Said]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    write_arrays(tmp_path)
    return lambda *words: command(*words, capsys=capsys)


def keys(text: str) -> list[str]:
    return re.findall(r"^@\w+\{(\w+),$", text, re.MULTILINE)


def balanced(text: str) -> bool:
    depth = 0
    for letter in text:
        depth += (letter == "{") - (letter == "}")
        if depth < 0:
            return False
    return depth == 0


def test_without_a_run_it_cites_the_paper_and_relook(run: Run) -> None:
    said = run("cite")
    assert said.status == 0
    assert keys(said.out) == ["bernhardt2022active", "relook"]
    assert "10.1038/s41467-022-28818-3" in said.out
    assert f"version = {{{relook.__version__}}}" in said.out


def test_the_sentence_says_the_numbers_of_the_run(run: Run) -> None:
    run(
        "simulate",
        *OWN,
        *MODEL,
        "--policy",
        "default,random,oracle,activelab",
        "--answers",
        "70",
        "--seeds",
        "3",
        "--to",
        "r",
    )
    said = run("cite", "r")
    assert keys(said.out) == ["bernhardt2022active", "relook", "goh2023activelab"]
    assert balanced(said.out)
    runs = read_runs(Path("r"))
    for policy in runs.policies:
        shares = [row["share_correct"] for row in runs.rows_of(policy)]
        auc = fmean(row["auc"] for row in runs.rows_of(policy))
        share = rf"reached {100 * fmean(shares):.1f}\,\% (SD {100 * stdev(shares):.2f}) correct labels"
        reached = f"the policy {policy} {share}, area under the curve {auc:.3f}"
        assert reached in said.out
    assert "With 70 answers drawn from the true label distributions" in said.out
    assert "(means over 3 seeds). As bounds, the policy oracle reached" in said.out
    assert r"on counts (120 items, 30.8\,\% of the given labels wrong)" in said.out
    assert said.out.splitlines()[-1] == "Next: relook report r"


def test_the_sentence_says_how_it_was_played(run: Run) -> None:
    words = ("simulate", *OWN, *MODEL, "--policy", "paper", "--answers", "20", "--seeds", "1")
    run(*words, "--annotators", "4", "--settle", "people:2", "--to", "panel")
    panel = run("cite", "panel").out
    assert "With 20 answers of a panel of 4 people, an item being settled by the rule people:2" in panel
    assert "(one seed)." in panel
    run(*words, "--protocol", "paper-code", "--to", "code")
    assert "by the protocol of the paper's released code" in run("cite", "code").out


def test_names_are_written_as_latex_takes_them(run: Run) -> None:
    Path("my_rule.py").write_text("def score(rows):\n    return rows.mean.max(1)\n", "utf-8")
    run("simulate", *OWN, *MODEL, "--policy", "my_rule.py:score", "--answers", "20", "--seeds", "1", "--to", "r")
    assert r"the policy my\_rule.py:score reached" in run("cite", "r").out


def test_named_sets_are_cited(run: Run) -> None:
    said = run("simulate", "--dataset", "digits", "--policy", "random", "--answers", "10", "--seeds", "1", "--to", "r")
    assert said.status == 0, said.err
    said = run("cite", "r")
    assert keys(said.out) == ["bernhardt2022active", "relook", "alpaydin1998optical", "xia2020part"]
    assert r"on handwritten digits \citep{alpaydin1998optical} with instance-dependent noise" in said.out


def test_the_images_of_cifar10h_are_cited_by_their_crowd(run: Run, data_dir: Path) -> None:
    run(
        "simulate",
        "--dataset",
        "cifar10h",
        "--data",
        str(data_dir),
        "--policy",
        "random",
        "--answers",
        "9",
        "--seeds",
        "1",
        "--to",
        "r",
    )
    assert "peterson2019human" in keys(run("cite", "r").out)


def test_a_folder_that_is_none_is_refused(run: Run) -> None:
    said = run("cite", "nowhere")
    assert said.status == 2
    assert "runs: a folder that `relook simulate` wrote was needed, but nowhere is none; check the path" in said.err


def test_the_paper_is_cited_as_the_repository_cites_it() -> None:
    from relook.cli.cite import PAPER

    listed = (ROOT / "CITATION.cff").read_text("utf-8").partition("preferred-citation")[2]
    families = re.findall(r"family-names: (.+)", listed)
    assert len(families) == 12
    assert all(f"{family}, " in PAPER.replace("\n             ", " ") for family in families)
    assert re.findall(r"doi: (.+)", listed)[0] in PAPER
