"""Methods by name, labels of a file in place of the given ones, and a file that all that reads posteriors can read."""

from pathlib import Path

import numpy as np
import pytest

from relook import inputs
from relook.errors import BadInput
from relook.methods import Settings, relabelled, sentence, trained, write
from relook.selectors import SELECTORS
from relook.sources import LabelTable
from relook.types import Dataset, Labels, Posteriors

TRUE = np.arange(60) % 3
PETS = Dataset(
    "pets",
    ("cat", "dog", "fox"),
    [f"pet-{item}" for item in range(60)],
    Labels(TRUE, 3),
    features=np.eye(3)[TRUE] + np.random.default_rng(0).normal(size=(60, 3)) * 0.1,
)


@pytest.mark.parametrize("name", SELECTORS)
def test_every_selector_learns_out_of_sample(name: str) -> None:
    found = trained(name, PETS, settings=Settings(folds=3, repeats=2, seed=1))
    assert (found.mean().argmax(1) == TRUE).all()
    assert not found.in_sample
    assert "on the numbers of the items. Agrees with 100.0% of the given labels" in sentence(found)


class TestRelabelled:
    def test_by_order_and_by_number(self) -> None:
        table = LabelTable("l.npy", (TRUE + 1) % 3)
        assert (relabelled(PETS, table).given.given == (TRUE + 1) % 3).all()

    def test_by_id_and_by_name(self) -> None:
        table = LabelTable("l.csv", np.array([0, 1, -1]), names=("fox", "cat"), ids=["pet-5", "pet-2", "pet-9"])
        given = relabelled(PETS, table).given.given
        assert (given[5], given[2], given[9]) == (2, 0, -1)
        assert (given >= 0).sum() == 2

    def test_names_that_are_numbers(self) -> None:
        table = LabelTable("l.csv", np.array([0, 1] * 30), names=("2", "0"))
        assert relabelled(PETS, table).given.given[:2].tolist() == [2, 0]

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            (
                LabelTable("l", np.zeros(4, int)),
                "a label for each of 60 items of pets was needed, but 4 came",
            ),
            (LabelTable("l", np.zeros(1, int), ids=["x"]), "labels of items of pets were needed, but no id is one of"),
            (
                LabelTable("l", np.full(60, 3)),
                r"a class from 0 to 2 of pets was needed, but 3 came; are these its labels\?",
            ),
            (LabelTable("l", np.zeros(60, int), names=("owl",)), "'owl' is no such name; rename it"),
            (LabelTable("l", np.zeros((60, 2), int)), "one label an item was needed to learn from, but several came"),
        ],
    )
    def test_labels_of_something_else_are_refused(self, table: LabelTable, message: str) -> None:
        with pytest.raises(BadInput, match=message):
            relabelled(PETS, table)


class TestFile:
    @pytest.mark.parametrize("models", [1, 3])
    def test_is_read_back_with_ids_and_labels(self, tmp_path: Path, models: int) -> None:
        values = np.random.default_rng(0).dirichlet(np.ones(3) * 0.1, (models, 60))
        path = tmp_path / "p.npz"
        write(Posteriors(values), PETS, path=path)
        with np.load(path, allow_pickle=False) as held:
            assert held["posteriors"].dtype == np.float16
            assert held["posteriors"].ndim == (2 if models == 1 else 3)
        both = inputs.together(path, path)
        assert both.posteriors.models == models
        assert both.ids is not None
        assert list(both.ids) == list(PETS.ids)
        assert (both.labels.given == TRUE).all()
        np.testing.assert_allclose(both.posteriors.values, values, atol=1e-3)

    def test_a_thousand_classes_in_16_bits_are_still_probabilities(self, tmp_path: Path) -> None:
        rng = np.random.default_rng(0)
        values = np.vstack([rng.dirichlet(np.full(1000, each), 20) for each in (0.01, 1.0, 100.0)])
        names = tuple(str(number) for number in range(1000))
        dataset = Dataset("many", names, [str(item) for item in range(60)], Labels(np.arange(60), 1000))
        write(Posteriors(values), dataset, path=tmp_path / "p.npz")
        assert inputs.probabilities(tmp_path / "p.npz").ids == [str(item) for item in range(60)]
        assert Posteriors(np.load(tmp_path / "p.npz")["posteriors"]).items == 60
        assert np.load(tmp_path / "p.npz")["ids"].dtype.kind == "i"

    def test_the_same_posteriors_make_the_same_bytes(self, tmp_path: Path) -> None:
        for name in ("a", "b"):
            write(trained("average", PETS, settings=Settings()), PETS, path=tmp_path / f"{name}.npz")
        assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()

    @pytest.mark.parametrize(
        ("name", "message"),
        [("p.npy", "an npz file to write to was needed, but .npy came"), ("no/p.npz", "a folder to write the post")],
    )
    def test_places_that_cannot_be_written_to(self, tmp_path: Path, name: str, message: str) -> None:
        with pytest.raises(BadInput, match=message):
            write(Posteriors(np.ones((60, 3)) / 3), PETS, path=tmp_path / name)


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(BadInput, match="method: one of logistic, lda, knn, average"):
        trained("forest", PETS, settings=Settings())
