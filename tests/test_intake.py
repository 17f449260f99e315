"""The form of a source is told by the source, or said; what belongs together is joined."""

import json
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from relook import imported
from relook.errors import BadInput
from relook.intake import FORMS, WANTED, Wanted, gathered, recognised
from relook.sources import Columns


def photo(path: Path, shade: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((4, 4, 3), shade, np.uint8)).save(path)
    return path


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    for number in range(4):
        photo(tmp_path / "pets" / ("cat" if number % 2 else "dog") / f"{number}.png", number)
    return tmp_path / "pets"


def read(source: Path, beside: Path, wanted: Wanted = WANTED) -> imported.Imported:
    with gathered(source, beside=beside, wanted=wanted) as (found, origin):
        return imported.write(found, beside, origin=origin)[0]


class TestRecognised:
    @pytest.mark.parametrize(
        ("name", "form"),
        [
            ("a.csv", "table"), ("a.TSV", "table"), ("a.parquet", "table"), ("a.jsonl", "table"), ("a.npz", "arrays"),
            ("a.json", "label-studio"), ("a.dcm", "dicom"), ("a.zip", "archive"), ("a.tar.gz", "archive"),
        ],
    )  # fmt: skip
    def test_files_by_their_names(self, name: str, form: str) -> None:
        assert recognised(Path(name)) == form

    def test_folders_by_what_they_hold(self, pets: Path, tmp_path: Path) -> None:
        assert recognised(pets) == "folder"
        (tmp_path / "scans" / "deep").mkdir(parents=True)
        assert recognised(tmp_path / "scans") == "folder"
        (tmp_path / "scans" / "deep" / "1.dcm").touch()
        assert recognised(tmp_path / "scans") == "dicom"
        (tmp_path / "hf").mkdir()
        (tmp_path / "hf" / "data.arrow").touch()
        assert recognised(tmp_path / "hf") == "huggingface"
        (tmp_path / "saved").mkdir()
        (tmp_path / "saved" / "dataset_info.json").touch()
        assert recognised(tmp_path / "saved") == "huggingface"

    def test_dicom_files_without_an_ending_are_known_by_their_mark(self, tmp_path: Path) -> None:
        (tmp_path / "study").mkdir()
        (tmp_path / "study" / "IM0001").write_bytes(bytes(128) + b"DICM" + bytes(20))
        assert recognised(tmp_path / "study") == "dicom"
        assert recognised(tmp_path / "study" / "IM0001") == "dicom"

    def test_what_nobody_knows_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match=r"known kind \(.*\), was needed, but \.docx came; say what it is"):
            recognised(tmp_path / "letter.docx")
        with pytest.raises(BadInput, match="was needed, but no suffix came"):
            recognised(tmp_path / "letter")


class TestRead:
    def test_a_folder_by_class(self, pets: Path, tmp_path: Path) -> None:
        made = read(pets, tmp_path / "set")
        assert made.dataset().given.given.tolist() == [0, 0, 1, 1]
        assert made.manifest.root == str(pets)
        assert made.images()[0].shape == (4, 4, 3)

    def test_a_folder_with_a_table(self, pets: Path, tmp_path: Path) -> None:
        (pets / "labels.csv").write_text("path,label\n" + "".join(f"{n}.png,{'x' if n else 'y'}\n" for n in range(4)))
        made = read(pets, tmp_path / "set")
        assert made.manifest.classes == ("x", "y")
        assert [Path(source.path).name for source in made.manifest.sources] == ["labels.csv"]

    def test_a_table_elsewhere_about_a_folder(self, pets: Path, tmp_path: Path) -> None:
        table = tmp_path / "elsewhere.csv"
        table.write_text("path,label\n" + "".join(f"{n}.png,{'x' if n else 'y'}\n" for n in range(4)))
        made = read(pets, tmp_path / "set", Wanted(labels=table))
        assert made.manifest.classes == ("x", "y")

    def test_a_table_that_names_images_beside_it(self, pets: Path, tmp_path: Path) -> None:
        table = pets / "list.csv"
        table.write_text("id,image_file,label\na,dog/0.png,dog\nb,cat/1.png,cat\n")
        made = read(table, tmp_path / "set", Wanted(Columns(files=("image_file",))))
        assert (made.manifest.content, made.manifest.items) == ("images", 2)
        assert made.images()[1].max() == 1

    def test_a_table_whose_images_lie_elsewhere(self, pets: Path, tmp_path: Path) -> None:
        table = tmp_path / "list.csv"
        table.write_text("id,label\n0,dog\n1,cat\n2,dog\n3,cat\n")
        made = read(table, tmp_path / "set", Wanted(images=pets))
        assert (made.manifest.content, made.manifest.items) == ("images", 4)

    def test_archives_carry_their_images_into_the_set(self, pets: Path, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "pets.zip", "w") as packed:
            for path in sorted(pets.rglob("*.png")):
                packed.write(path, path.relative_to(pets.parent))
        with tarfile.open(tmp_path / "pets.tar.gz", "w:gz") as tar:
            tar.add(pets, "pets")
        for name in ("pets.zip", "pets.tar.gz"):
            made = read(tmp_path / name, tmp_path / f"{name}-set")
            assert made.manifest.root is None
            assert made.dataset().given.given.tolist() == [0, 0, 1, 1]
            assert made.images()[3].max() == 2
            assert [source.path for source in made.manifest.sources] == [str(tmp_path / name)]
        assert {path.name for path in tmp_path.iterdir()} == {
            "pets", "pets.zip", "pets.tar.gz", "pets.zip-set", "pets.tar.gz-set"
        }  # fmt: skip

    def test_an_archive_of_a_table(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "t.zip", "w") as packed:
            packed.writestr("labels.csv", "id,label\na,cat\nb,dog\n")
        assert read(tmp_path / "t.zip", tmp_path / "set").manifest.items == 2

    def test_label_studio(self, tmp_path: Path) -> None:
        choice = {"type": "choices", "from_name": "c", "to_name": "t", "value": {"choices": ["cat"]}}
        tasks = [{"id": 1, "data": {"text": "purrs"}, "annotations": [{"completed_by": 7, "result": [choice]}]}]
        (tmp_path / "tasks.json").write_text(json.dumps(tasks))
        assert read(tmp_path / "tasks.json", tmp_path / "set").manifest.content == "text"

    def test_arrays(self, tmp_path: Path) -> None:
        np.save(tmp_path / "labels.npy", np.array([0, 1, 1]))
        assert read(tmp_path / "labels.npy", tmp_path / "set").dataset().given.given.tolist() == [0, 1, 1]

    def test_a_published_set_by_its_name(self, tmp_path: Path) -> None:
        made = read(Path("digits"), tmp_path / "set")
        assert (made.manifest.content, made.manifest.items) == ("images", 1797)

    def test_what_cannot_be_read_is_refused(self, pets: Path, tmp_path: Path) -> None:
        made = read(pets, tmp_path / "set")
        cases = {
            made.folder: (WANTED, "this set is imported already; rank it"),
            tmp_path / "none": (WANTED, "a file or a folder to import was needed, but there is none; check the path"),
            pets: (Wanted(form="papyrus"), "--form: .* were needed, but 'papyrus' came; take one of these"),
        }
        for source, (wanted, message) in cases.items():
            with pytest.raises(BadInput, match=message):
                read(source, tmp_path / "other", wanted)
        assert not (tmp_path / "other").exists()


def test_every_form_has_a_reader() -> None:
    from relook import intake

    assert set(FORMS) == {*intake._READERS, "archive"}
    assert set(intake._SUFFIXES.values()) <= set(FORMS)
