"""One trainer for the simulator and a live campaign: what it learns from, how answers weigh, what it says of itself."""

import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from relook.annotators import Perfect
from relook.datasets import load
from relook.discriminants import fitted, sums
from relook.errors import BadInput, MissingExtra
from relook.events import Ranking
from relook.folds import cut, out_of_fold
from relook.heads import Taken, taking, targets
from relook.methods import METHODS, Settings, trained
from relook.networks import METHODS as NETWORKS
from relook.networks import check_torch, pixels, stacked
from relook.policies import named
from relook.retraining import LAST, Training, Update, trainer
from relook.selectors import named as selector
from relook.simulation import Simulation, simulate
from relook.types import Dataset, FloatArray, IntArray, Labels, Posteriors
from relook.unlabelled import further

CLASSES, ITEMS = 3, 60


def clouds() -> Dataset:
    """Return items of three classes in two dimensions, of whose given labels a few are wrong."""
    rng = np.random.default_rng(0)
    true = np.arange(ITEMS) % CLASSES
    table = rng.normal(size=(ITEMS, 2)) + np.eye(3)[true][:, :2] * 3
    given = true.copy()
    given[::7] = (given[::7] + 1) % CLASSES
    names = tuple("abc")
    truth = np.eye(CLASSES)[true]
    return Dataset("clouds", names, [f"{i}" for i in range(ITEMS)], Labels(given, CLASSES), truth, features=table)


def answered(dataset: Dataset, items: slice = slice(0, 21, 7)) -> Labels:
    """Return the labels of a set with two right answers about some items."""
    answers = np.zeros((ITEMS, CLASSES), np.int64)
    answers[items] = 2 * np.eye(CLASSES, dtype=np.int64)[dataset.true_class[items]]
    return msgspec.structs.replace(dataset.given, answers=answers)


def test_a_record_comes_back_from_json_and_names_what_is_wrong() -> None:
    told = Training(method="lda", settings={"folds": 3}, targets="soft", answered_weight=2.5)
    assert msgspec.json.decode(msgspec.json.encode(told), type=Training) == told
    assert trainer(msgspec.to_builtins(told)) == trainer(told)
    with pytest.raises(BadInput, match=r"training: a method of|logistics. came; is logistic meant"):
        Training(method="logistics")
    with pytest.raises(BadInput, match=r"settings of folds, repeats, texts.*but 'fold' came; leave it out"):
        Training(settings={"fold": 3})
    with pytest.raises(BadInput, match="settings of networks are texts, but Expected"):
        Training(method="vanilla", settings={"device": 3})
    with pytest.raises(BadInput, match="training: a record of method, settings, targets"):
        trainer({"weight": 3})
    with pytest.raises(BadInput, match=r"an answered item must count more than 0 times, but 0.0 came"):
        Training(answered_weight=0.0)
    with pytest.raises(BadInput, match="a warm start needs networks and a folder that keeps them, but lda"):
        Training(method="lda", start="warm", keeps="x")
    with pytest.raises(BadInput, match="a recipe belongs to networks, but tiny came"):
        trainer({"method": "lda", "settings": {"recipe": "tiny"}})(clouds(), clouds().given)


@pytest.mark.parametrize("method", ["lda", "logistic", "knn", "average"])
def test_every_selector_is_trained_as_relook_train_does(method: str) -> None:
    dataset = clouds()
    found = trainer({"method": method, "settings": {"folds": 3}})(dataset, dataset.given, 4)
    np.testing.assert_array_equal(found.values, trained(method, dataset, settings=Settings(3, seed=4)).values)
    assert not found.in_sample


def test_posteriors_say_what_made_them() -> None:
    dataset = clouds()
    labels = answered(dataset)
    about = trainer({"method": "lda", "answered_weight": 3})(dataset, labels, 1).about
    assert about["selector"]["name"] == "Lda"
    assert about["selector"]["folds"] == 5
    assert about["training"]["answered_weight"] == 3
    assert (about["labels"], about["answers"], about["seed"]) == (dataset.given.fingerprint(), 6, 1)
    assert about["in_sample"] is False
    assert about["votes"] != trainer({"method": "lda"})(dataset, dataset.given, 1).about["votes"]


