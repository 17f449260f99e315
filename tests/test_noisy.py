"""Noisy copies: labels wrong at the rate that was asked for, the truth beside them, all else as it was."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from relook import datasets, imported
from relook.collection import GIVEN, KEPT, NUMBER, Collection, Form
from relook.errors import BadInput
from relook.imported import Origin, verify
from relook.noise import cifar10_asymmetric
from relook.noisy import MODELS, Clean, Recipe, copy, model, of_imported, of_published
from relook.types import FloatArray

NAMES = ("cat", "dog", "elk")


def pets(items: int = 300, *, people: int = 1, **columns: Any) -> Collection:
    """Return items with a label each, or with answers of several people."""
    rng = np.random.default_rng(0)
    labels = [NAMES[number] for number in rng.integers(0, 3, items * people)]
    who = [GIVEN] * items if people == 1 else [f"p{n}" for n in range(people) for _ in range(items)]
    table = pl.DataFrame({"id": [f"pet{n}" for n in range(items)], **columns})
    return Collection(
        source="pets.csv",
        form=Form("csv", "items" if people == 1 else "answers", {"id": "id"}),
        classes=NAMES,
        ids=table["id"],
        items=table.lazy(),
        answers=pl.DataFrame({"item": list(range(items)) * people, "annotator": who, "label": labels}),
        facts=("Made up.",),
    )


def written(found: Collection, folder: Path, *, origin: Origin = imported.UNKNOWN) -> Path:
    imported.write(found, folder, origin=origin)
    return folder


class TestCopy:
    def test_labels_are_wrong_at_the_rate_and_the_truth_is_beside(self, tmp_path: Path) -> None:
        split, kept = ["a", "b"] * 150, [str(n) for n in range(300)]
        columns: dict[str, Any] = {"split": split, f"{KEPT}n": kept}
        source = written(pets(**columns), tmp_path / "pets")
        made, changed = copy(of_imported(source), Recipe(model="symmetric", rate=0.3), folder=tmp_path / "noisy")
        assert changed
        verify(made)
        again, before = made.dataset(), imported.read(source).dataset()
        assert again.truth is not None
        assert np.array_equal(again.true_class, before.given.given)
        wrong = again.given.given != again.true_class
        assert abs(wrong.mean() - 0.3) < 5 * np.sqrt(0.21 / 300)
        assert made.manifest.noise == {
            "model": "symmetric",
            "seed": 0,
            "rate": 0.3,
            "expected": pytest.approx(0.3),
            "reached": wrong.mean(),
            "wrong": wrong.sum(),
        }
        assert made.manifest.facts[0] == "Made up."
        assert f"seed 0: {wrong.sum()} of 300 are wrong" in made.manifest.facts[1]
        items = made.items().collect()
        assert (items["split"].to_list(), items[f"{KEPT}n"].to_list()) == (split, kept)
        assert made.manifest.form == Form("csv", "items", {"id": "id"})
        part = made.dataset("b")
        assert part.truth is not None
        assert np.array_equal(part.truth, again.truth[1::2])

    def test_truth_of_several_answers_is_their_shares(self, tmp_path: Path) -> None:
        source = written(pets(people=4), tmp_path / "pets")
        clean = of_imported(source)
        assert set(np.unique(clean.truth)) <= {0, 0.25, 0.5, 0.75, 1}
        made, _ = copy(clean, Recipe(model="temperature", tau=2.0), folder=tmp_path / "noisy")
        assert made.manifest.form == Form("csv"), "a label an item is no longer laid out as answers were"
        assert made.manifest.answers == 300

    def test_is_the_same_for_a_seed(self, tmp_path: Path) -> None:
        clean = of_imported(written(pets(), tmp_path / "pets"))
        one, _ = copy(clean, Recipe(model="symmetric", rate=0.3), folder=tmp_path / "one")
        same, changed = copy(clean, Recipe(model="symmetric", rate=0.3), folder=tmp_path / "one")
        assert (same, changed) == (one, False)
        other, _ = copy(clean, Recipe(model="symmetric", rate=0.3, seed=1), folder=tmp_path / "other")
        assert one.manifest.hashes["answers.parquet"] != other.manifest.hashes["answers.parquet"]
        assert one.manifest.hashes["truth.npy"] == other.manifest.hashes["truth.npy"]

    def test_a_copy_of_a_copy_keeps_the_truth(self, tmp_path: Path) -> None:
        clean = of_imported(written(pets(), tmp_path / "pets"))
        copy(clean, Recipe(model="symmetric", rate=0.3), folder=tmp_path / "one")
        again = of_imported(tmp_path / "one")
        assert np.array_equal(again.truth, clean.truth)

    def test_images_and_embeddings_come_along(self, tmp_path: Path) -> None:
        (tmp_path / "files").mkdir()
        for number in range(4):
            Image.new("L", (3, 2), number).save(tmp_path / "files" / f"{number}.png")
        found = pets(4, files=[[f"{number}.png"] for number in range(4)])
        vectors = {"embeddings": np.eye(4), "probabilities": np.full((4, 3), 1 / 3)}
        source = written(found, tmp_path / "pets", origin=Origin(root=tmp_path / "files", vectors=vectors))
        made, _ = copy(of_imported(source), Recipe(model="instance-dependent", rate=0.5), folder=tmp_path / "noisy")
        images = made.dataset().images
        assert images is not None
        assert [int(image.max()) for image in map(images.__getitem__, range(4))] == [0, 1, 2, 3]
        assert np.array_equal(made.vectors("embeddings"), np.eye(4))  # type: ignore[arg-type]
        assert made.vectors("probabilities") is None, "they were fitted to other labels"
        assert made.manifest.noise["embeddings"].startswith("blake2b:")  # type: ignore[union-attr]

    def test_numbers_stand_in_for_embeddings(self, tmp_path: Path) -> None:
        numbers = {f"{NUMBER}{name}": np.linspace(-1, 1, 300).tolist() for name in "ab"}
        clean = of_imported(written(pets(**numbers), tmp_path / "pets"))
        assert clean.embeddings is not None
        assert clean.embeddings.shape == (300, 2)
        made, _ = copy(clean, Recipe(model="instance-dependent", rate=0.2, std=0.0), folder=tmp_path / "noisy")
        assert made.manifest.noise["expected"] == pytest.approx(0.2)

    def test_an_item_without_a_label(self, tmp_path: Path) -> None:
        found = pets(3)
        import msgspec

        source = written(msgspec.structs.replace(found, answers=found.answers[:2]), tmp_path / "pets")
        with pytest.raises(
            BadInput, match=r"item 2 \(id pet2\): a label was needed to draw a noisy one from, but it has"
        ):
            of_imported(source)

    def test_published_sets(self, tmp_path: Path) -> None:
        clean = of_published("digits", None, settings={"seed": 3})
        made, _ = copy(clean, Recipe(model="instance-dependent", rate=0.2), folder=tmp_path / "noisy")
        again, digits = made.dataset(), datasets.load("digits")
        assert np.array_equal(again.truth, digits.truth)  # type: ignore[arg-type]
        assert np.array_equal(again.features, digits.features)  # type: ignore[arg-type]
        assert again.images is not None
        assert digits.images is not None
        assert np.array_equal(again.images[7], digits.images[7])
        assert again.classes == digits.classes

    def test_real_answers_of_people(self, data_dir: Path, tmp_path: Path) -> None:
        clean = of_published("cifar10h", data_dir, settings={})
        made, _ = copy(clean, Recipe(model="temperature", rate=0.3), folder=tmp_path / "noisy")
        assert made.manifest.noise["tau"] == pytest.approx(15.5051, abs=1e-3)
        assert abs(float(made.manifest.noise["reached"]) - 0.3) < 0.01


MATRIX = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
WANTED: dict[str, dict[str, Any]] = {"class-dependent": {"matrix": MATRIX}}


@given(name=st.sampled_from(sorted(MODELS)), rate=st.floats(0.02, 0.6), seed=st.integers(0, 9))
def test_every_model_hits_its_rate(name: str, rate: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth: FloatArray = rng.dirichlet([0.5, 0.5, 0.5], 400)
    recipe = Recipe(model=name, rate=rate, seed=seed, **WANTED.get(name, {}))
    least = 1 - truth.max(1).mean()
    try:
        made = model(recipe, truth, embeddings=rng.standard_normal((400, 3)))
    except BadInput as error:
        said = str(error)
    else:
        from relook.noise import expected_rate

        assert abs(expected_rate(made, truth) - rate) < 1e-6
        return
    assert name in ("temperature", "temperature-offset", "instance-dependent"), said
    assert f"reaches {least:.3f}"[:8] in said


class TestRecipes:
    @pytest.mark.parametrize(
        ("recipe", "message"),
        [
            ({"model": "salt"}, r"noise: a model was needed \(temperature, .+\), but 'salt' came; name one of them"),
            ({"model": "symmetric"}, r"noise: --rate was needed for symmetric, but it did not come; 20 % is 0\.2"),
            ({"model": "temperature"}, "noise: --rate was needed for temperature, but it did not come"),
            ({"model": "symmetric", "rate": 0.2, "tau": 2.0}, "--tau says nothing to symmetric, but it came; leave it"),
            ({"model": "temperature", "rate": 0.2, "tau": 2.0}, "noise: --rate or --tau was needed, but both came"),
            ({"model": "class-dependent", "rate": 0.2}, "class-dependent needs a matrix, but none came; give one with"),
            (
                {"model": "instance-dependent", "rate": 0.2},
                "instance-dependent looks at embeddings, but the set has none",
            ),
            (
                {"model": "class-dependent", "matrix": cifar10_asymmetric()},
                "a 3 x 3 matrix was needed, but 10 x 10 came",
            ),
            ({"model": "symmetric", "rate": 2.0}, "rate must lie in 0 to 1, but 2.0 came"),
        ],
    )
    def test_bad(self, recipe: dict[str, Any], message: str, tmp_path: Path) -> None:
        clean = of_imported(written(pets(), tmp_path / "pets"))
        with pytest.raises(BadInput, match=message):
            copy(clean, Recipe(**recipe), folder=tmp_path / "noisy")
        assert not (tmp_path / "noisy").exists()

    def test_settings_as_they_stand(self) -> None:
        truth = np.eye(3)
        assert model(Recipe(model="temperature", tau=3.0), truth).tau == 3.0  # type: ignore[union-attr]
        made = model(Recipe(model="temperature-offset", offset=0.5, matrix=MATRIX), truth)
        assert made.offset == 0.5  # type: ignore[union-attr]
        assert np.array_equal(model(Recipe(model="class-dependent", matrix=MATRIX), truth).rows(truth), MATRIX)

    def test_a_set_is_what_it_is(self) -> None:
        assert Clean(found=pets(), truth=np.eye(3)).embeddings is None
