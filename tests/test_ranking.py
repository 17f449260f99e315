"""The table of a ranking holds what a plain loop over the items finds, in every kind of file."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from relook.alignment import Matched, matched
from relook.errors import BadInput
from relook.policies import BOUNDS, POLICIES, Setting
from relook.predictions import predictions
from relook.ranking import (
    COLUMNS,
    Ranked,
    WrongLabels,
    check_target,
    ranked,
    ranking_policy,
    write,
    write_json,
    wrong_labels,
)
from relook.sources import LabelTable, ProbabilityTable

RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.full(3, 0.7), 200)
GIVEN = np.where(RNG.random(200) < 0.7, P.argmax(1), RNG.integers(-1, 3, 200))


def both(given: Any = GIVEN, values: Any = P, **said: Any) -> Matched:
    return matched(LabelTable("labels", np.asarray(given), **said), ProbabilityTable("p", np.asarray(values)))


def table(policy: str = "margin", *, of: Matched | None = None, setting: Setting | None = None) -> Ranked:
    of = both() if of is None else of
    rule = ranking_policy(policy, setting=setting or Setting())
    return ranked(of, rule, seen=predictions(of.labels, of.posteriors))


class TestTable:
    def test_rows_are_those_of_a_plain_loop(self) -> None:
        rows = table().rows(200)
        assert [tuple(row) for row in rows] == [COLUMNS] * 200
        for place, row in enumerate(rows):
            p, given = P[row["id"]], GIVEN[row["id"]]
            assert row["rank"] == place + 1
            assert row["suggested"] == str(p.argmax())
            assert row["suggested_probability"] == pytest.approx(p.max())
            assert row["ambiguity"] == pytest.approx(-(p * np.log(p + 1e-12)).sum())
            if given < 0:
                assert (row["given"], row["label_quality"]) == (None, None)
                assert row["noisiness"] == pytest.approx(-np.log(p + 1e-12).mean())
            else:
                assert (row["given"], row["label_quality"]) == (str(given), pytest.approx(p[given]))
                assert row["noisiness"] == pytest.approx(-np.log(p[given] + 1e-12))
                assert row["priority"] == pytest.approx(np.delete(p, given).max() - p[given])
        assert sorted(row["id"] for row in rows) == list(range(200))
        assert [row["priority"] for row in rows] == sorted((row["priority"] for row in rows), reverse=True)

    def test_the_first_rows_are_the_head_of_the_table(self) -> None:
        assert table().rows(7) == table().rows(200)[:7]

    def test_on_a_tie_the_lower_item_comes_first(self) -> None:
        first = RNG.choice([0.2, 0.3, 0.4], 3000)
        found = table(of=both(np.zeros(3000, int), np.stack([first, 1 - first], 1)))
        assert found.order.tolist() == sorted(range(3000), key=lambda item: (first[item], item))

    def test_classes_and_ids_have_their_names(self) -> None:
        named = matched(
            LabelTable("labels", np.array([0, 1]), names=("cat", "dog"), ids=["a", "b"]),
            ProbabilityTable("p", np.array([[0.1, 0.9], [0.3, 0.7]]), names=("cat", "dog")),
        )
        first = table(of=named).rows(1)[0]
        assert (first["id"], first["given"], first["suggested"]) == ("a", "cat", "dog")

    def test_counts_show_their_majority(self) -> None:
        found = table("ce", of=both([[3, 1, 0], [0, 0, 2]], P[:2])).rows(2)
        assert {row["id"]: row["given"] for row in found} == {0: "0", 1: "2"}
        log = -np.log(P[0] + 1e-12)
        assert {row["id"]: row["noisiness"] for row in found}[0] == pytest.approx(0.75 * log[0] + 0.25 * log[1])

    def test_models_are_averaged(self) -> None:
        models = RNG.dirichlet(np.ones(3), (4, 200))
        for row in table(of=both(GIVEN, models)).rows(200):
            assert row["suggested_probability"] == pytest.approx(models.mean(0)[row["id"]].max())

    def test_every_policy_ranks(self) -> None:
        several = both(GIVEN, RNG.dirichlet(np.ones(3), (4, 200)))
        for name in set(POLICIES) - set(BOUNDS):
            assert sorted(table(name, of=several).order.tolist()) == list(range(200)), name

    def test_seed_and_weight_reach_the_policy(self) -> None:
        orders = [table("random", setting=Setting(seed=seed)).order.tolist() for seed in (1, 1, 2)]
        assert orders[0] == orders[1] != orders[2]

    @pytest.mark.parametrize("name", BOUNDS)
    def test_a_bound_is_refused(self, name: str) -> None:
        with pytest.raises(
            BadInput, match=f"policy {name}: a rule that does without the truth was needed, but this one"
        ):
            table(name)

    def test_a_rule_of_several_models_is_refused_for_one(self) -> None:
        with pytest.raises(BadInput, match="policy bald: probabilities of several models, M x N x C, were needed"):
            table("bald")

    def test_a_rule_that_looks_at_other_rows_in_secret_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "mine.py").write_text("def score(rows):\n    return rows.mean[:, 0] - rows.mean[:, 0].mean()\n")
        with pytest.raises(BadInput, match="rowwise = False"):
            table(f"{tmp_path / 'mine.py'}:score")


class TestFiles:
    @pytest.mark.parametrize(("name", "mark"), [("x.csv", ","), ("x.tsv", "\t")])
    def test_text(self, tmp_path: Path, name: str, mark: str) -> None:
        write(table(), tmp_path / name)
        with (tmp_path / name).open(newline="") as file:
            lines = list(csv.DictReader(file, delimiter=mark))
        assert tuple(lines[0]) == COLUMNS
        for line, row in zip(lines, table().rows(200), strict=True):
            assert (line["id"], line["given"]) == (str(row["id"]), row["given"] or "")
            assert float(line["priority"]) == pytest.approx(row["priority"], abs=1e-6)
        assert list(tmp_path.iterdir()) == [tmp_path / name]

    def test_parquet_and_json_hold_every_row(self, tmp_path: Path) -> None:
        write(table(), tmp_path / "x.parquet")
        assert pl.read_parquet(tmp_path / "x.parquet").to_dicts() == table().rows(200)
        write_json(table(), tmp_path / "x.json")
        read = json.loads((tmp_path / "x.json").read_text())
        assert [row["id"] for row in read] == table().order.tolist()
        assert tuple(read[0]) == COLUMNS
        assert read[0]["priority"] == pytest.approx(table().rows(1)[0]["priority"])

    def test_a_file_is_seen_whole_or_not_at_all(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "x.csv").write_text("before")

        def fails(*_: Any, **__: Any) -> None:
            raise OSError("no space left")

        monkeypatch.setattr(pl.DataFrame, "write_csv", fails)
        with pytest.raises(OSError, match="no space left"):
            write(table(), tmp_path / "x.csv")
        assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("x.csv", "before")]

    def test_targets_are_checked(self, tmp_path: Path) -> None:
        check_target(tmp_path / "x.CSV")
        with pytest.raises(
            BadInput, match=r"a csv, tsv or parquet file was needed, but \.xlsx came; name one with --to"
        ):
            check_target(tmp_path / "x.xlsx")
        with pytest.raises(BadInput, match=r"a folder to write to was needed, but .*gone is none; make it"):
            check_target(tmp_path / "gone" / "x.csv")
        (tmp_path / "folder.csv").mkdir()
        with pytest.raises(BadInput, match="a file to write to was needed, but this is a folder; name a file in it"):
            check_target(tmp_path / "folder.csv")

    def test_a_folder_that_may_not_be_written_to_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("os.access", lambda *_: False)
        with pytest.raises(BadInput, match="a folder that may be written to was needed, but"):
            check_target(tmp_path / "x.csv")


class TestWrongLabels:
    def test_are_counted_as_a_plain_loop_counts_them(self) -> None:
        seen = predictions(both().labels, both().posteriors)
        usual = [P[k == GIVEN, k].mean() for k in range(3)]
        against = surely = differs = 0
        for p, label in zip(P, GIVEN, strict=True):
            if label < 0:
                continue
            likely = [k for k in range(3) if p[k] >= usual[k]]
            wrong = bool(likely) and max(likely, key=lambda k: p[k]) != label
            against += wrong
            surely += wrong and p[label] < 0.1 * p.max()
            differs += p.argmax() != label
        count = (GIVEN >= 0).sum()
        found = wrong_labels(both(), seen)
        assert found is not None
        assert (found.share, found.low, found.high) == pytest.approx((against / count, surely / count, differs / count))

    @pytest.mark.parametrize("rate", [0.05, 0.2, 0.4])
    def test_of_digits_lie_in_the_range(self, rate: float) -> None:
        from relook.datasets.digits import load
        from relook.selectors.logistic import cross_fitted

        digits = load(rate=rate)
        assert digits.features is not None
        found = both(digits.given.given, cross_fitted(digits.features, digits.given, folds=2).mean())
        wrong = wrong_labels(found, predictions(found.labels, found.posteriors))
        true = (digits.given.given != digits.true_class).mean()
        assert wrong is not None
        assert wrong.low <= true <= wrong.high
        assert wrong.share == pytest.approx(true, abs=0.05)

    def test_cannot_be_told_in_sample_or_by_chance(self) -> None:
        given = np.arange(300) % 3
        learnt = both(given, 0.005 + 0.985 * np.eye(3)[given])
        assert wrong_labels(learnt, predictions(learnt.labels, learnt.posteriors)) is None
        other = both(given, RNG.dirichlet(np.ones(3), 300))
        assert wrong_labels(other, predictions(other.labels, other.posteriors)) is None

    def test_a_class_that_nobody_has_is_nobodys_rival(self) -> None:
        given = np.arange(300) % 2
        values = np.where(np.eye(3)[given] == 1, 0.5, 0.25)
        found = both(given, values)
        wrong = wrong_labels(found, predictions(found.labels, found.posteriors))
        assert wrong == WrongLabels(0.0, 0.0, 0.0)


@pytest.mark.parametrize(("name", "mark"), [("x.csv", ","), ("x.tsv", "\t")])
def test_a_formula_for_an_id_runs_in_no_spreadsheet(tmp_path: Path, name: str, mark: str) -> None:
    ids = ["=1+1", "@x", *(str(item) for item in range(198))]
    write(table(of=both(ids=ids)), tmp_path / name)
    with (tmp_path / name).open(newline="") as file:
        found = [row["id"] for row in csv.DictReader(file, delimiter=mark)]
    assert {"'=1+1", "'@x"} <= set(found)
    assert not [cell for cell in found if cell.startswith(("=", "@"))]