def test_answered_items_weigh_as_if_they_were_there_so_many_times() -> None:
    """Closed form: a discriminant of sums, with each answered item taken three times."""
    dataset = clouds()
    labels = answered(dataset)
    model: Any = taking(selector("lda"), Taken(answered_weight=3))
    found = model.in_sample(dataset.features, labels).mean()
    table = np.asarray(dataset.features)
    plain = ((table - table.mean(0)) / table.std(0)).astype(np.float32)
    times = np.where(np.asarray(labels.answers).sum(1) > 0, 3, 1)

    def closed(times: IntArray) -> FloatArray:
        rows = np.repeat(np.arange(ITEMS), times)
        shares = np.eye(CLASSES)[labels.label()[rows]]
        return fitted(sums(plain[rows], shares), shrinkage=model.shrinkage).predict(plain)

    np.testing.assert_allclose(found, closed(times), atol=1e-5)
    assert np.abs(found - closed(np.ones(ITEMS, np.int64))).max() > 1e-3, "the weight was left out"


def test_the_trainer_hands_the_weight_on() -> None:
    dataset = clouds()
    labels = answered(dataset)
    plain, heavy = (trainer({"method": "lda", "answered_weight": w})(dataset, labels, 0) for w in (1, 3))
    assert not np.allclose(plain.values, heavy.values)
    assert heavy.about["selector"]["targets"]["answered_weight"] == 3


def test_targets_are_labels_votes_weights_and_answered_items_alone() -> None:
    labels = Labels(np.array([0, 1, -1]), 2, answers=np.array([[0, 3], [0, 0], [1, 1]]))
    soft = targets(labels, Taken(targets="votes", answered_weight=2))
    np.testing.assert_allclose(soft[1], np.array([[0.5, 1.5], [0.0, 1.0], [1.0, 1.0]]))
    target, masses = targets(labels, Taken(learns_from="answered"))
    assert target.tolist() == [1, -1, -1], "a tie of answers without a given label teaches nothing"
    np.testing.assert_array_equal(masses, [[0, 1], [0, 0], [0, 0]])
    assert taking(selector("average"), Taken(answered_weight=2)).members[0].targets == Taken(answered_weight=2)


def test_answers_alone_are_learnt_from_where_that_is_asked() -> None:
    dataset = clouds()
    labels = answered(dataset, slice(0, 30))
    alone = trainer({"method": "lda", "learns_from": "answered"})(dataset, labels, 0)
    blind = Labels(np.where(np.arange(ITEMS) < 30, dataset.true_class, -1), CLASSES)
    np.testing.assert_allclose(alone.values, trainer({"method": "lda"})(dataset, blind, 0).values, atol=1e-6)


def test_the_simulator_retrains_through_the_trainer_that_a_campaign_calls() -> None:
    dataset = clouds()
    seen: list[int] = []

    @dataclasses.dataclass
    class Watched:
        update: Update

        def __call__(self, labels: Labels) -> Posteriors:
            seen.append(int(np.asarray(labels.answers).sum()))
            return self.update(labels)

    train = trainer({"method": "lda", "settings": {"folds": 2}})
    first = train(dataset, dataset.given)
    plan = Simulation(
        named("default"), 25, [Perfect(dataset.true_class)], first, update=Watched(train.on(dataset)), update_every=10
    )
    run = simulate(dataset, plan)
    assert seen == [10, 20]
    told = [event.posteriors for event in run.events if isinstance(event, Ranking)]
    assert len(set(told)) == 3, "each ranking is on posteriors of its own"
    assert told[0] == first.fingerprint()
    assert run.curve.share_correct[-1] > run.curve.share_correct[0]


def pictures(items: int = 40) -> Dataset:
    rng = np.random.default_rng(1)
    label = np.arange(items) % 2
    images = rng.integers(0, 60, (items, 8, 8)).astype(np.uint8)
    images[label == 1, :4] += 150
    return Dataset("bars", ("down", "up"), [str(i) for i in range(items)], Labels(label, 2), images=list(images))


