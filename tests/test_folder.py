"""A folder of images by class: what is a class, a split and an id, and what is told or refused."""

from pathlib import Path

import pytest

from relook import imported
from relook.collection import GIVEN
from relook.datasets import folder
from relook.errors import BadInput
from relook.sources import Columns
from tests.odd import noise, png

IMAGE = png(noise(4, 5), 8, 0)


def planted(root: Path, *names: str) -> Path:
    for number, name in enumerate(names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(png(noise(4, 5, seed=number), 8, 0))
    return root


def test_a_folder_is_a_class_and_a_path_an_id(tmp_path: Path) -> None:
    found = folder.collection(planted(tmp_path, "dog/1.png", "cat/deep/er/2.png", "cat/1.png"))
    assert found.ids.to_list() == ["cat/1.png", "cat/deep/er/2.png", "dog/1.png"]
    assert found.items.collect()["files"].to_list() == [[name] for name in found.ids]
    assert (found.classes, found.labels().given.tolist()) == (("cat", "dog"), [0, 0, 1])
    assert set(found.answers["annotator"]) == {GIVEN}
    assert (found.form.kind, dict(found.form.settings)) == ("folder", {"folders": "class"})
    assert found.facts == (f"{tmp_path}: 3 images in folders of 2 classes.",)


@pytest.mark.parametrize(
    ("names", "classes"),
    [
        (("10", "9", "1"), ("1", "9", "10")),
        (("z", "\u00e4", "a"), ("a", "z", "\u00e4")),
        (("\u732b", "\U0001f98a", "Cat", "cat"), ("Cat", "cat", "\u732b", "\U0001f98a")),
        (("cafe\u0301", "caf\u00e9"), ("cafe\u0301", "caf\u00e9")),
        (("train", "plane"), ("plane", "train")),
        (("a b", " a", "a\nb"), (" a", "a\nb", "a b")),
    ],
)
def test_classes_keep_their_names(names: tuple[str, ...], classes: tuple[str, ...], tmp_path: Path) -> None:
    found = folder.collection(planted(tmp_path, *(f"{name}/1.png" for name in names)))
    assert found.classes == classes
    assert sorted(found.ids) == sorted(f"{name}/1.png" for name in names)


def test_classes_are_numbered_as_the_user_says(tmp_path: Path) -> None:
    planted(tmp_path, "dog/1.png", "cat/1.png")
    found = folder.collection(tmp_path, columns=Columns(classes=("dog", "cat", "fox")))
    assert (found.classes, found.labels().given.tolist()) == (("dog", "cat", "fox"), [1, 0])
    assert found.facts[-1].endswith("classes without an image: fox.")
    with pytest.raises(BadInput, match="a class was needed, dog, but 'cat' came"):
        folder.collection(tmp_path, columns=Columns(classes=("dog",)))


def test_a_class_without_an_image_is_told(tmp_path: Path) -> None:
    (planted(tmp_path, "dog/1.png") / "cat").mkdir()
    found = folder.collection(tmp_path)
    assert (found.classes, found.facts[-1]) == (("cat", "dog"), f"{tmp_path}: classes without an image: cat.")


def test_folders_called_as_splits_are_splits(tmp_path: Path) -> None:
    found = folder.collection(planted(tmp_path, "train/cat/1.png", "train/dog/1.png", "Test/cat/1.png"))
    assert found.ids.to_list() == ["Test/cat/1.png", "train/cat/1.png", "train/dog/1.png"]
    assert found.items.collect()["split"].to_list() == ["Test", "train", "train"]
    assert (found.classes, found.labels().given.tolist()) == (("cat", "dog"), [0, 0, 1])
    assert dict(found.form.settings) == {"folders": "split/class"}
    assert found.facts == (f"{tmp_path}: 3 images in splits (Test, train) and folders of 2 classes.",)


def test_images_in_no_class_are_refused_unless_allowed(tmp_path: Path) -> None:
    planted(tmp_path, "cat/1.png", "2.png")
    with pytest.raises(BadInput, match=r"a folder a class were needed, but 1 image in none came .2\.png.; move them"):
        folder.collection(tmp_path)
    found = folder.collection(tmp_path, missing="allowed")
    assert (found.ids.to_list(), found.labels().given.tolist()) == (["2.png", "cat/1.png"], [-1, 0])
    assert found.facts[1].endswith("1 image in no folder of a class, taken in without a label.")


@pytest.mark.parametrize("names", [("1.png", "2.png"), ("train/1.png", "test/2.png")])
def test_images_in_no_class_at_all_are_refused(names: tuple[str, ...], tmp_path: Path) -> None:
    planted(tmp_path, *names)
    with pytest.raises(BadInput, match="a folder a class was needed, but no image lies in one; move them"):
        folder.collection(tmp_path, missing="allowed")


def test_it_is_imported_with_its_images(tmp_path: Path) -> None:
    found = folder.collection(planted(tmp_path / "pets", "cat/1.png", "dog/1.png", "dog/again.png"))
    (tmp_path / "pets" / "dog" / "again.png").write_bytes((tmp_path / "pets" / "cat" / "1.png").read_bytes())
    steps: list[int] = []
    origin = imported.Origin(root=tmp_path / "pets")
    made, changed = imported.write(found, tmp_path / "set", origin=origin, step=steps.append)
    assert changed
    assert sum(steps) == 3
    images = made.dataset().images
    assert images is not None
    assert images[0].tolist() == noise(4, 5, seed=0).tolist()
    assert made.manifest.facts[-1].startswith("Identical items with different labels: 1 hash")
    assert imported.write(found, tmp_path / "set", origin=origin)[1] is False


def test_a_damaged_image_is_refused_with_its_path(tmp_path: Path) -> None:
    planted(tmp_path / "pets", "cat/1.png", "dog/1.png")
    (tmp_path / "pets" / "dog" / "1.png").write_bytes(IMAGE[:-4])
    found = folder.collection(tmp_path / "pets")
    with pytest.raises(BadInput, match=r"pets/dog/1\.png: a whole image was needed, but it is cut off"):
        imported.write(found, tmp_path / "set", origin=imported.Origin(root=tmp_path / "pets"))
    assert [path.name for path in tmp_path.iterdir()] == ["pets"]
