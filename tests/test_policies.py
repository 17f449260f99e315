"""Policies by name, rules of one's own, and what is said where they cannot be had."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import msgspec
import numpy as np
import pytest

from benchmarks import better
from relook.activelab import ActiveLab
from relook.annotators import Crowd, Perfect
from relook.campaign import Campaign
from relook.errors import BadInput
from relook.events import Ranking
from relook.metrics import picks
from relook.policies import BOUNDS, ENSEMBLES, POLICIES, REFIT, Setting, check_rule, named
from relook.rules import Policy
from relook.scores import ValuePerAnswer, margin, noisiness, phi
from relook.simulation import Run, Simulation, simulate
from relook.stopping import Agree, Majority, Margin
from relook.testing import check_policy, check_score
from relook.types import Dataset, FloatArray, IntArray, Labels, Posteriors, Rows
from tests.conftest import ROOT

ITEMS, CLASSES = 120, 4


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    """A small data set: a third of the given labels are wrong, and people agree more or less."""
    rng = np.random.default_rng(8)
    centres = rng.normal(0, 1, (CLASSES, 3))
    classes = rng.integers(CLASSES, size=ITEMS)
    features = centres[classes] + rng.normal(0, 0.5, (ITEMS, 3))
    truth = 0.9 * np.eye(CLASSES)[classes] + 0.1 * rng.dirichlet(np.ones(CLASSES), ITEMS)
    given = np.where(rng.random(ITEMS) < 0.3, rng.integers(CLASSES, size=ITEMS), classes)
    ids = tuple(str(item) for item in range(ITEMS))
    return Dataset("small", tuple("abcd"), ids, Labels(given, CLASSES), truth=truth, features=features)


@pytest.fixture(scope="module")
def posteriors(dataset: Dataset) -> Posteriors:
    """Three models that know something and err apart."""
    assert dataset.truth is not None
    logits = np.log(dataset.truth + 0.05) + np.random.default_rng(9).normal(0, 1, (3, ITEMS, CLASSES))
    return Posteriors(np.exp(logits) / np.exp(logits).sum(2, keepdims=True))


def run(policy: Policy, dataset: Dataset, *, posteriors: Posteriors | None, budget: int = 100) -> Run:
    assert dataset.truth is not None
    person = Perfect(dataset.true_class) if policy.name == "minimal" else Crowd(dataset.truth, seed=2)
    return simulate(dataset, Simulation(policy, budget, [person], posteriors))


class TestNamed:
    @pytest.mark.parametrize("name", POLICIES)
    def test_each_runs_a_campaign(self, name: str, dataset: Dataset, posteriors: Posteriors) -> None:
        policy = named(name, Setting(truth=dataset.truth, seed=4))
        result = run(policy, dataset, posteriors=posteriors)
        assert policy.name == name
        assert result.answers == 100
        assert result.curve.share_correct[-1] > result.curve.share_correct[0]
        assert policy.returns == (name in ("default", "activelab", "oracle"))
        if not policy.returns:
            assert len(set(picks(result.events).tolist())) == len(picks(result.events))

    def test_each_says_what_it_does(self) -> None:
        for name, (_, line) in POLICIES.items():
            assert len(line.split()) > 3, name
            assert "\n" not in line

    def test_groups_name_policies(self) -> None:
        assert {*ENSEMBLES, *BOUNDS} <= set(POLICIES)

    def test_settings_reach_the_policy(self) -> None:
        policy = named("margin", Setting(stop=Agree(3), given_weight=0.5, batch=7))
        assert (policy.stop, policy.given_weight, policy.batch) == (Agree(3), 0.5, 7)

    def test_default_knows_what_settles(self) -> None:
        assert named("default").score == ValuePerAnswer()
        assert named("default", Setting(stop=Agree(3))).score == ValuePerAnswer(agree=3)
        assert named("default", Setting(stop=Margin(2))).score == ValuePerAnswer(lead=2)

    def test_random_order_follows_the_seed(self, dataset: Dataset) -> None:
        orders = [
            run(named("random", Setting(seed=seed)), dataset, posteriors=None).picks.tolist() for seed in (0, 0, 1)
        ]
        assert orders[0] == orders[1] != orders[2]

    def test_minimal_takes_two_answers_for_each_wrong_label(self, dataset: Dataset) -> None:
        wrong = int((dataset.given.given != dataset.true_class).sum())
        result = run(named("minimal", Setting(truth=dataset.truth)), dataset, posteriors=None, budget=2 * wrong)
        assert result.curve.share_correct[-1] == 1
        assert result.items == wrong

    def test_unknown_name(self) -> None:
        with pytest.raises(BadInput, match=r"one of default, paper, .* was needed, but 'papper' came; check the spell"):
            named("papper")

    @pytest.mark.parametrize("name", BOUNDS)
    def test_bound_without_truth(self, name: str) -> None:
        with pytest.raises(BadInput, match=f"policy {name}: it is a bound and needs the truth, but none came"):
            named(name)

    @pytest.mark.parametrize("name", ENSEMBLES)
    def test_ensemble_of_one_model(self, name: str, dataset: Dataset, posteriors: Posteriors) -> None:
        alone = Posteriors(posteriors.values[:1])
        with pytest.raises(BadInput, match=rf"policy {name}: probabilities of several models, M x N x C, were needed"):
            run(named(name), dataset, posteriors=alone)

    def test_ensembles_are_logged_by_their_score(self) -> None:
        assert named("ce-ensemble").record()["score"] == {"name": "noisiness"}


class TestActiveLab:
    def test_it_is_fitted_anew_every_batch(self, dataset: Dataset, posteriors: Posteriors) -> None:
        result = run(named("activelab", Setting(batch=60)), dataset, posteriors=posteriors, budget=200)
        first, *later = rankings(result)
        assert first.score == {
            "name": "ActiveLab",
            "temperature": None,
            "by_votes": None,
            "by_quality": None,
            "newcomer": 1.0,
        }
        assert len(later) == 3
        assert len({ranking.score["by_quality"]["answer"] for ranking in later}) == 3

    def test_it_is_not_fitted_more_often_than_pays(self) -> None:
        assert named("activelab").batch == REFIT
        assert named("activelab", Setting(batch=3 * REFIT)).batch == 3 * REFIT

    def test_before_any_answer_it_orders_as_self_confidence(self, dataset: Dataset, posteriors: Posteriors) -> None:
        first = {
            name: Campaign(dataset.given, named(name), budget=1, posteriors=posteriors).ask()
            for name in ("activelab", "self-confidence")
        }
        assert first["activelab"] == first["self-confidence"] is not None


def rankings(result: Run) -> list[Ranking]:
    return [event for event in result.events if isinstance(event, Ranking)]


def write(folder: Path, text: str, *, name: str = "mine.py") -> Path:
    (folder / name).write_text(text, "utf-8")
    return folder / name


@pytest.fixture(autouse=True)
def _same_modules_after() -> Iterator[None]:
    """Modules that a test loads from files are gone after it, and one of that name that was there is not in its way."""
    known = sys.modules.pop("mine", None)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.partition("_")[0] in ("mine", "json"):
            del sys.modules[name]
    if known is not None:
        sys.modules["mine"] = known


BARE = "def score(rows):\n    return rows.mean.max(1)\n"


class TestOwnRule:
    def test_bare_score_is_one_pass_and_majority(
        self, tmp_path: Path, dataset: Dataset, posteriors: Posteriors
    ) -> None:
        text = f"{write(tmp_path, BARE)}:score"
        policy = named(text, Setting(batch=3))
        assert (policy.name, policy.stop, policy.returns, policy.batch) == (text, Majority(), False, 3)
        surest = posteriors.mean().max(1).argmax()
        assert run(policy, dataset, posteriors=posteriors).picks[0] == surest

    def test_whole_policy_is_taken_as_it_is(self, tmp_path: Path) -> None:
        path = write(
            tmp_path,
            "from relook import Policy\nfrom relook.scores import phi\nfrom relook.stopping import Agree\n"
            "policy = Policy('other name', phi, Agree(3), returns=True)\n",
        )
        policy = named(f"{path}:policy", Setting(batch=9))
        assert (policy.name, policy.score, policy.stop, policy.returns, policy.batch) == (
            f"{path}:policy", phi, Agree(3), True, 1,
        )  # fmt: skip

    @pytest.mark.parametrize("hint", ["Policy", "'Policy'", "'relook.Policy'"])
    def test_function_that_returns_a_policy_gets_the_setting(self, tmp_path: Path, hint: str) -> None:
        path = write(
            tmp_path,
            "from relook import Policy, Setting\nfrom relook.scores import phi\n"
            f"def naive(setting: Setting) -> {hint}:\n"
            "    return Policy('naive', phi, setting.stop, returns=True, batch=setting.batch)\n",
        )
        policy = named(f"{path}:naive", Setting(stop=Agree(2), batch=5))
        assert (policy.name, policy.returns, policy.stop, policy.batch) == (f"{path}:naive", True, Agree(2), 5)

    def test_rule_of_a_package(self) -> None:
        assert named("relook.scores:noisiness").score is noisiness

    def test_record_in_a_file_knows_its_module(self, tmp_path: Path) -> None:
        path = write(
            tmp_path,
            "from __future__ import annotations\nimport msgspec\nfrom dataclasses import dataclass\n"
            "@dataclass\nclass Settings:\n    power: float = 2.0\n"
            "class Score(msgspec.Struct, frozen=True):\n    power: float = 2.0\n"
            "    def __call__(self, rows):\n        return rows.mean.max(1) ** self.power\n"
            "score = msgspec.convert({'power': Settings().power}, Score)\n",
        )
        policy = named(f"{path}:score")
        assert policy.record()["score"] == {"name": "Score", "power": 2.0}
        check_policy(policy)

    def test_file_replaces_no_library(self, tmp_path: Path) -> None:
        first = write(tmp_path, BARE, name="json.py")
        named(f"{first}:score")
        assert sys.modules["json"] is json
        (tmp_path / "other").mkdir()
        ours, others = write(tmp_path, BARE), write(tmp_path / "other", BARE.replace("max", "min"))
        rows = Rows(np.arange(1), np.array([[[0.9, 0.1]]]), np.array([0]))
        assert [float(named(f"{path}:score").score(rows)[0]) for path in (ours, others, ours)] == [0.9, 0.1, 0.9]

    def test_file_is_read_anew(self, tmp_path: Path) -> None:
        path, rows = write(tmp_path, BARE), Rows(np.arange(1), np.array([[[0.9, 0.1]]]), np.array([0]))
        before = named(f"{path}:score").score(rows)
        write(tmp_path, BARE.replace("max(1)", "min(1) + 1000"))
        assert named(f"{path}:score").score(rows)[0] != before[0]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("def score(rows)\n", r"mine.py could not be loaded \(SyntaxError: .*line 1\)"),
            ("score = nothing\n", r"mine.py could not be loaded \(NameError: name 'nothing' is not defined\)"),
            ("import no_such_thing\n", r"mine.py could not be loaded \(ModuleNotFoundError: No module named"),
            ("scor = 1\nother = 2\n", "mine.py has nothing called score; it has scor, other"),
            ("score = 3\n", "mine.py:score must be a score or a Policy, but it is a int; name another"),
            ("class score: ...\n", "must be a score or a Policy, but it is a class; name one made of it"),
        ],
        ids=["syntax", "name", "import", "absent", "number", "class"],
    )
    def test_what_is_no_rule(self, tmp_path: Path, text: str, message: str) -> None:
        with pytest.raises(BadInput, match=message):
            named(f"{write(tmp_path, text)}:score")
        assert ("mine" in sys.modules) == ("could not be loaded" not in message)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "absent.py:score",
                r"absent.py could not be loaded \(FileNotFoundError: there is no such file\)",
            ),
            ("no.such.module:score", r"no.such.module could not be loaded \(ModuleNotFoundError"),
            (":score", "could not be loaded"),
        ],
    )
    def test_nothing_there(self, text: str, message: str) -> None:
        with pytest.raises(BadInput, match=message):
            named(text)


class TestDocs:
    """The figures that docs/policies.md quotes are those that were measured and recorded."""

    rows = json.loads((ROOT / "benchmarks" / "results" / "better.json").read_text("utf-8"))["rows"]
    page = (ROOT / "docs" / "policies.md").read_text("utf-8")

    @pytest.mark.parametrize(
        "policy", [name for name in better.POLICIES["b"] if name not in (better.NAIVE, better.PLAIN)]
    )
    def test_table_quotes_what_was_measured(self, policy: str) -> None:
        quoted = [line for line in self.page.splitlines() if line.startswith(f"| `{policy}` |") and " / ." in line]
        assert quoted
        measured = [self._cell(kind, policy) for kind in ("(a) artificial", "(b) cross-fitted")]
        for line in quoted:
            assert [cell.strip() for cell in line.split("|")[-3:-1]] == measured

    @pytest.mark.parametrize("policy", ["default", "paper", *ENSEMBLES])
    def test_prose_quotes_what_was_measured_on_several_models(self, policy: str) -> None:
        share = self._cell("(c) five cross-fitted", policy).split()[0]
        assert re.search(rf"`{policy}`\s{share}", self.page)

    def test_collapse_and_gains_are_those_measured(self) -> None:
        for kind in ("(a) artificial", "(b) cross-fitted"):
            assert f"{self._cell(kind, better.NAIVE).split()[0]} % on {kind[:3]}" in self.page
            assert self._cell(kind, better.PLAIN).split()[0] in self.page
        found = json.loads((ROOT / "benchmarks" / "results" / "better.json").read_text("utf-8"))
        assert found["passed"]
        gains = {check["what"]: check["found"].split()[0] for check in found["checks"]}
        for kind, other in (("a", "paper"), ("a", "margin"), ("b", "paper"), ("b", "margin")):
            assert gains[f"({kind}) default minus {other}, points at the end"].removeprefix("+") in self.page

    def _cell(self, kind: str, policy: str) -> str:
        wanted = {"input": kind, "policy": policy, "simulator": "relook"}
        row = next(row for row in self.rows if wanted.items() <= row.items())
        return f"{100 * row['share_correct']:.2f} / {row['auc']:.4f}".replace("/ 0.", "/ .")


class Neighbours(msgspec.Struct, frozen=True, eq=False):
    """Share of an item's nearest neighbours whose given label is another: a rule that holds embeddings."""

    nearest: IntArray
    given: IntArray

    def __call__(self, rows: Rows) -> FloatArray:
        return np.asarray((self.given[self.nearest[rows.items]] != rows.label[:, np.newaxis]).mean(1))