def test_networks_train_in_the_same_way_and_go_on_from_the_last_ones(tmp_path: Path) -> None:
    dataset = pictures()
    settings = {"recipe": "tiny", "folds": 2, "folder": str(tmp_path / "steps")}
    record = {"method": "vanilla", "settings": {"recipe": "tiny"}, "start": "warm", "keeps": str(tmp_path / "kept")}
    train = trainer(record)
    first = train(dataset, dataset.given)
    answers = np.zeros((40, 2), np.int64)
    answers[3, 0] = 2
    second = train(dataset, Labels(dataset.given.given, 2, answers=answers))
    ended = msgspec.json.decode((tmp_path / "kept" / LAST).read_bytes())
    assert ended == [first.about["votes"], second.about["votes"]]
    anew = trainer(record | {"start": "anew", "keeps": None})(dataset, Labels(dataset.given.given, 2, answers=answers))
    assert not np.array_equal(second.values, anew.values)
    assert second.about["answers"] == anew.about["answers"] == 2
    assert second.about["votes"] == anew.about["votes"], "the start differs, what is learnt from does not"
    again = trainer(record | {"keeps": str(tmp_path / "kept")})(
        dataset, Labels(dataset.given.given, 2, answers=answers)
    )
    np.testing.assert_array_equal(again.values, second.values)
    answers[5, 1] = 2
    third = train(dataset, Labels(dataset.given.given, 2, answers=answers))
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {
        LAST,
        str(second.about["votes"]),
        str(third.about["votes"]),
    }
    marked = trainer({"method": "vanilla", "settings": settings | {"folds": 0}})(dataset, dataset.given)
    assert marked.in_sample
    assert marked.about["in_sample"] is True


def test_images_that_cannot_be_stacked_are_refused() -> None:
    with pytest.raises(BadInput, match="images were needed to train a network, but the set has none"):
        pixels(clouds())
    mixed = [np.zeros((4, 4), np.uint8), np.zeros((4, 5), np.uint8)]
    with pytest.raises(BadInput, match="images of one size were needed, but item 0 is 4 x 4 and item 1 4 x 5"):
        stacked(mixed, where="mixed")
    with pytest.raises(BadInput, match="8 bits a pixel were needed, but item 0 is uint16"):
        stacked([np.zeros((4, 4), np.uint16)], where="deep")
    assert stacked([np.zeros((4, 5, 3), np.uint8)], where="colour").shape == (1, 3, 4, 5)


def test_torch_is_asked_for_with_the_line_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    check_torch("recipe tiny")
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(
        MissingExtra, match=r"torch was needed, but it is not installed; run pip install 'relook\[train\]'"
    ):
        check_torch("recipe tiny")


def test_methods_are_one_table() -> None:
    assert set(METHODS) == {"lda", "logistic", "knn", "average", *NETWORKS}


def test_further_images_leave_out_those_of_the_set(tmp_path: Path) -> None:
    np.save(tmp_path / "more.npy", np.zeros((3, 8, 8), np.uint8))
    assert len(further(str(tmp_path / "more.npy"), pictures())) == 3
    np.save(tmp_path / "none.npy", np.zeros((3, 8)))
    with pytest.raises(BadInput, match="unlabelled images were needed, N x H x W or"):
        further(str(tmp_path / "none.npy"), pictures())


@pytest.mark.slow
def test_the_other_test_images_of_cifar_10_are_known_by_name(data_dir: Path) -> None:
    subset = load("cifar10h", data_dir, settings={"subset": "paper"})
    assert len(further("cifar10:test", subset, folder=data_dir)) == 5_000


def test_folds_of_groups_hold_for_networks_too() -> None:
    groups = [f"p{item // 4}" for item in range(40)]
    label = np.arange(40) % 2
    fold_of = cut(label, folds=2, rng=np.random.default_rng(0), groups=groups)
    assert all(len(set(fold_of[4 * g : 4 * g + 4].tolist())) == 1 for g in range(10))
    assert out_of_fold(lambda fold: np.ones((len(fold.asked), 2)), label, fold_of=fold_of, classes=2).shape == (40, 2)