class LivingNeighbours(msgspec.Struct, frozen=True, eq=False):
    """The same with the labels as they stand: an answer moves the neighbours' scores too, so it needs all rows."""

    rowwise: ClassVar[bool] = False

    nearest: IntArray

    def __call__(self, rows: Rows) -> FloatArray:
        assert len(rows) == len(self.nearest)
        return np.asarray((rows.label[self.nearest] != rows.label[:, np.newaxis]).mean(1))


class PosingAsRowwise(LivingNeighbours, frozen=True, eq=False):
    """A fault: it looks at other rows and does not say so."""

    rowwise: ClassVar[bool] = True

    def __call__(self, rows: Rows) -> FloatArray:
        return np.asarray(margin(rows) - margin(rows).max())


@pytest.fixture(scope="module")
def nearest(dataset: Dataset) -> IntArray:
    assert dataset.features is not None
    apart = ((dataset.features[:, np.newaxis] - dataset.features[np.newaxis]) ** 2).sum(2)
    return np.asarray(apart.argsort(1)[:, 1:11])


class TestRulesThatHoldEmbeddings:
    def test_it_finds_wrong_labels_without_any_model(self, dataset: Dataset, nearest: IntArray) -> None:
        policy = Policy("neighbours", Neighbours(nearest, dataset.given.given))
        found = run(policy, dataset, posteriors=None, budget=40)
        by_chance = run(named("random"), dataset, posteriors=None, budget=40)
        assert found.curve.share_correct[-1] > by_chance.curve.share_correct[-1] + 0.03

    def test_it_is_ranked_once(self, dataset: Dataset, nearest: IntArray) -> None:
        policy = Policy("neighbours", Neighbours(nearest, dataset.given.given), batch=10)
        check_rule(policy, dataset.given, posteriors=None)
        assert len(rankings(run(policy, dataset, posteriors=None, budget=40))) == 1

    def test_its_arrays_stand_in_the_log_by_their_hash(self, dataset: Dataset, nearest: IntArray) -> None:
        record = Policy("neighbours", Neighbours(nearest, dataset.given.given)).record()
        assert record["score"]["nearest"].keys() == {"fingerprint"}


class TestRulesThatLookAround:
    @pytest.mark.parametrize(("batch", "expected"), [(10, 4), (15, 3), (40, 1), (100, 1)])
    def test_ranked_anew_every_batch(self, dataset: Dataset, nearest: IntArray, batch: int, expected: int) -> None:
        policy = Policy("living", LivingNeighbours(nearest), batch=batch)
        result = run(policy, dataset, posteriors=None, budget=40)
        assert [ranking.number for ranking in rankings(result)] == list(range(1, expected + 1))
        answered = [event.ranking for event in result.events if hasattr(event, "ranking")]
        assert [answered.count(number) for number in range(1, expected)] == [batch] * (expected - 1)

    def test_a_new_ranking_changes_the_order(self, dataset: Dataset, nearest: IntArray) -> None:
        often, never = (
            run(Policy("living", LivingNeighbours(nearest), batch=batch), dataset, posteriors=None, budget=60)
            for batch in (5, 60)
        )
        assert often.picks.tolist() != never.picks.tolist()

    def test_it_must_say_so(self, dataset: Dataset, nearest: IntArray, posteriors: Posteriors) -> None:
        check_rule(Policy("living", LivingNeighbours(nearest)), dataset.given, posteriors=posteriors)
        with pytest.raises(
            BadInput, match=r"policy posing: item \d+ scores .* alone but .* among others; set `rowwise"
        ):
            check_rule(Policy("posing", PosingAsRowwise(nearest)), dataset.given, posteriors=posteriors)

    def test_a_fitted_rule_is_checked_with_its_constants(self, dataset: Dataset, posteriors: Posteriors) -> None:
        answered = Labels(dataset.given.given, CLASSES, np.eye(CLASSES, dtype=np.int64)[dataset.true_class])
        check_rule(Policy("activelab", ActiveLab()), answered, posteriors=posteriors)
        check_score(ActiveLab())
